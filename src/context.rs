//! What a tool knows about its call besides the input.
//!
//! A tool sees only what it declared: its own secrets, its own providers' tokens. What another
//! tool needs, or what the client sent unasked, does not reach it.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use crate::{Failure, Secret};

/// The circumstances of one call: its ids, its user, and the secrets and tokens the tool declared.
///
/// Cheap to clone. In unit tests make one with [`testing::context`](crate::testing::context).
#[derive(Clone, Debug)]
pub struct Context(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) call_id: String,
    pub(crate) trace_id: Option<String>,
    pub(crate) user_id: Option<String>,
    pub(crate) tokens: BTreeMap<String, Secret>,
    pub(crate) secrets: BTreeMap<String, Secret>,
    pub(crate) now: SystemTime,
    pub(crate) instant: fn() -> Instant,
    pub(crate) stops_at: Instant,
}

impl From<Inner> for Context {
    fn from(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }
}

impl Context {
    /// The call's unique id: the client's `call_id`, or one made for it.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.0.call_id
    }

    /// The client's `trace_id`, if it sent one.
    #[must_use]
    pub fn trace_id(&self) -> Option<&str> {
        self.0.trace_id.as_deref()
    }

    /// Whom the tool acts for. Always there for a tool that declared
    /// [`user_id`](crate::Tool::user_id).
    #[must_use]
    pub fn user_id(&self) -> Option<&str> {
        self.0.user_id.as_deref()
    }

    /// The user's token of a provider that the tool declared with
    /// [`authorization`](crate::Tool::authorization).
    ///
    /// # Errors
    /// A failure that says so, for a provider the tool did not declare.
    pub fn token(&self, provider: &str) -> Result<&Secret, Failure> {
        let undeclared = || undeclared(&format!(".authorization({provider:?}, …)"));
        self.0.tokens.get(provider).ok_or_else(undeclared)
    }

    /// The value of a secret that the tool declared with [`secret`](crate::Tool::secret).
    ///
    /// # Errors
    /// A failure that says so, for a secret the tool did not declare.
    pub fn secret(&self, id: &str) -> Result<&Secret, Failure> {
        let undeclared = || undeclared(&format!(".secret({id:?})"));
        self.0.secrets.get(id).ok_or_else(undeclared)
    }

    /// The time at which the call began. Use it instead of asking the clock, and recorded events
    /// replay exactly.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        self.0.now
    }

    /// How long the tool may still run before its call is answered without it.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        let now = (self.0.instant)();
        self.0.stops_at.saturating_duration_since(now)
    }
}

fn undeclared(declaration: &str) -> Failure {
    Failure::new("The tool could not complete the call").developer_message(format!(
        "The tool uses what it did not declare; add {declaration} to its definition."
    ))
}
