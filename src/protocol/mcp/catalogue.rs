//! The list of tools, in pages that every client can read.
//!
//! Encoded once and cached, like the lists of other protocols.

use std::{borrow::Cow, sync::OnceLock};

use serde::Serialize;
use serde_json::{json, value::RawValue};

use super::{format::McpFormat, response::Meta};
use crate::{
    ToolDefinition,
    arrival::encoded_size,
    json::JsonObject,
    protocol::listed_tools::ListedTools,
    tool::{parts::ToolParts, repeats::RepeatPolicy, schema::portable, toolkit::ToolEntry},
    wire::mcp::{REQUIREMENTS, TOOL_ID, TOOL_VERSION},
};

/// The maximum size of a page, in bytes: clients limit the size of a response, some to 1 MB.
const MAX_PAGE: usize = 900_000;

/// The pages of the complete list.
pub(super) type KeptPages = OnceLock<Vec<Box<RawValue>>>;

/// Returns the pages: JSON arrays of tools. There is at least one.
pub(super) fn pages<'a>(kept: &'a KeptPages, tools: &ListedTools<'_>) -> Cow<'a, [Box<RawValue>]> {
    if !tools.is_complete() {
        return Cow::Owned(build(tools));
    }
    Cow::Borrowed(kept.get_or_init(|| build(tools)))
}

fn build(tools: &ListedTools<'_>) -> Vec<Box<RawValue>> {
    let mut pages = Vec::new();
    let mut page = Vec::new();
    let mut size = 0;
    for entry in tools.newest() {
        let tool = encode(entry);
        let added = encoded_size(tool.as_bytes());
        if size + added > MAX_PAGE && !page.is_empty() {
            pages.push(joined(&std::mem::take(&mut page)));
            size = 0;
        }
        size += added;
        page.push(tool);
    }
    pages.push(joined(&page));
    pages
}

fn joined(tools: &[String]) -> Box<RawValue> {
    let array = format!("[{}]", tools.join(","));
    RawValue::from_string(array).expect("it is an array of JSON objects")
}

/// Encodes a tool: 2026-07-28 and 2025-11-25, Tools, Tool.
fn encode(entry: &ToolEntry) -> String {
    let tool = &entry.tool;
    let definition = ToolDefinition::of(&entry.id, tool);
    let (input_schema, note) =
        portable::input(definition.input_schema, tool.input.is_draft_7_literal());
    let description = match note {
        Some(note) => format!("{}\n\n{note}", definition.description),
        None => definition.description,
    };
    let mut listed = json!({"name": definition.name});
    if let Some(title) = &tool.title {
        listed["title"] = json!(title);
    }
    listed["description"] = description.trim().into();
    listed["inputSchema"] = input_schema;
    // A tool with an output schema must send structured content, but content is not structured.
    if !definition.output_schema.is_null() && !tool.returns_content {
        let is_draft_7 = tool.output.is_draft_7_literal();
        listed["outputSchema"] = portable::output(definition.output_schema, is_draft_7);
    }
    let annotations = annotations_of(tool);
    if !annotations.is_empty() {
        listed["annotations"] = annotations.into();
    }
    listed["_meta"] = json!({
        TOOL_ID: definition.id,
        TOOL_VERSION: definition.version,
    });
    if !definition.requirements.is_empty() {
        listed["_meta"][REQUIREMENTS] = json!(definition.requirements);
    }
    listed.to_string()
}

/// Returns only the hints that the tool's author set: for the others, clients assume defaults.
fn annotations_of(tool: &ToolParts) -> JsonObject {
    let is_idempotent = tool.policy == RepeatPolicy::Idempotent;
    let hints = [
        ("readOnlyHint", tool.hints.is_read_only),
        ("destructiveHint", tool.hints.is_destructive),
        ("idempotentHint", is_idempotent.then_some(true)),
        ("openWorldHint", tool.hints.is_open_world),
    ];
    let hints = hints.into_iter();
    hints
        .filter_map(|(name, hint)| Some((name.to_owned(), hint?.into())))
        .collect()
}

/// The result of `tools/list`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListResult<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    tools: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<&'static str>,
    #[serde(rename = "_meta", skip_serializing_if = "Meta::is_empty")]
    meta: Meta<'a>,
}

impl<'a> ListResult<'a> {
    pub(super) fn of(format: &'a McpFormat, pages: &'a [Box<RawValue>]) -> Self {
        let (next, is_modern) = (format.page + 1, format.is_modern());
        let no_tools: &RawValue = serde_json::from_str("[]").expect("this is JSON");
        Self {
            result_type: is_modern.then_some("complete"),
            // The cursor may be from a longer list that its client got with other scopes.
            tools: pages.get(format.page).map_or(no_tools, |page| &**page),
            next_cursor: (next < pages.len()).then(|| next.to_string()),
            // The list changes only with a deployment.
            ttl_ms: is_modern.then_some(TTL_MS),
            // Reading the list may require credentials, so shared caches must not store it.
            cache_scope: is_modern.then_some("private"),
            meta: Meta::of(format),
        }
    }
}

/// The time for which clients may cache the list and the discovery result, in milliseconds.
pub(super) const TTL_MS: u64 = 300_000;
