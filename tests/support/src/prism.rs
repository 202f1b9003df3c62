//! Prism, a mock server of APIs, which checks requests against an OpenAPI document.

use std::process::Command;

use crate::{Running, free_address, node, repository};

/// A running server. It ends when it is dropped.
pub struct Prism {
    /// Its URL.
    pub url: String,
    _running: Running,
}

impl Prism {
    /// Starts a server for one of the documents that tests/install brings.
    pub async fn start(document: &str) -> Self {
        let address = free_address();
        let script = "target/openapi-tools/node_modules/@stoplight/prism-cli/dist/index.js";
        let mut command = Command::new(node());
        command
            .arg(repository(script))
            .args(["mock", "--host", "127.0.0.1", "--verboseLevel", "warn"])
            .args(["--port", &address.port().to_string()])
            .arg(repository(&format!(
                "target/openapi-documents/{document}.json"
            )));
        Self {
            url: format!("http://{address}"),
            // It reads the document first.
            _running: Running::listening(&mut command, address, 180).await,
        }
    }
}
