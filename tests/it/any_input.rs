//! No input of any kind stops the process or goes without a response. The fuzz targets search further,
//! in each protocol and each kind of event.

use std::sync::LazyLock;

use base64::{Engine, prelude::BASE64_STANDARD};
use lambda_tools::{Failure, Tool, Toolkit, testing::LambdaFunction};
use proptest::{collection, prelude::*, string::string_regex};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Takes several things.
#[derive(Deserialize, JsonSchema)]
struct Several {
    /// A number.
    a: f64,
    /// A small integer.
    b: Option<u8>,
    /// Some texts.
    #[serde(default)]
    c: Vec<String>,
}

async fn several(input: Several) -> Result<f64, Failure> {
    Ok(input.a * f64::from(input.b.unwrap_or(1)) + f64::from(u32::try_from(input.c.len())?))
}

/// One function for all cases, as one process on Lambda handles all calls.
static FUNCTION: LazyLock<LambdaFunction> = LazyLock::new(|| {
    let tool = Tool::new("T.Several@1.0.0", several).secret("S").user_id();
    let free = Tool::new("T.Free@1.0.0", several);
    LambdaFunction::new(Toolkit::new([tool, free]).unwrap())
});

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            collection::vec((".{0,8}", inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Generates a JSON object with field names of the protocols and arbitrary values.
fn near_call() -> impl Strategy<Value = Value> {
    let names = [
        "tool_id",
        "request",
        "jsonrpc",
        "method",
        "params",
        "name",
        "arguments",
        "cursor",
        "inputResponses",
        "requestState",
        "elicitation",
        "form",
        "action",
        "content",
        "_meta",
        "protocolVersion",
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientCapabilities",
        "$schema",
        "call_id",
        "trace_id",
        "input",
        "inputs",
        "context",
        "user_id",
        "secrets",
        "authorization",
        "id",
        "value",
        "token",
        "a",
        "b",
        "c",
    ];
    let text = prop_oneof![
        Just("T.Several"),
        Just("T_Several"),
        Just("T_Free"),
        Just("2.0"),
        Just("tools/call"),
        Just("tools/list"),
        Just("accept"),
        Just("{\"a\":{\"action\":\"accept\"}}"),
        Just("initialize"),
        Just("2025-11-25"),
        Just("2026-07-28"),
        Just("T.Free@1"),
        Just("T.Free@1.0.0"),
        Just("T.Free@99"),
        Just("otc://1.0"),
        Just("urn:oxp:1.0"),
        Just("S"),
        Just("@"),
        Just("https://x/1.0/"),
    ]
    .prop_map(Value::from);
    let leaf = prop_oneof![3 => text, 1 => json_value()];
    leaf.prop_recursive(4, 48, 8, move |inner| {
        let field = (proptest::sample::select(names.to_vec()), inner.clone());
        prop_oneof![
            4 => collection::vec(field, 0..8).prop_map(|fields| {
                let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
                Value::Object(fields.collect::<Map<_, _>>())
            }),
            1 => collection::vec(inner, 0..4).prop_map(Value::from),
        ]
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        collection::vec(any::<u8>(), 0..200),
        json_value().prop_map(|value| value.to_string().into_bytes()),
        near_call().prop_map(|value| value.to_string().into_bytes()),
        near_call().prop_map(|value| {
            let mut text = value.to_string().into_bytes();
            text.truncate(text.len() / 2);
            text
        }),
    ]
}

fn path() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just("/tools/call".to_owned()),
        4 => Just("/opentool/call".to_owned()),
        4 => Just("/mcp".to_owned()),
        1 => Just("/opentool/load".to_owned()),
        2 => Just("/tools".to_owned()),
        1 => Just("/health".to_owned()),
        1 => Just("/prod/call".to_owned()),
        2 => ".{0,30}",
    ]
}

fn headers() -> impl Strategy<Value = Map<String, Value>> {
    let name = prop_oneof![
        Just("oxp-version".to_owned()),
        Just("OXP-Version".to_owned()),
        Just("host".to_owned()),
        Just("authorization".to_owned()),
        string_regex("[a-zA-Z][a-zA-Z0-9-]{0,10}").unwrap(),
    ];
    let value = prop_oneof![Just("1.0".to_owned()), string_regex("[ -~]{0,20}").unwrap()];
    collection::vec((name, value.prop_map(Value::from)), 0..4)
        .prop_map(|headers| headers.into_iter().collect())
}

fn method() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        3 => Just("POST"), 2 => Just("GET"), 1 => Just("HEAD"), 1 => Just("DELETE"),
        1 => Just("OPTIONS"), 1 => Just("PROPFIND"),
    ]
}

/// Returns the same request as an event of every event source. The body is base64 if `is_base64` is
/// set or it is not UTF-8.
fn events(
    method: &str,
    path: &str,
    headers: &Map<String, Value>,
    body: &[u8],
    is_base64: bool,
) -> Vec<Value> {
    let (body, is_base64) = match std::str::from_utf8(body) {
        Ok(text) if !is_base64 => (text.to_owned(), false),
        _ => (BASE64_STANDARD.encode(body), true),
    };
    let multi_value: Map<_, _> = headers
        .iter()
        .map(|(name, value)| (name.clone(), json!([value])))
        .collect();
    let stage = json!({"stage": "prod", "httpMethod": method});
    let http = json!({
        "accountId": "1", "apiId": "1", "stage": "prod", "timeEpoch": 0,
        "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "::1",
                 "userAgent": ""},
    });
    vec![
        json!({"version": "2.0", "rawPath": path, "rawQueryString": path, "headers": headers,
               "requestContext": http, "body": body, "isBase64Encoded": is_base64}),
        json!({"resource": "/{proxy+}", "path": path, "httpMethod": method, "headers": headers,
               "multiValueHeaders": multi_value, "queryStringParameters": {"a": path, "": []},
               "requestContext": stage, "body": body, "isBase64Encoded": is_base64}),
        json!({"requestContext": {"elb": {}}, "httpMethod": method, "path": path,
               "headers": headers, "queryStringParameters": {"a": path}, "body": body,
               "isBase64Encoded": is_base64}),
        json!({"requestContext": {"elb": {}}, "httpMethod": method, "path": path,
               "multiValueHeaders": multi_value, "body": body, "isBase64Encoded": is_base64}),
    ]
}

fn blocking<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn every_request_gets_a_response_of_its_protocol(
        method in method(),
        path in path(),
        headers in headers(),
        body in body(),
        is_base64 in any::<bool>(),
    ) {
        for event in events(method, &path, &headers, &body, is_base64) {
            let response = blocking(FUNCTION.respond(&event.to_string())).unwrap();
            if path == "/mcp" {
                let statuses = [200, 202, 400, 404, 405, 406, 415];
                prop_assert!(statuses.contains(&response.status), "{response:?}");
                let is_empty = [202, 405].contains(&response.status);
                prop_assert!(is_empty || response.body["jsonrpc"] == "2.0", "{response:?}");
                continue;
            }
            prop_assert!([200, 400, 404, 405, 422].contains(&response.status), "{response:?}");
            let version = response.headers.get("oxp-version").map(String::as_str);
            if version.is_none() {
                prop_assert!(path.starts_with("/opentool/"), "{path}: {response:?}");
                if path == "/opentool/call" {
                    prop_assert!(response.body["result"].is_object(), "{response:?}");
                    prop_assert!(response.body.get("error").is_some(), "{response:?}");
                }
                continue;
            }
            prop_assert_eq!(version, Some("1.0"));
            if response.status != 200 && method != "HEAD" {
                prop_assert!(response.body["message"].is_string(), "{response:?}");
            }
        }
    }

    #[test]
    fn every_event_gets_a_response_or_a_descriptive_error(
        event in prop_oneof![json_value(), near_call()],
        text in ".{0,80}",
    ) {
        for event in [event.to_string(), text] {
            if let Err(error) = blocking(FUNCTION.invoke(&event)) {
                prop_assert!(error.to_string().starts_with("This function answers"), "{error}");
            }
        }
    }
}
