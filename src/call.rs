//! A call on its way: `Call` → `Resolved` → `Valid` → `Ready` → `Outcome`.
//!
//! Each stage consumes the one before it, so that leaving one out does not compile: nothing that
//! was not validated can run, nothing that lacks a secret can start.

pub(crate) mod arrival;
mod claim;
mod gather;
pub(crate) mod heavy;
mod regrant;
pub(crate) mod rejection;
mod run;

use std::{
    collections::BTreeMap,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;

use crate::{
    AuthorizationRequirement, Caller, Secret, Toolkit,
    auth::Users,
    authorization::Desk,
    call::arrival::Arrival,
    clock::Host,
    idempotency::fingerprint_of,
    observe::{metrics::CacheUse, spans::Spans},
    secrets::SecretCache,
    text::LONGEST_ID,
    tool::{
        Prepared,
        id::Selector,
        repeats::Policy,
        schema,
        toolkit::{Chosen, Entry, NotFound},
    },
};
use rejection::Rejection;

use gather::Found;
use heavy::Turn;
pub(crate) use run::Outcome;

/// How long a tool may take unless it [says otherwise](crate::Tool::timeout).
///
/// API Gateway gives up after 29 seconds (REST APIs) or 30 (HTTP APIs); an answer of our own, which
/// says whether to retry, has to leave before that.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(28);

/// Longer than anything lets a call run; more would not be a point in time.
const LONGEST_TIMEOUT: Duration = Duration::from_hours(24);

/// A call as it was asked for, in whichever protocol.
pub(crate) struct Call {
    pub(crate) selector: Selector,
    pub(crate) call_id: Option<String>,
    /// The id that the server makes for a call that has none.
    pub(crate) made_id: Option<String>,
    pub(crate) trace_id: Option<String>,
    /// Of a large call, until its input is checked.
    pub(crate) turn: Option<Turn>,
    /// The parameters that are integers and have lost digits.
    pub(crate) unkept_integers: Vec<String>,
    pub(crate) input: Value,
    pub(crate) given: Given,
}

/// What the client gives besides the input.
#[derive(Default)]
pub(crate) struct Given {
    pub(crate) user_id: Option<String>,
    pub(crate) tokens: BTreeMap<String, Secret>,
    pub(crate) secrets: BTreeMap<String, Secret>,
}

impl Call {
    /// Holds the call to the users for whom its caller may call.
    pub(crate) fn is_for(&mut self, users: Users<'_>) -> Result<(), Rejection> {
        let named = self.given.user_id.as_deref();
        let detail = match (users, named) {
            (Users::Only(user), _) if user.len() > LONGEST_ID => {
                "The JWT's sub claim is too long for a user's id."
            }
            (Users::Only(user), None) => {
                self.given.user_id = Some(user.to_owned());
                return Ok(());
            }
            (Users::Only(user), Some(named)) if named != user => {
                "'context.user_id' is not the JWT's sub claim."
            }
            (Users::None, Some(_)) => "'context.user_id' needs a JWT with that sub claim.",
            _ => return Ok(()),
        };
        let message = "The credentials do not allow calls for this user";
        Err(Rejection::malformed(message, detail))
    }

    /// Finds the tool.
    pub(crate) fn resolve(self, toolkit: &Arc<Toolkit>) -> Result<Resolved, Rejection> {
        match toolkit.resolve(&self.selector) {
            Ok(entry) => Ok(Resolved { call: self, entry }),
            Err(not_found) => Err(self.unresolved(not_found)),
        }
    }

    fn unresolved(self, not_found: NotFound) -> Rejection {
        let qualified = self.selector.qualified;
        match not_found {
            NotFound::Tool { closest } => Rejection::UnknownTool { qualified, closest },
            NotFound::Version { version, available } => Rejection::UnknownVersion {
                qualified,
                version,
                available,
            },
        }
    }
}

/// A call whose tool is known.
pub(crate) struct Resolved {
    call: Call,
    entry: Chosen,
}

impl Resolved {
    pub(crate) fn tool(&self) -> &Chosen {
        &self.entry
    }

    /// Checks the input against the tool's schema and decodes it.
    ///
    /// A large input is checked beside the workers, which go on serving others, and for no longer
    /// than the call may take.
    pub(crate) async fn validate(
        mut self,
        terms: Terms,
        arrival: &Arrival,
        host: &Host,
    ) -> Result<Valid, Rejection> {
        let Some(turn) = self.call.turn.take() else {
            return self.checked(&terms);
        };
        let limit = time_left(&self.entry, arrival, host);
        let (checked, _turn) = turn.work(limit, move || self.checked(&terms)).await?;
        checked
    }

    /// The types that check are the tool's, and may panic like the tool itself.
    fn checked(self, terms: &Terms) -> Result<Valid, Rejection> {
        let tool = self.entry.clone();
        let validated = AssertUnwindSafe(|| self.validated(terms));
        panic::catch_unwind(validated).unwrap_or_else(|_| {
            Err(Rejection::Misdefined {
                tool: tool.id.to_string(),
                detail: "Its input type panicked; the log says where.".to_owned(),
            })
        })
    }

    fn validated(self, terms: &Terms) -> Result<Valid, Rejection> {
        let Self { mut call, entry } = self;
        let mut input = call.input.take();
        let schema = &entry.tool.input;
        match schema.check(&input, "input") {
            Ok(Ok(())) => {
                if !call.unkept_integers.is_empty() {
                    let errors = schema::unkept(&call.unkept_integers);
                    return Err(Rejection::InvalidInput(errors));
                }
                schema.normalize(&mut input);
            }
            Ok(Err(errors)) => return Err(Rejection::InvalidInput(errors)),
            Err(detail) => {
                return Err(Rejection::Misdefined {
                    tool: entry.id.to_string(),
                    detail: detail.to_owned(),
                });
            }
        }
        // Of the input as it came: decoding uses it up.
        let is_recorded = entry.tool.policy != Policy::Idempotent && terms.remembers_calls;
        let call_id = call.call_id.as_deref().filter(|_| is_recorded);
        let fingerprint = call_id.map(|call_id| {
            let given = call.credentials(&entry, terms);
            let user = call.given.user_id.as_deref();
            fingerprint_of(&entry.id, user, &input, call_id, &given)
        });
        let prepared = entry.tool.prepare(input);
        let prepared = prepared.map_err(Rejection::InvalidInput)?;
        Ok(Valid {
            call,
            entry,
            prepared,
            fingerprint,
        })
    }
}

/// On which terms a call is checked and recognized.
pub(crate) struct Terms {
    pub(crate) caller: Caller,
    /// Whether calls are remembered.
    pub(crate) remembers_calls: bool,
    /// Whether calls may bring the secrets of their tools.
    pub(crate) takes_secrets: bool,
}

impl Call {
    /// The tokens and secrets that the call brings for its tool, by which it is recognized: who
    /// sends others must not get what these have led to. Where a known caller names the user,
    /// the user is what counts, and a token that was refreshed between two tries is the same call.
    fn credentials<'a>(&'a self, entry: &'a Entry, terms: &Terms) -> Vec<(&'a str, &'a Secret)> {
        let user = self.given.user_id.as_deref();
        let is_named = user.is_some_and(|user| !user.is_empty());
        if is_named && terms.caller != Caller::Anyone {
            return Vec::new();
        }
        let requirements = &entry.tool.requirements;
        let tokens = requirements.authorization.iter().map(|it| &*it.id);
        let tokens = tokens.filter_map(|id| Some((id, self.given.tokens.get(id)?)));
        let secrets = requirements.secrets.iter().map(|it| &*it.id);
        let secrets = secrets.filter(|_| terms.takes_secrets);
        let secrets = secrets.filter_map(|id| Some((id, self.given.secrets.get(id)?)));
        tokens.chain(secrets).collect()
    }
}

/// A call whose input is right.
pub(crate) struct Valid {
    call: Call,
    entry: Chosen,
    prepared: Prepared,
    fingerprint: Option<String>,
}

impl Valid {
    /// Gathers what the tool requires, and only that.
    pub(crate) async fn ready(
        self,
        around: Around,
        cache: &mut CacheUse,
    ) -> Result<Ready, Rejection> {
        let Self {
            mut call,
            entry,
            prepared,
            fingerprint,
        } = self;
        let found = call.gather(&entry, &around, cache).await?;
        let Around {
            host,
            arrival,
            caller,
            secrets,
            spans,
            ..
        } = around;
        Ok(Ready {
            call,
            entry,
            prepared,
            fingerprint,
            found,
            host,
            arrival,
            caller,
            secrets,
            spans,
        })
    }
}

/// What a call's surroundings add to it.
pub(crate) struct Around {
    pub(crate) host: Host,
    pub(crate) arrival: Arrival,
    pub(crate) caller: Caller,
    pub(crate) secrets: Arc<SecretCache>,
    /// Where users' grants are, if there are any.
    pub(crate) desk: Option<Arc<Desk>>,
    /// What the call leads to is in them.
    pub(crate) spans: Spans,
}

/// How long a call may still take: its tool's limit, counted from its arrival, and no longer than
/// the platform waits.
fn time_left(entry: &Entry, arrival: &Arrival, host: &Host) -> Duration {
    let limit = entry.tool.timeout.unwrap_or(DEFAULT_TIMEOUT);
    let since = host.instant().saturating_duration_since(arrival.at);
    let limit = limit.min(LONGEST_TIMEOUT).saturating_sub(since);
    let left = arrival.invocation.time_left(host.now());
    left.map_or(limit, |left| left.min(limit))
}

/// A call that has all its tool needs.
pub(crate) struct Ready {
    call: Call,
    entry: Chosen,
    prepared: Prepared,
    /// A hash of what is asked for, where that matters.
    fingerprint: Option<String>,
    found: Found,
    host: Host,
    arrival: Arrival,
    caller: Caller,
    secrets: Arc<SecretCache>,
    spans: Spans,
}

/// What it takes to challenge the user anew, after a token of theirs was refused.
pub(crate) struct Granted {
    tool: String,
    caller: Caller,
    user: String,
    needs: Vec<(AuthorizationRequirement, Secret)>,
}

impl Ready {
    /// The tokens that come from what the user has allowed.
    pub(crate) fn granted(&self) -> Option<Granted> {
        let found = &self.found;
        let needs = self.entry.tool.requirements.authorization.iter();
        let needs = needs.filter(|need| found.granted.contains(&need.id));
        let needs =
            needs.filter_map(|need| Some((need.clone(), found.tokens.get(&need.id)?.clone())));
        let needs: Vec<_> = needs.collect();
        (!needs.is_empty()).then(|| Granted {
            tool: self.entry.id.to_string(),
            caller: self.caller.clone(),
            user: self.call.given.user_id.clone().unwrap_or_default(),
            needs,
        })
    }

    fn time_left(&self) -> Duration {
        time_left(&self.entry, &self.arrival, &self.host)
    }
}
