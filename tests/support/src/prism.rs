//! Prism, a mock server of APIs, which checks requests against an OpenAPI document.

use std::{
    net::{TcpListener, TcpStream},
    process::Command,
    time::{Duration, Instant},
};

use crate::{Running, node, repository};

/// A running server. It ends when it is dropped.
pub struct Prism {
    /// Its URL.
    pub url: String,
    _running: Running,
}

impl Prism {
    /// Starts a server for one of the documents that tests/install brings.
    pub fn start(document: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let script = "target/openapi-tools/node_modules/@stoplight/prism-cli/dist/index.js";
        let mut command = Command::new(node());
        command
            .arg(repository(script))
            .args(["mock", "--host", "127.0.0.1"]);
        command.args([
            "--port",
            &address.port().to_string(),
            "--verboseLevel",
            "warn",
        ]);
        command.arg(repository(&format!(
            "target/openapi-documents/{document}.json"
        )));
        let running = Running::start(&mut command);
        // It reads the document first.
        let end = Instant::now() + Duration::from_mins(3);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < end, "Prism has not started");
            std::thread::sleep(Duration::from_millis(50));
        }
        Self {
            url: format!("http://{address}"),
            _running: running,
        }
    }
}
