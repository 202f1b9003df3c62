//! Runs the commands of the pages below `docs/`; tests of their own type those of the README, of the
//! guides and of a first deployment. Another test of the library checks that every block is of a kind
//! that is run here, is compiled, or is marked.

use std::{fs, path::PathBuf, process};

use serde_json::Value;
use test_support::documents::{
    ADDRESS, Block, Command, blocks, commands, is_typed, matches, pages,
};

use crate::{
    clients::stdout_of,
    support::{Running, function, isolated},
};
use events::Stub;

/// A running server, its URL, and the command for Claude Code that it printed.
struct Server {
    _running: Running,
    url: String,
    connect: String,
}

/// The commands of one page, run in their order in a temporary folder.
struct Page {
    folder: PathBuf,
    stub: String,
    server: Option<Server>,
}

impl Page {
    fn shell(&self, script: &str) -> process::Command {
        let mut command = isolated(process::Command::new("sh"));
        command.args(["-c", script]).current_dir(&self.folder);
        command
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("a server runs")
    }

    fn serve(&mut self, package: &str, script: &str) {
        self.server = None;
        let mut command = self.shell(script);
        command.env("PROGRAM", function(package));
        // No request leaves the machine.
        command
            .env("GMAIL_URL", &self.stub)
            .env("TWILIO_URL", &self.stub);
        let (running, url) = Running::serving(&mut command);
        let connect = running.line_with("claude mcp add", 5).trim().to_owned();
        self.server = Some(Server {
            _running: running,
            url,
            connect,
        });
    }

    /// Returns the status and the body of the response.
    fn request(&self, command: &str) -> (String, Value) {
        let command = command.replace(ADDRESS, &self.server().url);
        let mut shell = self.shell(&format!("{command} -s -w '\\n%{{http_code}}'"));
        let stdout = stdout_of(&shell.output().unwrap());
        let (response, status) = stdout.rsplit_once('\n').unwrap();
        // With the headers, for `-i`.
        let body = response.rsplit("\r\n\r\n").next().unwrap();
        let body = serde_json::from_str(body).unwrap_or_else(|_| panic!("{command}: {stdout}"));
        (status.to_owned(), body)
    }

    fn run(&mut self, block: &Block, expected: Option<&Value>) {
        let mut commands = commands(block).unwrap().into_iter().peekable();
        while let Some(command) = commands.next() {
            match command {
                Command::Serve { package, script } => self.serve(&package, &script),
                Command::Write(script) => {
                    stdout_of(&self.shell(&script).output().unwrap());
                }
                // `long/claude_code.rs` runs all of these commands.
                Command::Connect(command) if !command.contains(ADDRESS) => {}
                Command::Connect(command) => {
                    let server = self.server();
                    assert_eq!(command.replace(ADDRESS, &server.url), server.connect);
                }
                Command::Request(command) => {
                    let (status, body) = self.request(&command);
                    let is_last = commands.peek().is_none();
                    match expected.filter(|_| is_last) {
                        Some(expected) => assert!(
                            matches(expected, &body),
                            "{}: {body:#} is not {expected:#}",
                            block.place
                        ),
                        None => assert_eq!(status, "200", "{}: {command}: {body}", block.place),
                    }
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs curl, and what tests/build builds; run .ci/long"]
async fn the_commands_of_the_pages_work() {
    let stub = Stub::start().await;
    let url = stub.url();
    tokio::task::spawn_blocking(move || run_all(&url))
        .await
        .unwrap();
}

fn run_all(stub: &str) {
    let name = format!("pages-{}", process::id());
    let folder = std::env::temp_dir().join(name);
    let mut count = 0;
    let pages = pages().into_iter();
    for (path, text) in pages.filter(|(path, _)| !is_typed(path)) {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let mut page = Page {
            folder: folder.clone(),
            stub: stub.to_owned(),
            server: None,
        };
        let mut blocks = blocks(&path, &text).into_iter().peekable();
        while let Some(block) = blocks.next() {
            if block.language != "console" || block.mark.is_some() {
                continue;
            }
            let response = blocks.next_if(|next| next.language == "json" && next.mark.is_none());
            let response: Option<Value> =
                response.map(|block| serde_json::from_str(&block.text).unwrap());
            page.run(&block, response.as_ref());
            count += 1;
        }
    }
    assert!(count > 5);
    fs::remove_dir_all(&folder).unwrap();
}
