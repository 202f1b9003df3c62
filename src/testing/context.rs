//! Contexts for unit tests.

use std::collections::BTreeMap;

use super::{FIXED, ID};
use crate::{Context, Secret, context};

/// A [`Context`] for calling a tool's function in a unit test.
///
/// ```
/// let cx = lambda_tools::testing::context().user_id("user_123").secret("KEY", "value").build();
/// assert_eq!(cx.secret("KEY").unwrap().expose(), "value");
/// ```
#[must_use]
pub fn context() -> ContextBuilder {
    let now = FIXED.wall;
    ContextBuilder(context::Inner {
        call_id: ID.to_string(),
        trace_id: None,
        user_id: None,
        tokens: BTreeMap::new(),
        secrets: BTreeMap::new(),
        now: now(),
        instant: FIXED.instant,
        stops_at: (FIXED.instant)() + crate::DEFAULT_TIMEOUT,
    })
}

/// Makes a [`Context`]; see [`context`].
pub struct ContextBuilder(context::Inner);

impl ContextBuilder {
    /// Sets whom the tool acts for.
    #[must_use]
    pub fn user_id(mut self, id: impl Into<String>) -> Self {
        self.0.user_id = Some(id.into());
        self
    }

    /// Adds a secret.
    #[must_use]
    pub fn secret(mut self, id: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.0.secrets.insert(id.into(), value.into());
        self
    }

    /// Adds a provider's token.
    #[must_use]
    pub fn token(mut self, provider: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.0.tokens.insert(provider.into(), value.into());
        self
    }

    /// The context.
    #[must_use]
    pub fn build(self) -> Context {
        self.0.into()
    }
}
