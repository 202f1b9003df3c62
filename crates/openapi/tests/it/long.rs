//! The document of a web framework becomes tools, and each call of a tool gets an answer of the
//! application that the document describes. A framework that rejects a request as malformed says
//! that the conversion is wrong.
//!
//! `.ci/long` installs what these tests need, and runs them.

use std::{process::Command, time::Duration};

use lambda_tools_core::{Failure, Toolkit};
use lambda_tools_openapi::{ApiTools, OpenApi, OpenApiOptions, Reduction};
use serde_json::{Value, json};
use test_support::{Running, isolated, repository};

use crate::{
    inputs::Inputs,
    recorder::{call, context},
};

/// The number of calls of each tool. With fewer, some optional parameters would never be sent.
const CALLS: usize = 40;

/// Those that are left out are called with a token.
#[tokio::test]
#[ignore = "needs FastAPI; run .ci/long"]
async fn fastapi_answers_every_call() {
    let mut application = Command::new(repository("target/venv-frameworks/bin/python"));
    application.arg(repository("tests/frameworks/fastapi_app.py"));
    application.arg("0");
    // No tool can ask a user for the password, which this flow needs.
    let left_out = ["GET /me"];
    // It ends when this is dropped, also if the test fails.
    let running = Running::start(&mut isolated(application));
    let line = running.line_with("http://127.0.0.1:", 60);
    let url = line.trim();
    let document = fetched(&format!("{url}/openapi.json")).await;
    let options = OpenApiOptions {
        list_all: true,
        base_url: Some(url.to_owned()),
        allow_private: true,
        ..OpenApiOptions::all()
    };
    let mut api = OpenApi::new(document, options).unwrap();
    let Reduction { tools, report, .. } = api.reduce().unwrap();
    let named: Vec<_> = report.left_out.iter().map(|it| &*it.operation).collect();
    assert_eq!(named, left_out);
    let mut faults = faults_of(tools).await;
    api.options.include_paths.clear();
    api.options.include_operations = left_out.map(str::to_owned).into();
    api.options.bearer = Some("TOKEN".to_owned());
    let reduction = api.reduce().unwrap();
    faults.extend(faults_of(reduction.tools).await);
    assert_eq!(faults.len(), report.operations);
    let answered = faults.iter().filter(|it| it.is_empty()).count();
    println!("{answered} of {} operations", faults.len());
    let faults: Vec<_> = faults.concat();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

async fn fetched(url: &str) -> Value {
    // A proxy of the environment could not reach this machine.
    let client = reqwest::Client::builder().no_proxy();
    let client = client.timeout(Duration::from_mins(1)).build().unwrap();
    let response = client.get(url).send().await.unwrap();
    let text = response.error_for_status().unwrap().text().await.unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Returns what is wrong with the calls of each tool: the first one of each kind of failure.
async fn faults_of(tools: ApiTools) -> Vec<Vec<String>> {
    let cx = context(&tools);
    let toolkit = Toolkit::new(tools.tools().unwrap()).unwrap();
    let mut inputs = Inputs::new();
    let mut all = Vec::new();
    for entry in toolkit.entries() {
        let schema = as_read(entry.tool.input.value());
        let mut faults: Vec<(String, String)> = Vec::new();
        for _ in 0..CALLS {
            let input = inputs.value(&schema);
            let sent = input.to_string();
            let Err(failure) = call(entry, input, &cx).await else {
                continue;
            };
            let message = failure.message().to_owned();
            if is_fault(&failure) && !faults.iter().any(|(known, _)| *known == message) {
                let prompt = failure.parts().additional_prompt_content.clone();
                let prompt = prompt.unwrap_or_default();
                let id = entry.id.qualified();
                let text = format!("{id} {sent}: {message} {prompt}");
                faults.push((message, text));
            }
        }
        all.push(faults.into_iter().map(|(_, text)| text).collect());
    }
    all
}

/// Returns true for a failure that is not about what was asked for: a generated input names things
/// that do not exist, and credentials that nobody gave it.
fn is_fault(failure: &Failure) -> bool {
    let status = failure.parts().developer_message.as_deref();
    let answers = [401, 403, 404, 409].map(|it| format!("HTTP status {it}"));
    !answers.iter().any(|it| Some(&**it) == status)
}

/// Returns a schema with what only its descriptions say to a model.
fn as_read(schema: &Value) -> Value {
    let text = schema["description"].as_str().unwrap_or_default();
    let is_text = |it: &Value| it["type"] == "string" || it["type"] == json!(["string", "null"]);
    let mut branches = schema["anyOf"].as_array().into_iter().flatten();
    let may_be_text = is_text(schema) || branches.any(is_text);
    if may_be_text
        && schema.get("enum").is_none()
        && let Some(example) = example_in(text)
    {
        return json!({"const": example});
    }
    let mut read = schema.clone();
    if let Some(items) = read.get_mut("items") {
        *items = if text.contains("in this order: integer") {
            json!({"type": "integer"})
        } else {
            as_read(items)
        };
    }
    if let Some(Value::Array(branches)) = read.get_mut("anyOf") {
        for it in branches {
            *it = as_read(it);
        }
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = read.get_mut("properties") {
        // It has the properties of the schema around it, which the generator does not know.
        let is_same = |it: &Value| {
            let text = it["description"].as_str();
            text.is_some_and(|it| it.starts_with("The same again"))
        };
        properties.retain(|name, it| !is_same(it) || required.iter().any(|it| it == name));
        properties.values_mut().for_each(|it| *it = as_read(it));
    }
    read
}

/// Returns the value that a description names as an example.
fn example_in(text: &str) -> Option<&str> {
    let after = text.split_once("such as ");
    let (_, after) = after.or_else(|| text.split_once("Example: "))?;
    let word = after.split_whitespace().next()?;
    Some(word.trim_end_matches(['.', ',']))
}
