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
    is_empty: bool,
    example: Option<String>,
    serves_mcp: bool,
    /// Says how to restart after each change, to a developer who reads these lines.
    restart: Option<&'static str>,
}

impl Greeting {
    pub(super) fn of(server: &Server, address: SocketAddr) -> Self {
        Self {
            address,
            is_open: server.is_open(),
            is_empty: server.toolkit().entries().is_empty(),
            example: sample::call_of(server.toolkit()),
            serves_mcp: server.protocols.contains(&Protocol::Mcp),
            restart: (cfg!(debug_assertions) && io::stdout().is_terminal()).then_some(RESTART),
        }
    }
}

impl fmt::Display for Greeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = format!("http://{}", self.address);
        writeln!(f, "Serving tools on {url}")?;
        writeln!(f, "  GET  {url}/health")?;
        writeln!(f, "  GET  {url}/tools")?;
        writeln!(f, "  POST {url}/tools/call")?;
        if self.serves_mcp {
            writeln!(f, "  POST {url}/mcp")?;
        }
        let callers = match (self.is_open, self.address.ip().is_loopback()) {
            (false, _) => "Callers need credentials.",
            (true, true) => {
                "Anyone on this machine may call; set TOOLS_AUTH=api-key to require a key."
            }
            (true, false) => {
                "Anyone who can reach this address may call; set TOOLS_AUTH=api-key to require a \
                 key."
            }
        };
        f.write_str(callers)?;
        if self.is_empty {
            f.write_str("\nThis server has no tools yet.")?;
        }
        if let Some(example) = &self.example {
            let key = if self.is_open {
                ""
            } else {
                " -H 'Authorization: Bearer YOUR_KEY'"
            };
            write!(f, "\nTry it:\n  curl {url}/tools/call{key} -d '{example}'")?;
        }
        if self.serves_mcp {
            let key = if self.is_open {
                ""
            } else {
                " --header 'Authorization: Bearer YOUR_KEY'"
            };
            write!(
                f,
                "\nAdd it to Claude Code:\n  claude mcp add --transport http tools {url}/mcp{key}"
            )?;
        }
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

    #[test]
    fn the_last_line_says_how_to_restart() {
        let server = Server::new(Toolkit::new([]).unwrap());
        let mut greeting = Greeting::of(&server, ([127, 0, 0, 1], 9000).into());
        greeting.restart = Some(RESTART);
        assert!(greeting.to_string().ends_with("cargo watch -x run"));
        greeting.restart = None;
        assert!(!greeting.to_string().contains("cargo watch"));
    }
}
