//! The list of tools, written once in each form and kept.
//!
//! A catalogue is asked for more often than it is needed; after the first time it costs one copy
//! of a pointer.

use std::sync::OnceLock;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::dialect::Dialect;
use crate::{
    Requirements, ToolDefinition, Toolkit,
    payload::{LARGEST_PAYLOAD, size_as_sent},
};

/// How an answer is wrapped; for `GET /tools`, what the list looks like.
#[derive(Clone, Copy, Default)]
pub(crate) enum OxpForm {
    /// OXP 1.0, header form: `items`, schemas bare.
    #[default]
    Header,
    /// OTC 1.0: `tools`, input schemas wrapped in `parameters`.
    Otc,
    /// Both of OXP's: what a reader gets that does not say which it knows. The SDKs read `items`,
    /// the documentation's text says `tools`.
    Universal,
    /// OXP 1.0, `$schema` form, as its OpenAPI document has it: what remains of the universal form
    /// where that is too large to send.
    Items,
}

impl From<Dialect> for OxpForm {
    fn from(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Header => Self::Header,
            Dialect::Schema => Self::Items,
            Dialect::Otc => Self::Otc,
        }
    }
}

impl OxpForm {
    pub(super) fn dialect(self) -> Dialect {
        match self {
            Self::Header => Dialect::Header,
            Self::Otc => Dialect::Otc,
            Self::Universal | Self::Items => Dialect::Schema,
        }
    }
}

/// The written catalogue in each of its forms.
#[derive(Default)]
pub(super) struct Catalogue {
    forms: [OnceLock<Result<Bytes, String>>; 4],
}

impl Catalogue {
    pub(super) fn get(&self, form: OxpForm, toolkit: &Toolkit) -> Result<&Bytes, &str> {
        let written = self.forms[form as usize].get_or_init(|| write(form, toolkit));
        written.as_ref().map_err(String::as_str)
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

fn write(form: OxpForm, toolkit: &Toolkit) -> Result<Bytes, String> {
    let definitions = toolkit.definitions();
    match (written(form, &definitions), form) {
        // Rather for the readers of one form than for none.
        (Err(_), OxpForm::Universal) => written(OxpForm::Items, &definitions),
        (body, _) => body,
    }
}

fn written(form: OxpForm, definitions: &[ToolDefinition]) -> Result<Bytes, String> {
    let items = || Some(definitions);
    let tools = || Some(definitions.iter().map(wrapped).collect());
    let (items, tools) = match form {
        OxpForm::Header | OxpForm::Items => (items(), None),
        OxpForm::Otc => (None, tools()),
        OxpForm::Universal => (items(), tools()),
    };
    let schema = form.dialect().schema();
    let list = ToolList {
        schema,
        items,
        tools,
    };
    let body = serde_json::to_vec(&list).map_err(|error| error.to_string())?;
    let size = size_as_sent(&body);
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
