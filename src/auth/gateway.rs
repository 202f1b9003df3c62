//! The authentication of the platform.

/// The authentication of API Gateway (with a JWT, Cognito or Lambda authorizer) or of IAM, which
/// callers must have passed. The identity is read from the event's request context, never from
/// headers. An event without one is rejected.
///
/// The user of a JWT that API Gateway has verified is the call's user, as with
/// [`Oidc`](crate::Oidc).
#[derive(Clone, Debug, Default)]
pub struct Gateway(());

impl Gateway {
    /// Accepts every caller whom the platform has authenticated.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}
