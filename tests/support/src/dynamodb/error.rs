//! Errors in the format in which DynamoDB returns them.

use serde_json::{Value, json};

use super::item::{Item, to_json};

/// An error that a request gets instead of a result.
#[derive(Debug)]
pub(super) struct ApiError {
    pub(super) status: u16,
    /// The shape's name with its namespace.
    kind: &'static str,
    message: String,
    /// The item that a failed condition returns.
    item: Option<Item>,
}

impl ApiError {
    fn new(status: u16, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            message: message.into(),
            item: None,
        }
    }

    pub(super) fn validation(message: impl Into<String>) -> Self {
        let kind = "com.amazon.coral.validate#ValidationException";
        Self::new(400, kind, message)
    }

    pub(super) fn serialization(message: impl Into<String>) -> Self {
        let kind = "com.amazon.coral.service#SerializationException";
        Self::new(400, kind, message)
    }

    pub(super) fn missing_token() -> Self {
        let kind = "com.amazon.coral.service#MissingAuthenticationTokenException";
        Self::new(400, kind, "Request is missing Authentication Token")
    }

    pub(super) fn no_table() -> Self {
        let kind = "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException";
        Self::new(400, kind, "Requested resource not found")
    }

    pub(super) fn condition_failed(item: Option<Item>) -> Self {
        let kind = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException";
        Self {
            item,
            ..Self::new(400, kind, "The conditional request failed")
        }
    }

    /// Creates the error for a request that DynamoDB supports and this server does not. No AWS
    /// client retries its status.
    pub(super) fn unsupported(what: impl AsRef<str>) -> Self {
        let message = format!("the test's DynamoDB does not support {}", what.as_ref());
        eprintln!("{message}");
        Self::new(501, "UnsupportedByTheTest", message)
    }

    pub(super) fn body(&self) -> Value {
        let mut body = json!({"__type": self.kind, "message": self.message});
        if let Some(item) = &self.item {
            body["Item"] = to_json(item);
        }
        body
    }
}
