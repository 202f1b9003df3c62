//! A tool call, and its encoding in one of the dialects.

use std::collections::BTreeMap;

use lambda_tools_core::{
    Secret,
    wire::oxp::{OTC_SCHEMA, SCHEMA},
};
use serde_json::{Value, json};

/// A dialect of calls; all three carry the same data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// OXP 1.0, header dialect: `OXP-Version: 1.0`, calls without an envelope.
    #[default]
    Header,
    /// OXP 1.0, `$schema` dialect: `"$schema": "urn:oxp:1.0"`, calls in `request`.
    Schema,
    /// Open Tool Calling 1.0: `"$schema": "otc://1.0"`, calls in `request`.
    Otc,
}

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
    tool_id: String,
    pub(super) call_id: Option<String>,
    trace_id: Option<String>,
    input: Value,
    user_id: Option<String>,
    tokens: BTreeMap<String, Secret>,
    secrets: BTreeMap<String, Secret>,
}

impl CallRequest {
    /// Creates a call of `Toolkit.Tool`, `Toolkit.Tool@1` or `Toolkit.Tool@1.0.0`, with an empty
    /// input.
    pub fn new(tool_id: impl Into<String>) -> Self {
        Self {
            tool_id: tool_id.into(),
            call_id: None,
            trace_id: None,
            input: json!({}),
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

    /// Returns the call's tokens and secrets.
    pub(super) fn confidential(&self) -> Vec<Secret> {
        let values = self.tokens.values().chain(self.secrets.values());
        values.cloned().collect()
    }

    pub(super) fn encode(&self, call_id: &str, dialect: Dialect) -> String {
        let mut request = json!({
            "tool_id": self.tool_id,
            "call_id": call_id,
            "input": self.input,
        });
        if let Some(trace_id) = &self.trace_id {
            request["trace_id"] = json!(trace_id);
        }
        let mut context = Value::Null;
        if let Some(user_id) = &self.user_id {
            context["user_id"] = json!(user_id);
        }
        for (list, secrets, name) in [
            ("authorization", &self.tokens, "token"),
            ("secrets", &self.secrets, "value"),
        ] {
            let item = |(id, value): (&String, &Secret)| json!({"id": id, name: value.expose()});
            if !secrets.is_empty() {
                context[list] = secrets.iter().map(item).collect();
            }
        }
        if !context.is_null() {
            request["context"] = context;
        }
        let body = match dialect {
            Dialect::Header => request,
            Dialect::Schema => json!({"$schema": SCHEMA, "request": request}),
            Dialect::Otc => json!({"$schema": OTC_SCHEMA, "request": request}),
        };
        body.to_string()
    }
}
