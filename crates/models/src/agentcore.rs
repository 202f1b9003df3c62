//! `SchemaDefinition` of Amazon Bedrock `AgentCore`: a subset of JSON Schema with five keywords.

use lambda_tools_core::{
    json::JsonObject,
    tool::schema::reduced::{self, SchemaFormat},
};

use super::{budget::CopyBudget, portable::InputSchema, references};

/// `type`, `description`, `properties`, `required` and `items`.
const FORMAT: SchemaFormat = SchemaFormat {
    has_keyword: |_, _, _| false,
    has_choice: |_, _| false,
    is_openapi: false,
};

/// Returns the schema, and notes for the tool's description.
pub(super) fn input_schema(input: InputSchema, budget: &CopyBudget) -> (JsonObject, Vec<String>) {
    let InputSchema { schema, mut notes } = input;
    let schema = references::inlined(schema, budget);
    let mut schema = reduced::merged(schema.into(), &FORMAT);
    let text = reduced::take_description(&mut schema);
    notes.extend(Some(text).filter(|text| !text.is_empty()));
    (schema, notes)
}
