//! The lines that say where the server is and how to call it.

use std::{fmt, net::SocketAddr};

use crate::{Server, serve::sample};

/// The lines printed once the server listens.
pub(super) struct Greeting {
    address: SocketAddr,
    is_open: bool,
    is_empty: bool,
    example: Option<String>,
}

impl Greeting {
    pub(super) fn of(server: &Server, address: SocketAddr) -> Self {
        Self {
            address,
            is_open: server.is_open(),
            is_empty: server.toolkit().entries().is_empty(),
            example: sample::call_of(server.toolkit()),
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
        let who = match (self.is_open, self.address.ip().is_loopback()) {
            (false, _) => "Callers need credentials.",
            (true, true) => {
                "Everybody on this machine may call; TOOLS_AUTH=api-key asks for a key."
            }
            (true, false) => {
                "Everybody who can reach it may call; TOOLS_AUTH=api-key asks for a key."
            }
        };
        f.write_str(who)?;
        if self.is_empty {
            f.write_str("\nThere are no tools in it yet.")?;
        }
        if let Some(example) = &self.example {
            let key = if self.is_open {
                ""
            } else {
                " -H 'Authorization: Bearer YOUR_KEY'"
            };
            write!(f, "\nTry it:\n  curl {url}/tools/call{key} -d '{example}'")?;
        }
        Ok(())
    }
}
