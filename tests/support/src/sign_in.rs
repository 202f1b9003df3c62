//! Identity providers where the users of this server's clients sign in.

use std::process::{Command, Stdio};

use reqwest::Url;
use serde_json::Value;

use crate::{Running, installed, repository};

/// A running identity provider, stopped when dropped.
pub struct IdentityProvider {
    /// Its issuer.
    pub issuer: String,
    /// For messages of failing tests.
    pub name: &'static str,
    running: Running,
}

impl IdentityProvider {
    /// npm's `oidc-provider`, with settings of `sign_in_provider.mjs`.
    pub fn oidc_provider(settings: &[(&str, &str)]) -> Self {
        let script = repository("target/openid/sign_in_provider.mjs");
        let is_installed = repository("target/openid/node_modules/oidc-provider").exists();
        assert!(
            script.exists() && is_installed,
            "npm's oidc-provider is not installed; run tests/all, which does it"
        );
        let mut command = Command::new("node");
        command.arg(script);
        let settings = settings.iter();
        command.args(settings.map(|(name, value)| format!("{name}={value}")));
        Self::start("oidc-provider", &mut command)
    }

    /// PyPI's Authlib.
    pub fn authlib() -> Self {
        let mut command = Command::new(installed("python"));
        command.arg(repository(
            "functions/toolbox/tests/openid/authlib_provider.py",
        ));
        Self::start("Authlib", &mut command)
    }

    /// A user pool of Cognito, as moto serves it, with one user; returns an access token of this
    /// user and the client's ID as well.
    pub fn cognito(user: &str) -> (Self, String, String) {
        let mut command = Command::new(installed("python"));
        command.arg(repository(
            "functions/toolbox/tests/openid/cognito_provider.py",
        ));
        let provider = Self::start("Cognito", command.arg(user));
        let line = provider.running.line_with("access_token", 20);
        let answer: Value = serde_json::from_str(&line).unwrap();
        let text = |name: &str| answer[name].as_str().unwrap().to_owned();
        (provider, text("access_token"), text("client_id"))
    }

    fn start(name: &'static str, command: &mut Command) -> Self {
        let running = Running::start(command.stderr(Stdio::null()));
        let line = running.line_with("Serving OpenID on", 30);
        let (_, issuer) = line.split_once("on ").unwrap();
        Self {
            issuer: issuer.to_owned(),
            name,
            running,
        }
    }

    /// An access token without a browser; the parameters are those of `sign_in_provider.mjs`.
    pub async fn token(&self, parameters: &[(&str, &str)]) -> String {
        let url = Url::parse_with_params(&format!("{}/test/token", self.issuer), parameters);
        let answer = reqwest::get(url.unwrap()).await.unwrap();
        let answer: Value = answer.json().await.unwrap();
        answer["access_token"].as_str().unwrap().to_owned()
    }

    /// Signs with new keys from now on. The old ones still verify.
    pub async fn rotate_keys(&self) {
        let url = format!("{}/test/rotate_keys", self.issuer);
        let answer = reqwest::Client::new().post(url).send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
    }

    /// How often the keys have been fetched.
    pub async fn key_fetches(&self) -> u64 {
        let answer = reqwest::get(format!("{}/test/stats", self.issuer)).await;
        let stats: Value = answer.unwrap().json().await.unwrap();
        stats["/jwks"].as_u64().unwrap()
    }
}
