//! The programs that the benchmark compares, and the events it calls them with.

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
};

use crate::{
    events,
    function::Start,
    issuer::{AUDIENCE, Issuer},
    runtime_api::Event,
};

/// Identifies a contestant, for targets that compare two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Id {
    Bare,
    BareCurrentThread,
    Oxp,
    McpModern,
    McpLegacy,
    Rmcp,
    Handwritten,
    McpHandler,
    FastApi,
    ApiKey,
    AccessToken,
}

/// A program, and a call of it.
pub(crate) struct Contestant {
    pub(crate) id: Id,
    pub(crate) name: &'static str,
    pub(crate) start: Start,
    pub(crate) event: Event,
    /// Text that a correct response contains.
    pub(crate) expected: &'static str,
}

/// Text in the responses of all programs but those in Python.
const VALUE: &str = "\"value\\\":15";
const MCP_RESULT: &str = "\"result\\\":15";

/// The API key of one contestant.
const KEY: &str = "a-key-of-a-partner-0123456789abcdef";

/// The contestants without credentials that are written in Rust, with bare `lambda_http` first.
pub(crate) fn compiled(programs: &Path) -> Vec<Contestant> {
    let contestant = |id, name, program: &str, event, expected| Contestant {
        id,
        name,
        start: Start::of(programs.join(program)),
        event,
        expected,
    };
    vec![
        contestant(
            Id::Bare,
            "bare lambda_http, a constant",
            "bare",
            events::add(),
            VALUE,
        ),
        contestant(
            Id::BareCurrentThread,
            "bare lambda_http, current thread",
            "bare_current_thread",
            events::add(),
            VALUE,
        ),
        contestant(
            Id::Oxp,
            "toolbox (lambda_tools) over OXP, Calculator.Add",
            "toolbox",
            events::add_newest(),
            VALUE,
        ),
        contestant(
            Id::McpModern,
            "toolbox over MCP, 2026-07-28",
            "toolbox",
            events::mcp_add(),
            MCP_RESULT,
        ),
        contestant(
            Id::McpLegacy,
            "toolbox over MCP, 2025-11-25",
            "toolbox",
            events::mcp_add_legacy(),
            MCP_RESULT,
        ),
        contestant(
            Id::Rmcp,
            "rmcp over MCP, 2025-11-25, current thread",
            "rmcp_service",
            events::mcp_add_legacy(),
            MCP_RESULT,
        ),
        contestant(
            Id::Handwritten,
            "hand-written lambda_http + jsonschema",
            "handwritten",
            events::add(),
            VALUE,
        ),
    ]
}

/// The contestants in Python.
pub(crate) fn in_python(python: &Path) -> Result<Vec<Contestant>, Box<dyn Error>> {
    let scripts = env::current_dir()?.join("benches/python");
    let scripts = scripts.to_string_lossy();
    let contestant = |id, name, module: &str, event, expected| Contestant {
        id,
        name,
        start: Start {
            program: python.to_owned(),
            arguments: vec![
                "-m".into(),
                "awslambdaric".into(),
                format!("{module}.lambda_handler"),
            ],
            environment: vec![
                ("PYTHONPATH".into(), scripts.to_string()),
                ("LAMBDA_TASK_ROOT".into(), scripts.to_string()),
                ("_HANDLER".into(), format!("{module}.lambda_handler")),
                ("AWS_DEFAULT_REGION".into(), "us-east-1".into()),
            ],
        },
        event,
        expected,
    };
    Ok(vec![
        contestant(
            Id::McpHandler,
            "awslabs.mcp-lambda-handler over MCP, awslambdaric",
            "mcp_handler",
            events::mcp_add_legacy(),
            "\"text\\\": \\\"15\\\"",
        ),
        contestant(
            Id::FastApi,
            "FastAPI + Mangum, awslambdaric",
            "worker",
            events::add(),
            "15",
        ),
    ])
}

/// The toolbox with credentials.
pub(crate) fn with_credentials(programs: &Path) -> Result<Vec<Contestant>, Box<dyn Error>> {
    let issuer = Issuer::start()?;
    let contestant = |id, name, variables: &[(&str, &str)], credential: &str| {
        let mut start = Start::of(programs.join("toolbox"));
        let pairs = variables.iter();
        start.environment = pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Contestant {
            id,
            name,
            start,
            event: events::add_newest_with(credential),
            expected: VALUE,
        }
    };
    Ok(vec![
        contestant(
            Id::ApiKey,
            "toolbox with an API key",
            &[("TOOLS_AUTH", "api-key"), ("TOOLS_API_KEY", KEY)],
            KEY,
        ),
        contestant(
            Id::AccessToken,
            "toolbox with an access token, RS256",
            &[
                ("TOOLS_AUTH", "oidc"),
                ("TOOLS_OIDC_ISSUERS", &issuer.url),
                ("TOOLS_OIDC_AUDIENCES", AUDIENCE),
            ],
            &issuer.token,
        ),
    ])
}

impl Start {
    pub(crate) fn of(program: PathBuf) -> Self {
        Self {
            program,
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }
}
