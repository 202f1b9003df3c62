//! Checks the recorded MCP responses against the published schema of their revision.
//!
//! The schemas describe the JSON-RPC envelope, and the result of each method.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{pairs, read};
use crate::support::repository;

/// The oldest revision has no vendored schema; see `tests/spec/README.md`.
const OLDEST: &str = "2025-03-26";
const NEWEST: &str = "2026-07-28";
/// The revision of a request that names none.
const UNNAMED: &str = "2025-03-26";

/// The published schemas, each with the validators of the definitions used so far.
struct Schemas(BTreeMap<&'static str, Schema>);

struct Schema {
    document: Value,
    validators: BTreeMap<&'static str, Validator>,
}

impl Schemas {
    fn read() -> Self {
        let revisions = [OLDEST, "2025-06-18", "2025-11-25", NEWEST];
        Self(BTreeMap::from(revisions.map(|revision| {
            let document = read(&repository(&format!("tests/spec/mcp/{revision}.json")));
            let validators = BTreeMap::new();
            let schema = Schema {
                document,
                validators,
            };
            (revision, schema)
        })))
    }

    /// The vendored revision with this name.
    fn revision(&self, name: &str) -> Option<&'static str> {
        let name = if name == "2024-11-05" { OLDEST } else { name };
        self.0.keys().copied().find(|it| *it == name)
    }

    fn check(
        &mut self,
        revision: &str,
        definition: &'static str,
        value: &Value,
    ) -> Result<(), String> {
        let schema = self.0.get_mut(revision).unwrap();
        let document = &schema.document;
        let validator = schema
            .validators
            .entry(definition)
            .or_insert_with(|| validator_of(document, definition));
        validator.validate(value).map_err(|error| {
            let place = error.instance_path();
            format!("{definition} of {revision}: {error} at '{place}'")
        })
    }

    /// The names of the definitions that this response matches.
    fn check_exchange(&mut self, exchange: &Exchange) -> Result<Checked, String> {
        let revision = exchange.revision(self);
        let response = exchange.response;
        if response.get("result").is_some() && response.get("error").is_some() {
            return Err("a response has either a result or an error".to_owned());
        }
        let names = match &response["error"] {
            Value::Null => vec![envelope_of_result(revision), exchange.result(revision)?],
            error => {
                let code = error["code"].as_i64();
                let mut names = vec![envelope_of_error(revision)];
                names.extend(specific_error(code.filter(|_| revision == NEWEST)));
                names
            }
        };
        for name in &names {
            // A result has definitions of its own; those of errors describe the whole response.
            let value = if name.ends_with("Result") {
                &response["result"]
            } else {
                response
            };
            self.check(revision, name, value)?;
        }
        Ok((revision, names))
    }
}

type Checked = (&'static str, Vec<&'static str>);

/// The validator of one definition. Formats, such as `uri`, are checked as well.
fn validator_of(document: &Value, definition: &str) -> Validator {
    let definitions = ["$defs", "definitions"];
    let definitions = definitions.map(|name| (name, &document[name]));
    let (name, definitions) = definitions
        .into_iter()
        .find(|(_, it)| !it.is_null())
        .unwrap();
    assert!(definitions[definition].is_object(), "{definition}");
    let schema = json!({
        "$schema": document["$schema"],
        "allOf": [{"$ref": format!("#/{name}/{definition}")}],
        name: definitions,
    });
    let options = jsonschema::options().should_validate_formats(true);
    options.build(&schema).unwrap()
}

fn envelope_of_result(revision: &str) -> &'static str {
    match revision {
        "2025-03-26" | "2025-06-18" => "JSONRPCResponse",
        _ => "JSONRPCResultResponse",
    }
}

fn envelope_of_error(revision: &str) -> &'static str {
    match revision {
        "2025-03-26" | "2025-06-18" => "JSONRPCError",
        _ => "JSONRPCErrorResponse",
    }
}

/// The definition of an error's code, which the newest revision alone has.
fn specific_error(code: Option<i64>) -> Option<&'static str> {
    match code? {
        -32020 => Some("HeaderMismatchError"),
        -32022 => Some("UnsupportedProtocolVersionError"),
        _ => None,
    }
}

/// A request and the JSON that answers it.
struct Exchange<'a> {
    /// The request's message; `null` for a body that is not JSON.
    request: Value,
    version_header: Option<&'a str>,
    response: &'a Value,
}

impl<'a> Exchange<'a> {
    fn of(event: &'a Value, response: &'a Value) -> Self {
        assert_eq!(event["isBase64Encoded"], false);
        let body = event["body"].as_str().unwrap_or_default();
        let headers = event["headers"].as_object().unwrap();
        let mut headers = headers.iter();
        let version_header =
            headers.find(|(name, _)| name.eq_ignore_ascii_case("mcp-protocol-version"));
        Self {
            request: serde_json::from_str(body).unwrap_or_default(),
            version_header: version_header.and_then(|(_, value)| value.as_str()),
            response,
        }
    }

    /// The revision whose schema describes the response: the newest one if the request names an
    /// unknown revision, or if it was rejected before its message was read.
    fn revision(&self, schemas: &Schemas) -> &'static str {
        let agreed = self.response["result"]["protocolVersion"].as_str();
        let meta = "io.modelcontextprotocol/protocolVersion";
        let named = self.request["params"]["_meta"][meta].as_str();
        let named = agreed.or(named).or(self.version_header);
        match named.unwrap_or(UNNAMED) {
            _ if self.response["id"].is_null() => NEWEST,
            // The error that names the revisions with `_meta`.
            _ if self.response["error"]["code"] == -32022 => NEWEST,
            named => schemas.revision(named).unwrap_or(NEWEST),
        }
    }

    /// The definition of the result, by the request's method.
    fn result(&self, revision: &str) -> Result<&'static str, String> {
        let is_modern = revision == NEWEST;
        let result = &self.response["result"];
        match (self.request["method"].as_str(), is_modern) {
            (Some("initialize"), false) => Ok("InitializeResult"),
            (Some("ping"), false) => Ok("EmptyResult"),
            (Some("server/discover"), true) => Ok("DiscoverResult"),
            (Some("tools/list"), _) => Ok("ListToolsResult"),
            (Some("tools/call"), true) if result["resultType"] == "input_required" => {
                Ok("InputRequiredResult")
            }
            (Some("tools/call"), _) => Ok("CallToolResult"),
            (method, _) => Err(format!("{revision} has no result of {method:?}")),
        }
    }
}

/// True for the path of MCP, below any stage and base path.
fn is_mcp(event: &Value) -> bool {
    let path = event["rawPath"].as_str().or(event["path"].as_str());
    path.is_some_and(|it| it.ends_with("/mcp") && !it.contains("/.well-known/"))
}

#[test]
fn every_mcp_response_matches_the_schema_of_its_revision() {
    let mut schemas = Schemas::read();
    let (mut checked, mut mistakes) = (BTreeSet::new(), Vec::new());
    for pair in pairs().iter().filter(|pair| is_mcp(&pair.event)) {
        let response = &pair.expected["body"];
        if response.is_null() {
            let status = pair.expected["status"].as_u64().unwrap();
            assert!([202, 405].contains(&status), "{}: {status}", pair.name);
            continue;
        }
        match schemas.check_exchange(&Exchange::of(&pair.event, response)) {
            Ok((revision, names)) => {
                checked.extend(names.into_iter().map(|name| (revision, name)));
            }
            Err(mistake) => mistakes.push(format!("{}: {mistake}", pair.name)),
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    // Guards against a test that checks nothing.
    for expected in [
        (OLDEST, "InitializeResult"),
        ("2025-06-18", "InitializeResult"),
        ("2025-11-25", "InitializeResult"),
        ("2025-11-25", "EmptyResult"),
        ("2025-11-25", "ListToolsResult"),
        ("2025-11-25", "CallToolResult"),
        ("2025-11-25", "JSONRPCErrorResponse"),
        (NEWEST, "DiscoverResult"),
        (NEWEST, "ListToolsResult"),
        (NEWEST, "CallToolResult"),
        (NEWEST, "InputRequiredResult"),
        (NEWEST, "JSONRPCErrorResponse"),
        (NEWEST, "HeaderMismatchError"),
        (NEWEST, "UnsupportedProtocolVersionError"),
    ] {
        assert!(checked.contains(&expected), "{expected:?}");
    }
}

/// Valid responses, each with its revision and the method of its request.
fn valid_responses() -> [(&'static str, &'static str, Value); 5] {
    let content = json!([{"type": "text", "text": "15"}]);
    let challenge = json!({"method": "elicitation/create", "params": {
        "mode": "url", "message": "Open it.", "url": "https://a.example/",
    }});
    let legacy = json!({"content": content, "structuredContent": {}, "isError": false});
    let modern = json!({"resultType": "complete", "content": content});
    let required = json!({"resultType": "input_required", "inputRequests": {"a": challenge}});
    let data = json!({"supported": [NEWEST], "requested": "1"});
    let unsupported = json!({"code": -32022, "message": "No.", "data": data});
    let list = json!({"resultType": "complete", "ttlMs": 1, "cacheScope": "private", "tools": [
        {"name": "A", "inputSchema": {"type": "object"}},
    ]});
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": 1, "result": result});
    let error = json!({"jsonrpc": "2.0", "id": 1, "error": unsupported});
    [
        ("2025-11-25", "tools/call", result(legacy)),
        (NEWEST, "tools/call", result(modern)),
        (NEWEST, "tools/call", result(required)),
        (NEWEST, "tools/call", error),
        (NEWEST, "tools/list", result(list)),
    ]
}

fn check(
    schemas: &mut Schemas,
    revision: &str,
    method: &str,
    response: &Value,
) -> Result<Checked, String> {
    schemas.check_exchange(&Exchange {
        request: json!({"jsonrpc": "2.0", "id": 1, "method": method}),
        version_header: Some(revision),
        response,
    })
}

#[test]
fn a_response_with_one_invalid_field_does_not_match() {
    let mut schemas = Schemas::read();
    let valid = valid_responses();
    for (revision, method, response) in &valid {
        check(&mut schemas, revision, method, response).unwrap();
    }
    for (index, pointer, field) in [
        (0, "/jsonrpc", json!("1.0")),
        (0, "/id", json!(1.5)),
        (0, "/result", json!(null)),
        (0, "/result/content", json!("15")),
        (0, "/result/content/0/text", json!(15)),
        (0, "/result/structuredContent", json!(15)),
        (0, "/result/isError", json!("no")),
        (1, "/result/resultType", json!(null)),
        (1, "/result/content", json!(null)),
        (2, "/result/inputRequests/a/method", json!("elicit")),
        (2, "/result/inputRequests/a/params/mode", json!("form")),
        (2, "/result/inputRequests/a/params/url", json!("a b")),
        (3, "/error/code", json!("-32022")),
        (3, "/error/message", json!(null)),
        (3, "/error/data", json!({})),
        (4, "/result/ttlMs", json!("1")),
        (4, "/result/cacheScope", json!("nobody")),
        (4, "/result/tools/0/inputSchema", json!({"type": "array"})),
    ] {
        let (revision, method, mut response) = valid[index].clone();
        *response.pointer_mut(pointer).unwrap() = field;
        let result = check(&mut schemas, revision, method, &response);
        assert!(result.is_err(), "{pointer} of {response}");
    }
}

#[test]
fn a_response_of_another_method_or_revision_does_not_match() {
    let mut schemas = Schemas::read();
    for (_, _, mut response) in valid_responses() {
        if response.get("result").is_some() {
            for (revision, method) in [
                ("2025-11-25", "initialize"),
                ("2025-11-25", "server/discover"),
                (NEWEST, "ping"),
                (NEWEST, "server/discover"),
            ] {
                let result = check(&mut schemas, revision, method, &response);
                assert!(result.is_err(), "{method} {response}");
            }
        }
        // Both a result and an error.
        for name in ["result", "error"] {
            let field = json!({"code": 1, "message": "No.", "content": []});
            let fields = response.as_object_mut().unwrap();
            fields.entry(name).or_insert(field);
        }
        let result = check(&mut schemas, NEWEST, "tools/call", &response);
        assert!(result.is_err(), "{response}");
    }
}
