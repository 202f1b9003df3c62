//! Sign-in for clients that no provider knows, on two instances that share a store: no request
//! reaches the instance of the one before.

mod attacks;
mod documents;
#[cfg(feature = "client")]
mod rules;
mod sessions;
mod surface;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use axum::{Router, extract::Request};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use lambda_tools::{
    Auth, Context, Failure, OAuth, SignIn, Tool, Toolkit, secrets::Secrets, testing::LambdaFunction,
};
use reqwest::{Client, Url, redirect::Policy};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use test_support::{
    Served,
    function_url::{event_of, response_of},
    issuer::{Behaviour, Issuer},
    openid::form_in,
};

use crate::{
    consent_page::long::Recorded,
    support::{Nothing, Shared, idle, server},
};

const KEY: &str = "a-key-of-this-server-0123456789abcdef";
const CLIENT: &str = "upstream-client";
const VERIFIER: &str = "a-verifier-of-this-test-0123456789-abcdefgh";
const CALLBACK: &str = "https://client.example/callback";
const APP: &str = "cursor://anysphere.cursor-mcp/oauth/callback";

/// Returns tools that say for whom they run, one of which needs a scope.
fn tools() -> Toolkit {
    let whose = async |_: Nothing, cx: Context| {
        let (groups, scopes) = (cx.caller().groups(), cx.caller().scopes());
        let whose = json!({"user": cx.user_id(), "groups": groups, "scopes": scopes});
        Ok::<_, Failure>(whose.to_string())
    };
    let whose = Tool::new("Mail.Whose@1.0.0", whose).user_id();
    let upstream =
        async |_: Nothing, cx: Context| Ok::<_, Failure>(cx.token("openid")?.expose().to_owned());
    let upstream = Tool::new("Mail.Upstream@1.0.0", upstream).authorization("openid", ["email"]);
    let send = idle("Mail.Send@1.0.0", "Sends.").scope("mail.send");
    Toolkit::new([whose, upstream, send]).unwrap()
}

/// The instances of a server, of which the first one gets the next request.
type Instances = Arc<Mutex<Vec<Arc<LambdaFunction>>>>;

/// A running server of two instances, and the provider at which its users sign in.
struct Server {
    url: String,
    upstream: Issuer,
    store: Shared,
    /// The seconds by which the server's clocks are ahead.
    ahead: Arc<AtomicU64>,
    instances: Instances,
    http: Client,
    _front: Served,
}

impl Server {
    async fn start() -> Self {
        Self::with(|sign_in| sign_in.allow("anyone")).await
    }

    /// Starts one at which a client is registered, and returns the client's id.
    async fn with_client() -> (Self, String) {
        let server = Self::start().await;
        let client = server.registered(CALLBACK).await;
        (server, client)
    }

    async fn with(change: impl FnOnce(SignIn) -> SignIn) -> Self {
        let (upstream, instances) = (Issuer::start().await, Instances::default());
        upstream.change(|it| it.tokens = upstream_tokens);
        let front = Served::start(alternating(Arc::clone(&instances))).await;
        let server = Self {
            url: front.url.clone(),
            upstream,
            store: Shared::default(),
            ahead: Arc::default(),
            instances,
            http: Client::new(),
            _front: front,
        };
        server.replace(change);
        server
    }

    /// Replaces the instances by new ones with these settings.
    fn replace(&self, change: impl FnOnce(SignIn) -> SignIn) {
        let sign_in = change(SignIn::openid(&self.upstream.url, CLIENT, "SECRET"));
        let instances = (0..2).map(|_| self.instance(sign_in.clone()));
        *self.instances.lock().unwrap() = instances.collect();
    }

    fn instance(&self, sign_in: SignIn) -> Arc<LambdaFunction> {
        let secrets = [("SECRET", "upstream-secret"), ("TOOLS_OAUTH_KEY", KEY)];
        let server = server(tools())
            .auth(Auth::from(sign_in).scope("mail.read"))
            .oauth(OAuth::with([]).in_store(self.store.clone()))
            .secrets(Secrets::fixed(secrets))
            .public_url(&*self.url);
        let (wall, monotonic) = (Arc::clone(&self.ahead), Arc::clone(&self.ahead));
        let seconds = |ahead: &AtomicU64| Duration::from_secs(ahead.load(Ordering::Relaxed));
        let wall = move || SystemTime::now() + seconds(&wall);
        let instant = move || Instant::now() + seconds(&monotonic);
        Arc::new(LambdaFunction::with_clocks(server, wall, instant))
    }

    fn change_upstream(&self, change: impl FnOnce(&mut Behaviour)) {
        self.upstream.change(change);
    }

    /// Lets this time pass for the server.
    fn later(&self, time: Duration) {
        self.ahead.fetch_add(time.as_secs(), Ordering::Relaxed);
    }

    /// Registers a client with this redirect URI, and returns its id.
    async fn registered(&self, redirect_uri: &str) -> String {
        let body = json!({"client_name": "Test", "redirect_uris": [redirect_uri]});
        let (status, answer) = self.register(&body).await;
        assert_eq!(status, 201, "{answer}");
        answer["client_id"].as_str().unwrap().to_owned()
    }

    async fn register(&self, body: &Value) -> (u16, Value) {
        let request = self.http.post(format!("{}/register", self.url));
        answer_of(request.body(body.to_string()).send().await.unwrap()).await
    }

    async fn post_form(&self, path: &str, fields: &[(&str, &str)]) -> (u16, Value) {
        let request = self.http.post(format!("{}/{path}", self.url));
        answer_of(request.form(fields).send().await.unwrap()).await
    }

    /// Returns the URL of an authorization request; `changes` replaces or, if empty, removes
    /// parameters.
    fn authorize_url(&self, client: &str, changes: &[(&str, &str)]) -> Url {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
        let resource = format!("{}/mcp", self.url);
        let parameters = [
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", CALLBACK),
            ("state", "client-state"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &resource),
        ];
        let parameters = changed(&parameters, changes);
        Url::parse_with_params(&format!("{}/authorize", self.url), parameters).unwrap()
    }

    /// Opens an authorization request in a new browser.
    async fn opened(&self, client: &str, changes: &[(&str, &str)]) -> (u16, String) {
        Browser::new()
            .open(self.authorize_url(client, changes))
            .await
    }

    /// Signs a user in with these claims in the ID token; returns where the client gets the result.
    async fn landed(&self, client: &str, claims: &Value) -> Url {
        let url = self.authorize_url(client, &[]);
        Browser::new().sign_in(&url, claims).await
    }

    /// Signs a user in with these claims, and returns the code.
    async fn code(&self, client: &str, claims: &Value) -> String {
        let landed = self.landed(client, claims).await;
        parameter(&landed, "code").unwrap_or_else(|| panic!("{landed}"))
    }

    /// Exchanges a code for tokens; `changes` replaces or, if empty, removes fields.
    async fn redeem(&self, client: &str, code: &str, changes: &[(&str, &str)]) -> (u16, Value) {
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", CALLBACK),
        ];
        self.post_form("token", &changed(&fields, changes)).await
    }

    async fn redeemed(&self, client: &str, code: &str) -> Value {
        let (status, tokens) = self.redeem(client, code, &[]).await;
        assert_eq!(status, 200, "{tokens}");
        tokens
    }

    /// Uses the refresh token among these tokens.
    async fn refresh(&self, client: &str, tokens: &Value) -> (u16, Value) {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", client),
            ("refresh_token", text(tokens, "refresh_token")),
        ];
        self.post_form("token", &fields).await
    }

    /// Signs a user in with these claims, and returns the client and its tokens.
    async fn tokens(&self, claims: &Value) -> (String, Value) {
        let client = self.registered(CALLBACK).await;
        let code = self.code(&client, claims).await;
        let tokens = self.redeemed(&client, &code).await;
        (client, tokens)
    }

    async fn call(&self, tool: &str, token: &str) -> (u16, Value) {
        let request = self.http.post(format!("{}/tools/call", self.url));
        let request = request.bearer_auth(token);
        let request = request.body(json!({"tool_id": tool}).to_string());
        answer_of(request.send().await.unwrap()).await
    }

    /// Calls the tool that says for whom it runs, with the access token among these tokens.
    async fn whose(&self, tokens: &Value) -> Value {
        let (status, answer) = self.call("Mail.Whose", text(tokens, "access_token")).await;
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(text(&answer, "value")).unwrap()
    }
}

/// The claims of most users.
fn alice() -> Value {
    json!({"sub": "alice"})
}

fn text<'a>(answer: &'a Value, name: &str) -> &'a str {
    let text = answer[name].as_str();
    text.unwrap_or_else(|| panic!("{name} {answer}"))
}

/// Returns parameters of which some are replaced or, if empty, removed.
fn changed<'a>(
    parameters: &[(&'a str, &'a str)],
    changes: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let is_kept = |name: &str| changes.iter().all(|(it, _)| *it != name);
    let kept = parameters.iter().filter(|(name, _)| is_kept(name));
    let new = changes.iter().filter(|(_, value)| !value.is_empty());
    kept.chain(new).copied().collect()
}

/// Returns a router that passes each request to the next instance.
fn alternating(instances: Instances) -> Router {
    Router::new().fallback(move |request: Request| {
        let instance = {
            let mut instances = instances.lock().unwrap();
            instances.rotate_left(1);
            Arc::clone(&instances[0])
        };
        async move {
            let (parts, body) = request.into_parts();
            let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
            let event = event_of(&parts, &body).to_string();
            response_of(&instance.invoke(&event).await.unwrap())
        }
    })
}

/// Returns the provider's tokens for a code or a refresh token, which has the claims of the ID token.
fn upstream_tokens(body: &str) -> Value {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let query = Url::parse(&format!("http://localhost/?{body}")).unwrap();
    let find = |name: &str| parameter(&query, name);
    let text = find("code").or_else(|| find("refresh_token")).unwrap();
    let claims: Value = serde_json::from_str(&text).unwrap();
    json!({
        "access_token": format!("upstream-{number}"),
        "refresh_token": text,
        "id_token": claims,
        "token_type": "bearer",
        "expires_in": 3600,
    })
}

/// Returns the same tokens without an ID token, which a refresh need not bring: OpenID Connect Core
/// 1.0, 12.2.
fn without_id_token(body: &str) -> Value {
    let mut tokens = upstream_tokens(body);
    tokens.as_object_mut().unwrap().remove("id_token");
    tokens
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
    async fn open(&self, url: Url) -> (u16, String) {
        page_of(self.0.get(url).send().await.unwrap()).await
    }

    /// Opens the consent page, and returns the value of its form.
    async fn form(&self, url: &Url) -> String {
        let (status, page) = self.open(url.clone()).await;
        let form = form_in(&page).unwrap_or_else(|| panic!("{status} {page}"));
        form.to_owned()
    }

    /// Submits the consent page.
    async fn submit(&self, url: &Url, form: &str, answer: &str) -> (u16, String) {
        let fields = [("form", form), ("answer", answer)];
        page_of(self.0.post(url.clone()).form(&fields).send().await.unwrap()).await
    }

    /// Agrees, or has agreed before; returns the provider's URL.
    async fn to_provider(&self, url: &Url) -> Url {
        let (status, page) = self.open(url.clone()).await;
        if status == 303 {
            return page.parse().unwrap();
        }
        redirect_of(self.submit(url, form_in(&page).unwrap(), "continue").await)
    }

    /// Signs in with these claims in the ID token; returns where the client gets the result.
    async fn sign_in(&self, url: &Url, claims: &Value) -> Url {
        let provider = self.to_provider(url).await;
        redirect_of(self.open(callback_of(&provider, claims)).await)
    }
}

/// Returns the URL to which the provider redirects a user whose ID token has these claims.
fn callback_of(provider: &Url, changes: &Value) -> Url {
    let asked = |name| parameter(provider, name).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut claims = json!({
        "iss": provider.origin().ascii_serialization(),
        "aud": CLIENT,
        "nonce": asked("nonce"),
        "exp": now.as_secs() + 100 * 24 * 3600,
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

/// Checks that the client gets this error, or a code if there is none.
#[track_caller]
fn assert_error(landed: &Url, error: Option<&str>, context: &str) {
    let seen = (parameter(landed, "error"), parameter(landed, "code"));
    assert_eq!(seen.0.as_deref(), error, "{context} {landed}");
    assert_eq!(seen.1.is_some(), error.is_none(), "{context} {landed}");
}

#[track_caller]
fn assert_invalid((status, answer): &(u16, Value)) {
    let seen = (*status, text(answer, "error"));
    assert_eq!(seen, (400, "invalid_grant"), "{answer}");
}

/// Returns where a response redirects to.
#[track_caller]
fn redirect_of((status, url): (u16, String)) -> Url {
    assert_eq!(status, 303, "{url}");
    url.parse().unwrap()
}

/// Checks that a response to a client has the state of its request, and names its issuer.
#[track_caller]
fn assert_answers(landed: &Url, state: &str, server: &Server) {
    assert_eq!(parameter(landed, "state").as_deref(), Some(state));
    assert_eq!(parameter(landed, "iss"), Some(server.url.clone()));
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
    let hosts = documents::Hosts::with_a_client().await;
    let server = documents::serving(&hosts).await;
    let registration = json!({
        "client_name": format!("<b>\u{202e}{}", "long name ".repeat(20)),
        "redirect_uris": [APP],
    });
    let (_, registered) = server.register(&registration).await;
    let id = registered["client_id"].as_str().unwrap();
    let local = ("redirect_uri", "http://localhost:3118/callback");
    let mut pages = Recorded::new();
    for (name, status, client, change) in [
        ("document", 200, documents::ID, ("scope", "mail.send")),
        ("program", 200, documents::ID, local),
        ("app", 200, id, ("redirect_uri", APP)),
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

/// RFC 9068 has the access token's claims. Whoever checks it elsewhere finds the key that signed it.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_nobody_knows_signs_its_user_in() {
    let (server, client) = Server::with_client().await;
    let url = server.authorize_url(&client, &[("scope", "mail.send unknown")]);
    let claims = json!({"sub": "alice", "groups": ["staff"]});
    let landed = Browser::new().sign_in(&url, &claims).await;
    assert!(landed.as_str().starts_with(CALLBACK), "{landed}");
    assert_answers(&landed, "client-state", &server);
    let code = parameter(&landed, "code").unwrap();
    let tokens = server.redeemed(&client, &code).await;
    assert_eq!(tokens["token_type"], "Bearer");
    assert_eq!(tokens["expires_in"], 1800);
    assert_eq!(tokens["scope"], "mail.read mail.send");
    let scopes = ["mail.read", "mail.send"];
    let expected = json!({"user": "alice", "groups": ["staff"], "scopes": scopes});
    assert_eq!(server.whose(&tokens).await, expected);

    let token = text(&tokens, "access_token");
    let keys = reqwest::get(format!("{}/.well-known/jwks.json", server.url));
    let keys: jsonwebtoken::jwk::JwkSet = keys.await.unwrap().json().await.unwrap();
    let header = jsonwebtoken::decode_header(token).unwrap();
    assert_eq!(header.typ.as_deref(), Some("at+jwt"));
    let key = keys.find(&header.kid.unwrap()).unwrap();
    let mut rules = jsonwebtoken::Validation::new(jsonwebtoken::Algorithm::EdDSA);
    rules.set_audience(&[format!("{}/mcp", server.url)]);
    rules.set_issuer(&[&server.url]);
    let key = jsonwebtoken::DecodingKey::from_jwk(key).unwrap();
    let claims = jsonwebtoken::decode::<Value>(token, &key, &rules);
    let claims = claims.unwrap().claims;
    // Section 2.2.
    for claim in ["iss", "exp", "aud", "sub", "client_id", "iat", "jti"] {
        assert!(!claims[claim].is_null(), "{claim} {claims}");
    }
    assert_eq!(claims["client_id"], client);
    assert_eq!(claims["scope"], "mail.read mail.send");
    let life = claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap();
    assert_eq!(life, 1800);
}
