//! The catalogue as an OpenTool document, written once and kept.
//!
//! Functions have names and no versions: each is the newest version of a tool.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::schema;
use crate::{
    ServerInfo, ToolDefinition, Toolkit,
    payload::{LARGEST_PAYLOAD, size_as_sent},
    tool::{definition::name_of, toolkit::closest_of},
};

/// The document, and the tools by their functions' names.
pub(crate) struct FunctionCatalogue {
    pub(super) info: ServerInfo,
    written: OnceLock<Result<Bytes, String>>,
    names: OnceLock<HashMap<String, Arc<str>>>,
}

/// OpenTool, the document.
#[derive(Serialize)]
struct DocumentBody<'a> {
    opentool: &'static str,
    info: &'a ServerInfo,
    functions: Vec<DocumentFunction>,
}

#[derive(Serialize)]
struct DocumentFunction {
    name: String,
    description: String,
    parameters: Vec<Value>,
    #[serde(rename = "return")]
    returns: DocumentReturn,
}

#[derive(Serialize)]
struct DocumentReturn {
    name: &'static str,
    description: String,
    schema: Map<String, Value>,
}

impl FunctionCatalogue {
    pub(crate) fn new(info: ServerInfo) -> Self {
        Self {
            info,
            written: OnceLock::new(),
            names: OnceLock::new(),
        }
    }

    pub(super) fn get(&self, toolkit: &Toolkit) -> Result<&Bytes, &str> {
        let written = self.written.get_or_init(|| write(&self.info, toolkit));
        written.as_ref().map_err(String::as_str)
    }

    /// The `Toolkit.Tool` whose newest version has this name.
    pub(super) fn tool_of(&self, name: &str, toolkit: &Toolkit) -> Option<Arc<str>> {
        self.names(toolkit).get(name).cloned()
    }

    pub(super) fn closest(&self, name: &str, toolkit: &Toolkit) -> Option<String> {
        let names = self.names(toolkit);
        closest_of(name, names.keys().map(String::as_str), names.len(), '_')
    }

    /// Made by the first call that needs it: a cold start must not grow with the number of tools.
    fn names(&self, toolkit: &Toolkit) -> &HashMap<String, Arc<str>> {
        self.names.get_or_init(|| {
            let named = |entry: &crate::tool::toolkit::ToolEntry| {
                (name_of(&entry.id, &entry.tool), entry.id.shared())
            };
            toolkit.newest().map(named).collect()
        })
    }
}

fn write(info: &ServerInfo, toolkit: &Toolkit) -> Result<Bytes, String> {
    let functions: Vec<_> = toolkit
        .newest()
        .map(|entry| function_of(ToolDefinition::of(&entry.id, &entry.tool)))
        .collect();
    if functions.is_empty() {
        return Ok(Bytes::from_static(b"{}"));
    }
    let document = DocumentBody {
        opentool: "1.0.0",
        info,
        functions,
    };
    let body = serde_json::to_vec(&document).map_err(|error| error.to_string())?;
    let size = size_as_sent(&body);
    if size > LARGEST_PAYLOAD {
        return Err(format!(
            "The document would be {size} bytes; AWS Lambda sends {LARGEST_PAYLOAD} at most."
        ));
    }
    Ok(body.into())
}

fn function_of(definition: ToolDefinition) -> DocumentFunction {
    let mut input = definition.input_schema;
    // The definition has said what the input's own description would.
    if let Some(input) = input.as_object_mut() {
        input.insert("description".into(), definition.description.into());
    }
    let mut input = schema::reduced(input);
    DocumentFunction {
        name: definition.name,
        description: schema::take_description(&mut input),
        parameters: schema::parameters(input),
        returns: DocumentReturn::of(definition.output_schema),
    }
}

impl DocumentReturn {
    /// Describes `result`, which is an object whatever the tool gives.
    fn of(output: Value) -> Self {
        if output.is_null() {
            return Self {
                name: "result",
                description: "Nothing: an empty object.".into(),
                schema: schema::reduced(json!({"type": "object", "properties": {}})),
            };
        }
        let mut value = schema::result(output);
        Self {
            name: "result",
            description: Some(schema::take_description(&mut value))
                .filter(|text| !text.is_empty())
                .unwrap_or_else(|| "What the tool gives.".to_owned()),
            schema: value,
        }
    }
}
