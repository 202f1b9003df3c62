//! The calls in a model's reply.

use lambda_tools_core::{
    json::JsonObject,
    text::closest,
    tool::schema::{drop_optional_nulls, parse_object_texts},
};
use serde_json::{Value, json};

use super::{ModelApi, ModelTools, tools::ListedTool};

/// A call that a model makes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelCall {
    /// The model's id for the call. Older versions of Gemini send none. It is unique in its
    /// conversation only, so it must not be used as a `call_id`.
    pub id: Option<String>,
    /// The name that the model called.
    pub name: String,
    /// The call as the tool's server takes it, or a message for the model if there is no such tool
    /// or if its arguments are not a JSON object.
    pub request: Result<ToolRequest, String>,
}

/// A call of a tool, as its server takes it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolRequest {
    /// The tool's id: `Toolkit.Tool@x.y.z`.
    pub tool_id: String,
    /// The input.
    pub input: Value,
}

impl ModelTools {
    /// Returns the calls in a model's reply: in a whole response, a message, a list of items,
    /// content blocks or parts, or a single one of them. A reply without calls has none.
    ///
    /// The inputs have the tool's own names of parameters. A `null` for an optional parameter that
    /// must not be `null` is left out, because models in strict mode send every parameter. An object
    /// that Gemini's list describes as text becomes an object.
    #[must_use]
    pub fn calls(&self, reply: &Value) -> Vec<ModelCall> {
        let items = items_in(self.api, reply).iter();
        items.filter_map(|item| self.call(item)).collect()
    }

    fn call(&self, item: &Value) -> Option<ModelCall> {
        let (id, name, arguments) = match self.api {
            ModelApi::OpenAi { .. } => {
                let function = item.get("function")?;
                (&item["id"], &function["name"], &function["arguments"])
            }
            ModelApi::OpenAiResponses { .. } => {
                let item = (item["type"] == "function_call").then_some(item)?;
                (&item["call_id"], &item["name"], &item["arguments"])
            }
            ModelApi::Anthropic => {
                let item = (item["type"] == "tool_use").then_some(item)?;
                (&item["id"], &item["name"], &item["input"])
            }
            ModelApi::Gemini => {
                let call = item.get("functionCall")?;
                (&call["id"], &call["name"], &call["args"])
            }
            ModelApi::AgentCore => return None,
            ModelApi::Bedrock => {
                let call = item.get("toolUse")?;
                (&call["toolUseId"], &call["name"], &call["input"])
            }
        };
        let name = name.as_str().unwrap_or_default();
        Some(ModelCall {
            id: id.as_str().map(str::to_owned),
            name: name.to_owned(),
            request: self.request(name, arguments),
        })
    }

    fn request(&self, name: &str, arguments: &Value) -> Result<ToolRequest, String> {
        let Some(tool) = self.tools.get(name) else {
            let known = self.tools.keys().map(String::as_str);
            return Err(match closest(name, known) {
                Some(known) => format!("There is no tool with this name. Did you mean {known}?"),
                None => "There is no tool with this name.".to_owned(),
            });
        };
        let mut input = Value::Object(tool.input(object_of(arguments)?));
        if self.api == ModelApi::Gemini {
            parse_object_texts(&tool.input_schema, &mut input);
        }
        drop_optional_nulls(&tool.input_schema, &mut input);
        Ok(ToolRequest {
            tool_id: tool.id.clone(),
            input,
        })
    }
}

impl ListedTool {
    /// Gives the input the tool's own names.
    fn input(&self, arguments: JsonObject) -> JsonObject {
        let own = |name: String| self.renamed.get(&name).cloned().unwrap_or(name);
        let arguments = arguments.into_iter();
        arguments.map(|(name, value)| (own(name), value)).collect()
    }
}

/// Returns the arguments: an object, or its JSON as text. Without arguments, some models send no
/// text.
fn object_of(arguments: &Value) -> Result<JsonObject, String> {
    let parsed = match arguments {
        Value::String(text) if text.trim().is_empty() => json!({}),
        Value::String(text) => serde_json::from_str(text).map_err(|error| {
            format!("The arguments are not valid JSON: {error}. Send them as a JSON object.")
        })?,
        Value::Null => json!({}),
        other => other.clone(),
    };
    match parsed {
        Value::Object(object) => Ok(object),
        _ => Err("The arguments must be a JSON object.".to_owned()),
    }
}

/// Returns the items of a reply that may be calls.
fn items_in(api: ModelApi, reply: &Value) -> &[Value] {
    let places: &[&str] = match api {
        ModelApi::OpenAi { .. } => &[
            "/tool_calls",
            "/message/tool_calls",
            "/choices/0/message/tool_calls",
        ],
        ModelApi::OpenAiResponses { .. } => &["/output"],
        ModelApi::Anthropic => &["/content"],
        ModelApi::Gemini => &["/parts", "/content/parts", "/candidates/0/content/parts"],
        ModelApi::AgentCore => &[],
        ModelApi::Bedrock => &["/content", "/message/content", "/output/message/content"],
    };
    let lists = [""].iter().chain(places);
    let mut lists = lists.filter_map(|place| reply.pointer(place)?.as_array());
    lists
        .next()
        .map_or(std::slice::from_ref(reply), Vec::as_slice)
}
