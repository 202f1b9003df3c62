//! The data of the explorer's page: `GET /explorer.json`.
//!
//! It has more than any protocol's list: all versions, and the properties of tools that only this
//! library knows. It is not a protocol, and may change with any version of the page.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::{
    Caller, DEFAULT_TIMEOUT, ServerInfo, ToolDefinition,
    protocol::{Protocol, admission::AppState},
    text::whole_milliseconds,
    tool::{repeats::RepeatPolicy, toolkit::ToolEntry},
};

/// Returns the server and the tools that `reader` sees in lists. `largest` is the maximum size of a
/// response.
pub(super) fn listing_of(
    app: &AppState,
    info: &ServerInfo,
    protocols: &[Protocol],
    largest: usize,
    reader: &Caller,
) -> Value {
    let engine = &app.engine;
    let tools = app.listed_tools(reader, None);
    let newest: HashSet<_> = engine.toolkit.newest().map(|it| &it.id).collect();
    let versions = tools.entries();
    let versions = versions.map(|entry| version_of(entry, newest.contains(&entry.id)));
    json!({
        "server": info,
        "protocols": protocols.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>(),
        "requires_credentials": !engine.auth.is_open(),
        // A repeated `call_id` does not run the tool again.
        "recognizes_call_ids": engine.deduplication.is_on(),
        "limits": {"request_bytes": app.max_request_size, "response_bytes": largest},
        "tools": versions.collect::<Vec<_>>(),
    })
}

/// Returns one version of one tool. Protocols without versions call the newest one.
fn version_of(entry: &ToolEntry, is_newest: bool) -> Value {
    let tool = &entry.tool;
    let qualified = entry.id.qualified();
    let mut version = json!(ToolDefinition::of(&entry.id, tool));
    version["toolkit"] = qualified.split('.').next().unwrap_or(qualified).into();
    version["title"] = tool.title.as_deref().into();
    version["is_newest"] = is_newest.into();
    version["scopes"] = json!(tool.scopes);
    version["repeats"] = match tool.policy {
        RepeatPolicy::Idempotent => "idempotent",
        RepeatPolicy::Recorded => "recorded",
        RepeatPolicy::AtMostOnce => "at_most_once",
    }
    .into();
    // Those that the tool's author did not set are `null`.
    version["hints"] = json!({
        "read_only": tool.hints.is_read_only,
        "destructive": tool.hints.is_destructive,
        "open_world": tool.hints.is_open_world,
    });
    let timeout = tool.timeout.unwrap_or(DEFAULT_TIMEOUT);
    version["timeout_ms"] = whole_milliseconds(timeout).into();
    version["returns_content"] = tool.returns_content.into();
    version
}
