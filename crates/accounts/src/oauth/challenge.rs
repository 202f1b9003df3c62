//! Challenges: their records, the consent page, and then the redirect to the provider.
//!
//! Each combination of caller, user, provider and scopes has one challenge: a repeated request
//! returns the pending one. A challenge's id consists of the hash in its record id and a nonce that
//! cannot be guessed.
//!
//! Following a challenge's URL must not be enough. Link previews follow it too, and a provider that
//! already has the user's consent may not ask again: then only our own page tells the user whose
//! calls will use the account.

use std::{sync::Arc, time::SystemTime};

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::{
    CHALLENGE_LIFE, GrantRequest, Provider,
    broker::Broker,
    browser::{
        Browser, BrowserResponse, ChallengeAsker, ChallengePage, ChallengeResponse, ConsentPage,
        RequestedScope,
    },
    flow::Flow,
    grant::{Grants, grant_record_id},
    records::{Records, Versioned, record_hash},
};
use crate::{
    Challenge, StoreError,
    clock::since_epoch,
    store::{Change, Over},
    text::clipped,
};

/// The length of the hash in a challenge's id, and of the nonce, in hexadecimal digits.
const HASH_LENGTH: usize = 32;

/// The maximum length of a caller's name, in bytes. A name from an authorizer can have any length.
const LONGEST_CALLER: usize = 256;

/// A challenge, as it is stored.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct StoredChallenge {
    /// The part of the id that cannot be guessed.
    pub(super) nonce: String,
    /// The caller's namespace.
    pub(super) caller: String,
    pub(super) user: String,
    pub(super) provider: String,
    /// The scopes that the tool needs.
    pub(super) scopes: Vec<String>,
    /// All scopes requested from the provider, once the user has been redirected there.
    #[serde(rename = "asked_for")]
    pub(super) requested: Vec<String>,
    pub(super) status: ChallengeStatus,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChallengeStatus {
    Pending,
    /// The code is being exchanged.
    Exchanging,
    Completed,
    Failed,
}

impl ChallengeStatus {
    /// Returns the page that explains why the challenge cannot be continued, unless it can.
    pub(super) fn check(self) -> Result<(), ChallengePage> {
        match self {
            Self::Pending => Ok(()),
            Self::Exchanging => Err(ChallengePage::InUse),
            Self::Completed => Err(ChallengePage::Completed),
            Self::Failed => Err(ChallengePage::Failed),
        }
    }
}

/// A pending challenge.
struct OpenChallenge<'a> {
    records: Records,
    record_id: String,
    pending: StoredChallenge,
    over: Over,
    provider: &'a Arc<Provider>,
    /// The scopes to request: those of the tool, those of the provider, and those granted before, so
    /// that one token covers them all.
    scopes: Vec<String>,
}

impl StoredChallenge {
    pub(super) fn has_nonce(&self, nonce: &str) -> bool {
        bool::from(self.nonce.as_bytes().ct_eq(nonce.as_bytes()))
    }
}

/// Returns the record id and the nonce in a challenge's id.
pub(super) fn parse_id(id: &str) -> Option<(String, &str)> {
    let is_valid = id.len() == 2 * HASH_LENGTH && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (hash, nonce) = is_valid.then(|| id.split_at(HASH_LENGTH))?;
    Some((format!("challenge#{hash}"), nonce))
}

/// Returns the id of one attempt at a challenge, so that no two have the same `state` and verifier
/// (RFC 9700, 2.1.1). The provider may redirect the browser back until then, also if a call extends
/// the challenge.
pub(super) fn attempt_id(challenge: &str, returns_until: SystemTime, salt: Uuid) -> String {
    let until = since_epoch(returns_until).as_secs();
    format!("{challenge}.{until}.{}", salt.simple())
}

/// Returns the challenge's id in that of an attempt, and the time in seconds since 1970.
pub(super) fn parse_attempt(attempt: &str) -> Option<(&str, u64)> {
    let mut parts = attempt.split('.');
    Some((parts.next()?, parts.next()?.parse().ok()?))
}

/// Returns the name of a challenge's cookie: unique, so that several challenges can be open at
/// once.
pub(super) fn cookie_name(challenge: &str) -> String {
    let id = challenge.get(..16).unwrap_or_default();
    format!("authorization-{id}")
}

impl Broker {
    /// Returns the challenge for the user: the pending one, or else a new one.
    pub async fn challenge(&self, request: GrantRequest<'_>) -> Result<Challenge, StoreError> {
        let need = request.need;
        let base = self.public_url.resolve(request.base).ok_or_else(|| {
            StoreError::denied(
                "set TOOLS_PUBLIC_URL: the URL at which users reach this server is unknown",
            )
        })?;
        let (caller, scopes) = (request.caller, &need.oauth2.scopes);
        let hash = record_hash("challenge", caller, request.user, &need.id, scopes);
        let records = self.records(Some(request.left)).await?;
        let life = CHALLENGE_LIFE;
        let change = |versioned: Versioned<StoredChallenge>| {
            let running = [ChallengeStatus::Pending, ChallengeStatus::Exchanging];
            let existing = versioned.value.filter(|it| running.contains(&it.status));
            let Some(pending) = existing else {
                let nonce = self.clock.id().simple().to_string();
                let pending = StoredChallenge {
                    nonce: nonce.clone(),
                    caller: caller.to_owned(),
                    user: request.user.to_owned(),
                    provider: need.id.clone(),
                    scopes: scopes.clone(),
                    requested: Vec::new(),
                    status: ChallengeStatus::Pending,
                };
                return Change::Write(pending, nonce);
            };
            let nonce = pending.nonce.clone();
            if pending.status == ChallengeStatus::Pending && versioned.left < life / 2 {
                // Extends the challenge: the user may be following its URL.
                Change::Write(pending, nonce)
            } else {
                Change::Leave(nonce)
            }
        };
        let record_id = format!("challenge#{hash}");
        let nonce = records.update(&record_id, life, change);
        let id = format!("{hash}{}", nonce.await?);
        let check_url = format!("{base}/authorization/challenges/{id}");
        Ok(Challenge {
            url: format!("{check_url}/start"),
            check_url,
            id,
            provider: need.id.clone(),
        })
    }

    /// Returns the status of a challenge, for `GET check_url`. A missing challenge is reported as
    /// failed.
    pub async fn status(&self, id: &str) -> Result<&'static str, StoreError> {
        let Some((record_id, nonce)) = parse_id(id) else {
            return Ok("failed");
        };
        let records = self.records(None).await?;
        let versioned: Versioned<StoredChallenge> = records.load(&record_id).await?;
        let challenge = versioned.value.filter(|it| it.has_nonce(nonce));
        Ok(match challenge.map(|it| it.status) {
            Some(ChallengeStatus::Pending | ChallengeStatus::Exchanging) => "pending",
            Some(ChallengeStatus::Completed) => "completed",
            Some(ChallengeStatus::Failed) | None => "failed",
        })
    }

    /// Shows the consent page, for `GET url`, and changes nothing.
    pub async fn consent_page(
        &self,
        id: &str,
        browser: Browser<'_>,
    ) -> Result<ChallengeResponse, ChallengePage> {
        let open = self.open(id).await?;
        let (name, provider) = (cookie_name(id), open.provider);
        let binding = browser.binding_or_new(&name, &self.clock);
        let flow = Flow::new(id, provider, &binding);
        let described = |name: String| RequestedScope {
            description: provider.description_of(&name).map(str::to_owned),
            name,
        };
        let page = ConsentPage {
            asker: ChallengeAsker {
                caller: clipped(&open.pending.caller, LONGEST_CALLER).into_owned(),
                user: open.pending.user,
            },
            form: flow.form_token(&open.records.keys),
            scopes: open.scopes.into_iter().map(described).collect(),
            provider: provider.shown_title().to_owned(),
            is_https: browser.is_https(),
            cookie: browser.cookie(&name, &binding, CHALLENGE_LIFE),
        };
        Ok(BrowserResponse::Consent(Box::new(page)))
    }

    /// Redirects the browser to the provider, for `POST url` with the token of the consent page's
    /// form, and binds the provider's redirect back to this browser.
    pub async fn start(
        &self,
        id: &str,
        browser: Browser<'_>,
        form_token: Option<&str>,
    ) -> Result<ChallengeResponse, ChallengePage> {
        let open = self.open(id).await?;
        let (name, keys) = (cookie_name(id), &open.records.keys);
        let binding = browser.binding(&name).ok_or(ChallengePage::OtherBrowser)?;
        let shown = Flow::new(id, open.provider, binding);
        if !form_token.is_some_and(|token| shown.is_form_token(keys, token)) {
            return Err(ChallengePage::OtherBrowser);
        }
        let life = CHALLENGE_LIFE;
        let attempt = attempt_id(id, self.clock.now() + life, self.clock.id());
        let attempt = Flow::new(&attempt, open.provider, binding);
        let url = attempt.provider_url(keys, browser.base, &open.scopes, None);
        let url = url.await?;
        // The user gets the full time for the provider's pages. If another tab was first, it
        // wrote the same.
        let pending = StoredChallenge {
            requested: open.scopes,
            ..open.pending
        };
        let saved = (open.records).save(&open.record_id, &pending, life, open.over);
        saved.await?;
        let cookies = vec![browser.cookie(&name, binding, life)];
        Ok(BrowserResponse::Redirect { url, cookies })
    }

    /// Returns the pending challenge with this id, or the page that explains why there is none.
    async fn open(&self, id: &str) -> Result<OpenChallenge<'_>, ChallengePage> {
        let (record_id, nonce) = parse_id(id).ok_or(ChallengePage::Expired)?;
        let records = self.records(None).await?;
        let versioned: Versioned<StoredChallenge> = records.load(&record_id).await?;
        let pending = versioned.value.filter(|it| it.has_nonce(nonce));
        let pending = pending.ok_or(ChallengePage::Expired)?;
        pending.status.check()?;
        let provider = self.provider(&pending.provider);
        let provider = provider.ok_or(ChallengePage::Failed)?;
        let grants = grant_record_id(&pending.caller, &pending.user, &provider.id);
        let grants: Grants = records.load(&grants).await?.value.unwrap_or_default();
        // The provider may no longer know a scope that no tool needs any more.
        let is_needed = |scope: &&String| {
            let mut declared = self.declared.iter();
            declared.any(|(id, it)| *id == provider.id && it == *scope)
        };
        let granted = grants.0.iter().flat_map(|grant| &grant.scopes);
        let granted = granted.filter(is_needed);
        let mut scopes = Vec::new();
        for scope in pending.scopes.iter().chain(&provider.scopes).chain(granted) {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        Ok(OpenChallenge {
            records,
            record_id,
            pending,
            over: versioned.over,
            provider,
            scopes,
        })
    }
}
