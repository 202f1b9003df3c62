//! A tool call, as programs describe it to the OXP client.

use std::collections::BTreeMap;

use lambda_tools_core::Secret;
use serde_json::{Map, Value};
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
}

impl CallRequest {
    /// Creates a call of `Toolkit.Tool`, `Toolkit.Tool@1` or `Toolkit.Tool@1.0.0`, with an empty
    /// input.
    pub fn new(tool_id: impl Into<String>) -> Self {
        Self {
            tool_id: tool_id.into(),
            call_id: None,
            trace_id: None,
            input: Value::Object(Map::new()),
            user_id: None,
            tokens: BTreeMap::new(),
            secrets: BTreeMap::new(),
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

    pub(super) fn id(&self) -> String {
        let id = self.call_id.clone();
        id.unwrap_or_else(|| Uuid::new_v4().to_string())
    }
}
