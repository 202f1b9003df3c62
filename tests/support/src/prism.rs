//! Prism, a mock server of APIs, which checks requests against an OpenAPI document.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use crate::repository;

/// A running server. It ends with its standard input.
pub struct Prism {
    /// Its URL.
    pub url: String,
    _child: Child,
}

impl Prism {
    /// Starts a server for one of the documents that tests/install brings.
    pub fn start(document: &str) -> Self {
        let mut command = Command::new(repository("target/venv-openapi-tools/bin/python"));
        command.arg(repository("tests/openapi/prism.py"));
        let document = format!("target/openapi-documents/{document}.json");
        command.arg(repository(&document)).arg("0");
        command.arg("--node").arg(repository("target/bin/node"));
        let modules = repository("target/openapi-tools/node_modules");
        command.arg("--modules").arg(modules);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut url).unwrap();
        assert!(
            url.starts_with("http://127.0.0.1:"),
            "Prism has not started"
        );
        let url = url.trim().to_owned();
        Self { url, _child: child }
    }
}
