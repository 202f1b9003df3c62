//! The OpenID provider, where users sign in and allow tools to act for them, and their browsers.

use std::{
    collections::HashMap,
    process::{Command, Stdio},
};

use reqwest::{Response, Url, redirect::Policy};
use serde_json::Value;

use crate::{Running, repository};

/// A running provider, stopped when dropped.
pub struct OpenId {
    /// Its URL, which is also its issuer.
    pub url: String,
    _running: Running,
}

impl OpenId {
    /// Starts one with the default settings.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts one with settings of `oidc_provider.mjs`.
    pub fn with(settings: &[(&str, &str)]) -> Self {
        let script = repository("target/openid/oidc_provider.mjs");
        let installed = repository("target/openid/node_modules/oidc-provider").exists();
        assert!(
            script.exists() && installed,
            "npm's oidc-provider is not installed; run tests/all, which does it"
        );
        let mut command = Command::new("node");
        command.arg(script).stderr(Stdio::null());
        let settings = settings.iter();
        command.args(settings.map(|(name, value)| format!("{name}={value}")));
        let running = Running::start(&mut command);
        Self {
            url: running.url_after("Serving OpenID on"),
            _running: running,
        }
    }

    /// Returns the variables with which a server uses it in place of Google, without storing
    /// grants.
    pub fn variables(&self) -> [(&'static str, &str); 4] {
        [
            ("TOOLS_GOOGLE_CLIENT_ID", "toolbox"),
            ("TOOLS_GOOGLE_CLIENT_SECRET", "toolbox-secret"),
            ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
            ("TOOLS_GOOGLE_ISSUER", &self.url),
        ]
    }

    /// Registers a server's redirect URI.
    pub async fn allow_redirects_to(&self, server: &str) {
        self.allow_redirect(&format!("{server}/authorization/google/callback"))
            .await;
    }

    /// Registers any redirect URI.
    pub async fn allow_redirect(&self, uri: &str) {
        self.get("redirect_uri", &[("uri", uri)]).await;
    }

    /// Revokes all grants of a user.
    pub async fn revoke(&self, user: &str) {
        let response = self.get("revoke", &[("user", user)]).await;
        assert!(response["revoked"].as_u64().unwrap() > 0);
    }

    /// Returns the numbers of successful and of failed token requests with this grant type.
    pub async fn token_requests(&self, grant: &str) -> (u64, u64) {
        let stats = self.get("stats", &[]).await;
        let count = |result: &str| stats[grant][result].as_u64().unwrap_or_default();
        (count("ok"), count("failed"))
    }

    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Value {
        let url = Url::parse_with_params(&format!("{}/test/{path}", self.url), query).unwrap();
        reqwest::get(url).await.unwrap().json().await.unwrap()
    }
}

/// A user's decision on the provider's pages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Logs in and allows access.
    Allow,
    /// Denies access.
    Deny,
}

/// A user's browser, with its own cookies.
pub struct Browser {
    client: reqwest::Client,
    user: String,
}

/// A page, or a redirect that was not followed.
#[derive(Debug)]
pub struct Page {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HashMap<String, String>,
    /// The text.
    pub body: String,
}

impl Browser {
    /// Creates the browser of a user who logs in with this name.
    pub fn of(user: &str) -> Self {
        let client = reqwest::Client::builder()
            .cookie_store(true)
            .redirect(Policy::none())
            .build();
        Self {
            client: client.unwrap(),
            user: user.to_owned(),
        }
    }

    /// Opens a page.
    pub async fn get(&self, url: &str) -> Page {
        page_of(self.client.get(url).send().await.unwrap()).await
    }

    /// Opens a challenge's consent page and presses its button.
    pub async fn start(&self, url: &str) -> Page {
        let page = self.get(url).await;
        let form = form_in(&page.body).unwrap_or_else(|| panic!("{url} {page:?}"));
        let sent = self.client.post(url).form(&[("form", form)]).send();
        page_of(sent.await.unwrap()).await
    }

    /// Follows a link through the provider and back to the last page.
    pub async fn follow(&self, url: &str, act: Act) -> Page {
        let callback = self.follow_to_callback(url, act).await;
        self.get(callback.as_str()).await
    }

    /// Follows a link until the provider redirects the browser back; returns the callback's URL.
    pub async fn follow_to_callback(&self, url: &str, act: Act) -> Url {
        let mut url: Url = url.parse().unwrap();
        let mut response = self.client.get(url.clone()).send().await.unwrap();
        for _ in 0..12 {
            if response.status().is_redirection() {
                let location = response.headers()["location"].to_str().unwrap();
                url = url.join(location).unwrap();
                if url.path().ends_with("/callback") {
                    return url;
                }
                response = self.client.get(url.clone()).send().await.unwrap();
                continue;
            }
            let status = response.status();
            let page = response.text().await.unwrap();
            if let Some(form) = form_in(&page) {
                let fields = [("form", form), ("answer", "continue")];
                let sent = self.client.post(url.clone()).form(&fields);
                response = sent.send().await.unwrap();
                continue;
            }
            let is_form = page.contains("Sign in") || page.contains("Allow access");
            assert!(status == 200 && is_form, "{status} {url} {page}");
            let action = if act == Act::Allow { "allow" } else { "deny" };
            let login = ("login", &*self.user);
            let fields = [login, ("password", "x"), ("action", action)];
            let sent = self.client.post(url.clone()).form(&fields).send();
            response = sent.await.unwrap();
        }
        panic!("{url} does not lead to the callback");
    }
}

/// Returns the value that the form on the library's consent page submits.
pub fn form_in(page: &str) -> Option<&str> {
    let (_, field) = page.split_once("name=\"form\" value=\"")?;
    Some(field.split_once('"')?.0)
}

async fn page_of(response: Response) -> Page {
    let text = |value: &reqwest::header::HeaderValue| value.to_str().unwrap().to_owned();
    let headers = response.headers().iter();
    let headers = headers.map(|(name, value)| (name.to_string(), text(value)));
    Page {
        status: response.status().as_u16(),
        headers: headers.collect(),
        body: response.text().await.unwrap(),
    }
}
