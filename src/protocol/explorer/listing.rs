//! The data of the explorer's page: `GET /explorer.json`.
//!
//! It has more than any protocol's list: all versions, and the properties of tools that only this
//! library knows. It is not a protocol, and may change with any version of the page.

use std::{collections::HashSet, time::Duration};

use serde::Serialize;

use crate::{
    Caller, DEFAULT_TIMEOUT, ServerInfo, ToolDefinition,
    protocol::{Protocol, admission::AppState},
    tool::{repeats::RepeatPolicy, toolkit::ToolEntry},
};

/// The server and its tools.
#[derive(Serialize)]
pub(super) struct Listing<'a> {
    server: &'a ServerInfo,
    protocols: Vec<&'static str>,
    requires_credentials: bool,
    /// True if a repeated `call_id` does not run the tool again.
    recognizes_call_ids: bool,
    limits: Limits,
    tools: Vec<ListedVersion<'a>>,
}

/// The limits of all tools, in bytes.
#[derive(Serialize)]
struct Limits {
    request_bytes: usize,
    response_bytes: usize,
}

/// One version of one tool.
#[derive(Serialize)]
struct ListedVersion<'a> {
    #[serde(flatten)]
    definition: ToolDefinition,
    toolkit: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    /// True for the version that protocols without versions call.
    is_newest: bool,
    scopes: &'a [String],
    repeats: &'static str,
    hints: ListedHints,
    timeout_ms: u128,
    returns_content: bool,
}

/// Only the hints that the tool's author set.
#[derive(Serialize)]
struct ListedHints {
    #[serde(skip_serializing_if = "Option::is_none")]
    read_only: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destructive: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_world: Option<bool>,
}

impl<'a> Listing<'a> {
    /// The tools that `reader` sees in lists. `largest` is the maximum size of a response.
    pub(super) fn of(
        app: &'a AppState,
        info: &'a ServerInfo,
        protocols: &[Protocol],
        largest: usize,
        reader: &Caller,
    ) -> Self {
        let engine = &app.engine;
        let tools = app.listed_tools(reader, None);
        let newest: HashSet<_> = engine.toolkit.newest().map(|it| &it.id).collect();
        let shown = engine.toolkit.entries().iter();
        let shown = shown.filter(|entry| tools.shows(entry));
        Self {
            server: info,
            protocols: protocols.iter().map(|it| it.name()).collect(),
            requires_credentials: !engine.auth.is_open(),
            recognizes_call_ids: engine.deduplication.is_on(),
            limits: Limits {
                request_bytes: app.max_request_size,
                response_bytes: largest,
            },
            tools: shown
                .map(|entry| ListedVersion::of(entry, newest.contains(&entry.id)))
                .collect(),
        }
    }
}

impl<'a> ListedVersion<'a> {
    fn of(entry: &'a ToolEntry, is_newest: bool) -> Self {
        let tool = &entry.tool;
        let qualified = entry.id.qualified();
        Self {
            definition: ToolDefinition::of(&entry.id, tool),
            toolkit: qualified.split('.').next().unwrap_or(qualified),
            title: tool.title.as_deref(),
            is_newest,
            scopes: &tool.scopes,
            repeats: match tool.policy {
                RepeatPolicy::Idempotent => "idempotent",
                RepeatPolicy::Recorded => "recorded",
                RepeatPolicy::AtMostOnce => "at_most_once",
            },
            hints: ListedHints {
                read_only: tool.hints.is_read_only,
                destructive: tool.hints.is_destructive,
                open_world: tool.hints.is_open_world,
            },
            timeout_ms: tool
                .timeout
                .map_or_else(default_timeout, |it| it.as_millis()),
            returns_content: tool.returns_content,
        }
    }
}

fn default_timeout() -> u128 {
    Duration::as_millis(&DEFAULT_TIMEOUT)
}
