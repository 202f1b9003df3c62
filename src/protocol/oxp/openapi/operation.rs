//! The operation of one version of a tool: `POST /tools/{tool_id}/call`.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::{
    ToolDefinition,
    tool::{
        repeats::RepeatPolicy,
        schema::{example::example_of, modernize},
        toolkit::ToolEntry,
    },
};

/// The operations of OXP's own paths.
const OXP_OPERATIONS: [&str; 4] = ["call_tool", "get_health", "get_openapi", "list_tools"];

/// An operation and the names of its schemas.
pub(super) struct ToolOperation<'a> {
    entry: &'a ToolEntry,
    definition: ToolDefinition,
    /// The operation's id, and the start of its schemas' names.
    name: String,
    /// The toolkit.
    pub(super) tag: &'a str,
}

impl<'a> ToolOperation<'a> {
    /// Describes a version of a tool. The newest version has the tool's name, so that generated
    /// code keeps its names when a version is added; older ones have their version in it. `names`
    /// are the names that are in use, at first those of the newest versions.
    pub(super) fn of(entry: &'a ToolEntry, is_newest: bool, names: &mut HashSet<String>) -> Self {
        let definition = ToolDefinition::of(&entry.id, &entry.tool);
        let mut name = definition.name.clone();
        let mut is_taken = OXP_OPERATIONS.contains(&&*name);
        if !is_newest {
            name = format!("{name}_{}", definition.version.replace('.', "_"));
            is_taken = names.contains(&name);
        }
        while is_taken {
            name.push('_');
            is_taken = names.contains(&name);
        }
        names.insert(name.clone());
        let qualified = entry.id.qualified();
        let tag = qualified.split_once('.').map_or(qualified, |(tag, _)| tag);
        Self {
            entry,
            definition,
            name,
            tag,
        }
    }

    /// Adds the path and its schemas. `security` is the operation's own requirement, if any.
    pub(super) fn add_to(self, document: &mut Value, security: Option<Value>) {
        let (input, output) = (
            format!("{}_Input", self.name),
            format!("{}_Output", self.name),
        );
        let path = format!("/tools/{}/call", self.definition.id);
        let mut operation = self.operation(&input, &output);
        if let Some(security) = security {
            operation["security"] = security;
        }
        let schemas = &mut document["components"]["schemas"];
        schemas[&*input] = published(self.definition.input_schema);
        schemas[&*output] = published(self.definition.output_schema);
        document["paths"][&*path] = json!({ "post": operation });
    }

    fn operation(&self, input: &str, output: &str) -> Value {
        let schema = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
        let definition = &self.definition;
        let mut body = json!({"schema": schema(input)});
        // A value that is only guessed from a type says nothing to a reader, and may be invalid.
        if let Some(example) = example_of(&definition.input_schema, |_| None) {
            body["example"] = example;
        }
        let is_required = definition.input_schema["required"]
            .as_array()
            .is_some_and(|names| !names.is_empty());
        let mut operation = json!({
            "operationId": self.name,
            "summary": self.entry.tool.title.as_deref().unwrap_or(&definition.name),
            "description": definition.description,
            "tags": [self.tag],
            "parameters": self.parameters(),
            "requestBody": {"required": is_required, "content": {"application/json": body}},
            "responses": {
                "200": {
                    "description": "The tool's value.",
                    "headers": {
                        "OXP-Version": {"$ref": "#/components/headers/OxpVersion"},
                        "Idempotent-Replay": {"$ref": "#/components/headers/IdempotentReplay"},
                    },
                    "content": {"application/json": {"schema": schema(output)}},
                },
                "400": {"$ref": "#/components/responses/Rejected"},
                "422": {"$ref": "#/components/responses/InvalidInput"},
                "424": {"$ref": "#/components/responses/Failed"},
            },
        });
        if !definition.requirements.is_empty() {
            operation["x-requirements"] = json!(definition.requirements);
        }
        operation
    }

    fn parameters(&self) -> Value {
        let version = json!({"$ref": "#/components/parameters/OxpVersion"});
        match self.entry.tool.policy {
            // A repeated call has no further effect, whatever its id is.
            RepeatPolicy::Idempotent => json!([version]),
            _ => json!([{"$ref": "#/components/parameters/IdempotencyKey"}, version]),
        }
    }
}

/// Returns a schema of the document; a tool that returns nothing has `null`.
fn published(mut schema: Value) -> Value {
    if schema.is_null() {
        return json!({"type": "null"});
    }
    modernize(&mut schema);
    if let Some(fields) = schema.as_object_mut() {
        // The dialect of the document, draft 2020-12, applies.
        fields.shift_remove("$schema");
    }
    schema
}
