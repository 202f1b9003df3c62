//! The start-up lines: the server's address and how to call it.

use std::{
    fmt,
    io::{self, IsTerminal},
    net::SocketAddr,
};

use crate::{Protocol, Server, serve::sample};

const RESTART: &str = "To restart after each change: cargo watch -x run";

/// The lines printed once the server listens.
pub(super) struct Greeting {
    address: SocketAddr,
    is_open: bool,
    /// The identity providers of callers who need no key.
    issuers: Vec<String>,
    is_empty: bool,
    has_explorer: bool,
    protocols: Vec<Protocol>,
    /// The body of a call in OXP, if it is served.
    example: Option<String>,
    /// The folder into which requests are recorded.
    recording: Option<String>,
    /// Says how to restart after each change, to a developer who reads these lines.
    restart: Option<&'static str>,
}

impl Greeting {
    pub(super) fn of(server: &Server, address: SocketAddr, recording: Option<&str>) -> Self {
        let protocols = server.protocols.clone();
        let example = protocols.contains(&Protocol::Oxp);
        Self {
            address,
            is_open: server.is_open(),
            issuers: server.issuers(),
            is_empty: server.toolkit().entries().is_empty(),
            has_explorer: server.has_explorer(),
            example: example.then(|| sample::call_of(server.toolkit())).flatten(),
            protocols,
            recording: recording.map(str::to_owned),
            restart: (cfg!(debug_assertions) && io::stdout().is_terminal()).then_some(RESTART),
        }
    }

    fn callers(&self) -> &'static str {
        match (self.is_open, self.address.ip().is_loopback()) {
            (false, _) if self.issuers.is_empty() => "Callers need credentials.",
            (false, _) => "Callers need credentials, and users can sign in at ",
            (true, true) => {
                "Anyone on this machine may call; set TOOLS_AUTH=api-key to require a key."
            }
            (true, false) => {
                "Anyone who can reach this address may call; set TOOLS_AUTH=api-key to require a \
                 key."
            }
        }
    }

    /// The lines to paste.
    fn commands(&self, f: &mut fmt::Formatter<'_>, url: &str) -> fmt::Result {
        let key = |option: &str| {
            if self.is_open {
                return String::new();
            }
            format!(" {option} 'Authorization: Bearer YOUR_KEY'")
        };
        if let Some(example) = &self.example {
            let key = key("-H");
            write!(f, "\nTry it:\n  curl {url}/tools/call{key} -d '{example}'")?;
        }
        if self.protocols.contains(&Protocol::Mcp) {
            // A client that is given a key does not let its user sign in.
            let signs_in = !self.issuers.is_empty();
            let key = if signs_in {
                String::new()
            } else {
                key("--header")
            };
            write!(
                f,
                "\nAdd it to Claude Code:\n  claude mcp add --transport http tools {url}/mcp{key}"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Greeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = format!("http://{}", self.address);
        writeln!(f, "Serving tools on {url}")?;
        if self.has_explorer {
            writeln!(f, "Explore and try the tools: {url}/")?;
        }
        for (method, path) in self.protocols.iter().flat_map(|it| it.routes()) {
            writeln!(f, "  {:<4} {url}{path}", method.as_str())?;
        }
        f.write_str(self.callers())?;
        if !self.issuers.is_empty() {
            write!(f, "{}.", self.issuers.join(" or at "))?;
        }
        if let Some(folder) = &self.recording {
            write!(
                f,
                "\nRequests are recorded in {folder}: the clock and the ids are fixed, and no call \
                 is remembered."
            )?;
        }
        if self.is_empty {
            f.write_str("\nThis server has no tools yet.")?;
        }
        self.commands(f, &url)?;
        if let Some(restart) = self.restart {
            write!(f, "\n{restart}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Toolkit;

    const ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 9000);

    fn greeting_of(server: &Server) -> Greeting {
        Greeting::of(server, ADDRESS.into(), None)
    }

    fn server() -> Server {
        use crate::{Failure, Tool};
        use serde_json::{Value, json};

        let nothing = async |_: Value| Ok::<_, Failure>(Value::Null);
        let input = json!({"type": "object"});
        let tool = Tool::dynamic("Hello.Greet@1.0.0", "Greets.", input, json!({}), nothing);
        Server::new(Toolkit::new([tool]).unwrap())
    }

    #[test]
    fn the_routes_are_those_of_the_served_protocols() {
        const OXP: &[&str] = &[
            "GET  /health",
            "GET  /tools",
            "POST /tools/call",
            "POST /tools/{tool_id}/call",
            #[cfg(feature = "openapi")]
            "GET  /openapi.json",
        ];
        const CURL: &[&str] = &["curl "];
        const MCP: [&str; 2] = ["POST /mcp", "claude mcp add "];
        const OPENTOOL: [&str; 3] = [
            "GET  /opentool/version",
            "GET  /opentool/load",
            "POST /opentool/call",
        ];
        for (protocols, lines) in [
            (
                Protocol::ALL,
                &[OXP, &MCP[..1], &OPENTOOL, CURL, &MCP[1..]][..],
            ),
            (&[Protocol::Oxp], &[OXP, CURL]),
            (&[Protocol::Mcp], &[&MCP]),
            (&[Protocol::OpenTool], &[&OPENTOOL]),
            (
                &[Protocol::Mcp, Protocol::OpenTool],
                &[&MCP[..1], &OPENTOOL, &MCP[1..]],
            ),
        ] {
            let server = server().protocols(protocols.iter().copied());
            let text = greeting_of(&server).to_string();
            let text = text.replace("http://127.0.0.1:9000", "");
            let indented = text.lines().filter_map(|line| line.strip_prefix("  "));
            let lines = lines.concat();
            assert_eq!(indented.clone().count(), lines.len(), "{text}");
            for (line, start) in indented.zip(lines) {
                assert!(line.starts_with(start), "{start}: {text}");
            }
        }
    }

    #[test]
    fn a_recording_is_announced() {
        let mut greeting = greeting_of(&server());
        assert!(!greeting.to_string().contains("recorded"));
        greeting.recording = Some("events/new".into());
        let text = greeting.to_string();
        let line = "\nRequests are recorded in events/new: the clock and the ids are fixed, and no \
                    call is remembered.\n";
        assert!(text.contains(line), "{text}");
    }

    #[cfg(feature = "oidc")]
    #[test]
    fn users_who_sign_in_need_no_key() {
        use crate::Auth;

        let auth = Auth::issuer("https://idp.example").or(Auth::api_key_ids(["KEY"]));
        let text = greeting_of(&server().auth(auth)).to_string();
        assert!(
            text.contains("users can sign in at https://idp.example.\n"),
            "{text}"
        );
        assert!(text.contains("tools http://127.0.0.1:9000/mcp\n") || text.ends_with("/mcp"));
        assert!(
            text.contains("-H 'Authorization: Bearer YOUR_KEY'"),
            "{text}"
        );
    }

    #[test]
    fn the_last_line_says_how_to_restart() {
        let mut greeting = greeting_of(&server());
        greeting.restart = Some(RESTART);
        assert!(greeting.to_string().ends_with("cargo watch -x run"));
        greeting.restart = None;
        assert!(!greeting.to_string().contains("cargo watch"));
    }
}
