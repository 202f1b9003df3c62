//! Tokens of client credentials, from a server that issues them: RFC 6749, 4.4.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{Router, extract::Request, response::Response};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use lambda_tools_core::{Context, Failure, Toolkit, testing};
use lambda_tools_openapi::{ApiTools, OpenApi, OpenApiOptions};
use serde_json::{Value, json};
use test_support::Served;
use tokio::{io::AsyncReadExt, net::TcpListener};

use crate::recorder::json_answer;

/// The requests to the token endpoint and to the API, and their responses.
#[derive(Default)]
struct State {
    /// The client, its secret and the scopes of each request for a token.
    issued: Vec<String>,
    /// The paths and the tokens that the API has seen.
    used: Vec<String>,
    revoked: Vec<String>,
    expires_in: Option<Value>,
    /// The response of the token endpoint in place of a token; 0 closes the connection.
    error: Option<(u16, String)>,
    delays: HashMap<String, Duration>,
}

/// A server that issues tokens at `/token` and `/slow/token`, and whose API needs them.
struct Issuer {
    served: Served,
    state: Arc<Mutex<State>>,
}

/// Decodes `application/x-www-form-urlencoded`.
fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    let decoded = percent_encoding::percent_decode_str(&text).decode_utf8();
    decoded.unwrap().into_owned()
}

impl Issuer {
    async fn start() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let app =
            Router::new().fallback(move |request: Request| answer(request, Arc::clone(&shared)));
        let served = Served::start(app).await;
        Self { served, state }
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    fn issued(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().issued)
    }

    fn used(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().used)
    }

    /// Returns the tools of an API with two clients of this issuer, and one of a slow issuer.
    fn tools(&self) -> ApiTools {
        let url = &self.served.url;
        let flow = |path: &str| json!({"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": format!("{url}{path}"), "scopes": {}}}});
        let operation = |id: &str, scheme: &str, scopes: &[&str]| json!({"operationId": id, "summary": id, "security": [{scheme: scopes}], "responses": {"200": {"description": "OK", "content": {"application/json": {}}}}});
        let document = json!({
            "openapi": "3.1.0", "info": {"title": "Files API", "version": "1"}, "servers": [{"url": url}],
            "components": {"securitySchemes": {"reader": flow("/token"), "admin": flow("/token"), "slow": flow("/slow/token")}},
            "paths": {
                "/list": {"get": operation("list", "reader", &["read"])},
                "/find": {"get": operation("find", "reader", &["read"])},
                "/drop": {"delete": operation("drop", "admin", &["read"])},
                "/note": {"post": operation("note", "reader", &["read", "write"])},
                "/late": {"post": operation("late", "slow", &[])},
            },
        });
        let api = OpenApi::new(document, OpenApiOptions::all()).unwrap();
        api.reduce().unwrap().tools.allow_private()
    }

    fn api(&self) -> Api {
        Api(Toolkit::new(self.tools().tools().unwrap()).unwrap())
    }
}

async fn answer(request: Request, state: Arc<Mutex<State>>) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let authorization = head.headers["authorization"].to_str().unwrap().to_owned();
    if !path.ends_with("/token") {
        let token = authorization.strip_prefix("Bearer ").unwrap().to_owned();
        let mut state = state.lock().unwrap();
        let is_valid = !state.revoked.contains(&token);
        state.used.push(format!("{path} {token}"));
        return json_answer(if is_valid { 200 } else { 401 }, "1");
    }
    let delay = state.lock().unwrap().delays.get(&path).copied();
    tokio::time::sleep(delay.unwrap_or_default()).await;
    let media_type = &head.headers["content-type"];
    assert_eq!(media_type, "application/x-www-form-urlencoded");
    let body = axum::body::to_bytes(body, 10_000).await.unwrap();
    let fields = str::from_utf8(&body).unwrap().split('&');
    let form: HashMap<_, _> = fields.filter_map(|it| it.split_once('=')).collect();
    assert_eq!(form["grant_type"], "client_credentials");
    let login = authorization.strip_prefix("Basic ").unwrap();
    let login = String::from_utf8(STANDARD.decode(login).unwrap()).unwrap();
    let (client, secret) = login.split_once(':').unwrap();
    let scope = decoded(form.get("scope").unwrap_or(&""));
    let mut state = state.lock().unwrap();
    let (client, secret) = (decoded(client), decoded(secret));
    state.issued.push(format!("{client} | {secret} | {scope}"));
    if let Some((status, body)) = &state.error {
        return json_answer(*status, body.clone());
    }
    let mut issued =
        json!({"access_token": format!("token-{}", state.issued.len()), "token_type": "Bearer"});
    if let Some(seconds) = &state.expires_in {
        issued["expires_in"] = seconds.clone();
    }
    json_answer(200, issued.to_string())
}

struct Api(Toolkit);

impl Api {
    async fn call(&self, tool: &str, cx: &Context) -> Result<Value, Failure> {
        let mut entries = self.0.entries().iter();
        let entry = entries.find(|it| it.id.to_string().contains(tool)).unwrap();
        crate::recorder::call(entry, json!({}), cx).await
    }
}

fn context() -> Context {
    let mut context = testing::context();
    for (scheme, name) in [("READER", "ada"), ("ADMIN", "root"), ("SLOW", "late")] {
        let client = format!("FILES_{scheme}_CLIENT");
        context = context.secret(format!("{client}_ID"), name);
        context = context.secret(format!("{client}_SECRET"), format!("secret-of-{name}"));
    }
    context.build()
}

#[tokio::test]
async fn each_client_and_each_list_of_scopes_has_its_own_token() {
    let issuer = Issuer::start().await;
    let (api, cx) = (issuer.api(), context());
    // The reader first: its token must not reach the admin's operation, nor the other way round.
    for tool in ["List", "Drop", "Find", "Note", "Drop", "Note"] {
        api.call(tool, &cx).await.unwrap();
    }
    let used = "/list token-1, /drop token-2, /find token-1, /note token-3, /drop token-2, \
                /note token-3";
    assert_eq!(issuer.used().join(", "), used);
    let expected = [
        "ada | secret-of-ada | read",
        "root | secret-of-root | read",
        "ada | secret-of-ada | read write",
    ];
    assert_eq!(issuer.issued(), expected);
    // A caller with a client of its own does not get the token of another one: the secret counts.
    let stranger = testing::context()
        .secret("FILES_READER_CLIENT_ID", "ada")
        .secret("FILES_READER_CLIENT_SECRET", "a-guess")
        .build();
    issuer.set(|it| it.error = Some((401, r#"{"error": "invalid_client"}"#.to_owned())));
    let failure = api.call("List", &stranger).await.unwrap_err();
    let message = "The API rejected the credentials: invalid_client";
    assert_eq!(failure.message(), message);
    assert!(issuer.used().is_empty());
    api.call("List", &cx).await.unwrap();
}

#[tokio::test]
async fn a_token_is_used_until_a_minute_before_it_expires() {
    for (expires_in, requests) in [
        (json!(59), 2),
        (json!(60), 2),
        (json!(300), 1),
        (json!(null), 1),
        (json!(u64::MAX), 1),
    ] {
        let issuer = Issuer::start().await;
        issuer.set(|it| it.expires_in = Some(expires_in.clone()));
        let (api, cx) = (issuer.api(), context());
        api.call("List", &cx).await.unwrap();
        api.call("List", &cx).await.unwrap();
        assert_eq!(issuer.issued().len(), requests, "{expires_in}");
    }
}

#[tokio::test]
async fn a_token_that_the_api_refuses_is_replaced_once() {
    let issuer = Issuer::start().await;
    let (api, cx) = (issuer.api(), context());
    api.call("List", &cx).await.unwrap();
    issuer.set(|it| it.revoked = vec!["token-1".to_owned()]);
    api.call("List", &cx).await.unwrap();
    api.call("List", &cx).await.unwrap();
    let used = ["token-1", "token-1", "token-2", "token-2"];
    assert_eq!(issuer.used(), used.map(|it| format!("/list {it}")));
    issuer.set(|it| it.revoked = vec!["token-2".to_owned(), "token-3".to_owned()]);
    let failure = api.call("List", &cx).await.unwrap_err();
    let message = failure.message();
    assert!(message.starts_with("The API rejected the credentials"));
    assert_eq!(issuer.issued().len(), 3);
}

#[tokio::test]
async fn the_client_and_its_secret_are_encoded_as_in_a_form() {
    let issuer = Issuer::start().await;
    let (client, secret) = ("id:with+signs %", "s:e+c=r&e t/é");
    let cx = testing::context()
        .secret("FILES_READER_CLIENT_ID", client)
        .secret("FILES_READER_CLIENT_SECRET", secret)
        .build();
    issuer.api().call("List", &cx).await.unwrap();
    assert_eq!(issuer.issued(), [format!("{client} | {secret} | read")]);
}

#[tokio::test]
async fn a_slow_issuer_delays_no_other_call() {
    let issuer = Issuer::start().await;
    issuer
        .set(|it| it.delays = HashMap::from([("/slow/token".to_owned(), Duration::from_secs(3))]));
    let (api, cx) = (Arc::new(issuer.api()), context());
    let started = Instant::now();
    let (shared, own) = (Arc::clone(&api), cx.clone());
    let slow = tokio::spawn(async move { shared.call("Late", &own).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    api.call("List", &cx).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(2));
    slow.await.unwrap().unwrap();
    // Calls that need the same token wait for one request.
    issuer.issued();
    let other = Issuer::start().await;
    other.set(|it| it.delays = HashMap::from([("/token".to_owned(), Duration::from_millis(200))]));
    let api = other.api();
    let calls = ["List", "Find", "List"].map(|tool| api.call(tool, &cx));
    let [first, second, third] = calls;
    let calls = tokio::join!(first, second, third);
    assert!(calls.0.is_ok() && calls.1.is_ok() && calls.2.is_ok());
    assert_eq!(other.issued().len(), 1);
}

#[tokio::test]
async fn a_failed_request_for_a_token_has_done_nothing() {
    for (status, body, message, can_retry) in [
        (
            503,
            r#"{"error": "temporarily_unavailable"}"#,
            "The API is temporarily unavailable: temporarily_unavailable",
            true,
        ),
        (200, "{}", "The tool could not complete the call", false),
    ] {
        let issuer = Issuer::start().await;
        issuer.set(|it| it.error = Some((status, body.to_owned())));
        // An operation that writes, whose own failure would warn of an effect.
        let failure = issuer.api().call("Note", &context()).await.unwrap_err();
        assert_eq!(failure.message(), message, "{status}");
        assert_eq!(failure.can_retry(), can_retry, "{status}");
        assert!(issuer.used().is_empty());
    }
    // A connection that breaks after the request.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let broken = format!("http://{}/token", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            _ = stream.read(&mut [0; 4096]).await;
        }
    });
    let issuer = Issuer::start().await;
    let tools = issuer.tools().to_json();
    let tools = tools.replace(&format!("{}/token", issuer.served.url), &broken);
    let tools = ApiTools::from_json(&tools).unwrap().tools().unwrap();
    let api = Api(Toolkit::new(tools).unwrap());
    let failure = api.call("Note", &context()).await.unwrap_err();
    assert_eq!(failure.message(), "The connection to the API broke");
    assert!(failure.can_retry());
}
