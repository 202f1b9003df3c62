//! The benchmark: the toolbox against bare `lambda_http` and its peers, under one runtime API.
//!
//! Contestants are measured in turns (A B C A B C …), so that a machine whose speed drifts affects
//! them all alike. Only the medians and ratios of one run are meaningful. Usage: `benches/run`.

mod events;
mod function;
mod issuer;
mod measure;
mod report;
mod runtime_api;
mod scaling;

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
};

use function::{Start, sizes};
use issuer::{AUDIENCE, Issuer};
use measure::{Contestant, measure};

fn main() -> Result<(), Box<dyn Error>> {
    let programs = env::current_exe()?.parent().ok_or("no folder")?.to_owned();
    let python = env::var_os("BENCH_PYTHON").ok_or("run benches/run, which sets BENCH_PYTHON")?;
    let contestants = contestants(&programs, &PathBuf::from(python))?;
    let table = measure(&contestants)?;
    let scaling = scaling::measure(&Start::of(programs.join("scale")))?;
    let mut files = Vec::new();
    for name in ["bare", "handwritten", "hello", "toolbox"] {
        let (binary, zip) = sizes(&programs.join(name))?;
        files.push((name, binary, zip));
    }
    report::write(&table, &scaling, &files)
}

/// The API key of one contestant.
const KEY: &str = "a-key-of-a-partner-0123456789abcdef";

fn contestants(programs: &Path, python: &Path) -> Result<Vec<Contestant>, Box<dyn Error>> {
    let rust = |name: &str| Start::of(programs.join(name));
    let scripts = env::current_dir()?.join("benches/python");
    let ric = |module: &str| Start {
        program: python.to_owned(),
        arguments: vec![
            "-m".into(),
            "awslambdaric".into(),
            format!("{module}.lambda_handler"),
        ],
        environment: vec![
            ("PYTHONPATH".into(), scripts.to_string_lossy().into_owned()),
            (
                "LAMBDA_TASK_ROOT".into(),
                scripts.to_string_lossy().into_owned(),
            ),
            ("_HANDLER".into(), format!("{module}.lambda_handler")),
            ("AWS_DEFAULT_REGION".into(), "us-east-1".into()),
        ],
    };
    let contestant = |name, start, event, expected| Contestant {
        name,
        start,
        event,
        expected,
    };
    let issuer = Issuer::start()?;
    let with = |variables: &[(&str, &str)]| {
        let mut start = rust("toolbox");
        let pairs = variables.iter();
        start.environment = pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        start
    };
    Ok(vec![
        contestant(
            "bare lambda_http, a constant",
            rust("bare"),
            events::add(),
            "\"value\\\":15",
        ),
        contestant(
            "toolbox (lambda_tools) over OXP, Calculator.Add",
            rust("toolbox"),
            events::add_newest(),
            "\"value\\\":15",
        ),
        contestant(
            "toolbox over MCP, 2026-07-28",
            rust("toolbox"),
            events::mcp_add(),
            "\"result\\\":15",
        ),
        contestant(
            "toolbox over MCP, 2025-11-25",
            rust("toolbox"),
            events::mcp_add_legacy(),
            "\"result\\\":15",
        ),
        contestant(
            "hand-written lambda_http + jsonschema",
            rust("handwritten"),
            events::add(),
            "\"value\\\":15",
        ),
        contestant(
            "awslabs.mcp-lambda-handler over MCP, awslambdaric",
            ric("mcp_handler"),
            events::mcp_add_legacy(),
            "\"text\\\": \\\"15\\\"",
        ),
        contestant(
            "FastAPI + Mangum, awslambdaric",
            ric("worker"),
            events::add(),
            "15",
        ),
        contestant(
            "toolbox with an API key",
            with(&[("TOOLS_AUTH", "api-key"), ("TOOLS_API_KEY", KEY)]),
            events::add_newest_with(KEY),
            "\"value\\\":15",
        ),
        contestant(
            "toolbox with an access token, RS256",
            with(&[
                ("TOOLS_AUTH", "oidc"),
                ("TOOLS_OIDC_ISSUERS", &issuer.url),
                ("TOOLS_OIDC_AUDIENCES", AUDIENCE),
            ]),
            events::add_newest_with(&issuer.token),
            "\"value\\\":15",
        ),
    ])
}

impl Start {
    fn of(program: PathBuf) -> Self {
        Self {
            program,
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }
}
