//! Lists of tools for chat models, and models' calls of them.
//!
//! Each API of a model takes tools in a format of its own, with limits of its own; one tool that
//! exceeds them may make the API reject the whole list.
//!
#![doc = include_str!("pages.md")]
#![cfg_attr(any(not(doctest), feature = "client"), doc = include_str!("../docs/models.md"))]

mod budget;
mod call;
mod gemini;
mod names;
mod portable;
mod references;
mod result;
mod strict;
mod tools;

use serde_json::Value;

use crate::{ToolDefinition, Toolkit, tool::toolkit::ToolEntry};

pub use call::{ModelCall, ToolRequest};
pub use tools::ModelTools;

/// An API of chat models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelApi {
    /// OpenAI's Chat Completions, and the APIs that are compatible with it.
    OpenAi {
        /// True for Structured Outputs, which tools have as far as their inputs allow it.
        strict: bool,
    },
    /// OpenAI's Responses.
    OpenAiResponses {
        /// True for Structured Outputs, which tools have as far as their inputs allow it.
        strict: bool,
    },
    /// Anthropic's Messages.
    Anthropic,
    /// `generateContent` of Gemini and Vertex AI.
    Gemini,
    /// `Converse` of Amazon Bedrock.
    Bedrock,
}

impl Toolkit {
    /// The newest version of each tool, as a request to a model takes them: `tools`, or
    /// `toolConfig.tools` in Bedrock's `Converse`. [`ModelTools`] also reads the calls that a model
    /// makes.
    #[must_use]
    pub fn for_model(&self, api: ModelApi) -> Vec<Value> {
        list_for(api, self.newest())
    }
}

/// The list for an API, of the newest version of each tool.
pub(crate) fn list_for<'a>(
    api: ModelApi,
    newest: impl Iterator<Item = &'a ToolEntry>,
) -> Vec<Value> {
    let newest = newest.map(|entry| ToolDefinition::of(&entry.id, &entry.tool));
    ModelTools::new(api, newest).into_list()
}
