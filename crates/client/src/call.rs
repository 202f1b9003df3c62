//! A tool call, as programs describe it to a client of any protocol.

use std::{collections::BTreeMap, fmt};

use lambda_tools_core::Secret;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// A tool call.
///
/// ```
/// # mod lambda_tools { pub use lambda_tools_client as client; }
/// use lambda_tools::client::CallRequest;
/// use serde_json::json;
///
/// let call = CallRequest::new("Gmail.GetEmails@1.2.0")
///     .input(json!({"query": "is:unread"}))
///     .user_id("user-1")
///     .token("google", "ya29.token");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct CallRequest {
    pub(super) tool_id: String,
    pub(super) call_id: Option<String>,
    pub(super) trace_id: Option<String>,
    pub(super) input: Value,
    pub(super) user_id: Option<String>,
    pub(super) tokens: BTreeMap<String, Secret>,
    pub(super) secrets: BTreeMap<String, Secret>,
    pub(super) input_responses: BTreeMap<String, InputResponse>,
    pub(super) request_state: Option<Secret>,
}

/// The user's response to an [`InputRequest`](super::InputRequest).
#[derive(Clone)]
#[non_exhaustive]
pub enum InputResponse {
    /// The user filled in the form: an object that matches the requested schema.
    Content(Value),
    /// The user agreed, with nothing to fill in: to open a URL, for example.
    Accept,
    /// The user refused.
    Decline,
    /// The user made no decision.
    Cancel,
}

impl InputResponse {
    /// Encodes the answer (2026-07-28, Elicitation, Response Actions).
    pub(super) fn encode(&self) -> Value {
        match self {
            Self::Content(content) => json!({"action": "accept", "content": content}),
            Self::Accept => json!({"action": "accept"}),
            Self::Decline => json!({"action": "decline"}),
            Self::Cancel => json!({"action": "cancel"}),
        }
    }
}

/// Without the content, which may be confidential.
impl fmt::Debug for InputResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Content(_) => "Content(..)",
            Self::Accept => "Accept",
            Self::Decline => "Decline",
            Self::Cancel => "Cancel",
        })
    }
}

impl CallRequest {
    /// Creates a call of `Toolkit.Tool`, `Toolkit.Tool@1` or `Toolkit.Tool@1.0.0`, with an empty
    /// input; over MCP, the name in the server's list of tools.
    pub fn new(tool_id: impl Into<String>) -> Self {
        Self {
            tool_id: tool_id.into(),
            call_id: None,
            trace_id: None,
            input: Value::Object(Map::new()),
            user_id: None,
            tokens: BTreeMap::new(),
            secrets: BTreeMap::new(),
            input_responses: BTreeMap::new(),
            request_state: None,
        }
    }

    /// Sets the input: a JSON object.
    pub fn input(mut self, input: impl Into<Value>) -> Self {
        self.input = input.into();
        self
    }

    /// Sets the id that identifies a repeated call; the default is a new UUID. Pass your own to
    /// repeat a call after a restart of the program.
    pub fn call_id(mut self, id: impl Into<String>) -> Self {
        self.call_id = Some(id.into());
        self
    }

    /// Sets the id of the trace that the call belongs to.
    pub fn trace_id(mut self, id: impl Into<String>) -> Self {
        self.trace_id = Some(id.into());
        self
    }

    /// Sets the user on whose behalf the tool runs.
    pub fn user_id(mut self, id: impl Into<String>) -> Self {
        self.user_id = Some(id.into());
        self
    }

    /// Adds the user's token for a provider, such as `google`.
    pub fn token(mut self, provider: impl Into<String>, token: impl Into<Secret>) -> Self {
        self.tokens.insert(provider.into(), token.into());
        self
    }

    /// Adds a secret.
    pub fn secret(mut self, id: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.secrets.insert(id.into(), value.into());
        self
    }

    /// Adds the user's response to the [`InputRequest`](super::InputRequest) with this key, or to the
    /// challenge with this id (MCP only).
    pub fn input_response(mut self, key: impl Into<String>, response: InputResponse) -> Self {
        self.input_responses.insert(key.into(), response);
        self
    }

    /// Returns the state that an MCP server sent with its requests for input.
    pub fn request_state(mut self, state: impl Into<Option<Secret>>) -> Self {
        self.request_state = state.into();
        self
    }

    pub(super) fn answers_input(&self) -> bool {
        !self.input_responses.is_empty() || self.request_state.is_some()
    }

    pub(super) fn id(&self) -> String {
        let id = self.call_id.clone();
        id.unwrap_or_else(|| Uuid::new_v4().to_string())
    }
}
