//! Requests of generated inputs, which a validator that nobody here wrote holds against the documents:
//! openapi-core, in `tests/openapi/judge_requests.py`.

use std::{fs, io::Write, process::Command};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use test_support::{installed, repository};

use crate::{
    documents::RealDocument,
    inputs::Inputs,
    recorder::{Recorder, call, context, toolkit},
};

#[tokio::test]
async fn a_validator_accepts_nearly_all_requests() {
    let python = installed("python");
    let recorder = Recorder::start().await;
    let (mut operations, mut accepted) = (0, 0);
    for document in RealDocument::all() {
        let server = document.server();
        let (tools, _) = document.reduced();
        let made = tools.len();
        let cx = context(&tools);
        let names = operations_of(&tools.to_json(), &server);
        let toolkit = toolkit(tools, &recorder.url);
        let file = repository("target/tmp").join(format!("requests-{}.jsonl", document.name));
        fs::create_dir_all(repository("target/tmp")).unwrap();
        let mut lines = fs::File::create(&file).unwrap();
        let mut inputs = Inputs::new();
        for (entry, (name, server)) in toolkit.entries().iter().zip(&names) {
            let input = inputs.value(entry.tool.input.value());
            let check = entry.tool.input.check(&input, "input").unwrap();
            if let Err(error) = check {
                println!("{name}: no valid input was generated: {error:?}");
                continue;
            }
            if let Err(failure) = call(entry, input, &cx).await {
                println!("{name}: {failure:?}");
            }
            for request in recorder.take() {
                let line = json!({"operation": name, "method": request.method,
                    "url": format!("{server}{}", request.target), "headers": request.headers,
                    "body": STANDARD.encode(&request.body)});
                writeln!(lines, "{line}").unwrap();
            }
        }
        let original = repository("target/tmp").join(format!("document-{}.json", document.name));
        fs::write(&original, document.document.to_string()).unwrap();
        let mut command = Command::new(&python);
        command
            .arg(repository("tests/openapi/judge_requests.py"))
            .args([&original, &file]);
        let output = command.output().unwrap();
        let judged: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        println!("{}: of {made} accepted: {judged}", document.name);
        operations += document.operations;
        accepted += judged["valid"].as_u64().unwrap();
    }
    println!("{accepted} of {operations}");
    assert!(
        accepted * 100 >= operations as u64 * 97,
        "{accepted} of {operations}"
    );
}

/// Returns the operations and the URLs of the tools in a file.
fn operations_of(json: &str, server: &str) -> Vec<(String, String)> {
    let tools: Value = serde_json::from_str(json).unwrap();
    let tools = tools["tools"].as_array().unwrap().iter();
    let of = |tool: &Value| {
        let url = tool["request"]["base_url"].as_str().unwrap_or(server);
        let operation = tool["operation"].as_str().unwrap();
        (operation.to_owned(), url.to_owned())
    };
    tools.map(of).collect()
}
