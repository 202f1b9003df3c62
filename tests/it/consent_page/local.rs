//! A server without a socket, and the browser of its user.

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Method, Request},
};
use lambda_tools::{
    ApiKeys, Auth, Failure, OAuth, ServerInfo, Tool, Toolkit, oauth::Provider, secrets::Secrets,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tower::ServiceExt;

use test_support::openid::form_in;

use crate::support::server;

const KEY: &str = "a-key-of-this-server-0123456789abcdef";

pub(super) const AUTHORIZE: &str = "https://provider.example/authorize";

pub(super) struct Page {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Page {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    /// Returns the part of the cookie that a browser sends back.
    pub(super) fn cookie(&self) -> &str {
        self.header("set-cookie").split(';').next().unwrap()
    }

    #[track_caller]
    pub(super) fn form(&self) -> &str {
        form_in(&self.body).unwrap_or_else(|| panic!("{}", self.body))
    }
}

/// The differences between servers.
pub(super) struct Setup {
    pub(super) auth: Auth,
    pub(super) info: ServerInfo,
    pub(super) provider: Provider,
    /// The id of the provider, and the scopes that the tool needs.
    pub(super) needs: (&'static str, Vec<String>),
    /// False if the provider's client secret is missing.
    pub(super) has_secret: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            auth: ApiKeys::with_ids(["PARTNER", "GUEST"]).into(),
            info: ServerInfo::default(),
            provider: mail_at(AUTHORIZE),
            needs: ("mail", vec!["mail.read".to_owned()]),
            has_secret: true,
        }
    }
}

/// Returns the provider `mail`, which issues tokens at this URL.
pub(super) fn mail_at(token_url: &str) -> Provider {
    Provider::new("mail", "id", "SECRET", AUTHORIZE, token_url)
        .scope("offline")
        .parameter("audience", "mails")
}

#[derive(Clone)]
pub(super) struct Local(Router);

impl Local {
    pub(super) fn with_two_callers() -> Self {
        Self::with(Setup::default())
    }

    pub(super) fn with(setup: Setup) -> Self {
        Self(Self::start(setup).unwrap())
    }

    pub(super) fn start(setup: Setup) -> Result<Router, String> {
        /// Reads emails.
        #[derive(Deserialize, JsonSchema)]
        struct Read {}

        async fn read(_: Read) -> Result<(), Failure> {
            Ok(())
        }

        let (provider, scopes) = setup.needs;
        let tool = Tool::new("Mail.Read@1.0.0", read).authorization(provider, scopes);
        let mut secrets = vec![
            ("TOOLS_OAUTH_KEY", KEY),
            ("PARTNER", "key-of-a-partner"),
            ("GUEST", "key-of-one-guest"),
        ];
        if setup.has_secret {
            secrets.push(("SECRET", "secret-of-this-server"));
        }
        let server = server(Toolkit::new([tool]).unwrap())
            .auth(setup.auth)
            .info(setup.info)
            .secrets(Secrets::fixed(secrets))
            .public_url("https://tools.example")
            .oauth(OAuth::with([setup.provider]));
        server.into_router().map_err(|error| error.to_string())
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Page {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).unwrap();
        let response = self.0.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        Page {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    /// Makes a call; returns the id of its challenge.
    pub(super) async fn challenge(&self, key: &str, user: &str) -> String {
        let body = json!({"tool_id": "Mail.Read", "context": {"user_id": user}}).to_string();
        let headers = [("oxp-api-key", key)];
        let response = self.send(Method::POST, "/tools/call", &headers, body).await;
        let body: Value = serde_json::from_str(&response.body).unwrap();
        let challenge = &body["missing_requirements"]["authorization"][0];
        let id = challenge["id"].as_str();
        id.unwrap_or_else(|| panic!("{body}")).to_owned()
    }

    pub(super) async fn status(&self, id: &str) -> String {
        let path = format!("/authorization/challenges/{id}");
        let response = self.send(Method::GET, &path, &[], "").await;
        let body: Value = serde_json::from_str(&response.body).unwrap();
        body["status"].as_str().unwrap().to_owned()
    }

    pub(super) async fn open(&self, id: &str) -> Page {
        let path = format!("/authorization/challenges/{id}/start");
        self.send(Method::GET, &path, &[], "").await
    }

    pub(super) async fn submit(&self, id: &str, cookie: Option<&str>, body: &str) -> Page {
        let path = format!("/authorization/challenges/{id}/start");
        let kind = ("content-type", "application/x-www-form-urlencoded");
        let cookie = cookie.map(|cookie| ("cookie", cookie));
        let headers: Vec<_> = cookie.into_iter().chain([kind]).collect();
        let body = body.to_owned();
        self.send(Method::POST, &path, &headers, body).await
    }

    /// Presses the button, and returns from the provider with these parameters.
    pub(super) async fn finish(&self, id: &str, parameters: &str) -> Page {
        let page = self.open(id).await;
        let form = format!("form={}", page.form());
        let redirect = self.submit(id, Some(page.cookie()), &form).await;
        let location = redirect.header("location");
        let (_, state) = location.split_once("state=").unwrap();
        let state = state.split('&').next().unwrap();
        let path = format!("/authorization/mail/callback?state={state}&{parameters}");
        let headers = [("cookie", page.cookie())];
        self.send(Method::GET, &path, &headers, "").await
    }
}
