//! The list of tools, encoded once in each form and cached.
//!
//! Clients request the catalogue more often than they need it; every request after the first costs
//! one pointer copy.

use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::json;

use super::dialect::Dialect;
#[cfg(feature = "models")]
use crate::models::{self, ModelApi};
use crate::{
    ToolDefinition,
    payload::LARGEST_PAYLOAD,
    protocol::{
        content_coding::Coding, listed_tools::ListedTools, representation::Representations,
    },
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
    forms: [OnceLock<EncodedList>; 11],
}

type EncodedList = Result<Arc<Representations>, String>;

impl Catalogue {
    pub(super) fn get(&self, form: OxpForm, tools: &ListedTools<'_>) -> EncodedList {
        if !tools.is_complete() {
            return build(form, tools);
        }
        let list = self.forms[form.index()].get_or_init(|| build(form, tools));
        list.clone()
    }
}

#[derive(Serialize)]
struct ToolList<'a> {
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    schema: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<&'a [ToolDefinition]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<ToolDefinition>>,
}

fn build(form: OxpForm, tools: &ListedTools<'_>) -> EncodedList {
    #[cfg(feature = "models")]
    if let OxpForm::Model(api) = form {
        return encoded(&models::list_for(api, tools.newest()));
    }
    let entries = tools.entries();
    let definitions: Vec<_> = entries
        .map(|entry| ToolDefinition::of(&entry.id, &entry.tool))
        .collect();
    let list = encode(form, &definitions)?;
    let fits = |it: &Representations| {
        let plain = it.get(Coding::Identity);
        plain.is_some_and(|it| it.fits(LARGEST_PAYLOAD))
    };
    match form {
        // A list that some clients can read is better than none.
        OxpForm::Universal if !fits(&list) => encode(OxpForm::Items, &definitions),
        _ => Ok(list),
    }
}

fn encode(form: OxpForm, definitions: &[ToolDefinition]) -> EncodedList {
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
    encoded(&ToolList {
        schema,
        items,
        tools,
    })
}

fn encoded(list: &impl Serialize) -> EncodedList {
    let body = serde_json::to_vec(list).map_err(|error| error.to_string())?;
    Ok(Representations::new(body))
}

/// The definition with its input schema wrapped.
fn wrapped(definition: &ToolDefinition) -> ToolDefinition {
    ToolDefinition {
        input_schema: json!({"parameters": definition.input_schema}),
        ..definition.clone()
    }
}
