//! JSON-RPC errors, for requests that a model cannot fix.

use http::StatusCode;
use serde_json::Value;

use crate::protocol::jsonrpc::{INVALID_REQUEST, RpcError};

/// A header is missing, or it disagrees with the body (2026-07-28, Transports).
pub(super) const HEADER_MISMATCH: i32 = -32020;
/// The client lacks a capability that the request requires (2026-07-28, Base Protocol, Error Codes).
pub(super) const MISSING_CAPABILITY: i32 = -32021;
/// The revision is not served (2026-07-28, Versioning).
pub(super) const UNSUPPORTED_VERSION: i32 = -32022;

/// The error of a request that cannot be served, and its HTTP status.
pub(super) struct ErrorResponse {
    pub(super) status: StatusCode,
    pub(super) error: RpcError,
}

impl ErrorResponse {
    pub(super) fn new(status: StatusCode, code: i32, message: impl Into<String>) -> Self {
        let error = RpcError::new(code, message);
        Self { status, error }
    }

    /// Creates a 400 for a request that violates the transport's rules.
    pub(super) fn bad_request(code: i32, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(super) fn invalid_request(message: impl Into<String>) -> Self {
        Self::bad_request(INVALID_REQUEST, message)
    }

    pub(super) fn data(mut self, data: Value) -> Self {
        self.error.data = Some(data);
        self
    }
}
