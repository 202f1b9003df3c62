//! The list of tools in each of its formats.

use std::sync::Arc;

use serde_json::json;

use super::dialect::ListFormat;
use crate::{
    ToolDefinition,
    arrival::LARGEST_PAYLOAD,
    protocol::{encoded_list::EncodedList, listed_tools::ListedTools},
};

pub(super) fn encode(format: ListFormat, tools: &ListedTools<'_>) -> Arc<EncodedList> {
    let entries = tools.entries();
    let definitions = entries.map(|entry| ToolDefinition::of(&entry.id, &entry.tool));
    let definitions: Vec<_> = definitions.collect();
    let mut list = json!({});
    if let Some(schema) = format.dialect().schema() {
        list["$schema"] = schema.into();
    }
    if format != ListFormat::Otc {
        list["items"] = json!(definitions);
    }
    if format == ListFormat::Header {
        return EncodedList::of(&list);
    }
    let wrapped = definitions.into_iter().map(|mut definition| {
        definition.input_schema = json!({"parameters": definition.input_schema});
        definition
    });
    list["tools"] = json!(wrapped.collect::<Vec<_>>());
    let encoded = EncodedList::of(&list);
    if format == ListFormat::Universal && !encoded.fits(LARGEST_PAYLOAD) {
        // A list that some clients can read is better than none.
        list.as_object_mut().and_then(|it| it.shift_remove("tools"));
        return EncodedList::of(&list);
    }
    encoded
}
