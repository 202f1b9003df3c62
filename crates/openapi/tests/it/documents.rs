//! Real documents become tools, and what does not is named.
//!
//! Three of them come from npm (tests/install). `OPENAPI_DOCUMENTS` may name a folder with more:
//! museum, figma, twilio, discord, asana, openai, box, plaid and github, as JSON.

use std::{fs, path::PathBuf, process::Command};

use lambda_tools_core::{Toolkit, tool::agentcore};
use lambda_tools_openapi::{ApiTools, OpenApi, Report};
use serde_json::{Value, json};
use test_support::{installed, repository};

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
pub(crate) struct RealDocument {
    pub(crate) name: String,
    pub(crate) operations: usize,
    pub(crate) document: Value,
    hosts: &'static [&'static str],
}

impl RealDocument {
    /// Returns all documents that are there.
    pub(crate) fn all() -> Vec<Self> {
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
    pub(crate) fn server(&self) -> String {
        let url = self.document["servers"][0]["url"].as_str();
        url.unwrap_or("https://api.example").to_owned()
    }

    /// Reduces all operations.
    pub(crate) fn reduced(&self) -> (ApiTools, Report) {
        let api = OpenApi::new(self.document.clone()).unwrap();
        let api = api
            .include_all()
            .list_all()
            .base_url(self.server())
            .hosts(self.hosts.iter().copied());
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
        println!("{name}: {} of {}", tools.len(), report.operations);
        report.left_out.iter().for_each(|note| println!("  {note}"));
        assert_eq!(report.operations, document.operations, "{name}");
        let counted = tools.len() + report.left_out.len();
        assert_eq!(counted, report.operations, "{name}");
        operations += report.operations;
        made += tools.len();
        // A program that reads the file accepts every tool.
        let read = ApiTools::from_json(&tools.to_json()).unwrap();
        let toolkit = Toolkit::new(read.tools().unwrap()).unwrap();
        toolkit.check().unwrap();
        assert_eq!(toolkit.definitions().len(), tools.len(), "{name}");
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
