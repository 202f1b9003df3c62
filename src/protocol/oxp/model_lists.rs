//! The lists for the APIs of chat models.
//!
//! Not part of OXP 1.0, whose lists have one format.

use std::sync::Arc;

use serde_json::json;

use crate::{
    ToolDefinition, Toolkit,
    models::ModelTools,
    protocol::{encoded_list::EncodedList, listed_tools::ListedTools},
    tool::toolkit::ToolEntry,
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
        (Some("agentcore"), None) => ModelApi::AgentCore,
        (Some("anthropic" | "gemini" | "bedrock" | "agentcore"), Some(_)) => {
            return Err("'strict' is for OpenAI's APIs only.");
        }
        _ => {
            return Err(
                "'for' must be one of: openai, openai-responses, anthropic, gemini, bedrock, agentcore.",
            );
        }
    }))
}

/// Returns the newest version of each tool in the format of the API with this name, as JSON.
pub(crate) fn list_for(api: &str, toolkit: &Toolkit) -> Result<String, &'static str> {
    let api = api_for(Some(api), None)?.expect("an API has been named");
    Ok(format!(
        "{:#}",
        json!(tools_of(api, toolkit.newest()).list())
    ))
}

/// Encodes the newest version of each tool in the format of the API.
pub(super) fn encode(api: ModelApi, tools: &ListedTools<'_>) -> Arc<EncodedList> {
    EncodedList::of(&tools_of(api, tools.newest()).list())
}

fn tools_of<'a>(api: ModelApi, newest: impl Iterator<Item = &'a ToolEntry>) -> ModelTools {
    ModelTools::new(api, newest.map(|it| ToolDefinition::of(&it.id, &it.tool)))
}
