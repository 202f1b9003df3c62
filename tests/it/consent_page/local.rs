//! A server without a socket, and the browsers of its users.

use axum::{Router, body::Body};
use lambda_tools::{
    ApiKeys, Auth, Context, Failure, OAuth, ServerInfo, Tool, Toolkit, oauth::Provider,
    secrets::Secrets,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use test_support::{issuer::Issuer, openid::form_in};

pub(crate) use crate::support::Page;
use crate::support::{self, server};

const KEY: &str = "a-key-of-this-server-0123456789abcdef";

pub(crate) const AUTHORIZE: &str = "https://provider.example/authorize";

impl Page {
    /// Returns the part of the cookie that a browser sends back.
    pub(crate) fn cookie(&self) -> &str {
        self.header("set-cookie").split(';').next().unwrap()
    }

    #[track_caller]
    pub(crate) fn form(&self) -> &str {
        form_in(&self.body).unwrap_or_else(|| panic!("{}", self.body))
    }

    /// Returns the `state` of a redirect to the provider.
    pub(crate) fn state(&self) -> &str {
        let (_, state) = self.header("location").split_once("&state=").unwrap();
        state.split('&').next().unwrap()
    }
}

/// The differences between servers.
pub(crate) struct Setup {
    pub(crate) auth: Auth,
    pub(crate) info: ServerInfo,
    pub(crate) oauth: OAuth,
    /// The id of the provider, and the scopes that the tool needs.
    pub(crate) needs: (&'static str, Vec<String>),
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            auth: ApiKeys::with_ids(["PARTNER", "GUEST"]).into(),
            info: ServerInfo::default(),
            oauth: OAuth::with([mail_at(AUTHORIZE)]),
            needs: ("mail", vec!["mail.read".to_owned()]),
        }
    }
}

/// Returns the provider `mail`, which issues tokens at this URL.
pub(crate) fn mail_at(token_url: &str) -> Provider {
    Provider::new("mail", "id", "SECRET", AUTHORIZE, token_url)
        .scope("offline")
        .parameter("audience", "mails")
}

/// Returns the settings with a provider that issues tokens for every code.
pub(crate) fn oauth_at(issuer: &Issuer) -> OAuth {
    OAuth::with([mail_at(&format!("{}/token", issuer.url))])
}

/// Returns the id of the challenge in the response to a call.
#[track_caller]
pub(crate) fn challenge_in(body: &Value) -> String {
    let id = body["missing_requirements"]["authorization"][0]["id"].as_str();
    id.unwrap_or_else(|| panic!("{body}")).to_owned()
}

#[derive(Clone)]
pub(crate) struct Local(Router);

impl Local {
    pub(crate) fn with(setup: Setup) -> Self {
        Self(Self::start(setup).unwrap())
    }

    #[cfg(all(feature = "client", feature = "jwt"))]
    pub(crate) fn with_oauth(oauth: OAuth) -> Self {
        Self::with(Setup {
            oauth,
            ..Setup::default()
        })
    }

    pub(crate) fn start(setup: Setup) -> Result<Router, String> {
        /// Returns the token, which no real tool should do.
        #[derive(Deserialize, JsonSchema)]
        struct Use {
            /// Reports that the provider's API does not accept it.
            #[serde(default)]
            reject: bool,
        }

        async fn with_token(input: Use, cx: Context) -> Result<String, Failure> {
            if input.reject {
                return Err(cx.token_rejected("mail"));
            }
            Ok(cx.token("mail")?.expose().to_owned())
        }

        let (provider, scopes) = setup.needs;
        let tools = [
            Tool::new("Mail.Read@1.0.0", with_token).authorization(provider, scopes),
            Tool::new("Mail.Send@1.0.0", with_token).authorization(provider, ["mail.send"]),
        ];
        let server = server(Toolkit::new(tools).unwrap())
            .auth(setup.auth)
            .info(setup.info)
            .secrets(Secrets::fixed([
                ("TOOLS_OAUTH_KEY", KEY),
                ("NEW_KEY", "another-key-of-this-server-0123456789"),
                ("PARTNER", "key-of-a-partner"),
                ("GUEST", "key-of-one-guest"),
                ("SECRET", "secret-of-this-server"),
            ]))
            .public_url("https://tools.example")
            .oauth(setup.oauth);
        server.into_router().map_err(|error| error.to_string())
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Page {
        support::send(&self.0, method, path, headers, body).await
    }

    /// Calls a tool for a user.
    pub(crate) async fn call_tool(&self, tool: &str, input: Value, user: &str) -> Value {
        let body = json!({"tool_id": tool, "input": input, "context": {"user_id": user}});
        let headers = [("oxp-api-key", "key-of-a-partner")];
        let sent = self.send("POST", "/tools/call", &headers, body.to_string());
        sent.await.json()
    }

    pub(crate) async fn call(&self, user: &str) -> Value {
        self.call_tool("Mail.Read", json!({}), user).await
    }

    /// Makes a call; returns the id of its challenge.
    pub(crate) async fn challenge(&self, user: &str) -> String {
        challenge_in(&self.call(user).await)
    }

    pub(crate) async fn status(&self, id: &str) -> String {
        let path = format!("/authorization/challenges/{id}");
        let response = self.send("GET", &path, &[], "").await;
        response.json()["status"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn open(&self, id: &str) -> Page {
        let path = format!("/authorization/challenges/{id}/start");
        self.send("GET", &path, &[], "").await
    }

    pub(crate) async fn submit(&self, id: &str, cookie: Option<&str>, body: &str) -> Page {
        let path = format!("/authorization/challenges/{id}/start");
        let kind = ("content-type", "application/x-www-form-urlencoded");
        let cookie = cookie.map(|cookie| ("cookie", cookie));
        let headers: Vec<_> = cookie.into_iter().chain([kind]).collect();
        let body = body.to_owned();
        self.send("POST", &path, &headers, body).await
    }

    /// Presses the button of the consent page; returns the redirect to the provider.
    pub(crate) async fn press(&self, id: &str, page: &Page) -> Page {
        let form = format!("form={}", page.form());
        self.submit(id, Some(page.cookie()), &form).await
    }

    /// Opens the consent page and presses its button.
    pub(crate) async fn to_provider(&self, id: &str) -> Page {
        self.press(id, &self.open(id).await).await
    }

    /// Returns from the provider with this query.
    pub(crate) async fn back(&self, cookie: &str, query: &str) -> Page {
        let path = format!("/authorization/mail/callback?{query}");
        let headers = [("cookie", cookie)];
        self.send("GET", &path, &headers, "").await
    }

    /// Lets a user allow access.
    #[cfg(all(feature = "client", feature = "jwt"))]
    pub(crate) async fn granted(&self, user: &str) {
        self.finish(&self.challenge(user).await, "code=c").await;
    }

    /// Goes to the provider, and returns with these parameters.
    pub(crate) async fn finish(&self, id: &str, parameters: &str) -> Page {
        let redirect = self.to_provider(id).await;
        let query = format!("state={}&{parameters}", redirect.state());
        self.back(redirect.cookie(), &query).await
    }
}
