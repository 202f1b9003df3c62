//! The same call has the same outcome in every protocol, each in its own form.

use std::collections::BTreeSet;

use axum::{
    Router,
    body::{Body, to_bytes},
    http::Request,
};
use lambda_tools::ServerInfo;
use serde_json::{Value, json};
use toolbox::Endpoints;
use tower::ServiceExt;

use crate::support::repository;

/// The outcome of a call, independent of its protocol.
#[derive(Debug, PartialEq)]
enum ObservedOutcome {
    Value(Value),
    /// The names of the invalid parameters.
    Invalid(BTreeSet<String>),
    Unknown(String),
    Failed(String),
}

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

    fn request(self, (toolkit, tool): (&str, &str), input: &Value) -> Request<Body> {
        let call = json!({"tool_id": format!("{toolkit}.{tool}"), "input": input});
        let envelope = |schema: &str| json!({"$schema": schema, "request": call});
        let (path, body) = match self {
            Self::OxpHeader => ("/tools/call", call),
            Self::OxpSchema => ("/tools/call", envelope("urn:oxp:1.0")),
            Self::Otc => ("/tools/call", envelope("otc://1.0")),
            Self::OpenTool => {
                let method = format!("{toolkit}_{tool}");
                let body =
                    json!({"jsonrpc": "2.0", "method": method, "params": input, "id": "call-1"});
                ("/opentool/call", body)
            }
            Self::McpLegacy | Self::McpModern => ("/mcp", self.mcp_call(toolkit, tool, input)),
        };
        let request = Request::post(path).header("content-type", "application/json");
        let request = match self {
            Self::McpModern => request
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", format!("{toolkit}_{tool}")),
            _ => request,
        };
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
            400 => ObservedOutcome::Unknown(message(body)),
            other => panic!("{self:?}: {other} {body}"),
        }
    }
}

fn opentool_outcome(status: u16, body: &Value) -> ObservedOutcome {
    assert_eq!(
        (status, &body["jsonrpc"], &body["id"]),
        (200, &json!("2.0"), &json!("call-1"))
    );
    let error = &body["error"];
    if error.is_null() {
        return ObservedOutcome::Value(body["result"]["value"].clone());
    }
    assert_eq!(body["result"], json!({}));
    let message = error["message"].as_str().unwrap();
    match error["code"].as_i64().unwrap() {
        500 => ObservedOutcome::Failed(message.split(" (").next().unwrap().to_owned()),
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
    match text.split_once("The input is invalid:") {
        Some((_, lines)) => {
            let names = lines.lines().filter_map(|line| line.strip_prefix("- "));
            let names = names.filter_map(|line| line.split_once(": "));
            ObservedOutcome::Invalid(names.map(|(name, _)| name.to_owned()).collect())
        }
        None => ObservedOutcome::Failed(text.lines().next().unwrap().to_owned()),
    }
}

#[tokio::test]
async fn every_protocol_reports_the_same_outcome() {
    let server = toolbox::server(toolbox::tools(Endpoints::default())).unwrap();
    let router = server.into_router().unwrap();
    let invalid = |names: [&str; 2]| ObservedOutcome::Invalid(names.map(str::to_owned).into());
    for (tool, input, expected) in [
        (
            ("Calculator", "Add"),
            json!({"a": 10, "b": 5}),
            ObservedOutcome::Value(json!(15)),
        ),
        (
            ("Calculator", "Add"),
            json!({"a": 0.5, "b": 1}),
            ObservedOutcome::Value(json!(1.5)),
        ),
        (
            ("Calculator", "Add"),
            json!({"a": "ten"}),
            invalid(["a", "b"]),
        ),
        (
            ("Calculator", "Ad"),
            json!({}),
            ObservedOutcome::Unknown("Tool 'Calculator_Ad' was not found".to_owned()),
        ),
        (
            ("Calculator", "Add"),
            json!({"a": 9e15, "b": 9e15}),
            ObservedOutcome::Failed("The sum cannot be represented exactly".to_owned()),
        ),
        (
            ("Doorbell", "Ring"),
            json!({"doorbell_id": "doorbell42"}),
            ObservedOutcome::Value(Value::Null),
        ),
    ] {
        for protocol in Protocol::ALL {
            let (status, body) = send(&router, protocol.request(tool, &input)).await;
            assert_eq!(
                protocol.outcome(status, &body),
                expected,
                "{protocol:?}: {body}"
            );
        }
    }
}

#[tokio::test]
async fn an_id_is_returned_unchanged() {
    let server = toolbox::server(toolbox::tools(Endpoints::default())).unwrap();
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
    let server = toolbox::server(Vec::new()).unwrap();
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
        let server = toolbox::server(Vec::new())
            .unwrap()
            .info(ServerInfo::new("T", version));
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
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1_000_000).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}
