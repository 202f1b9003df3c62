//! The APIs of chat models.

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
    /// The tool schema of a Lambda target of an `AgentCore` Gateway, which calls the function itself:
    /// there are no calls in a model's reply.
    AgentCore,
}
