//! Sign-in for clients that no provider knows, on two instances that share a store: no request
//! reaches the instance of the one before.

mod attacks;
mod documents;
mod long;
#[cfg(feature = "client")]
mod rules;
mod sessions;
mod surface;

use std::{
    collections::HashMap,
    future::ready,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use axum::{Router, extract::Request};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use lambda_tools::{
    Auth, Context, Failure, OAuth, SignIn, Tool, Toolkit,
    secrets::Secrets,
    store::{Field, PutOutcome, Record, Store, StoreFuture, Write},
    testing::LambdaFunction,
};
use reqwest::{Client, Url, redirect::Policy};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use test_support::{
    Served,
    function_url::{event_of, response_of},
    issuer::{Algorithm, Issuer},
};

use crate::{consent_page::long::Recorded, support::server};

pub(crate) const KEY: &str = "a-key-of-this-server-0123456789abcdef";
const CLIENT: &str = "upstream-client";
const VERIFIER: &str = "a-verifier-of-this-test-0123456789-abcdefgh";
const CALLBACK: &str = "https://client.example/callback";

/// A store that all instances share.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<HashMap<String, Record>>>);

impl Shared {
    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Returns the size of the largest field of bytes.
    fn largest_field(&self) -> usize {
        let records = self.0.lock().unwrap();
        let fields = records.values().flat_map(|it| &it.fields);
        let sizes = fields.map(|(_, field)| match field {
            Field::Bytes(bytes) => bytes.len(),
            _ => 0,
        });
        sizes.max().unwrap_or_default()
    }
}

impl Store for Shared {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
        Box::pin(ready(Ok(self.0.lock().unwrap().get(id).cloned())))
    }

    fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome> {
        let mut records = self.0.lock().unwrap();
        let current = records.get(write.id);
        let outcome = if write.may_replace(current) {
            records.insert(write.id.to_owned(), write.record.clone());
            PutOutcome::Written
        } else {
            PutOutcome::Conflict(current.cloned())
        };
        Box::pin(ready(Ok(outcome)))
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        let mut records = self.0.lock().unwrap();
        if records.get(id).is_some_and(|it| it.version == version) {
            records.remove(id);
        }
        Box::pin(ready(Ok(())))
    }
}

/// Returns tools that say for whom they run, one of which needs a scope.
fn tools() -> Toolkit {
    /// Says for whom it runs.
    #[derive(Deserialize, JsonSchema)]
    struct Whose {}

    let whose = async |_: Whose, cx: Context| {
        let (groups, scopes) = (cx.caller().groups(), cx.caller().scopes());
        let whose = json!({"user": cx.user_id(), "groups": groups, "scopes": scopes});
        Ok::<_, Failure>(whose.to_string())
    };
    let whose = Tool::new("Mail.Whose@1.0.0", whose).user_id();
    let upstream =
        async |_: Whose, cx: Context| Ok::<_, Failure>(cx.token("openid")?.expose().to_owned());
    let upstream = Tool::new("Mail.Upstream@1.0.0", upstream).authorization("openid", ["email"]);
    let nothing = async |_: Value| Ok::<_, Failure>(Value::Null);
    let input = json!({"type": "object"});
    let send = Tool::dynamic("Mail.Send@1.0.0", "Sends.", input, json!({}), nothing);
    Toolkit::new([whose, upstream, send.scope("mail.send")]).unwrap()
}

/// A running server of two instances, and the provider at which its users sign in.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) upstream: Issuer,
    pub(crate) store: Shared,
    /// The seconds by which the server's clocks are ahead.
    ahead: Arc<AtomicU64>,
    _served: Option<Served>,
}

impl Server {
    async fn start() -> Self {
        Self::with(|sign_in| sign_in.allow("anyone")).await
    }

    async fn with(change: impl Fn(SignIn) -> SignIn) -> Self {
        Self::with_keys(change, KEY).await
    }

    async fn with_key(key: &str) -> Self {
        Self::with_keys(|sign_in| sign_in.allow("anyone"), key).await
    }

    async fn with_keys(change: impl Fn(SignIn) -> SignIn, key: &str) -> Self {
        let upstream = Issuer::start().await;
        upstream.change(|it| it.tokens = upstream_tokens);
        let store = Shared::default();
        let sign_in = change(SignIn::openid(&upstream.url, CLIENT, "SECRET"));
        let ahead = Arc::default();
        let router = async |url: &str| {
            let instance = || instance(sign_in.clone(), store.clone(), key, url, &ahead);
            alternating([instance(), instance()])
        };
        let served = Served::start_with(router).await;
        Self {
            url: served.url.clone(),
            upstream,
            store,
            ahead,
            _served: Some(served),
        }
    }

    /// Starts the server again with other settings, at another address but under the same URL.
    async fn again(&self, change: impl Fn(SignIn) -> SignIn) -> Self {
        let sign_in = change(SignIn::openid(&self.upstream.url, CLIENT, "SECRET"));
        let instance = || {
            instance(
                sign_in.clone(),
                self.store.clone(),
                KEY,
                &self.url,
                &self.ahead,
            )
        };
        Self::at(Served::start(alternating([instance(), instance()])).await).await
    }

    /// Returns a server that a test has started itself.
    async fn at(served: Served) -> Self {
        let url = served.url.clone();
        Self {
            _served: Some(served),
            ..Self::in_a_process(url).await
        }
    }

    /// Returns a server that runs in a process of its own.
    async fn in_a_process(url: String) -> Self {
        Self {
            url,
            upstream: Issuer::start().await,
            store: Shared::default(),
            ahead: Arc::default(),
            _served: None,
        }
    }

    /// Lets this time pass for the server.
    fn later(&self, time: Duration) {
        self.ahead.fetch_add(time.as_secs(), Ordering::Relaxed);
    }

    /// Registers a client with this redirect URI, and returns its id.
    async fn registered(&self, redirect_uri: &str) -> String {
        let body = json!({"client_name": "Test", "redirect_uris": [redirect_uri]});
        let (status, answer) = self.post_json("register", &body).await;
        assert_eq!(status, 201, "{answer}");
        answer["client_id"].as_str().unwrap().to_owned()
    }

    async fn post_json(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = Client::new().post(format!("{}/{path}", self.url));
        answer_of(request.body(body.to_string()).send().await.unwrap()).await
    }

    async fn post_form(&self, path: &str, fields: &[(&str, &str)]) -> (u16, Value) {
        let request = Client::new().post(format!("{}/{path}", self.url));
        answer_of(request.form(fields).send().await.unwrap()).await
    }

    /// Returns the URL of an authorization request; `changes` replaces or, if empty, removes
    /// parameters.
    fn authorize_url(&self, client: &str, changes: &[(&str, &str)]) -> Url {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
        let resource = format!("{}/mcp", self.url);
        let mut parameters = vec![
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", CALLBACK),
            ("state", "client-state"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &resource),
        ];
        for (name, value) in changes {
            parameters.retain(|(it, _)| it != name);
            if !value.is_empty() {
                parameters.push((name, value));
            }
        }
        Url::parse_with_params(&format!("{}/authorize", self.url), parameters).unwrap()
    }

    /// Signs a user in for a client, and returns the code.
    async fn code(&self, client: &str, user: &str) -> String {
        let browser = Browser::new();
        let url = self.authorize_url(client, &[]);
        parameter(&browser.sign_in(&url, user).await, "code").unwrap()
    }

    async fn redeem(&self, client: &str, code: &str) -> (u16, Value) {
        self.redeem_with(client, code, &[]).await
    }

    async fn redeem_with(
        &self,
        client: &str,
        code: &str,
        changes: &[(&str, &str)],
    ) -> (u16, Value) {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", CALLBACK),
        ];
        for (name, value) in changes {
            fields.retain(|(it, _)| it != name);
            if !value.is_empty() {
                fields.push((name, value));
            }
        }
        self.post_form("token", &fields).await
    }

    async fn refresh(&self, client: &str, token: &str) -> (u16, Value) {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", client),
            ("refresh_token", token),
        ];
        self.post_form("token", &fields).await
    }

    /// Signs a user in, and returns the client and its tokens.
    async fn tokens(&self, user: &str) -> (String, Value) {
        let client = self.registered(CALLBACK).await;
        let code = self.code(&client, user).await;
        let (status, tokens) = self.redeem(&client, &code).await;
        assert_eq!(status, 200, "{tokens}");
        (client, tokens)
    }

    /// Calls the tool that says for whom it runs.
    async fn whose(&self, token: &str) -> (u16, Value) {
        let request = Client::new().post(format!("{}/tools/call", self.url));
        let request = request
            .bearer_auth(token)
            .body(r#"{"tool_id": "Mail.Whose"}"#);
        let (status, answer) = answer_of(request.send().await.unwrap()).await;
        let said = answer["value"]
            .as_str()
            .map(|it| serde_json::from_str(it).unwrap());
        (status, said.unwrap_or(answer))
    }
}

/// Returns one instance of a server with these settings.
fn instance(
    sign_in: SignIn,
    store: Shared,
    key: &str,
    url: &str,
    ahead: &Arc<AtomicU64>,
) -> Arc<LambdaFunction> {
    let secrets = [("SECRET", "upstream-secret"), ("TOOLS_OAUTH_KEY", key)];
    let server = server(tools())
        .auth(Auth::from(sign_in).scope("mail.read"))
        .oauth(OAuth::with([]).in_store(store))
        .secrets(Secrets::fixed(secrets))
        .public_url(url);
    let (wall, monotonic) = (Arc::clone(ahead), Arc::clone(ahead));
    let seconds = |ahead: &AtomicU64| Duration::from_secs(ahead.load(Ordering::Relaxed));
    let wall = move || SystemTime::now() + seconds(&wall);
    let instant = move || Instant::now() + seconds(&monotonic);
    Arc::new(LambdaFunction::with_clocks(server, wall, instant))
}

/// Returns a router that passes each request to the next instance.
fn alternating(instances: [Arc<LambdaFunction>; 2]) -> Router {
    let number = Arc::new(AtomicUsize::new(0));
    Router::new().fallback(move |request: Request| {
        let number = number.fetch_add(1, Ordering::Relaxed);
        let instance = Arc::clone(&instances[number % 2]);
        async move {
            let (parts, body) = request.into_parts();
            let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
            let event = event_of(&parts, &body).to_string();
            response_of(&instance.invoke(&event).await.unwrap())
        }
    })
}

/// Returns the provider's tokens for a code or a refresh token, which says what the ID token has:
/// its issuer, and claims.
fn upstream_tokens(body: &str) -> Value {
    upstream_tokens_with(body, &json!({}))
}

/// Returns the same tokens with other claims.
fn upstream_tokens_with(body: &str, changes: &Value) -> Value {
    let query = Url::parse(&format!("http://localhost/?{body}")).unwrap();
    let find = |name: &str| query.query_pairs().find(|(it, _)| it == name);
    let (_, text) = find("code").or_else(|| find("refresh_token")).unwrap();
    let mut claims: Value = serde_json::from_str(&text).unwrap();
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let key = test_support::issuer::key(Algorithm::RS256);
    json!({
        "access_token": "upstream-access",
        "refresh_token": text,
        "id_token": key.sign_as(&json!({"alg": "RS256", "kid": key.kid}), &claims),
        "token_type": "bearer",
        "expires_in": 3600,
    })
}

/// A user's browser.
struct Browser(Client);

impl Browser {
    fn new() -> Self {
        let client = Client::builder()
            .cookie_store(true)
            .redirect(Policy::none());
        Self(client.build().unwrap())
    }

    /// Opens a page; returns its status, and its text or where it redirects to.
    async fn open(&self, url: &str) -> (u16, String) {
        page_of(self.0.get(url).send().await.unwrap()).await
    }

    /// Submits the consent page.
    async fn submit(&self, url: &Url, form: &str, answer: &str) -> (u16, String) {
        let fields = [("form", form), ("answer", answer)];
        page_of(self.0.post(url.clone()).form(&fields).send().await.unwrap()).await
    }

    /// Agrees, or has agreed before; returns the provider's URL.
    async fn to_provider(&self, url: &Url) -> Url {
        let (status, page) = self.open(url.as_str()).await;
        if status == 303 {
            return page.parse().unwrap();
        }
        let form =
            test_support::openid::form_in(&page).unwrap_or_else(|| panic!("{status} {page}"));
        let (status, provider) = self.submit(url, form, "continue").await;
        assert_eq!(status, 303, "{provider}");
        provider.parse().unwrap()
    }

    /// Signs in as a user; returns the URL at which the client gets the result.
    async fn sign_in(&self, url: &Url, user: &str) -> Url {
        self.sign_in_with(url, &json!({"sub": user})).await
    }

    /// Signs in with these claims in the ID token.
    async fn sign_in_with(&self, url: &Url, claims: &Value) -> Url {
        let provider = self.to_provider(url).await;
        let callback = callback_of(&provider, claims);
        let (status, client) = self.open(callback.as_str()).await;
        assert_eq!(status, 303, "{client}");
        client.parse().unwrap()
    }
}

/// Returns the URL to which the provider redirects a user whose ID token has these claims.
fn callback_of(provider: &Url, changes: &Value) -> Url {
    let asked = |name| parameter(provider, name).unwrap();
    let issuer = provider.origin().ascii_serialization();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let mut claims = json!({
        "iss": issuer,
        "aud": CLIENT,
        "nonce": asked("nonce"),
        "exp": now + 100 * 24 * 3600,
    });
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let (code, state) = (claims.to_string(), asked("state"));
    let parameters = [("code", &*code), ("state", &state)];
    Url::parse_with_params(&asked("redirect_uri"), parameters).unwrap()
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    let mut pairs = url.query_pairs();
    let found = pairs.find(|(it, _)| it == name);
    found.map(|(_, value)| value.into_owned())
}

async fn page_of(response: reqwest::Response) -> (u16, String) {
    let status = response.status().as_u16();
    let location = response.headers().get("location").cloned();
    match location {
        Some(location) => (status, location.to_str().unwrap().to_owned()),
        None => (status, response.text().await.unwrap()),
    }
}

async fn answer_of(response: reqwest::Response) -> (u16, Value) {
    let status = response.status().as_u16();
    (status, response.json().await.unwrap_or_default())
}

/// Returns the pages that differ from those of grants, for Chromium.
pub(crate) async fn pages() -> Recorded {
    let hosts = documents::Hosts::with_a_client();
    let server = documents::serving(&hosts).await;
    let app = "cursor://anysphere.cursor-mcp/oauth/callback";
    let registration = json!({
        "client_name": format!("<b>\u{202e}{}", "long name ".repeat(20)),
        "redirect_uris": [app],
    });
    let (_, registered) = server.post_json("register", &registration).await;
    let id = registered["client_id"].as_str().unwrap();
    let local = ("redirect_uri", "http://localhost:3118/callback");
    let mut pages = Recorded::new();
    for (name, status, client, change) in [
        ("document", 200, documents::ID, ("scope", "mail.send")),
        ("program", 200, documents::ID, local),
        ("app", 200, id, ("redirect_uri", app)),
        ("unknown", 400, "unknown", local),
    ] {
        let url = server.authorize_url(client, &[change]);
        let response = reqwest::get(url).await.unwrap();
        assert_eq!(response.status(), status, "{name}");
        let mut headers = response.headers().clone();
        for name in ["set-cookie", "content-length", "date"] {
            headers.remove(name);
        }
        let page = (status, headers, response.text().await.unwrap());
        pages.insert(format!("sign-in-{name}"), page);
    }
    pages
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_nobody_knows_signs_its_user_in() {
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    let url = server.authorize_url(&client, &[("scope", "mail.send unknown")]);
    let claims = json!({"sub": "alice", "groups": ["staff"]});
    let landed = Browser::new().sign_in_with(&url, &claims).await;
    assert!(landed.as_str().starts_with(CALLBACK), "{landed}");
    assert_eq!(parameter(&landed, "state").as_deref(), Some("client-state"));
    assert_eq!(parameter(&landed, "iss"), Some(server.url.clone()));
    let code = parameter(&landed, "code").unwrap();
    let (status, tokens) = server.redeem(&client, &code).await;
    assert_eq!(status, 200, "{tokens}");
    assert_eq!(tokens["token_type"], "Bearer");
    assert_eq!(tokens["expires_in"], 1800);
    assert_eq!(tokens["scope"], "mail.read mail.send");
    let (status, said) = server.whose(tokens["access_token"].as_str().unwrap()).await;
    let expected = json!({
        "user": "alice",
        "groups": ["staff"],
        "scopes": ["mail.read", "mail.send"],
    });
    assert_eq!((status, said), (200, expected));
}
