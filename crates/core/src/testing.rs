//! Contexts for unit tests.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::ready,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use serde_json::{Map, Value};

use crate::{
    Caller, Context, DEFAULT_TIMEOUT, Secret,
    clock::{FIXED, FIXED_ID},
    secret::stored,
    tool::{
        context::{ContextInner, Reread, SecretSource},
        progress::{Follower, Progress},
        question::Answer,
    },
};

/// Returns what APIs have answered to tools from documents since the last recorded event, by method and
/// path. `None` unless a server records events.
pub fn api_responses() -> MutexGuard<'static, Option<Map<String, Value>>> {
    static ALL: Mutex<Option<Map<String, Value>>> = Mutex::new(None);
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a [`Context`] for calling a tool's function in a unit test.
///
/// ```
/// # use lambda_tools_core as lambda_tools;
/// let cx = lambda_tools::testing::context().user_id("user_123").secret("KEY", "value").build();
/// assert_eq!(cx.secret("KEY").unwrap().expose(), "value");
/// ```
pub fn context() -> ContextBuilder {
    ContextBuilder {
        inner: ContextInner {
            call_id: FIXED_ID.to_string(),
            trace_id: None,
            caller: Caller::Anyone,
            user_id: None,
            tokens: BTreeMap::new(),
            granted_providers: BTreeSet::new(),
            secrets: BTreeMap::new(),
            answers: None,
            store: None,
            follower: None,
            redaction: OnceLock::new(),
            now: FIXED.now(),
            stops_at: FIXED.instant() + DEFAULT_TIMEOUT,
            clock: FIXED,
        },
        rotated: BTreeMap::new(),
    }
}

/// A builder of a [`Context`]; see [`context`].
#[must_use]
pub struct ContextBuilder {
    inner: ContextInner,
    rotated: BTreeMap<String, Secret>,
}

impl ContextBuilder {
    /// Sets the user that the tool acts for.
    pub fn user_id(mut self, id: impl Into<String>) -> Self {
        self.inner.user_id = Some(id.into());
        self
    }

    /// Adds a secret.
    pub fn secret(mut self, id: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.inner.secrets.insert(id.into(), value.into());
        self
    }

    /// Adds a provider's token.
    pub fn token(mut self, provider: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.inner.tokens.insert(provider.into(), value.into());
        self
    }

    /// Sets what [`Context::secret_rejected`] returns for a secret.
    pub fn rotated_secret(mut self, id: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.rotated.insert(id.into(), value.into());
        self
    }

    /// Makes the client one that [can ask](Context::can_ask) its user.
    pub fn can_ask(mut self) -> Self {
        self.inner.answers.get_or_insert_default();
        self
    }

    /// Adds the user's answer to a question, `None` if they declined to give one. The client
    /// [can ask](Context::can_ask) its user.
    pub fn answer(self, key: impl Into<String>, answer: Option<Value>) -> Self {
        let answer = answer.map_or(Answer::Declined, Answer::Accepted);
        let mut asking = self.can_ask();
        let answers = asking.inner.answers.get_or_insert_default();
        answers.insert(key.into(), answer);
        asking
    }

    /// Sets the caller.
    pub fn caller(mut self, caller: Caller) -> Self {
        self.inner.caller = caller;
        self
    }

    /// Passes on what the tool [reports](Context::progress).
    ///
    /// ```
    /// # use lambda_tools_core as lambda_tools;
    /// use std::sync::mpsc;
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let cx = lambda_tools::testing::context().on_progress(move |it| sender.send(it).unwrap());
    /// cx.build().progress(1, 2.0, "half of it");
    /// assert_eq!(reports.recv().unwrap().message, "half of it");
    /// ```
    pub fn on_progress(mut self, report: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.inner.follower = Some(Follower::new(report));
        self
    }

    /// Makes the call one whose task the client has [cancelled](Context::is_cancelled).
    pub fn cancelled(mut self) -> Self {
        let follower = &mut self.inner.follower;
        let follower = follower.get_or_insert_with(|| Follower::new(|_| {}));
        follower.cancel();
        self
    }

    /// Returns the context.
    pub fn build(mut self) -> Context {
        let rotated = self.rotated;
        let ids = rotated.keys().cloned().collect();
        let reread: Reread = Box::new(move |id, rejected, _| {
            let value = rotated.get(&id).inspect(|it| stored::remember(it));
            let value = value.filter(|it| !it.is(&rejected)).cloned();
            Box::pin(ready(value))
        });
        self.inner.store = Some(SecretSource::new(reread, ids));
        self.inner.into()
    }
}
