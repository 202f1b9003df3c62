//! The programs that the benchmark compares, and the events it calls them with.

use std::path::{Path, PathBuf};

use crate::{events, runtime_api::Event};

/// Identifies a contestant, by its place among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Id {
    Bare,
    Oxp,
    McpModern,
    McpLegacy,
    Rmcp,
    Hello,
}

/// A program, and a call of it.
pub(crate) struct Contestant {
    pub(crate) program: PathBuf,
    pub(crate) event: Event,
    /// Text that a correct response contains.
    pub(crate) expected: &'static str,
}

/// The contestants' names, in the order of their ids.
pub(crate) const NAMES: [&str; 6] = [
    "bare `lambda_http`, a constant",
    "toolbox over OXP",
    "toolbox over MCP 2026-07-28",
    "toolbox over MCP 2025-11-25",
    "`rmcp` over MCP 2025-11-25",
    "hello over OXP",
];

/// Returns all contestants, in the order of their ids.
pub(crate) fn all(programs: &Path) -> Vec<Contestant> {
    const MCP_RESULT: &str = "\"result\\\":15";
    const VALUE: &str = "\"value\\\":15";
    let all = [
        ("bare", events::add(), VALUE),
        ("toolbox", events::add(), VALUE),
        ("toolbox", events::mcp_add(), MCP_RESULT),
        ("toolbox", events::mcp_add_legacy(), MCP_RESULT),
        ("rmcp_service", events::mcp_add_legacy(), MCP_RESULT),
        ("hello", events::greet(), "Hello, Ada!"),
    ];
    let contestant = |(program, event, expected)| Contestant {
        program: programs.join(program),
        event,
        expected,
    };
    all.map(contestant).into()
}
