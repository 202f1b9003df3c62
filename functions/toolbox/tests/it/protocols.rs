//! The same call has the same outcome in every protocol, each in its own form.

use std::collections::BTreeSet;

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, Response},
};
use lambda_tools::{
    Auth, OAuth, ServerInfo, idempotency::Idempotency, oauth::Provider, secrets::Secrets,
};
use serde_json::{Value, json};
use toolbox::Endpoints;
use tower::ServiceExt;

use crate::support::{repository, server};

/// The outcome of a call, independent of its protocol.
#[derive(Debug, PartialEq)]
enum ObservedOutcome {
    Value(Value),
    /// The names of the invalid parameters.
    Invalid(BTreeSet<String>),
    Unknown(String),
    Failed(String),
    /// The secret that nobody has stored.
    MissingSecret(String),
    /// The provider at which the user has to authorize the tool.
    Challenge(String),
}

impl ObservedOutcome {
    /// A missing secret or a challenge, from a text that names it.
    fn missing(text: &str) -> Option<Self> {
        let after = |start: &str| {
            let (_, rest) = text.split_once(start)?;
            rest.split_once('\'').map(|(name, _)| name.to_owned())
        };
        let provider = after("token for '").or_else(|| after("has to authorize '"));
        let secret = || after("the secret '").map(Self::MissingSecret);
        provider.map(Self::Challenge).or_else(secret)
    }
}

/// The server's URL, with which challenges begin.
const PUBLIC_URL: &str = "https://tools.example";

#[derive(Clone, Copy, Debug)]
enum Protocol {
    OxpHeader,
    OxpSchema,
    Otc,
    OpenTool,
    McpLegacy,
    McpModern,
}

impl Protocol {
    const ALL: [Self; 6] = [
        Self::OxpHeader,
        Self::OxpSchema,
        Self::Otc,
        Self::OpenTool,
        Self::McpLegacy,
        Self::McpModern,
    ];

    fn request(self, (toolkit, tool): (&str, &str), input: &Value, call_id: &str) -> Request<Body> {
        let tool_id = format!("{toolkit}.{tool}");
        let call = json!({"tool_id": tool_id, "input": input, "call_id": call_id});
        let envelope = |schema: &str| json!({"$schema": schema, "request": call});
        let (path, body) = match self {
            Self::OxpHeader => ("/tools/call", call),
            Self::OxpSchema => ("/tools/call", envelope("urn:oxp:1.0")),
            Self::Otc => ("/tools/call", envelope("otc://1.0")),
            Self::OpenTool => {
                let method = format!("{toolkit}_{tool}");
                let body =
                    json!({"jsonrpc": "2.0", "method": method, "params": input, "id": call_id});
                ("/opentool/call", body)
            }
            Self::McpLegacy | Self::McpModern => ("/mcp", self.mcp_call(toolkit, tool, input)),
        };
        let request = Request::post(path).header("content-type", "application/json");
        let request = match self {
            Self::McpLegacy => request.header("idempotency-key", call_id),
            Self::McpModern => request
                .header("idempotency-key", call_id)
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", format!("{toolkit}_{tool}")),
            _ => request,
        };
        let request = request.header("authorization", format!("Bearer {}", token()));
        request.body(Body::from(body.to_string())).unwrap()
    }

    fn mcp_call(self, toolkit: &str, tool: &str, input: &Value) -> Value {
        let name = format!("{toolkit}_{tool}");
        let mut params = json!({"name": name, "arguments": input});
        if matches!(self, Self::McpModern) {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    }

    fn outcome(self, status: u16, body: &Value) -> ObservedOutcome {
        if matches!(self, Self::OpenTool) {
            return opentool_outcome(status, body);
        }
        if matches!(self, Self::McpLegacy | Self::McpModern) {
            return mcp_outcome(status, body);
        }
        let schema = match self {
            Self::OxpSchema => json!("urn:oxp:1.0"),
            Self::Otc => json!("otc://1.0"),
            _ => Value::Null,
        };
        assert_eq!(body["$schema"], schema, "{self:?}: {body}");
        let result = match (self, status) {
            (Self::OxpSchema | Self::Otc, 200) => &body["result"],
            _ => body,
        };
        let message = |body: &Value| body["message"].as_str().unwrap().to_owned();
        match status {
            200 if result["success"] == true => ObservedOutcome::Value(result["value"].clone()),
            200 => ObservedOutcome::Failed(message(&result["error"])),
            422 => {
                let errors = body["parameter_errors"].as_object().unwrap();
                ObservedOutcome::Invalid(errors.keys().cloned().collect())
            }
            400 if body.get("missing_requirements").is_some() => {
                let challenge = &body["missing_requirements"]["authorization"][0];
                let url = challenge["url"].as_str();
                assert!(url.is_none_or(|it| it.starts_with(PUBLIC_URL)), "{body}");
                let text = body["developer_message"].as_str().unwrap();
                ObservedOutcome::missing(text).unwrap()
            }
            400 => ObservedOutcome::Unknown(message(body)),
            other => panic!("{self:?}: {other} {body}"),
        }
    }
}

fn opentool_outcome(status: u16, body: &Value) -> ObservedOutcome {
    assert_eq!((status, &body["jsonrpc"]), (200, &json!("2.0")));
    assert!(body["id"].is_string(), "{body}");
    let error = &body["error"];
    if error.is_null() {
        return ObservedOutcome::Value(body["result"]["value"].clone());
    }
    assert_eq!(body["result"], json!({}));
    let message = error["message"].as_str().unwrap();
    match error["code"].as_i64().unwrap() {
        500 => ObservedOutcome::Failed(message.split(" (").next().unwrap().to_owned()),
        // It has no field for a URL: the text names the provider only.
        -32001 => ObservedOutcome::missing(message).unwrap(),
        -32601 => ObservedOutcome::Unknown(message.split(';').next().unwrap().to_owned()),
        -32602 => {
            let (_, errors) = message.split_once(": ").unwrap();
            let names = errors
                .split("; ")
                .filter_map(|error| error.split_once(": "));
            ObservedOutcome::Invalid(names.map(|(name, _)| name.to_owned()).collect())
        }
        other => panic!("{other} {message}"),
    }
}

fn mcp_outcome(status: u16, body: &Value) -> ObservedOutcome {
    assert_eq!((status, &body["id"]), (200, &json!(1)), "{body}");
    if let Some(error) = body.get("error") {
        assert_eq!(error["code"], -32602, "{body}");
        let message = error["message"].as_str().unwrap();
        let (name, _) = message.split_once(" is not a tool of this server").unwrap();
        return ObservedOutcome::Unknown(format!("Tool '{name}' was not found"));
    }
    let result = &body["result"];
    if result["isError"] == false {
        return ObservedOutcome::Value(result["structuredContent"]["result"].clone());
    }
    let text = result["content"][0]["text"].as_str().unwrap();
    if let Some(outcome) = ObservedOutcome::missing(text) {
        let is_challenge = matches!(outcome, ObservedOutcome::Challenge(_));
        assert!(!is_challenge || text.contains(PUBLIC_URL), "{text}");
        return outcome;
    }
    match text.split_once("The input is invalid:") {
        Some((_, lines)) => {
            let names = lines.lines().filter_map(|line| line.strip_prefix("- "));
            let names = names.filter_map(|line| line.split_once(": "));
            ObservedOutcome::Invalid(names.map(|(name, _)| name.to_owned()).collect())
        }
        None => ObservedOutcome::Failed(text.lines().next().unwrap().to_owned()),
    }
}

const JWT_SECRET: &str = "jwt-secret-of-this-test-0123456789abcdef";

/// The token of a user, which all protocols send in the same header.
fn token() -> String {
    let claims = json!({"sub": "user-1", "exp": 4_102_444_800_u64});
    let key = jsonwebtoken::EncodingKey::from_secret(JWT_SECRET.as_bytes());
    jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).unwrap()
}

/// A server that knows its users, remembers calls, and challenges users at one provider.
fn router() -> Router {
    let secrets = [
        ("JWT", JWT_SECRET),
        ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
        ("GOOGLE_CLIENT_SECRET", "a-client-secret"),
    ];
    let google = Provider::google("client-id", "GOOGLE_CLIENT_SECRET");
    let server = server(toolbox::tools(Endpoints::default()))
        .auth(Auth::jwt_secret_ids(["JWT"]).subject_is_user())
        .secrets(Secrets::fixed(secrets))
        .public_url(PUBLIC_URL)
        .oauth(OAuth::with([google]))
        .idempotency(Idempotency::in_memory());
    server.into_router().unwrap()
}

#[tokio::test]
async fn every_protocol_reports_the_same_outcome() {
    let router = router();
    let invalid = |names: [&str; 2]| ObservedOutcome::Invalid(names.map(str::to_owned).into());
    // The last column: true if the second of two equal calls is a replay of the first.
    for (tool, input, expected, is_replayed) in [
        (
            ("Calculator", "Add"),
            json!({"a": 10, "b": 5}),
            ObservedOutcome::Value(json!(15)),
            false,
        ),
        (
            ("Calculator", "Add"),
            json!({"a": 0.5, "b": 1}),
            ObservedOutcome::Value(json!(1.5)),
            false,
        ),
        (
            ("Calculator", "Add"),
            json!({"a": "ten"}),
            invalid(["a", "b"]),
            false,
        ),
        (
            ("Calculator", "Ad"),
            json!({}),
            ObservedOutcome::Unknown("Tool 'Calculator_Ad' was not found".to_owned()),
            false,
        ),
        (
            ("Calculator", "Add"),
            json!({"a": 9e15, "b": 9e15}),
            ObservedOutcome::Failed("The sum cannot be represented exactly".to_owned()),
            false,
        ),
        (
            ("Doorbell", "Ring"),
            json!({"doorbell_id": "doorbell42"}),
            ObservedOutcome::Value(Value::Null),
            true,
        ),
        (
            ("Doorbell", "Ring"),
            json!({"doorbell_id": "doorbell1"}),
            ObservedOutcome::Failed("Doorbell ID not found".to_owned()),
            false,
        ),
        (
            ("SMS", "Send"),
            json!({"to": "+15005550010", "message": "Hi"}),
            ObservedOutcome::MissingSecret("TWILIO_API_KEY".to_owned()),
            false,
        ),
        (
            ("Gmail", "GetEmails"),
            json!({}),
            ObservedOutcome::Challenge("google".to_owned()),
            false,
        ),
    ] {
        for protocol in Protocol::ALL {
            let call_id = format!("{protocol:?} {} {input}", tool.0);
            for is_replay in [false, is_replayed] {
                let request = protocol.request(tool, &input, &call_id);
                let response = router.clone().oneshot(request).await.unwrap();
                let header = response.headers().get("idempotent-replay");
                assert_eq!(header.is_some(), is_replay, "{protocol:?}: {response:?}");
                let (status, body) = read(response).await;
                assert_eq!(
                    protocol.outcome(status, &body),
                    expected,
                    "{protocol:?}: {body}"
                );
            }
        }
    }
}

#[tokio::test]
async fn an_id_is_returned_unchanged() {
    let server = server(toolbox::tools(Endpoints::default()));
    let router = server.into_router().unwrap();
    let longest = format!("\"{}\"", "x".repeat(254));
    for id in [
        "1.50",
        "1e2",
        "-0",
        "123456789012345678901234567890",
        r#""\u0041""#,
        "\"\"",
        &longest,
    ] {
        for call in [
            format!(r#"{{"jsonrpc": "2.0", "method": "System_GetTimestamp", "id": {id} }}"#),
            format!(r#"{{"jsonrpc": "2.0", "method": "No_Such", "id": {id} }}"#),
            format!(r#"{{"jsonrpc": "1.0", "method": "No_Such", "id": {id} }}"#),
        ] {
            let request = Request::post("/opentool/call")
                .body(Body::from(call))
                .unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            let body = to_bytes(response.into_body(), 10_000).await.unwrap();
            let body = String::from_utf8(body.to_vec()).unwrap();
            assert!(body.ends_with(&format!(r#","id":{id}}}"#)), "{body}");
        }
    }
    let too_long = format!("\"{}\"", "x".repeat(257));
    let call =
        format!(r#"{{"jsonrpc": "2.0", "method": "System_GetTimestamp", "id": {too_long} }}"#);
    let request = Request::post("/opentool/call")
        .body(Body::from(call))
        .unwrap();
    let (status, body) = send(&router, request).await;
    assert_eq!((status, &body["id"]), (400, &json!("")));
}

#[tokio::test]
async fn a_server_without_tools_has_no_document() {
    let server = server(Vec::new());
    let router = server.into_router().unwrap();
    let load = || Request::get("/opentool/load").body(Body::empty()).unwrap();
    assert_eq!(send(&router, load()).await, (200, json!({})));
}

#[test]
fn an_invalid_version_fails_at_start_up() {
    for (version, is_valid) in [
        ("1.0.0", true),
        ("1.0", false),
        ("v1.0.0", false),
        ("1.0.0-rc1", false),
    ] {
        let server = server(Vec::new()).info(ServerInfo::new("T", version));
        let error = server
            .into_router()
            .map(drop)
            .map_err(|error| error.to_string());
        assert_eq!(error.is_ok(), is_valid, "{version}: {error:?}");
        assert!(error.err().is_none_or(|text| text.contains("x.y.z")));
    }
}

#[test]
fn the_function_contains_no_clients() {
    let output = std::process::Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--package",
            "toolbox",
            "--edges",
            "normal,features",
        ])
        .current_dir(repository(""))
        .output()
        .unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        tree.contains(r#"lambda_tools feature "jwt""#),
        "{tree}{error}"
    );
    assert!(!tree.contains(r#"lambda_tools feature "client""#), "{tree}");
}

async fn send(router: &Router, request: Request<Body>) -> (u16, Value) {
    read(router.clone().oneshot(request).await.unwrap()).await
}

async fn read(response: Response<Body>) -> (u16, Value) {
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1_000_000).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}
