//! The five tools of the specifications, real ones: a calculator, a doorbell, the time, Gmail and
//! Twilio's text messages. One module a tool.

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

/// All tools of the toolbox.
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

/// A server of these tools that says what the toolbox is.
///
/// # Errors
/// Mistakes in the definitions of tools.
pub fn server(tools: Vec<Tool>) -> Result<Server, BuildError> {
    let info = ServerInfo::new("Toolbox", env!("CARGO_PKG_VERSION")).description(
        "The five tools of the specifications: a calculator, a doorbell, the time, Gmail \
                 and Twilio's text messages.",
    );
    let server = Server::new(Toolkit::new(tools)?);
    Ok(server.info(info))
}

/// Where the APIs of others are. Tests point them at servers of their own.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// Base URL of the Gmail API.
    pub gmail: String,
    /// Base URL of the Twilio API.
    pub twilio: String,
    /// How long one request to them may take.
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
    /// The public APIs, unless `GMAIL_URL` or `TWILIO_URL` say otherwise.
    #[must_use]
    pub fn from_env() -> Self {
        let given = Self::default();
        Self {
            gmail: env::var("GMAIL_URL").unwrap_or(given.gmail),
            twilio: env::var("TWILIO_URL").unwrap_or(given.twilio),
            timeout: given.timeout,
        }
    }
}

/// One client for all calls, made by the first that needs it: reading the machine's certificates
/// takes longer than a whole cold start should.
fn http() -> &'static reqwest::Client {
    static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(reqwest::Client::new);
    &CLIENT
}
