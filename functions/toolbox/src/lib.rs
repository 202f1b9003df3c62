//! Real implementations of the five tools of the specifications: a calculator, a doorbell, the
//! time, Gmail and Twilio's text messages. One module per tool.

pub mod calculator;
pub mod doorbell;
mod error;
pub mod gmail;
pub mod sms;
pub mod system;

use std::{
    env,
    sync::{Arc, LazyLock},
    time::Duration,
};

use lambda_tools::{BuildError, Server, ServerInfo, Tool, Toolkit};

/// Returns all tools of the toolbox.
#[must_use]
pub fn tools(endpoints: Endpoints) -> Vec<Tool> {
    let endpoints = Arc::new(endpoints);
    let mut tools = calculator::tools();
    tools.extend(doorbell::tools());
    tools.extend(system::tools());
    tools.extend(gmail::tools(Arc::clone(&endpoints)));
    tools.extend(sms::tools(endpoints));
    tools
}

/// Returns a server of these tools, with the toolbox's title and description.
///
/// # Errors
/// Invalid tool definitions.
pub fn server(tools: Vec<Tool>) -> Result<Server, BuildError> {
    let info = ServerInfo::new("Toolbox", env!("CARGO_PKG_VERSION")).description(
        "The five tools of the specifications: a calculator, a doorbell, the time, Gmail \
                 and Twilio's text messages.",
    );
    let server = Server::new(Toolkit::new(tools)?).info(info);
    #[cfg(feature = "deployed")]
    let server = server.serve_openapi(true);
    Ok(server)
}

/// The URLs of external APIs. Tests replace them with those of local servers.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// Base URL of the Gmail API.
    pub gmail: String,
    /// Base URL of the Twilio API.
    pub twilio: String,
    /// The time limit of one request.
    pub timeout: Duration,
}

impl Default for Endpoints {
    fn default() -> Self {
        Self {
            gmail: "https://gmail.googleapis.com".into(),
            twilio: "https://api.twilio.com".into(),
            timeout: Duration::from_secs(10),
        }
    }
}

impl Endpoints {
    /// Returns the public APIs, unless `GMAIL_URL` or `TWILIO_URL` is set.
    #[must_use]
    pub fn from_env() -> Self {
        let defaults = Self::default();
        Self {
            gmail: env::var("GMAIL_URL").unwrap_or(defaults.gmail),
            twilio: env::var("TWILIO_URL").unwrap_or(defaults.twilio),
            timeout: defaults.timeout,
        }
    }
}

/// Returns one client for all calls, created on first use: reading the machine's certificates takes
/// longer than an entire cold start should.
fn http() -> &'static reqwest::Client {
    static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(reqwest::Client::new);
    &CLIENT
}
