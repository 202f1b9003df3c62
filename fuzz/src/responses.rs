//! Checks responses against the published documents of their protocols.

use std::{collections::HashMap, fs, sync::LazyLock};

use jsonschema::Validator;
use serde_json::{Value, json};

/// The validators of the bodies, by the names that this module gives them.
static VALIDATORS: LazyLock<HashMap<String, Validator>> = LazyLock::new(|| {
    let mut all = HashMap::new();
    for (dialect, name) in [
        ("", "oxp-1.0-header"),
        ("urn:oxp:1.0", "oxp-1.0-envelope"),
        ("otc://1.0", "otc-1.0"),
    ] {
        let document = openapi(name);
        for (path, method, status) in [
            ("/tools", "get", "200"),
            ("/tools/call", "post", "200"),
            ("/tools/call", "post", "400"),
            ("/tools/call", "post", "422"),
        ] {
            let key = format!("{dialect} {path} {status}");
            all.insert(key, response_of(&document, path, method, status));
        }
    }
    for revision in REVISIONS {
        let document = read(&format!("mcp/{revision}.json"));
        for definition in DEFINITIONS.split(' ') {
            if let Some(validator) = definition_of(&document, definition) {
                all.insert(format!("{revision} {definition}"), validator);
            }
        }
    }
    let opentool = jsonschema::draft202012::new(&read("opentool-response.schema.json"));
    let opentool = opentool.expect("the schema is valid");
    all.insert("opentool".to_owned(), opentool);
    all
});

/// The newest first. No schema of 2024-11-05 is vendored.
const REVISIONS: [&str; 4] = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"];

const DEFINITIONS: &str = "CallToolResult DiscoverResult EmptyResult InitializeResult \
    InputRequiredResult JSONRPCError JSONRPCErrorResponse JSONRPCResponse JSONRPCResultResponse \
    ListToolsResult";

fn read(name: &str) -> Value {
    let path = format!("{}/../tests/spec/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).expect("the document is JSON")
}

/// Reads a published document. As in the tests of the events, `additionalProperties: false` next to
/// a `oneOf` is replaced by `unevaluatedProperties: false`, because as published it forbids every
/// response.
fn openapi(name: &str) -> Value {
    let mut document = read(&format!("{name}.openapi.json"));
    let response = &mut document["components"]["schemas"]["CallToolResponse"];
    response["unevaluatedProperties"] = json!(false);
    let fields = response.as_object_mut().expect("a schema is an object");
    fields.remove("additionalProperties");
    document
}

fn response_of(document: &Value, path: &str, method: &str, status: &str) -> Validator {
    let path = path.replace('/', "~1");
    let pointer =
        format!("/paths/{path}/{method}/responses/{status}/content/application~1json/schema");
    let schema = document.pointer(&pointer);
    let schema = schema.expect("the document describes it");
    let schema = json!({"allOf": [schema], "components": document["components"]});
    jsonschema::draft202012::new(&schema).expect("the document's schemas are valid")
}

fn definition_of(document: &Value, definition: &str) -> Option<Validator> {
    let name = ["$defs", "definitions"]
        .into_iter()
        .find(|it| document.get(it).is_some())?;
    document[name].get(definition)?;
    let schema = json!({
        "$schema": document["$schema"],
        "allOf": [{"$ref": format!("#/{name}/{definition}")}],
        name: document[name],
    });
    let options = jsonschema::options().should_validate_formats(true);
    let validator = options.build(&schema);
    Some(validator.expect("the published schemas are valid"))
}

/// Builds the validators: they count for no input.
pub(crate) fn prepare() {
    LazyLock::force(&VALIDATORS);
}

fn is_valid(name: &str, body: &Value) -> bool {
    VALIDATORS.get(name).is_some_and(|it| it.is_valid(body))
}

/// A response.
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    pub(crate) is_oxp: bool,
    pub(crate) path: &'a str,
    pub(crate) body: &'a Value,
}

impl Response<'_> {
    /// Panics if the body does not match the document of its protocol.
    pub(crate) fn check(&self) {
        let body = self.body;
        let is_valid = if body["jsonrpc"] == "2.0" {
            match (body.get("result"), body.get("error")) {
                (Some(_), Some(_)) => is_valid("opentool", body),
                _ => is_valid_mcp(body),
            }
        } else if self.is_oxp {
            self.is_valid_oxp()
        } else {
            true
        };
        assert!(is_valid, "{} {}: {body}", self.path, self.status);
    }

    /// Calls at the path of a single tool, the OpenAPI document and the health check are not
    /// described in a published document.
    fn is_valid_oxp(&self) -> bool {
        let body = self.body;
        // The path of an event may lack its first slash.
        let path = format!("/{}", self.path);
        let is_single_tool = path.contains("/tools/") && !path.ends_with("/tools/call");
        if is_single_tool {
            return true;
        }
        let dialect = body["$schema"].as_str().unwrap_or_default();
        let is_call = body.get("success").or(body.get("result")).is_some();
        match self.status {
            200 if is_call => is_valid(&format!("{dialect} /tools/call 200"), body),
            200 if body.get("items").is_some() => is_valid(&format!("{dialect} /tools 200"), body),
            200 => !self.path.ends_with("/call"),
            422 => is_valid(&format!("{dialect} /tools/call 422"), body),
            400..=405 => is_valid(&format!("{dialect} /tools/call 400"), body),
            _ => body["message"].is_string() || body["status"].is_string(),
        }
    }
}

/// The fields that tell results apart, with their definitions.
const KINDS: [(&str, &str); 6] = [
    ("inputRequests", "InputRequiredResult"),
    ("requestState", "InputRequiredResult"),
    ("content", "CallToolResult"),
    ("tools", "ListToolsResult"),
    ("protocolVersion", "InitializeResult"),
    ("supportedVersions", "DiscoverResult"),
];

/// Returns true if the whole response matches the schema of one revision.
fn is_valid_mcp(body: &Value) -> bool {
    // JSON-RPC 2.0, 5: the id is that of the request, which may be a fraction. MCP forbids
    // fractions, but the server does not check that.
    let mut body = body.clone();
    if body["id"].is_f64() {
        body["id"] = json!(1);
    }
    REVISIONS.iter().any(|revision| {
        let envelopes: &[&str] = match body.get("error") {
            Some(_) => &["JSONRPCErrorResponse", "JSONRPCError"],
            None => &["JSONRPCResultResponse", "JSONRPCResponse"],
        };
        let matches = |name: &str, value| is_valid(&format!("{revision} {name}"), value);
        let has_envelope = envelopes.iter().any(|name| matches(name, &body));
        let result = match &body["result"] {
            Value::Null => return has_envelope,
            result => result,
        };
        let kind = KINDS.iter().find(|(field, _)| result.get(field).is_some());
        let kind = kind.map_or("EmptyResult", |(_, kind)| *kind);
        has_envelope && matches(kind, result)
    })
}
