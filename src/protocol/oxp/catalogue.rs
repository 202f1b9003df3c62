//! The list of tools in each of its formats.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::dialect::ListFormat;
use crate::{
    ToolDefinition,
    arrival::LARGEST_PAYLOAD,
    json::JsonObject,
    protocol::{encoded_list::EncodedList, listed_tools::ListedTools},
};

#[derive(Serialize)]
struct ToolList<'a> {
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    schema: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
}

pub(super) fn encode(format: ListFormat, tools: &ListedTools<'_>) -> Arc<EncodedList> {
    let definitions: Vec<_> = tools
        .entries()
        .map(|entry| ToolDefinition::of(&entry.id, &entry.tool))
        .collect();
    let list = |items: Option<&RawValue>, tools: Option<&RawValue>| {
        let schema = format.dialect().schema();
        EncodedList::of(&ToolList {
            schema,
            items,
            tools,
        })
    };
    match format {
        ListFormat::Otc => list(None, Some(&encoded(&wrapped(definitions)))),
        ListFormat::Universal => {
            let items = encoded(&definitions);
            let universal = list(Some(&items), Some(&encoded(&wrapped(definitions))));
            // A list that some clients can read is better than none.
            if universal.fits(LARGEST_PAYLOAD) {
                universal
            } else {
                list(Some(&items), None)
            }
        }
        _ => list(Some(&encoded(&definitions)), None),
    }
}

fn encoded(definitions: &[ToolDefinition]) -> Box<RawValue> {
    to_raw_value(definitions).expect("definitions are JSON")
}

/// Returns the definitions with their input schemas wrapped.
fn wrapped(mut definitions: Vec<ToolDefinition>) -> Vec<ToolDefinition> {
    for ToolDefinition { input_schema, .. } in &mut definitions {
        let schema = ("parameters".to_owned(), input_schema.take());
        *input_schema = JsonObject::from_iter([schema]).into();
    }
    definitions
}
