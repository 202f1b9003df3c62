//! The lists of tools, resources and prompts, in pages that every client can read.
//!
//! That of tools is encoded once and cached, like the lists of other protocols.

use std::{borrow::Cow, sync::OnceLock};

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, json, value::RawValue};

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

/// The pages of the complete list of tools.
pub(super) type KeptPages = OnceLock<Vec<Box<RawValue>>>;

/// Returns the pages of a list: JSON arrays. There is at least one.
pub(super) fn pages<'a>(
    kept: &'a KeptPages,
    tools: &ListedTools<'_>,
    list: Option<&str>,
) -> Cow<'a, [Box<RawValue>]> {
    let of_kind = |is_template: bool| {
        let resources = tools.resources();
        let resources = resources.filter(move |(uri, _)| uri.contains('{') == is_template);
        build(resources.map(resource))
    };
    Cow::Owned(match list {
        None if tools.is_complete() => {
            return Cow::Borrowed(kept.get_or_init(|| build(tools.newest().map(encode))));
        }
        None => build(tools.newest().map(encode)),
        Some("resources") => of_kind(false),
        Some("resourceTemplates") => of_kind(true),
        Some(_) => build(tools.prompts().map(prompt)),
    })
}

fn build(items: impl Iterator<Item = String>) -> Vec<Box<RawValue>> {
    let mut pages = Vec::new();
    let mut page = Vec::new();
    let mut size = 0;
    for item in items {
        let added = encoded_size(item.as_bytes());
        if size + added > MAX_PAGE && !page.is_empty() {
            pages.push(joined(&std::mem::take(&mut page)));
            size = 0;
        }
        size += added;
        page.push(item);
    }
    pages.push(joined(&page));
    pages
}

/// Returns the beginning of an item of a list, and the properties of its input.
fn described(entry: &ToolEntry) -> (Value, Value) {
    let ToolDefinition {
        description,
        mut input_schema,
        ..
    } = ToolDefinition::of(&entry.id, &entry.tool);
    let mut listed = json!({"name": entry.id.name()});
    if let Some(title) = &entry.tool.title {
        listed["title"] = json!(title);
    }
    if description != entry.id.name() {
        listed["description"] = description.into();
    }
    (listed, input_schema.take())
}

/// Encodes a resource, or a template: 2026-07-28 and 2025-11-25, Resources, Data Types.
fn resource((uri, entry): (&str, &ToolEntry)) -> String {
    let (mut listed, _) = described(entry);
    let is_template = uri.contains('{');
    listed[if is_template { "uriTemplate" } else { "uri" }] = json!(uri);
    listed.to_string()
}

/// Encodes a prompt: 2026-07-28 and 2025-11-25, Prompts, Data Types.
fn prompt(entry: &ToolEntry) -> String {
    let (mut listed, schema) = described(entry);
    let required = schema["required"].as_array();
    let argument = |(name, property): (&String, &Value)| {
        let is_required = required.is_some_and(|it| it.iter().any(|it| it == name));
        json!({"name": name, "description": property["description"], "required": is_required})
    };
    let arguments = schema["properties"].as_object().into_iter().flatten();
    listed["arguments"] = arguments.map(argument).collect();
    listed.to_string()
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

/// The result that has a page of a list.
pub(super) struct ListResult<'a>(pub(super) &'a McpFormat, pub(super) &'a [Box<RawValue>]);

impl Serialize for ListResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(format, pages) = self;
        let (next, is_modern) = (format.page + 1, format.is_modern());
        let mut map = serializer.serialize_map(None)?;
        if is_modern {
            map.serialize_entry("resultType", "complete")?;
        }
        // The cursor may be from a longer list that its client got with other scopes.
        let page = pages.get(format.page);
        let nothing: &RawValue = serde_json::from_str("[]").expect("this is JSON");
        map.serialize_entry(
            format.list.unwrap_or("tools"),
            page.map_or(nothing, |it| &**it),
        )?;
        if next < pages.len() {
            map.serialize_entry("nextCursor", &next.to_string())?;
        }
        if is_modern {
            // The list changes only with a deployment.
            map.serialize_entry("ttlMs", &TTL_MS)?;
            // Reading the list may require credentials, so shared caches must not store it.
            map.serialize_entry("cacheScope", "private")?;
        }
        let meta = Meta::of(format);
        if !meta.is_empty() {
            map.serialize_entry("_meta", &meta)?;
        }
        map.end()
    }
}

/// The time for which clients may cache the list and the discovery result, in milliseconds.
pub(super) const TTL_MS: u64 = 300_000;
