//! `SchemaDefinition` of Amazon Bedrock `AgentCore`: a subset of JSON Schema with five keywords.

use lambda_tools_core::tool::schema::reduced::SchemaFormat;

/// `type`, `description`, `properties`, `required` and `items`.
pub(super) const FORMAT: SchemaFormat = SchemaFormat {
    has_keyword: |_, _, _| false,
    has_choice: |_, _| false,
    is_openapi: false,
};
