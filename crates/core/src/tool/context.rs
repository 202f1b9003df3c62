//! The context of a call: everything that a tool knows about it besides the input.
//!
//! A tool sees only what it declared: its own secrets, its own providers' tokens. The secrets of
//! other tools, and any that the client sent unrequested, do not reach it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{
    Caller, Failure, Secret,
    clock::Clock,
    secret::{redaction::Redaction, stored},
    tool::{
        progress::{Follower, Progress},
        question::{self, Answers},
    },
};

/// The context of one call: its ids, its user, and the secrets and tokens the tool declared.
///
/// Cheap to clone. In unit tests, create one with [`testing::context`](crate::testing::context).
#[derive(Clone)]
pub struct Context(Arc<ContextInner>);

/// What a server knows about a call: it becomes the call's [`Context`].
pub struct ContextInner {
    /// The id that the client chose, or else a generated one.
    pub call_id: String,
    /// The client's id of a trace.
    pub trace_id: Option<String>,
    /// The caller, after authentication.
    pub caller: Caller,
    /// The user for whom the tool acts.
    pub user_id: Option<String>,
    /// The user's tokens, by the ids of their providers: only of those that the tool declared.
    pub tokens: BTreeMap<String, Secret>,
    /// The providers whose tokens come from the user's grants.
    pub granted_providers: BTreeSet<String>,
    /// The values of the secrets that the tool declared, by their ids.
    pub secrets: BTreeMap<String, Secret>,
    /// The user's answers; `None` if the client cannot ask its user.
    pub answers: Option<Answers>,
    /// The store from which rejected secrets are read again.
    pub store: Option<SecretSource>,
    /// `None` if nobody would see what the tool reports.
    pub follower: Option<Follower>,
    /// The redaction of the call's secrets; built on first use.
    pub redaction: OnceLock<Redaction>,
    /// The time at which the call began.
    pub now: SystemTime,
    /// The clock that measures the time that is left.
    pub clock: Clock,
    /// The end of the tool's time.
    pub stops_at: Instant,
}

/// Reads the secret with an id again, whose value was rejected, within the time that is left.
pub type Reread = Box<dyn Fn(String, Secret, Duration) -> RereadFuture + Send + Sync>;
/// The value that was read, if it is another one.
pub type RereadFuture = Pin<Box<dyn Future<Output = Option<Secret>> + Send>>;

/// The server's store, for a call that has secrets from it.
pub struct SecretSource {
    reread: Reread,
    /// The ids of the secrets from the store whose values have not yet been reported as rejected.
    rereadable: Mutex<BTreeSet<String>>,
}

impl SecretSource {
    /// Creates a source for the secrets with these ids.
    pub fn new(reread: Reread, ids: BTreeSet<String>) -> Self {
        let rereadable = Mutex::new(ids);
        Self { reread, rereadable }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Context");
        fields
            .field("call_id", &self.0.call_id)
            .finish_non_exhaustive()
    }
}

impl From<ContextInner> for Context {
    fn from(inner: ContextInner) -> Self {
        Self(Arc::new(inner))
    }
}

impl Context {
    /// Returns the call's unique id: the client's `call_id`, or else a generated one.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.0.call_id
    }

    /// Returns the client's `trace_id`, if it sent one.
    #[must_use]
    pub fn trace_id(&self) -> Option<&str> {
        self.0.trace_id.as_deref()
    }

    /// Returns the caller, as established by the server's authentication.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.0.caller
    }

    /// Returns the user for whom the tool acts. Always present for a tool that declared
    /// [`user_id`](crate::Tool::user_id).
    #[must_use]
    pub fn user_id(&self) -> Option<&str> {
        self.0.user_id.as_deref()
    }

    /// Returns the user's token for a provider that the tool declared with
    /// [`authorization`](crate::Tool::authorization).
    ///
    /// # Errors
    /// A failure, if the tool did not declare the provider.
    pub fn token(&self, provider: &str) -> Result<&Secret, Failure> {
        let undeclared = || undeclared(&format!(".authorization({provider:?}, …)"));
        self.0.tokens.get(provider).ok_or_else(undeclared)
    }

    /// Creates the failure for a tool to return when a provider rejects the user's token. If the
    /// token came from a grant that this server stores, the grant is deleted, and the caller gets a
    /// new challenge instead of this failure.
    ///
    /// ```
    /// # use lambda_tools_core as lambda_tools;
    /// # use lambda_tools::{Context, Failure};
    /// # enum Refusal { Unauthorized, Other }
    /// async fn ask(cx: &Context, answer: Result<String, Refusal>) -> Result<String, Failure> {
    ///     match answer {
    ///         Ok(text) => Ok(text),
    ///         Err(Refusal::Unauthorized) => Err(cx.token_rejected("google")),
    ///         Err(Refusal::Other) => Err(Failure::new("Google could not answer")),
    ///     }
    /// }
    /// ```
    pub fn token_rejected(&self, provider: &str) -> Failure {
        let failure = Failure::new(format!(
            "The user's token for '{provider}' was not accepted"
        ))
        .developer_message(format!(
            "'{provider}' has rejected the token: it is invalid or has expired."
        ));
        if self.0.granted_providers.contains(provider) {
            failure.with_rejected_token(provider)
        } else {
            failure
        }
    }

    /// Returns the value of a secret that the tool declared with [`secret`](crate::Tool::secret).
    ///
    /// # Errors
    /// A failure, if the tool did not declare the secret.
    pub fn secret(&self, id: &str) -> Result<&Secret, Failure> {
        let undeclared = || undeclared(&format!(".secret({id:?})"));
        self.0.secrets.get(id).ok_or_else(undeclared)
    }

    /// Reports that a service rejected the value of a secret. If the value came from the server's
    /// store, it is read again, bypassing the cache, and a different value is returned for a second
    /// attempt: a secret can be rotated without redeploying.
    ///
    /// Returns `None` if the store has no other value, if the client sent the secret, and on the
    /// second report for a secret in one call. [`Context::secret`] still returns the first value.
    ///
    /// ```
    /// # use lambda_tools_core as lambda_tools;
    /// # use lambda_tools::{Context, Failure, Secret};
    /// # enum Refusal { Unauthorized, Other }
    /// # async fn ask(_: &Secret) -> Result<String, Refusal> { Ok("".into()) }
    /// # fn failed(_: Refusal) -> Failure { Failure::new("") }
    /// async fn report(cx: &Context) -> Result<String, Failure> {
    ///     let mut answer = ask(cx.secret("REPORT_KEY")?).await;
    ///     if let Err(Refusal::Unauthorized) = answer
    ///         && let Some(rotated) = cx.secret_rejected("REPORT_KEY").await
    ///     {
    ///         answer = ask(&rotated).await;
    ///     }
    ///     answer.map_err(failed)
    /// }
    /// ```
    pub async fn secret_rejected(&self, id: &str) -> Option<Secret> {
        let store = self.0.store.as_ref()?;
        let rejected = self.0.secrets.get(id)?;
        let is_first = {
            let ids = store.rereadable.lock();
            ids.unwrap_or_else(PoisonError::into_inner).remove(id)
        };
        if !is_first {
            return None;
        }
        (store.reread)(id.to_owned(), rejected.clone(), self.remaining()).await
    }

    /// Returns the text without the call's secrets and tokens, and without the secrets of the
    /// server's store: a tool may keep those in memory between calls. `None` if it contains none of
    /// them.
    pub fn redacted(&self, text: &str) -> Option<String> {
        let confidential = || self.0.secrets.values().chain(self.0.tokens.values());
        let own = confidential().next().map(|_| {
            let redaction = &self.0.redaction;
            redaction.get_or_init(|| Redaction::of(confidential()))
        });
        stored::redacted(text, own)
    }

    /// Asks the user a question, and returns the answer, or `None` if the user declined to give one or
    /// closed the form.
    ///
    /// `T` is a struct whose fields are texts, numbers, booleans, constants (enums without data) or
    /// lists of constants; clients show it as a form. Its doc comments describe the fields. `key`
    /// identifies the question within the call; the client sees it.
    ///
    /// Without an answer, this returns a failure that makes the client ask. It then repeats the call
    /// with the answer, which runs the tool again from its start, so ask before changing anything.
    /// Several questions are asked one after the other; each repeated call carries all answers.
    ///
    /// Never ask for passwords, keys or tokens: declare a [secret](crate::Tool::secret) or an
    /// [authorization](crate::Tool::authorization) instead. The answer comes from the client, like
    /// the input: a client can answer without asking anybody.
    ///
    /// ```
    /// # use lambda_tools_core as lambda_tools;
    /// use lambda_tools::{Context, Failure, Tool};
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    ///
    /// /// Deletes a project.
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Delete {
    ///     /// The project's name.
    ///     project: String,
    /// }
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Confirmation {
    ///     /// Delete the project and everything in it?
    ///     confirmed: bool,
    /// }
    ///
    /// async fn delete(Delete { project }: Delete, cx: Context) -> Result<String, Failure> {
    ///     let message = format!("Delete {project}? This cannot be undone.");
    ///     match cx.ask::<Confirmation>("delete", message)? {
    ///         Some(answer) if answer.confirmed => Ok(format!("{project} is deleted.")),
    ///         _ => Err(Failure::new("The user does not want to delete the project")),
    ///     }
    /// }
    ///
    /// let tool = Tool::new("Projects.Delete@1.0.0", delete);
    /// # lambda_tools::Toolkit::new([tool]).unwrap();
    /// ```
    ///
    /// # Errors
    /// The failure to return: there is no valid answer yet, or the client [cannot
    /// ask](Self::can_ask) its user.
    pub fn ask<T: DeserializeOwned + JsonSchema>(
        &self,
        key: &str,
        message: impl Into<String>,
    ) -> Result<Option<T>, Failure> {
        let message = message.into();
        // The client sends the answer back under the key that it got.
        let redacted = self.redacted(key);
        let key = redacted.as_deref().unwrap_or(key);
        match &self.0.answers {
            Some(answers) => question::answer_in(answers, key, message),
            None => Err(Failure::new(format!(
                "The tool has to ask the user, but this client cannot: {message}"
            ))),
        }
    }

    /// Returns true if the client can [ask](Self::ask) its user: an MCP client of revision
    /// 2026-07-28 or later that declares form elicitation.
    #[must_use]
    pub fn can_ask(&self) -> bool {
        self.0.answers.is_some()
    }

    /// Reports how far the call has got: `done` of `total`, in any unit, and what the tool is doing.
    ///
    /// MCP clients that ask for reports get them while the call runs, if its response can be a stream
    /// (`Server::streaming`), and the status of a [task](crate::Tool::background) has the last message.
    /// For all other calls this does nothing. In a stream, a report counts only if `done` is larger
    /// than before. Of many reports within a short time, clients get the last one.
    ///
    /// ```
    /// # use lambda_tools_core as lambda_tools;
    /// # use lambda_tools::{Context, Failure};
    /// # async fn fetch(page: u32) -> Result<String, Failure> { Ok(String::new()) }
    /// async fn crawl(pages: Vec<u32>, cx: Context) -> Result<String, Failure> {
    ///     let mut text = String::new();
    ///     for (done, page) in (1_u32..).zip(&pages) {
    ///         text += &fetch(*page).await?;
    ///         cx.progress(done, pages.len() as f64, "reading pages");
    ///     }
    ///     Ok(text)
    /// }
    /// ```
    pub fn progress(
        &self,
        done: impl Into<f64>,
        total: impl Into<Option<f64>>,
        message: impl Into<String>,
    ) {
        let Some(follower) = &self.0.follower else {
            return;
        };
        let done = done.into();
        if done.is_finite() {
            let message = message.into();
            follower.report(Progress {
                done,
                total: total.into().filter(|it| it.is_finite()),
                message: self.redacted(&message).unwrap_or(message),
            });
        }
    }

    /// Returns true if the client has cancelled the call's task. The tool may then stop, and return a
    /// failure; a value that it returns nevertheless becomes the task's outcome.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.follower.as_ref().is_some_and(Follower::is_cancelled)
    }

    /// Returns the time at which the call began. Use it in place of the system clock, so that
    /// recorded events replay exactly.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        self.0.now
    }

    /// Returns the time left for the tool before its call ends without its result.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        let now = self.0.clock.instant();
        self.0.stops_at.saturating_duration_since(now)
    }
}

fn undeclared(declaration: &str) -> Failure {
    Failure::new("The tool could not complete the call").developer_message(format!(
        "The tool uses something that it did not declare; add {declaration} to its definition."
    ))
}
