//! Requests without a usable response, and the reasons that `rmcp` gives for them.

use std::fmt;

use lambda_tools_core::text::clipped;
use rmcp::{
    ErrorData, ServiceError,
    service::ClientInitializeError,
    transport::{DynamicTransportError, streamable_http_client::StreamableHttpError},
};

use crate::{
    ClientError,
    response::LONGEST_MESSAGE,
    retry::{RetryAdvice, advice_on},
};

/// A request without a usable response.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) error: ClientError,
    pub(super) advice: RetryAdvice,
}

impl Failed {
    fn lost(text: String) -> Self {
        ClientError::Unreachable(text).into()
    }

    pub(super) fn timed_out() -> Self {
        Self::lost("no response in time".to_owned())
    }
}

impl From<ClientError> for Failed {
    fn from(error: ClientError) -> Self {
        let advice = advice_on(Err(&error));
        Self { error, advice }
    }
}

impl From<ErrorData> for Failed {
    fn from(error: ErrorData) -> Self {
        let message = clipped(&error.message, LONGEST_MESSAGE).into_owned();
        let code = error.code.0.into();
        ClientError::Rejected { code, message }.into()
    }
}

impl From<DynamicTransportError> for Failed {
    fn from(error: DynamicTransportError) -> Self {
        match error.error.downcast().map(|it| *it) {
            Ok(StreamableHttpError::Client(failed)) => failed,
            Ok(other) => Self::lost(other.to_string()),
            Err(other) => Self::lost(other.to_string()),
        }
    }
}

impl From<ServiceError> for Failed {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => error.into(),
            ServiceError::TransportSend(error) => error.into(),
            ServiceError::Timeout { .. } => Self::timed_out(),
            other => Self::lost(other.to_string()),
        }
    }
}

impl From<ClientInitializeError> for Failed {
    fn from(error: ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::JsonRpcError(error) => error.into(),
            ClientInitializeError::TransportError { error, .. } => error.into(),
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => (*fallback).into(),
            ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
                let text = "the server supports no revision of MCP that this client knows";
                ClientError::Unsupported(text).into()
            }
            _ => ClientError::Unreadable("it does not describe the server".to_owned()).into(),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Failed {}
