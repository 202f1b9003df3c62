//! From an OpenAPI document to answered calls, by the commands of docs/from-openapi.md.

use std::{fs, process::Command};

use serde_json::Value;
use test_support::{prism::Prism, repository};

use super::{parent_without, stdout_of};
use crate::terminal::Terminal;

/// The tools that are called. Prism answers with what the document says of the responses.
const CALLS: [(&str, &str); 5] = [
    ("Figma_GetFile", r#"{"file_key": "abc", "depth": 1}"#),
    ("Figma_GetFileMeta", r#"{"file_key": "abc"}"#),
    (
        "Figma_GetFileVersions",
        r#"{"file_key": "abc", "page_size": 2}"#,
    ),
    ("Figma_GetComments", r#"{"file_key": "abc"}"#),
    (
        "Figma_PostComment",
        r#"{"file_key": "abc", "message": "Looks good"}"#,
    ),
];

#[test]
#[ignore = "needs cargo-lambda, Prism and five minutes; run .ci/long"]
fn the_commands_of_the_page_end_in_answered_calls() {
    let parent = parent_without("figma-tools");
    let document = "target/openapi-tools/node_modules/@figma/rest-api-spec/openapi/openapi.yaml";
    fs::copy(repository(document), parent.join("figma.yaml")).unwrap();
    let prism = Prism::start("figma");
    let mut terminal = Terminal::open(&parent, "");
    terminal.set("API_URL", &prism.url);
    let installed = parent.join("installed");
    terminal.set("CARGO_INSTALL_ROOT", installed.to_str().unwrap());
    terminal.add_to_path(&installed.join("bin"));
    let page = fs::read_to_string(repository("docs/from-openapi.md")).unwrap();
    // This is the test.
    let page = page.replace("<!-- not run: another test runs these commands -->", "");
    let typed = terminal.type_page("docs/from-openapi.md", &page);
    assert!(typed.len() <= 5, "{typed:?}");

    let mut client = Command::new(repository("target/venv/bin/python"));
    client.arg("-c").arg(include_str!("../five_calls.py"));
    client.arg(format!("{}/mcp", terminal.url()));
    client.args(CALLS.iter().flat_map(|(name, arguments)| [name, arguments]));
    let answered: Value = serde_json::from_str(&stdout_of(&mut client)).unwrap();
    let answers = answered["answers"].as_array().unwrap();
    assert_eq!(answers.len(), CALLS.len());
    for answer in answers {
        assert_eq!(answer["is_error"], false, "{answer}");
        let text = answer["text"].as_str().unwrap();
        assert!(
            serde_json::from_str::<Value>(text).unwrap().is_object(),
            "{text}"
        );
    }
}
