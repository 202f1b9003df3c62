//! The list of tools, encoded once in each form and cached.
//!
//! Clients request the catalogue more often than they need it; every request after the first costs
//! one pointer copy.

use std::sync::OnceLock;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::dialect::Dialect;
#[cfg(feature = "models")]
use crate::models::{self, ModelApi};
use crate::{
    Requirements, ToolDefinition,
    payload::{LARGEST_PAYLOAD, encoded_size},
    protocol::listed_tools::ListedTools,
};

/// The form of a response; for `GET /tools`, the form of the list.
#[derive(Clone, Copy, Default)]
pub(crate) enum OxpForm {
    /// OXP 1.0, header form: `items` with bare schemas.
    #[default]
    Header,
    /// OTC 1.0: `tools` with input schemas wrapped in `parameters`.
    Otc,
    /// OXP 1.0, `$schema` form, with both `items` and `tools`, because clients do not say which
    /// they read: the SDKs read `items`, the documentation's text says `tools`.
    Universal,
    /// OXP 1.0, `$schema` form, with `items` only, as in its OpenAPI document: the fallback if the
    /// universal form is too large to send.
    Items,
    /// The format of a model's API: a bare list.
    #[cfg(feature = "models")]
    Model(ModelApi),
}

impl From<Dialect> for OxpForm {
    fn from(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Header | Dialect::Path => Self::Header,
            Dialect::Schema => Self::Items,
            Dialect::Otc => Self::Otc,
        }
    }
}

impl OxpForm {
    pub(super) fn dialect(self) -> Dialect {
        match self {
            Self::Header => Dialect::Header,
            #[cfg(feature = "models")]
            Self::Model(_) => Dialect::Header,
            Self::Otc => Dialect::Otc,
            Self::Universal | Self::Items => Dialect::Schema,
        }
    }

    /// The place of the form in the cache.
    fn index(self) -> usize {
        match self {
            Self::Header => 0,
            Self::Otc => 1,
            Self::Universal => 2,
            Self::Items => 3,
            #[cfg(feature = "models")]
            Self::Model(api) => match api {
                ModelApi::Anthropic => 4,
                ModelApi::Gemini => 5,
                ModelApi::Bedrock => 6,
                ModelApi::OpenAi { strict } => 7 + usize::from(strict),
                ModelApi::OpenAiResponses { strict } => 9 + usize::from(strict),
            },
        }
    }
}

/// The encoded catalogue in each of its forms.
#[derive(Default)]
pub(super) struct Catalogue {
    forms: [OnceLock<Result<Bytes, String>>; 11],
}

impl Catalogue {
    pub(super) fn get(&self, form: OxpForm, tools: &ListedTools<'_>) -> Result<Bytes, String> {
        if !tools.is_complete() {
            return build(form, tools);
        }
        let body = self.forms[form.index()].get_or_init(|| build(form, tools));
        body.clone()
    }
}

#[derive(Serialize)]
struct ToolList<'a> {
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    schema: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<&'a [ToolDefinition]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<WrappedDefinition<'a>>>,
}

/// A definition whose input schema is wrapped: `{"parameters": …}`.
#[derive(Serialize)]
struct WrappedDefinition<'a> {
    id: &'a str,
    name: &'a str,
    description: &'a str,
    version: &'a str,
    input_schema: Value,
    output_schema: &'a Value,
    #[serde(skip_serializing_if = "Requirements::is_empty")]
    requirements: &'a Requirements,
}

fn build(form: OxpForm, tools: &ListedTools<'_>) -> Result<Bytes, String> {
    #[cfg(feature = "models")]
    if let OxpForm::Model(api) = form {
        return sendable(&models::list_for(api, tools.newest()));
    }
    let definitions = tools.definitions();
    match (encode(form, &definitions), form) {
        // A list that some clients can read is better than none.
        (Err(_), OxpForm::Universal) => encode(OxpForm::Items, &definitions),
        (body, _) => body,
    }
}

fn encode(form: OxpForm, definitions: &[ToolDefinition]) -> Result<Bytes, String> {
    let items = || Some(definitions);
    let tools = || Some(definitions.iter().map(wrapped).collect());
    let (items, tools) = match form {
        OxpForm::Header | OxpForm::Items => (items(), None),
        #[cfg(feature = "models")]
        OxpForm::Model(_) => (items(), None),
        OxpForm::Otc => (None, tools()),
        OxpForm::Universal => (items(), tools()),
    };
    let schema = form.dialect().schema();
    let list = ToolList {
        schema,
        items,
        tools,
    };
    sendable(&list)
}

fn sendable(list: &impl Serialize) -> Result<Bytes, String> {
    let body = serde_json::to_vec(list).map_err(|error| error.to_string())?;
    let size = encoded_size(&body);
    if size > LARGEST_PAYLOAD {
        return Err(format!(
            "The list of tools would be {size} bytes; AWS Lambda sends {LARGEST_PAYLOAD} at most."
        ));
    }
    Ok(body.into())
}

fn wrapped(definition: &ToolDefinition) -> WrappedDefinition<'_> {
    WrappedDefinition {
        id: &definition.id,
        name: &definition.name,
        description: &definition.description,
        version: &definition.version,
        input_schema: json!({"parameters": definition.input_schema}),
        output_schema: &definition.output_schema,
        requirements: &definition.requirements,
    }
}
