//! The list of tools in each of its forms.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use super::form::ListForm;
#[cfg(feature = "models")]
use crate::models;
use crate::{
    ToolDefinition,
    payload::LARGEST_PAYLOAD,
    protocol::{encoded_list::EncodedList, listed_tools::ListedTools},
};

#[derive(Serialize)]
struct ToolList<'a> {
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    schema: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<&'a [ToolDefinition]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<ToolDefinition>>,
}

pub(super) fn encode(form: ListForm, tools: &ListedTools<'_>) -> Arc<EncodedList> {
    #[cfg(feature = "models")]
    if let ListForm::Model(api) = form {
        return EncodedList::of(&models::list_for(api, tools.newest()));
    }
    let definitions: Vec<_> = tools
        .entries()
        .map(|entry| ToolDefinition::of(&entry.id, &entry.tool))
        .collect();
    let list = |has_items: bool, has_tools: bool| {
        EncodedList::of(&ToolList {
            schema: form.dialect().schema(),
            items: has_items.then_some(&definitions[..]),
            tools: has_tools.then(|| definitions.iter().map(wrapped).collect()),
        })
    };
    match form {
        ListForm::Otc => list(false, true),
        ListForm::Universal => {
            let universal = list(true, true);
            // A list that some clients can read is better than none.
            if universal.fits(LARGEST_PAYLOAD) {
                universal
            } else {
                list(true, false)
            }
        }
        _ => list(true, false),
    }
}

/// The definition with its input schema wrapped.
fn wrapped(definition: &ToolDefinition) -> ToolDefinition {
    ToolDefinition {
        input_schema: json!({"parameters": definition.input_schema}),
        ..definition.clone()
    }
}
