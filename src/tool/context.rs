//! What a tool knows about its call besides the input.
//!
//! A tool sees only what it declared: its own secrets, its own providers' tokens. What another
//! tool needs, or what the client sent unasked, does not reach it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock},
    time::{Duration, Instant, SystemTime},
};

use crate::{
    Caller, Failure, Secret,
    clock::Clock,
    secrets::{
        SecretCache, recent,
        recent::redactor_of,
        redaction::{PLACEHOLDER, Redaction},
    },
};

/// The circumstances of one call: its ids, its user, and the secrets and tokens the tool declared.
///
/// Cheap to clone. In unit tests make one with [`testing::context`](crate::testing::context).
#[derive(Clone, Debug)]
pub struct Context(Arc<ContextInner>);

#[derive(Debug)]
pub(crate) struct ContextInner {
    pub(crate) call_id: String,
    pub(crate) trace_id: Option<String>,
    pub(crate) caller: Caller,
    pub(crate) user_id: Option<String>,
    pub(crate) tokens: BTreeMap<String, Secret>,
    /// The providers whose tokens come from the user's grants.
    pub(crate) granted: BTreeSet<String>,
    pub(crate) secrets: BTreeMap<String, Secret>,
    pub(crate) store: Option<SecretSource>,
    /// Takes the call's secrets out of texts; made for the first of them.
    pub(crate) redaction: OnceLock<RwLock<Redaction>>,
    pub(crate) now: SystemTime,
    pub(crate) clock: Clock,
    pub(crate) stops_at: Instant,
}

/// The server's store, for a call that got secrets from it.
pub(crate) struct SecretSource {
    cache: Arc<SecretCache>,
    /// The ids of the secrets that came from it and were not refused yet.
    unrefused: Mutex<BTreeSet<String>>,
}

impl ContextInner {
    /// The values that may not leave in an error.
    fn confidential(&self) -> impl Iterator<Item = &Secret> {
        self.secrets.values().chain(self.tokens.values())
    }

    fn redaction(&self) -> &RwLock<Redaction> {
        self.redaction.get_or_init(|| {
            let mut redaction = Redaction::default();
            for secret in self.confidential() {
                add(secret, &mut redaction);
            }
            RwLock::new(redaction)
        })
    }
}

fn add(secret: &Secret, redaction: &mut Redaction) {
    if let Some(redactor) = redactor_of(secret) {
        redaction.add(&redactor, &Arc::from(PLACEHOLDER));
    }
}

impl SecretSource {
    pub(crate) fn new(cache: &Arc<SecretCache>, ids: BTreeSet<String>) -> Option<Self> {
        (!ids.is_empty()).then(|| Self {
            cache: Arc::clone(cache),
            unrefused: Mutex::new(ids),
        })
    }
}

impl std::fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

impl From<ContextInner> for Context {
    fn from(inner: ContextInner) -> Self {
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

    /// Who calls, as the server's [authentication](crate::Auth) knows it.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.0.caller
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

    /// Says that the user's token of a provider was refused where it belongs, and what the tool
    /// should answer then. If the token came from what the user has allowed here, that is
    /// forgotten, and the caller gets a new challenge instead of this failure.
    ///
    /// ```
    /// # use lambda_tools::{Context, Failure};
    /// # enum Refusal { Unauthorized, Other }
    /// async fn ask(cx: &Context, answer: Result<String, Refusal>) -> Result<String, Failure> {
    ///     match answer {
    ///         Ok(text) => Ok(text),
    ///         Err(Refusal::Unauthorized) => Err(cx.token_refused("google")),
    ///         Err(Refusal::Other) => Err(Failure::new("Google could not answer")),
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn token_refused(&self, provider: &str) -> Failure {
        let failure = Failure::new(format!("The user's token of '{provider}' is not accepted"))
            .developer_message(format!(
                "'{provider}' has refused the token: it is not valid, or no longer."
            ));
        if self.0.granted.contains(provider) {
            failure.refused(provider)
        } else {
            failure
        }
    }

    /// The value of a secret that the tool declared with [`secret`](crate::Tool::secret).
    ///
    /// # Errors
    /// A failure that says so, for a secret the tool did not declare.
    pub fn secret(&self, id: &str) -> Result<&Secret, Failure> {
        let undeclared = || undeclared(&format!(".secret({id:?})"));
        self.0.secrets.get(id).ok_or_else(undeclared)
    }

    /// Says that a secret's value was refused where it belongs. If it came from the server's store
    /// it is read again, past the cache, and another value is returned for a second try: a secret
    /// can be rotated without deploying anew.
    ///
    /// None where the store has no other value, for a secret that the client sent, and when it is
    /// asked a second time in one call. [`Context::secret`] goes on returning the first value.
    ///
    /// ```
    /// # use lambda_tools::{Context, Failure, Secret};
    /// # enum Refusal { Unauthorized, Other }
    /// # async fn ask(_: &Secret) -> Result<String, Refusal> { Ok("".into()) }
    /// # fn failed(_: Refusal) -> Failure { Failure::new("") }
    /// async fn report(cx: &Context) -> Result<String, Failure> {
    ///     let mut answer = ask(cx.secret("REPORT_KEY")?).await;
    ///     if let Err(Refusal::Unauthorized) = answer
    ///         && let Some(rotated) = cx.secret_refused("REPORT_KEY").await
    ///     {
    ///         answer = ask(&rotated).await;
    ///     }
    ///     answer.map_err(failed)
    /// }
    /// ```
    pub async fn secret_refused(&self, id: &str) -> Option<Secret> {
        let store = self.0.store.as_ref()?;
        let refused = self.0.secrets.get(id)?;
        let is_first = {
            let ids = store.unrefused.lock();
            ids.unwrap_or_else(PoisonError::into_inner).remove(id)
        };
        if !is_first {
            return None;
        }
        let rotated = store.cache.reread(id, refused, self.remaining()).await?;
        let redaction = self.0.redaction().write();
        let mut redaction = redaction.unwrap_or_else(PoisonError::into_inner);
        add(&rotated, &mut redaction);
        Some(rotated)
    }

    /// Makes the call's secrets known to what outlives it.
    pub(crate) fn remember(&self) {
        for secret in self.0.confidential() {
            redactor_of(secret);
        }
    }

    /// The text without the call's secrets and tokens, and without those of the server's store: what
    /// a tool keeps between calls may have them. `None` where there are none in it.
    pub(crate) fn redacted(&self, text: &str) -> Option<String> {
        let own = self.0.confidential().next().and_then(|_| {
            let redaction = self.0.redaction().read();
            let redaction = redaction.unwrap_or_else(PoisonError::into_inner);
            redaction.redacted(text)
        });
        recent::without_stored(own.as_deref().unwrap_or(text)).or(own)
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
        let now = self.0.clock.instant();
        self.0.stops_at.saturating_duration_since(now)
    }
}

fn undeclared(declaration: &str) -> Failure {
    Failure::new("The tool could not complete the call").developer_message(format!(
        "The tool uses what it did not declare; add {declaration} to its definition."
    ))
}
