//! The errors that clients get: RFC 6749, 4.1.2.1 and 5.2; RFC 7009, 2.2.1; RFC 7591, 3.2.2; RFC
//! 8707, section 2.

use crate::StoreError;

/// An error's code and its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OAuthError {
    pub(crate) code: &'static str,
    pub(crate) description: &'static str,
}

impl OAuthError {
    pub(super) const fn new(code: &'static str, description: &'static str) -> Self {
        Self { code, description }
    }

    pub(crate) const fn request(description: &'static str) -> Self {
        Self::new("invalid_request", description)
    }

    pub(super) const fn grant(description: &'static str) -> Self {
        Self::new("invalid_grant", description)
    }
}

/// The error of an endpoint.
#[derive(Debug)]
pub(crate) enum EndpointError {
    Rejected(OAuthError),
    /// The same request may succeed later.
    Unavailable(String),
}

impl From<OAuthError> for EndpointError {
    fn from(error: OAuthError) -> Self {
        Self::Rejected(error)
    }
}

impl From<StoreError> for EndpointError {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}
