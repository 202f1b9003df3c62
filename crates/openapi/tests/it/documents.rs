//! Real documents become tools, and what does not is named. Outside programs judge the tools, and
//! requests of generated inputs: openapi-core, in `tests/openapi/judge_requests.py`, holds the requests
//! against the documents.
//!
//! Three of them come from npm (tests/install). `OPENAPI_DOCUMENTS` may name a folder with more:
//! museum, figma, twilio, discord, asana, openai, box, plaid and github, as JSON.

use std::{fs, io::Write, path::PathBuf, process::Command};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use lambda_tools_core::{Toolkit, tool::agentcore};
use lambda_tools_openapi::{ApiTools, OpenApi, OpenApiOptions, Report};
use serde_json::{Value, json};
use test_support::{installed, repository};

use crate::{
    inputs::Inputs,
    recorder::{Recorder, call, context, toolkit},
};

/// The documents, with the numbers of their operations that GET, PUT, POST, DELETE, OPTIONS, HEAD, PATCH
/// and TRACE have, and the hosts beside the first one.
const KNOWN: [(&str, usize, &[&str]); 9] = [
    ("asana", 247, &[]),
    (
        "box",
        296,
        &["account.box.com", "dl.boxcloud.com", "upload.box.com"],
    ),
    ("discord", 242, &[]),
    ("figma", 47, &[]),
    ("github", 1223, &["uploads.github.com"]),
    ("museum", 8, &[]),
    ("openai", 288, &[]),
    ("plaid", 329, &[]),
    ("twilio", 197, &[]),
];

/// A document, with its number of operations.
struct RealDocument {
    name: String,
    operations: usize,
    document: Value,
    hosts: &'static [&'static str],
}

impl RealDocument {
    /// Returns all documents that are there.
    fn all() -> Vec<Self> {
        let folder = std::env::var_os("OPENAPI_DOCUMENTS").map(PathBuf::from);
        let folder = folder.unwrap_or_else(|| repository("target/openapi-documents"));
        let documents = KNOWN.iter().filter_map(|(name, operations, hosts)| {
            let text = fs::read(folder.join(format!("{name}.json"))).ok()?;
            let document = serde_json::from_slice(&text).unwrap();
            Some(Self {
                name: (*name).to_owned(),
                operations: *operations,
                document,
                hosts,
            })
        });
        let documents: Vec<_> = documents.collect();
        assert!(
            documents.len() >= 3,
            "tests/install brings three documents to {}",
            folder.display()
        );
        documents
    }

    /// Returns the URL of its first server.
    fn server(&self) -> String {
        let url = self.document["servers"][0]["url"].as_str();
        url.unwrap_or("https://api.example").to_owned()
    }

    /// Reduces all operations.
    fn reduced(&self) -> (ApiTools, Report) {
        let options = OpenApiOptions {
            list_all: true,
            base_url: Some(self.server()),
            hosts: self.hosts.iter().map(|it| (*it).to_owned()).collect(),
            ..OpenApiOptions::all()
        };
        let api = OpenApi::new(self.document.clone(), options).unwrap();
        let reduction = api.reduce().unwrap();
        (reduction.tools, reduction.report)
    }
}

#[test]
fn nearly_all_operations_become_tools_and_the_others_are_named() {
    let (mut operations, mut made) = (0, 0);
    for document in RealDocument::all() {
        let (tools, report) = document.reduced();
        let name = &document.name;
        let count = tools.ids().count();
        println!("{name}: {count} of {}", report.operations);
        report.left_out.iter().for_each(|note| println!("  {note}"));
        assert_eq!(report.operations, document.operations, "{name}");
        let counted = count + report.left_out.len();
        assert_eq!(counted, report.operations, "{name}");
        operations += report.operations;
        made += count;
        // A program that reads the file accepts every tool.
        let read = ApiTools::from_json(&tools.to_json()).unwrap();
        let toolkit = Toolkit::new(read.tools().unwrap()).unwrap();
        toolkit.check().unwrap();
        assert_eq!(toolkit.definitions().len(), count, "{name}");
    }
    assert!(made * 100 >= operations * 98, "{made} of {operations}");
}

/// Checks a list of tools with `tests/openapi/check_tools.py`.
fn check_outside(name: &str, options: &[&str], list: &Value) {
    let folder = repository("target/tmp");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{name}.json"));
    fs::write(&file, list.to_string()).unwrap();
    let mut command = Command::new(installed("python"));
    command.arg(repository("tests/openapi/check_tools.py"));
    let output = command.args(options).arg(&file).output().unwrap();
    let [said, mistakes] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(output.status.success(), "{name}: {said} {mistakes}");
}

#[test]
fn the_published_rules_of_apis_accept_every_tool() {
    for document in RealDocument::all() {
        let (tools, _) = document.reduced();
        let toolkit = Toolkit::new(tools.tools().unwrap()).unwrap();
        // As MCP lists them.
        let listed = toolkit.entries().iter().zip(toolkit.definitions());
        let listed = listed.map(|(entry, definition)| {
            json!({"name": entry.id.qualified().replace('.', "_"),
                "description": definition.description, "inputSchema": entry.tool.input.value()})
        });
        check_outside(&format!("tools-{}", document.name), &[], &listed.collect());
        let gateway = agentcore::definitions(&toolkit);
        assert_eq!(gateway.len(), toolkit.entries().len(), "{}", document.name);
        let name = format!("gateway-{}", document.name);
        check_outside(&name, &["--agentcore"], &gateway.into());
    }
}

#[tokio::test]
async fn a_validator_accepts_nearly_all_requests() {
    let python = installed("python");
    let recorder = Recorder::start().await;
    let (mut operations, mut accepted) = (0, 0);
    for document in RealDocument::all() {
        let server = document.server();
        let (tools, _) = document.reduced();
        let made = tools.ids().count();
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
    assert!(accepted * 100 >= operations as u64 * 97);
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
