//! The lists for the APIs of chat models.
//!
//! Not part of OXP 1.0, whose lists have one format.

use std::sync::Arc;

use crate::{
    ToolDefinition,
    models::ModelTools,
    protocol::{encoded_list::EncodedList, listed_tools::ListedTools},
};

pub(super) use crate::models::ModelApi;

/// Returns the API that the parameters `for` and `strict` name; `None` for OXP's list.
pub(super) fn api_for(
    name: Option<&str>,
    strict: Option<&str>,
) -> Result<Option<ModelApi>, &'static str> {
    let is_strict = match strict {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err("'strict' must be 'true' or 'false'."),
    };
    Ok(Some(match (name, strict) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err("'strict' needs 'for=openai' or 'for=openai-responses'."),
        (Some("openai"), _) => ModelApi::OpenAi { strict: is_strict },
        (Some("openai-responses"), _) => ModelApi::OpenAiResponses { strict: is_strict },
        (Some("anthropic"), None) => ModelApi::Anthropic,
        (Some("gemini"), None) => ModelApi::Gemini,
        (Some("bedrock"), None) => ModelApi::Bedrock,
        (Some("anthropic" | "gemini" | "bedrock"), Some(_)) => {
            return Err("'strict' is for OpenAI's APIs only.");
        }
        _ => {
            return Err(
                "'for' must be one of: openai, openai-responses, anthropic, gemini, bedrock.",
            );
        }
    }))
}

/// Encodes the newest version of each tool in the format of the API.
pub(super) fn encode(api: ModelApi, tools: &ListedTools<'_>) -> Arc<EncodedList> {
    let newest = tools.newest();
    let newest = newest.map(|entry| ToolDefinition::of(&entry.id, &entry.tool));
    EncodedList::of(&ModelTools::new(api, newest).list())
}
