//! The published definition of a tool.

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, json};

use super::Tool;
use crate::{Requirements, ToolId, payload::JsonObject};

/// A tool as `GET /tools` describes it: OXP 1.0, Tool Definition.
///
/// Serialized, it is the definition in OXP's header form.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// `Toolkit.Tool@x.y.z`.
    pub id: String,
    /// The name that models see.
    pub name: String,
    /// A description of what the tool does and when to use it.
    pub description: String,
    /// `x.y.z`.
    pub version: String,
    /// The JSON Schema of `input`.
    pub input_schema: Value,
    /// The JSON Schema of `value`; `null` for a tool that returns nothing.
    pub output_schema: Value,
    /// The requirements of a call besides the input.
    #[serde(skip_serializing_if = "Requirements::is_empty")]
    pub requirements: Requirements,
}

impl ToolDefinition {
    pub(crate) fn of(id: &ToolId, tool: &Tool) -> Self {
        let mut input_schema = tool.input.value().clone();
        let from_type = take_description(&mut input_schema);
        list_properties(&mut input_schema);
        Self {
            id: id.to_string(),
            name: name_of(id, tool),
            description: tool.description.clone().or(from_type).unwrap_or_default(),
            version: id.version().to_string(),
            input_schema,
            output_schema: tool.output.value().clone(),
            requirements: tool.requirements.clone(),
        }
    }
}

/// A [`ToolDefinition`] of borrowed parts, for lists: it serializes to the same JSON, and makes no
/// copy of the schemas.
#[derive(Serialize)]
pub(crate) struct BorrowedDefinition<'a> {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: &'a str,
    pub(crate) version: String,
    pub(crate) input_schema: PublishedInput<'a>,
    pub(crate) output_schema: &'a Value,
    #[serde(skip_serializing_if = "Requirements::is_empty")]
    pub(crate) requirements: &'a Requirements,
}

impl<'a> BorrowedDefinition<'a> {
    pub(crate) fn of(id: &'a ToolId, tool: &'a Tool) -> Self {
        let input = tool.input.value();
        let from_type = || input.get("description").and_then(Value::as_str);
        Self {
            id: id.to_string(),
            name: name_of(id, tool),
            description: tool
                .description
                .as_deref()
                .or_else(from_type)
                .unwrap_or_default(),
            version: id.version().to_string(),
            input_schema: PublishedInput(input),
            output_schema: tool.output.value(),
            requirements: &tool.requirements,
        }
    }
}

/// An input's schema as a definition has it: without its description, and with properties.
#[derive(Clone, Copy)]
pub(crate) struct PublishedInput<'a>(&'a Value);

impl Serialize for PublishedInput<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(object) = self.0.as_object() else {
            return self.0.serialize(serializer);
        };
        let place = place_of_properties(object);
        let mut map = serializer.serialize_map(None)?;
        for (at, (keyword, value)) in object.iter().enumerate() {
            if place == Some(at) {
                map.serialize_entry("properties", &JsonObject::new())?;
            }
            if keyword != "description" {
                map.serialize_entry(keyword, value)?;
            }
        }
        if place == Some(object.len()) {
            map.serialize_entry("properties", &JsonObject::new())?;
        }
        map.end()
    }
}

/// Moves the input's description to the definition, so that it is stated once, where models look
/// for it.
fn take_description(schema: &mut Value) -> Option<String> {
    match schema.as_object_mut()?.shift_remove("description")? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// OpenAI's API rejects the whole list of tools if one of them is an object without `properties`.
fn list_properties(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if let Some(place) = place_of_properties(object) {
        object.shift_insert(place, "properties".into(), json!({}));
    }
}

/// The place at which an object's schema lacks `properties`: after its type.
fn place_of_properties(object: &JsonObject) -> Option<usize> {
    if object.contains_key("properties") || object.get("type").is_none_or(|it| it != "object") {
        return None;
    }
    object
        .keys()
        .position(|it| it == "type")
        .map(|place| place + 1)
}

/// The tool's own name, or else `Toolkit_Tool`.
pub(crate) fn name_of(id: &ToolId, tool: &Tool) -> String {
    let name = tool.name.clone();
    name.unwrap_or_else(|| id.qualified().replace('.', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;

    #[test]
    fn a_borrowed_definition_is_the_same_json() {
        let nothing = async |_: Value| Ok::<_, Failure>(Value::Null);
        let id: ToolId = "T.One@1.2.3".parse().unwrap();
        for (input, output) in [
            (json!({"type": "object"}), json!(null)),
            (json!({"type": "object", "description": "d"}), json!({})),
            (
                json!({"description": "d", "type": "object", "required": []}),
                json!({"type": "string"}),
            ),
            (
                json!({"type": "object", "title": "t", "description": 1, "required": []}),
                json!(true),
            ),
            (
                json!({"type": "object", "properties": {"description": {"type": "object"}}}),
                json!({}),
            ),
            (
                json!({"description": "d", "anyOf": [{"type": "object"}]}),
                json!({}),
            ),
            (json!(true), json!({})),
        ] {
            let dynamic =
                || Tool::dynamic("T.One@1.2.3", "", input.clone(), output.clone(), nothing);
            for tool in [
                Tool {
                    description: None,
                    ..dynamic()
                },
                dynamic().description("Acts.").name("act"),
                dynamic().secret("KEY").user_id(),
            ] {
                let owned = serde_json::to_string(&ToolDefinition::of(&id, &tool)).unwrap();
                let borrowed = serde_json::to_string(&BorrowedDefinition::of(&id, &tool)).unwrap();
                assert_eq!(borrowed, owned);
            }
        }
    }
}
