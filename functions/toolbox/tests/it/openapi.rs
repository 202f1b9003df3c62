//! The `OpenAPI` document, read by a validator, by a generator of clients, and by a program that sends
//! whatever the document allows.
//!
//! They come from PyPI. `tests/all` installs them and runs these tests; a plain `cargo test` lists
//! them as ignored.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use lambda_tools::{Failure, Server, Tool, Toolkit};
use serde_json::{Value, json};
use toolbox::Endpoints;

use crate::{
    clients::{json_of, limited, python, stdout_of},
    support::{Running, installed, repository, toolbox},
};
use events::faults;

const KEY: &str = "a-key-of-this-server";

fn run(command: &mut Command) -> String {
    stdout_of(&command.output().unwrap())
}

/// Starts the compiled function, with an API key.
fn serving() -> (Running, String) {
    let mut command = toolbox();
    command.envs([("TOOLS_AUTH", "api-key"), ("TOOLS_API_KEY", KEY)]);
    Running::serving(&mut command)
}

/// Creates a folder of this test, without files of an earlier run.
fn empty_folder(name: &str) -> PathBuf {
    let folder = repository("target/openapi").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Fetches the document of a server into a file.
fn fetch(url: &str, folder: &Path) -> PathBuf {
    let file = folder.join("openapi.json");
    let mut curl = limited("curl");
    curl.args(["--fail", "--silent", "--show-error", "--output"])
        .arg(&file)
        .args(["--header", &format!("OXP-API-Key: {KEY}")])
        .arg(format!("{url}/openapi.json"));
    run(&mut curl);
    file
}

/// Returns tools with schemas that no type has, one in each draft.
fn hand_written() -> [Tool; 2] {
    let nothing = async |_: Value| Ok::<_, Failure>(Value::Null);
    let pair = json!({"type": "array", "description": "A pair.",
        "items": [{"type": "string"}, {"type": "number"}], "additionalItems": false});
    let older = json!({"type": "object", "properties": {"pair": pair},
        "dependencies": {"pair": ["other"]}, "additionalProperties": {"type": ["null", "string"]}});
    let newer = json!({"type": "object", "properties": {"pair": {"type": "array",
        "description": "A pair.", "prefixItems": [{"type": "string"}, {"type": "number"}]}},
        "anyOf": [{"required": ["pair"]}, {"maxProperties": 0}], "unevaluatedProperties": false});
    [("Schema.Older@1.0.0", older), ("Schema.Newer@1.0.0", newer)]
        .map(|(id, schema)| Tool::dynamic(id, "A schema.", schema.clone(), schema, nothing))
}

fn is_valid(document: &Path) -> bool {
    let mut validator = limited(installed("openapi-spec-validator"));
    validator.arg(document).status().unwrap().success()
}

#[test]
#[ignore = "needs openapi-spec-validator; run tests/all"]
fn a_validator_accepts_the_document() {
    let folder = empty_folder("validated");
    // Every kind of schema that the tests have, and a server that anyone may call.
    let mut tools = toolbox::tools(Endpoints::default());
    tools.extend(faults::tools());
    tools.extend(hand_written());
    let mut document = Server::new(Toolkit::new(tools).unwrap()).openapi();
    let file = folder.join("all.json");
    fs::write(&file, document.to_string()).unwrap();
    assert!(is_valid(&file));
    // The validator is really asked.
    document["paths"]["/tools/call"]["post"]["responses"] = json!(5);
    fs::write(&file, document.to_string()).unwrap();
    assert!(!is_valid(&file));
}

#[test]
#[ignore = "needs openapi-python-client; run tests/all"]
fn a_generated_client_calls_the_tools() {
    let folder = empty_folder("python");
    let (_running, url) = serving();
    let document = fetch(&url, &folder);
    let config = folder.join("config.yml");
    // Its own formatter is not installed.
    fs::write(&config, "post_hooks: []\n").unwrap();
    let printed = run(limited(installed("openapi-python-client"))
        .args(["generate", "--meta", "none", "--fail-on-warning", "--path"])
        .arg(&document)
        .arg("--config")
        .arg(&config)
        .arg("--output-path")
        .arg(folder.join("generated")));
    assert!(!printed.contains("Warning"), "{printed}");
    let mut client = python("functions/toolbox/tests/openapi/client.py");
    let mut printed = json_of(client.arg(&folder).args([&*url, KEY]));
    assert_eq!(printed["value"].take().as_f64(), Some(15.0));
    let expected = json!({
        "value": null,
        "message": "Some input parameters are invalid",
        "errors": {"a": "Must be a number"},
        "status": 422,
        "failed": 424,
        "failure": {
            "message": "The tool returned a result that does not match its definition",
            "developer_message": "The output does not match output_schema: it is rejected by /type.",
            "can_retry": false,
        },
    });
    assert_eq!(printed, expected);
}

/// Inputs of every kind, valid and invalid: no 5xx, and no response that the document does not
/// allow.
#[test]
#[ignore = "needs schemathesis; run tests/all"]
fn whatever_the_document_allows_gets_a_documented_response() {
    let folder = empty_folder("schemathesis");
    let (running, url) = serving();
    // Tools that call an API reject what their schema allows, for example without their secret.
    let mut program = limited(installed("schemathesis"));
    program
        .current_dir(&folder)
        .args(["run", "--max-examples", "40", "--seed", "1"])
        .args(["--exclude-checks", "positive_data_acceptance"])
        .args(["--header", &format!("OXP-API-Key: {KEY}")])
        .arg(format!("{url}/openapi.json"));
    let printed = run(&mut program);
    let mut lines = printed.lines().map(str::trim);
    let counts = lines.find(|line| line.contains(" generated, "));
    let counts = counts.unwrap_or_else(|| panic!("{printed}"));
    let count = |word: &str| {
        let mut parts = counts.split(", ").filter_map(|part| part.split_once(' '));
        parts.find(|(_, it)| *it == word).map(|(count, _)| count)
    };
    assert!(
        count("generated").is_some() && count("generated") == count("passed"),
        "{printed}"
    );
    drop(running);
}
