//! The list of tools for one API.

use std::collections::{BTreeMap, HashMap};

use lambda_tools_core::{
    ToolDefinition,
    json::JsonObject,
    text::{LONGEST_SHOWN, clipped},
    tool::schema::reduced::sentences,
};
use semver::Version;
use serde_json::{Value, json};

use super::{
    agentcore,
    api::ModelApi,
    budget::{CopyBudget, LARGEST_DEFINITION, LARGEST_ITEM, LARGEST_LIST, size_of},
    gemini,
    names::NameRule,
    portable::InputSchema,
    references, strict,
};

/// The tools of a server, listed for one API.
///
/// It has the newest version of each tool, under names that the API accepts, and knows the ids of
/// the tools and the names of their parameters when a model [calls](Self::calls) them.
#[derive(Clone, Debug)]
pub struct ModelTools {
    pub(super) api: ModelApi,
    list: Vec<Value>,
    pub(super) tools: HashMap<String, ListedTool>,
}

/// A tool as its server knows it.
#[derive(Clone, Debug)]
pub(super) struct ListedTool {
    pub(super) id: String,
    pub(super) input_schema: Value,
    /// Parameters' own names by their listed ones, if they differ.
    pub(super) renamed: BTreeMap<String, String>,
}

/// The longest description of a function: "Expected a string with maximum length 1024".
const LONGEST_OPENAI_DESCRIPTION: usize = 1024;

impl ModelTools {
    /// Lists tools of any server: those of a [`Toolkit`](lambda_tools_core::Toolkit) or of
    /// `OxpClient::tools`. Those whose definitions are too large are left out, with a warning in the
    /// log.
    pub fn new(api: ModelApi, definitions: impl IntoIterator<Item = ToolDefinition>) -> Self {
        let mut list = Vec::new();
        let mut tools = HashMap::new();
        let mut left = LARGEST_LIST;
        for definition in newest(definitions) {
            let is_taken = |name: &str| tools.contains_key(name);
            let name = if api == ModelApi::AgentCore {
                // The function finds the tool by this name.
                definition.name.clone()
            } else {
                let rule = NameRule::of_tools(api);
                rule.tool(&definition.name, qualified(&definition.id), is_taken)
            };
            let Some((item, renamed)) = item_within(&mut left, api, &name, &definition) else {
                let name = clipped(&definition.name, LONGEST_SHOWN);
                tracing::warn!(target: "lambda_tools::models", "left out the tool {name:?}: its definition is too large");
                continue;
            };
            list.push(item);
            let tool = ListedTool {
                id: definition.id,
                input_schema: definition.input_schema,
                renamed,
            };
            tools.insert(name, tool);
        }
        if api == ModelApi::Gemini && !list.is_empty() {
            list = vec![json!({"functionDeclarations": list})];
        }
        Self { api, list, tools }
    }

    /// Returns the list, as a request takes it: `tools`, or `toolConfig.tools` in Bedrock's
    /// `Converse`.
    #[must_use]
    pub fn list(&self) -> &[Value] {
        &self.list
    }
}

/// Returns `Toolkit.Tool`, or the whole id if it has no version.
fn qualified(id: &str) -> &str {
    id.split_once('@').map_or(id, |(name, _)| name)
}

/// Returns the newest version of each tool, in their order.
fn newest(definitions: impl IntoIterator<Item = ToolDefinition>) -> Vec<ToolDefinition> {
    let definitions: Vec<_> = definitions.into_iter().collect();
    let mut newest: HashMap<String, (usize, Option<Version>)> = HashMap::new();
    for (index, definition) in definitions.iter().enumerate() {
        let version = Version::parse(&definition.version).ok();
        let name = qualified(&definition.id).to_owned();
        let known = newest.get(&name);
        if known.is_none_or(|(_, known)| version > *known) {
            newest.insert(name, (index, version));
        }
    }
    let is_newest = |(index, definition): &(usize, ToolDefinition)| {
        let newest = newest.get(qualified(&definition.id));
        newest.is_some_and(|(newest, _)| newest == index)
    };
    let definitions = definitions.into_iter().enumerate().filter(is_newest);
    definitions.map(|(_, definition)| definition).collect()
}

/// Does the same as [`item`], if it is within the limits and within what is left of the list.
fn item_within(
    left: &mut usize,
    api: ModelApi,
    name: &str,
    definition: &ToolDefinition,
) -> Option<(Value, BTreeMap<String, String>)> {
    let size = size_of(&definition.input_schema) + definition.description.len();
    if size > LARGEST_DEFINITION {
        return None;
    }
    let copies = LARGEST_DEFINITION.min(*left);
    let budget = CopyBudget::new(copies);
    let (item, renamed) = item(api, name, definition, &budget);
    *left -= copies - budget.left();
    let size = size_of(&item);
    *left = left.checked_sub(size).filter(|_| size <= LARGEST_ITEM)?;
    Some((item, renamed))
}

/// Returns a tool in the format of an API, and its parameters that have other names there.
fn item(
    api: ModelApi,
    name: &str,
    definition: &ToolDefinition,
    budget: &CopyBudget,
) -> (Value, BTreeMap<String, String>) {
    let mut input = InputSchema::of(&definition.input_schema, budget);
    let text = &definition.description;
    match api {
        ModelApi::OpenAi { strict } => {
            let function = function(name, text, input, strict.then_some(budget));
            (openai(function, strict), BTreeMap::new())
        }
        ModelApi::OpenAiResponses { strict } => {
            let function = function(name, text, input, strict.then_some(budget));
            (openai_responses(function), BTreeMap::new())
        }
        ModelApi::Anthropic => {
            let renamed = input.rename_parameters(api);
            let mut tool = named(name, &input.described(text));
            tool.insert("input_schema".into(), input.schema.into());
            (tool.into(), renamed)
        }
        ModelApi::Bedrock => {
            let mut input = input.bare(budget);
            let renamed = input.rename_parameters(api);
            let mut tool = named(name, &input.described(text));
            tool.insert("inputSchema".into(), json!({"json": input.schema}));
            (json!({"toolSpec": tool}), renamed)
        }
        ModelApi::AgentCore => {
            let (schema, notes) = input.reduced(&agentcore::FORMAT, budget);
            let mut tool = named(name, &sentences::appended(text.trim().to_owned(), &notes));
            tool.insert("inputSchema".into(), schema.into());
            (tool.into(), BTreeMap::new())
        }
        ModelApi::Gemini => {
            let renamed = input.rename_parameters(api);
            let (parameters, notes) = gemini::parameters(input, budget);
            let mut tool = named(name, &sentences::appended(text.trim().to_owned(), &notes));
            tool.extend(parameters.map(|it| ("parameters".to_owned(), it)));
            (tool.into(), renamed)
        }
    }
}

/// Returns a tool's name and description, which Bedrock and Gemini do not accept empty.
fn named(name: &str, description: &str) -> JsonObject {
    let description = if description.is_empty() {
        name
    } else {
        description
    };
    let mut tool = JsonObject::new();
    tool.insert("name".into(), name.into());
    tool.insert("description".into(), description.into());
    tool
}

fn openai((mut function, is_strict): (JsonObject, bool), strict: bool) -> Value {
    // A compatible API may not know the field.
    if strict {
        function.insert("strict".into(), is_strict.into());
    }
    json!({"type": "function", "function": function})
}

fn openai_responses((mut function, is_strict): (JsonObject, bool)) -> Value {
    // Without the field, the API tries to make the schema strict by itself.
    function.insert("strict".into(), is_strict.into());
    function.shift_insert(0, "type".into(), "function".into());
    function.into()
}

/// Returns a function, and true if its schema is strict, which is tried within a budget.
fn function(
    name: &str,
    text: &str,
    input: InputSchema,
    strict: Option<&CopyBudget>,
) -> (JsonObject, bool) {
    let description = input.described(text);
    let strict_schema = strict.and_then(|budget| strict::schema_of(&input, budget));
    let is_strict = strict_schema.is_some();
    let mut schema = strict_schema.unwrap_or(input.schema);
    let (start, rest) = split(&description, LONGEST_OPENAI_DESCRIPTION);
    if !rest.is_empty() {
        references::append(&mut schema, rest.to_owned());
    }
    let mut function = named(name, start);
    function.insert("parameters".into(), schema.into());
    (function, is_strict)
}

/// Splits a text after a word, so that the first part has at most `longest` characters.
fn split(text: &str, longest: usize) -> (&str, &str) {
    let Some((end, _)) = text.char_indices().nth(longest) else {
        return (text, "");
    };
    let end = text[..end].rfind(char::is_whitespace).unwrap_or(end);
    (text[..end].trim_end(), text[end..].trim_start())
}
