//! Checks the expected responses of the events, and the tools' definitions, against the published
//! specifications.

mod mcp;
mod seeds;

use std::{collections::BTreeSet, fs, path::Path};

use jsonschema::Validator;
use lambda_tools::Toolkit;
use serde_json::{Value, json};
use test_support::files_below;
use toolbox::Endpoints;

use crate::support::repository;

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the validator of a response body in a published document; `None` if it describes none.
fn response_of(name: &str, path: &str, method: &str, status: &str) -> Option<Validator> {
    let mut document = read(&repository(&format!("tests/spec/{name}.openapi.json")));
    // The documents have `additionalProperties: false` next to a `oneOf` whose variants define
    // `value` and `error`. Taken literally, this forbids both fields, and so every response.
    // `unevaluatedProperties`, which was meant, takes the variants into account.
    let response = &mut document["components"]["schemas"]["CallToolResponse"];
    let fields = response.as_object_mut().unwrap();
    assert_eq!(fields.remove("additionalProperties"), Some(json!(false)));
    response["unevaluatedProperties"] = json!(false);
    let path = path.replace('/', "~1");
    let pointer =
        format!("/paths/{path}/{method}/responses/{status}/content/application~1json/schema");
    let schema = document.pointer(&pointer)?;
    let schema = json!({"allOf": [schema], "components": document["components"]});
    Some(jsonschema::draft202012::new(&schema).unwrap())
}

/// An event with its expected file.
struct Pair {
    name: String,
    event: Value,
    expected: Value,
}

fn pairs() -> Vec<Pair> {
    let files = files_below("events").into_iter();
    let pairs = files.filter_map(|path| {
        let name = path.to_str()?.strip_suffix(".expected.json")?.to_owned();
        Some(Pair {
            event: read(Path::new(&format!("{name}.json"))),
            expected: read(&path),
            name,
        })
    });
    pairs.collect()
}

fn is_oxp(pair: &Pair) -> bool {
    let path = pair.event["rawPath"].as_str().unwrap_or_default();
    // These are not part of OXP, although their errors have its format.
    let is_single_tool = path.contains("/tools/") && !path.ends_with("/tools/call");
    let is_document = path.ends_with("/openapi.json");
    pair.expected["headers"].get("oxp-version").is_some() && !is_single_tool && !is_document
}

/// Returns the method and the operation of an event, without stage and base path.
fn operation(event: &Value) -> Option<(String, &'static str)> {
    let http = &event["requestContext"]["http"];
    let method = http["method"].as_str().or(event["httpMethod"].as_str())?;
    let path = event["rawPath"].as_str().or(event["path"].as_str())?;
    let path = path.trim_end_matches('/');
    let path = ["/tools/call", "/call", "/tools", "/health"]
        .into_iter()
        .find(|known| path.ends_with(known))?;
    let path = if path == "/call" { "/tools/call" } else { path };
    Some((method.to_lowercase(), path))
}

/// Returns the name of the document that describes a response, from the response's `$schema`.
fn document_of(expected: &Value) -> &'static str {
    match expected["body"]["$schema"].as_str() {
        Some("otc://1.0") => "otc-1.0",
        Some("urn:oxp:1.0") => "oxp-1.0-envelope",
        Some(other) => panic!("unknown $schema {other}"),
        None => "oxp-1.0-header",
    }
}

#[test]
fn every_expected_body_matches_the_published_document() {
    let mut checked = BTreeSet::new();
    for pair in pairs().into_iter().filter(is_oxp) {
        let status = pair.expected["status"].to_string();
        let name = document_of(&pair.expected);
        if status == "204" {
            // A browser's preflight request is none of the protocol.
            continue;
        }
        // The documents describe the body of a server error in one place only. It applies to all
        // others: an unsupported version at /tools, a 401, an unknown path or method, an encoded body.
        let is_server_error = ["400", "401", "403", "404", "405", "415"].contains(&&*status);
        let (method, path) = operation(&pair.event).unwrap_or_default();
        let (method, path, described_as) = if is_server_error {
            ("post", "/tools/call", "400")
        } else {
            (&*method, path, &*status)
        };
        let Some(validator) = response_of(name, path, method, described_as) else {
            // The documents do not describe the body of /health, and a 304 has none.
            let is_described = path != "/health" && status != "304";
            assert!(!is_described, "{}: {path}: {status}", pair.name);
            continue;
        };
        let body = &pair.expected["body"];
        if let Err(error) = validator.validate(body) {
            panic!("{}: {} at {}", pair.name, error, error.instance_path());
        }
        checked.insert((name, path, status));
    }
    // Guards against a test that checks nothing.
    for dialect in ["otc-1.0", "oxp-1.0-envelope", "oxp-1.0-header"] {
        for (path, status) in [
            ("/tools", "200"),
            ("/tools/call", "200"),
            ("/tools/call", "400"),
            ("/tools/call", "422"),
        ] {
            assert!(
                checked.contains(&(dialect, path, status.into())),
                "{dialect} {path} {status}"
            );
        }
    }
}

#[test]
fn the_tools_are_those_of_the_specification() {
    let toolkit = Toolkit::new(toolbox::tools(Endpoints::default())).unwrap();
    let definitions = toolkit.definitions().into_iter();
    let definitions: Vec<_> = definitions.map(|it| json!(it)).collect();
    for name in [
        "Calculator.Add",
        "Doorbell.Ring",
        "Gmail.GetEmails",
        "SMS.Send",
        "System.GetTimestamp",
    ] {
        let published = |dialect: &str| {
            let file = format!("tests/spec/examples/{dialect}.definition.{name}.json");
            read(&repository(&file))
        };
        let (flat, mut wrapped) = (published("header-form"), published("schema-form"));
        let ours = definitions.iter().find(|ours| ours["id"] == flat["id"]);
        let mut ours = ours.unwrap_or_else(|| panic!("{name} is missing")).clone();
        // Ours are stricter than the examples: closed inputs, E.164, Twilio's lengths.
        let without = |schema: &mut Value, keyword: &str| {
            let removed = schema.as_object_mut().unwrap().remove(keyword);
            removed.unwrap_or_else(|| panic!("{name} has no {keyword}"))
        };
        let input = &mut ours["input_schema"];
        assert_eq!(without(input, "additionalProperties"), false);
        match name {
            "SMS.Send" => {
                without(&mut input["properties"]["to"], "pattern");
                without(&mut input["properties"]["message"], "minLength");
                without(&mut input["properties"]["message"], "maxLength");
            }
            // OpenAI's API needs it in every object.
            "System.GetTimestamp" => drop(without(input, "properties")),
            _ => {}
        }
        // Both dialects of an example describe the same schema, except for the timestamp's: the flat
        // one is `{}`, and the wrapped one, like ours, requires an object.
        if name != "System.GetTimestamp" {
            assert_eq!(ours, flat, "{name}");
        }
        wrapped["input_schema"] = wrapped["input_schema"]["parameters"].take();
        assert_eq!(ours, wrapped, "{name}");
    }
}

#[test]
fn the_opentool_document_matches_its_format() {
    let format = read(&repository("tests/spec/opentool-document.schema.json"));
    let validator = jsonschema::draft202012::new(&format).unwrap();
    let response = read(&repository("events/opentool/load.expected.json"));
    let document = &response["body"];
    if let Err(error) = validator.validate(document) {
        panic!("{error} at {}", error.instance_path());
    }
    let functions = document["functions"].as_array().unwrap();
    assert_eq!(
        functions.len(),
        5,
        "one for each tool, regardless of its versions"
    );
}

/// Every response of `/opentool/call` has the protocol's four fields, and no others.
#[test]
fn opentool_responses_have_one_shape() {
    let shape = read(&repository("tests/spec/opentool-response.schema.json"));
    let shape = jsonschema::draft202012::new(&shape).unwrap();
    let is_call = |pair: &Pair| {
        let path = pair.event["rawPath"].as_str().unwrap_or_default();
        path.ends_with("/opentool/call") && !is_oxp(pair)
    };
    let mut checked = 0;
    for pair in pairs().into_iter().filter(is_call) {
        let body = &pair.expected["body"];
        assert!(shape.is_valid(body), "{}: {body}", pair.name);
        if !body["error"].is_null() {
            assert_eq!(body["result"], json!({}), "{}", pair.name);
        }
        checked += 1;
    }
    assert!(checked > 40, "{checked}");
}
