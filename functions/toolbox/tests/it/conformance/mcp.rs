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

/// The vendored revisions.
const REVISIONS: [&str; 4] = [OLDEST, "2025-06-18", "2025-11-25", NEWEST];

/// The validators of the definitions used so far, by their revision and name.
#[derive(Default)]
struct Schemas(BTreeMap<(&'static str, &'static str), Validator>);

impl Schemas {
    fn check(
        &mut self,
        revision: &'static str,
        definition: &'static str,
        value: &Value,
    ) -> Result<(), String> {
        let validator = self.0.entry((revision, definition));
        let validator = validator.or_insert_with(|| validator_of(revision, definition));
        validator.validate(value).map_err(|error| {
            let place = error.instance_path();
            format!("{definition} of {revision}: {error} at '{place}'")
        })
    }

    /// Returns the names of the definitions that this response matches.
    fn check_exchange(&mut self, exchange: &Exchange) -> Result<Checked, String> {
        let revision = exchange.revision();
        let response = exchange.response;
        if response.get("result").is_some() && response.get("error").is_some() {
            return Err("a response has either a result or an error".to_owned());
        }
        let [of_result, of_error] = envelopes(revision);
        let mut names = Vec::new();
        if response["error"].is_null() {
            names.extend([of_result, exchange.result(revision)?]);
        } else {
            let code = response["error"]["code"].as_i64();
            names.push(of_error);
            names.extend(specific_error(code.filter(|_| revision == NEWEST)));
        }
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

/// Returns the validator of one definition. Formats, such as `uri`, are checked as well.
fn validator_of(revision: &str, definition: &str) -> Validator {
    let document = read(&repository(&format!("tests/spec/mcp/{revision}.json")));
    let is_new = document["$defs"].is_object();
    let name = if is_new { "$defs" } else { "definitions" };
    let definitions = &document[name];
    assert!(definitions[definition].is_object(), "{definition}");
    let schema = json!({
        "$schema": document["$schema"],
        "allOf": [{"$ref": format!("#/{name}/{definition}")}],
        name: definitions,
    });
    let options = jsonschema::options().should_validate_formats(true);
    options.build(&schema).unwrap()
}

/// Returns the definitions of a response with a result, and of one with an error.
fn envelopes(revision: &str) -> [&'static str; 2] {
    match revision {
        "2025-03-26" | "2025-06-18" => ["JSONRPCResponse", "JSONRPCError"],
        _ => ["JSONRPCResultResponse", "JSONRPCErrorResponse"],
    }
}

/// Returns the definition of an error's code, which the newest revision alone has.
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
        // The requests whose bodies are encoded are those that no server of this kind reads.
        let is_text = event["isBase64Encoded"] == false;
        let body = event["body"].as_str().filter(|_| is_text);
        let body = body.unwrap_or_default();
        // A load balancer may send lists of values in another field; such an event has no version.
        let mut headers = event["headers"].as_object().into_iter().flatten();
        let version_header =
            headers.find(|(name, _)| name.eq_ignore_ascii_case("mcp-protocol-version"));
        Self {
            // Read as the server reads it: RFC 8259, 8.1 and 8.2.
            request: serde_json::from_str(body)
                .or_else(|_| {
                    let body = body.trim_start_matches('\u{feff}');
                    serde_json::from_str(&body.replace(r"\ud83d", r"\ufffd"))
                })
                .unwrap_or_default(),
            version_header: version_header.and_then(|(_, value)| value.as_str()),
            response,
        }
    }

    /// Returns the revision whose schema describes the response: the newest one if the request
    /// names an unknown revision, or if it was rejected before its message was read.
    fn revision(&self) -> &'static str {
        let agreed = self.response["result"]["protocolVersion"].as_str();
        let meta = "io.modelcontextprotocol/protocolVersion";
        let named = self.request["params"]["_meta"][meta].as_str();
        let named = agreed.or(named).or(self.version_header);
        match named.unwrap_or(UNNAMED) {
            _ if self.response["id"].is_null() => NEWEST,
            // The error that names the revisions with `_meta`.
            _ if self.response["error"]["code"] == -32022 => NEWEST,
            "2024-11-05" => OLDEST,
            named => REVISIONS.iter().find(|it| **it == named).unwrap_or(&NEWEST),
        }
    }

    /// Returns the definition of the result, by the request's method.
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
            (Some("resources/list"), _) => Ok("ListResourcesResult"),
            (Some("resources/templates/list"), _) => Ok("ListResourceTemplatesResult"),
            (Some("resources/read"), _) => Ok("ReadResourceResult"),
            (Some("prompts/list"), _) => Ok("ListPromptsResult"),
            (Some("prompts/get"), _) => Ok("GetPromptResult"),
            (Some("completion/complete"), _) => Ok("CompleteResult"),
            (method, _) => Err(format!("{revision} has no result of {method:?}")),
        }
    }
}

/// Returns true for the path of MCP, below any stage and base path.
fn is_mcp(event: &Value) -> bool {
    let path = event["rawPath"].as_str().or(event["path"].as_str());
    path.is_some_and(|it| it.ends_with("/mcp") && !it.contains("/.well-known/"))
}

#[test]
fn every_mcp_response_matches_the_schema_of_its_revision() {
    let mut schemas = Schemas::default();
    let (mut checked, mut mistakes) = (BTreeSet::new(), Vec::new());
    for pair in pairs().iter().filter(|pair| is_mcp(&pair.event)) {
        let response = &pair.expected["body"];
        if response.is_null() {
            let status = pair.expected["status"].as_u64().unwrap();
            assert!([202, 204, 405].contains(&status), "{}: {status}", pair.name);
            continue;
        }
        match schemas.check_exchange(&Exchange::of(&pair.event, response)) {
            Ok((revision, names)) => {
                checked.extend(names.into_iter().map(|name| (revision, name)));
                let mut wrong = response.clone();
                for field in ["result", "error"]
                    .iter()
                    .filter(|it| !response[**it].is_null())
                {
                    wrong[*field] = json!([]);
                }
                let accepted = schemas.check_exchange(&Exchange::of(&pair.event, &wrong));
                assert!(
                    accepted.is_err(),
                    "{}: the schema accepts anything",
                    pair.name
                );
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
        (NEWEST, "ReadResourceResult"),
        (NEWEST, "GetPromptResult"),
        (NEWEST, "JSONRPCErrorResponse"),
        (NEWEST, "HeaderMismatchError"),
        (NEWEST, "UnsupportedProtocolVersionError"),
    ] {
        assert!(checked.contains(&expected), "{expected:?}");
    }
}
