//! What is asked of authorization: tokens and challenges by calls, pages by browsers.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::HeaderMap;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    Authorization, Provider,
    exchange::{Refusal, Tokens},
    grant::{Grant, KEPT_FOR},
    keys::Keys,
    pending::{Pending, Status, halves_of, place_of},
    state::{Journey, Trip, cookie_in, cookie_name, parts_of},
    table::Item,
};
use crate::{
    AuthorizationRequirement, Secret, StoreError, host::Host, rejection::Challenge,
    secrets::SecretCache,
};

/// How close to its end a token is not worth handing out.
pub(super) const TOO_SHORT: Duration = Duration::from_mins(1);

/// Authorization with everything it needs.
pub(crate) struct Desk {
    pub(super) settings: Authorization,
    secrets: Arc<SecretCache>,
    pub(super) host: Host,
    /// What stands before its own paths, where the event alone says where the server is.
    base_path: String,
}

/// What a call asks for.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) user: &'a str,
    pub(crate) need: &'a AuthorizationRequirement,
    /// Where the server is, as the event says.
    pub(crate) base: Option<&'a str>,
    pub(crate) left: Duration,
}

/// What a browser gets.
pub(crate) enum Answer {
    /// On to the provider, with a cookie.
    Redirect {
        url: String,
        cookie: String,
    },
    Page(Told),
}

/// What a page says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Completed,
    NotAllowed,
    TooLittle,
    Expired,
    OtherBrowser,
    InUse,
    Failed,
    Unavailable,
}

/// What is kept in a place: nothing, something, or something that cannot be read any longer.
pub(super) struct Kept<T> {
    pub(super) value: Option<T>,
    pub(super) version: Option<u64>,
}

impl Desk {
    pub(crate) fn new(
        settings: Authorization,
        secrets: &Arc<SecretCache>,
        host: Host,
        base_path: Option<&str>,
    ) -> Self {
        let base_path = base_path.unwrap_or_default().trim_matches('/');
        Self {
            settings,
            secrets: Arc::clone(secrets),
            host,
            base_path: base_path.to_owned(),
        }
    }

    /// Whether users can allow something at this provider.
    pub(crate) fn knows(&self, provider: &str) -> bool {
        self.provider(provider).is_some()
    }

    pub(crate) fn checks_ask_for_credentials(&self) -> bool {
        self.settings.checks_ask_for_credentials
    }

    fn provider(&self, id: &str) -> Option<&Arc<Provider>> {
        self.settings.providers.iter().find(|it| it.id == id)
    }

    /// The user's token, if they have allowed all that is needed.
    pub(crate) async fn token(
        self: &Arc<Self>,
        asking: Asking<'_>,
    ) -> Result<Option<Secret>, StoreError> {
        let Some(provider) = self.provider(&asking.need.id) else {
            return Ok(None);
        };
        let place = grant_of(asking.user, &provider.id);
        let keys = self.keys(Some(asking.left)).await?;
        let kept: Kept<Grant> = self.kept(&keys, &place).await?;
        let Some(grant) = kept
            .value
            .filter(|it| it.has_all(&asking.need.oauth2.scopes))
        else {
            return Ok(None);
        };
        if grant.left(self.host.now()) > TOO_SHORT {
            return Ok(Some(Secret::from(grant.access)));
        }
        self.refreshed(Arc::clone(provider), place, asking.left)
            .await
    }

    /// What the user has to follow: the same as long as it is pending.
    pub(crate) async fn challenge(&self, asking: Asking<'_>) -> Result<Challenge, StoreError> {
        let need = asking.need;
        let base = self.base(asking.base).ok_or_else(|| {
            StoreError::denied(
                "set TOOLS_PUBLIC_URL: nothing says under which URL users reach this server",
            )
        })?;
        let hash = place_of("challenge", asking.user, &need.id, &need.oauth2.scopes);
        let place = format!("challenge#{hash}");
        let keys = self.keys(Some(asking.left)).await?;
        for _ in 0..3 {
            let kept: Kept<Pending> = self.kept(&keys, &place).await?;
            let running = kept
                .value
                .filter(|it| matches!(it.status, Status::Pending | Status::Exchanging));
            if let Some(pending) = running {
                return Ok(said(&base, &hash, &pending.nonce));
            }
            let pending = Pending {
                nonce: self.host.id().simple().to_string(),
                user: asking.user.to_owned(),
                provider: need.id.clone(),
                scopes: need.oauth2.scopes.clone(),
                status: Status::Pending,
            };
            let life = self.settings.challenge_life;
            if self
                .keep(&keys, &place, &pending, life, kept.version)
                .await?
            {
                return Ok(said(&base, &hash, &pending.nonce));
            }
            // Another call has made one at the same time.
        }
        Err(StoreError::throttled(
            "many calls ask for the same challenge",
        ))
    }

    /// Forgets a grant whose token was refused where it belongs. Returns whether it was this token.
    pub(crate) async fn refused(
        &self,
        user: &str,
        provider: &str,
        token: &Secret,
    ) -> Result<bool, StoreError> {
        let place = grant_of(user, provider);
        let keys = self.keys(None).await?;
        let kept: Kept<Grant> = self.kept(&keys, &place).await?;
        match (kept.value, kept.version) {
            (Some(grant), Some(version)) if grant.access == token.expose() => {
                tracing::info!(provider, "a token was refused; its grant is forgotten");
                self.settings.table.remove(&place, version).await?;
                Ok(true)
            }
            // Another call has refreshed or forgotten it.
            (kept, _) => Ok(kept.is_none()),
        }
    }

    /// `GET check_url`: how a challenge stands. What there is not has failed.
    pub(crate) async fn status(&self, id: &str) -> Result<&'static str, StoreError> {
        let Some((hash, nonce)) = halves_of(id) else {
            return Ok("failed");
        };
        let keys = self.keys(None).await?;
        let kept: Kept<Pending> = self.kept(&keys, &format!("challenge#{hash}")).await?;
        let challenge = kept.value.filter(|it| it.is_named_by(nonce));
        Ok(match challenge.map(|it| it.status) {
            Some(Status::Pending | Status::Exchanging) => "pending",
            Some(Status::Completed) => "completed",
            Some(Status::Failed) | None => "failed",
        })
    }

    /// `GET url`: sends the browser to the provider, and binds what follows to it.
    pub(crate) async fn start(
        &self,
        id: &str,
        base: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<Answer, StoreError> {
        let (Some((hash, nonce)), Some(base)) = (halves_of(id), self.base(base)) else {
            return Ok(Answer::Page(Told::Expired));
        };
        let keys = self.keys(None).await?;
        let kept: Kept<Pending> = self.kept(&keys, &format!("challenge#{hash}")).await?;
        let Some(pending) = kept.value.filter(|it| it.is_named_by(nonce)) else {
            return Ok(Answer::Page(Told::Expired));
        };
        match pending.status {
            Status::Pending => {}
            Status::Exchanging => return Ok(Answer::Page(Told::InUse)),
            Status::Completed => return Ok(Answer::Page(Told::Completed)),
            Status::Failed => return Ok(Answer::Page(Told::Failed)),
        }
        let Some(provider) = self.provider(&pending.provider) else {
            return Ok(Answer::Page(Told::Failed));
        };
        let is_https = base.starts_with("https://");
        let name = cookie_name(id, is_https);
        // A second tab goes on with what the first one has: either may come back.
        let known = cookie_in(headers, &name).map(str::to_owned);
        let new = || format!("{}{}", self.host.id().simple(), self.host.id().simple());
        let browser = known.unwrap_or_else(new);
        let trip = Trip {
            challenge: id,
            provider: &provider.id,
            browser: &browser,
        };
        let life = self.settings.challenge_life;
        let journey = Journey::begin(&keys, &trip, self.host.now() + life);
        let scopes = self.scopes_for(&keys, provider, &pending).await?;
        let redirect = redirect_uri(&base, &provider.id);
        let urls = provider.urls().await;
        let url = urls.and_then(|urls| {
            provider.authorize_url(urls, &redirect, &scopes, journey.state, journey.verifier)
        });
        let url = url.map_err(|refusal| refusal.into_error(&provider.id))?;
        let secure = if is_https { "; Secure" } else { "" };
        let life = life.as_secs();
        let cookie =
            format!("{name}={browser}; Path=/; Max-Age={life}; HttpOnly; SameSite=Lax{secure}");
        Ok(Answer::Redirect { url, cookie })
    }

    /// What the tool needs, and what the user has allowed before: one token is for all of it.
    async fn scopes_for(
        &self,
        keys: &Keys,
        provider: &Provider,
        pending: &Pending,
    ) -> Result<Vec<String>, StoreError> {
        let kept: Kept<Grant> = self
            .kept(keys, &grant_of(&pending.user, &provider.id))
            .await?;
        let before = kept.value.map(|grant| grant.scopes).unwrap_or_default();
        let mut scopes = Vec::new();
        for scope in pending.scopes.iter().chain(&provider.scopes).chain(&before) {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        Ok(scopes)
    }

    /// The provider's redirect: the end of a challenge.
    pub(crate) async fn callback(
        self: &Arc<Self>,
        provider: &str,
        back: Back,
        base: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<Told, StoreError> {
        let (Some(provider), Some(base)) = (self.provider(provider), self.base(base)) else {
            return Ok(Told::Expired);
        };
        let Some((id, until, tag)) = back.state.as_deref().and_then(parts_of) else {
            return Ok(Told::OtherBrowser);
        };
        let name = cookie_name(id, base.starts_with("https://"));
        let (Some(browser), Some((hash, nonce))) = (cookie_in(headers, &name), halves_of(id))
        else {
            return Ok(Told::OtherBrowser);
        };
        let keys = self.keys(None).await?;
        let trip = Trip {
            challenge: id,
            provider: &provider.id,
            browser,
        };
        let now = self.host.now();
        let Some(verifier) = Journey::verifier_of(&keys, &trip, until, tag, now) else {
            return Ok(Told::OtherBrowser);
        };
        let place = format!("challenge#{hash}");
        let kept: Kept<Pending> = self.kept(&keys, &place).await?;
        let pending = kept.value.filter(|it| it.is_named_by(nonce));
        let (Some(pending), Some(version)) = (pending, kept.version) else {
            return Ok(Told::Expired);
        };
        match pending.status {
            Status::Pending => {}
            Status::Exchanging => return Ok(Told::InUse),
            Status::Completed => return Ok(Told::Completed),
            Status::Failed => return Ok(Told::Failed),
        }
        let exchange = Exchange {
            desk: Arc::clone(self),
            keys,
            provider: Arc::clone(provider),
            redirect: redirect_uri(&base, &provider.id),
            verifier,
            place,
            pending,
        };
        // A task of its own: a code works once, and the browser may leave.
        let done = tokio::spawn(exchange.run(version, back)).await;
        done.unwrap_or(Ok(Told::Unavailable))
    }

    fn base(&self, said: Option<&str>) -> Option<String> {
        if let Some(url) = &self.settings.public_url {
            return Some(url.trim_end_matches('/').to_owned());
        }
        let said = said?.trim_end_matches('/');
        Some(match self.base_path.as_str() {
            "" => said.to_owned(),
            path => format!("{said}/{path}"),
        })
    }

    pub(super) async fn keys(&self, left: Option<Duration>) -> Result<Keys, StoreError> {
        Keys::read(&self.secrets, &self.settings.keys, left).await
    }

    pub(super) async fn client_secret(&self, provider: &Provider) -> Result<Secret, StoreError> {
        let id = provider.secret.as_str();
        let read = self.secrets.read(&[id], None).await.pop();
        read.unwrap_or(Ok(None))?.ok_or_else(|| {
            StoreError::denied(format!(
                "there is no secret '{id}', the client secret of '{}'",
                provider.id
            ))
        })
    }

    pub(super) async fn kept<T: DeserializeOwned>(
        &self,
        keys: &Keys,
        place: &str,
    ) -> Result<Kept<T>, StoreError> {
        let item = self.settings.table.read(place, self.host.now()).await?;
        let Some(item) = item else {
            return Ok(Kept {
                value: None,
                version: None,
            });
        };
        let opened = keys.open(place, &item.key_id, &item.sealed);
        let value = opened.and_then(|text| serde_json::from_slice(&text).ok());
        if value.is_none() {
            tracing::warn!(
                key = item.key_id,
                "a challenge or grant cannot be decrypted"
            );
        }
        Ok(Kept {
            value,
            version: Some(item.version),
        })
    }

    pub(super) async fn keep<T: Serialize>(
        &self,
        keys: &Keys,
        place: &str,
        value: &T,
        life: Duration,
        over: Option<u64>,
    ) -> Result<bool, StoreError> {
        let now = self.host.now();
        let text = serde_json::to_vec(value).expect("our own values have string keys only");
        let (key_id, sealed) = keys.seal(place, &text);
        let item = Item {
            version: next_version(over, now),
            key_id,
            sealed,
            expires_at: now + life,
        };
        self.settings.table.write(place, item, over, now).await
    }
}

/// What the provider sends back, read from a query.
#[derive(Default)]
pub(crate) struct Back {
    pub(crate) state: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) issuer: Option<String>,
}

/// A code that came back to where it belongs.
struct Exchange {
    desk: Arc<Desk>,
    keys: Keys,
    provider: Arc<Provider>,
    redirect: String,
    verifier: String,
    place: String,
    pending: Pending,
}

impl Exchange {
    async fn run(self, version: u64, back: Back) -> Result<Told, StoreError> {
        // Whoever writes this goes on; nobody else who has the same code and state.
        let Some(version) = self.becomes(Status::Exchanging, version).await? else {
            return Ok(Told::InUse);
        };
        let (told, why) = match self.granted(back).await {
            Ok(()) => (Told::Completed, String::new()),
            Err(end) => end,
        };
        let provider = &self.provider.id;
        let status = if told == Told::Completed {
            tracing::info!(provider, "a user has allowed tools to act for them");
            Status::Completed
        } else {
            tracing::warn!(provider, why, "a challenge has failed");
            Status::Failed
        };
        self.becomes(status, version).await?;
        Ok(told)
    }

    async fn becomes(&self, status: Status, version: u64) -> Result<Option<u64>, StoreError> {
        let pending = Pending {
            status,
            ..self.pending.clone()
        };
        let life = self.desk.settings.challenge_life;
        let now = self.desk.host.now();
        let (keys, place) = (&self.keys, &self.place);
        let is_ours = self
            .desk
            .keep(keys, place, &pending, life, Some(version))
            .await?;
        Ok(is_ours.then(|| next_version(Some(version), now)))
    }

    async fn granted(&self, back: Back) -> Result<(), (Told, String)> {
        let failed = |why: &str| (Told::Failed, why.to_owned());
        let unavailable = |error: StoreError| (Told::Unavailable, error.to_string());
        let said = |refusal: Refusal| (Told::Failed, format!("{refusal:?}"));
        let urls = self.provider.urls().await.map_err(said)?;
        // RFC 9207: an answer of another provider, mixed up with this one's.
        if let (Some(issuer), Some(given)) = (&urls.issuer, &back.issuer)
            && issuer != given
        {
            return Err(failed("the answer is another issuer's"));
        }
        if let Some(error) = back.error {
            // RFC 6749, 4.1.2.1.
            let told = if error == "access_denied" {
                Told::NotAllowed
            } else {
                Told::Failed
            };
            let known = [
                "access_denied",
                "invalid_scope",
                "server_error",
                "temporarily_unavailable",
            ];
            let why = known
                .into_iter()
                .find(|it| *it == error)
                .unwrap_or("an error of the provider's");
            return Err((told, why.to_owned()));
        }
        let code = back.code.ok_or_else(|| failed("there is no code"))?;
        let secret = self
            .desk
            .client_secret(&self.provider)
            .await
            .map_err(unavailable)?;
        let (redirect, verifier) = (&self.redirect, self.verifier.clone());
        let exchanged = self
            .provider
            .exchange(&secret, redirect, code, verifier)
            .await;
        let tokens = exchanged.map_err(said)?;
        self.store(tokens).await
    }

    async fn store(&self, tokens: Tokens) -> Result<(), (Told, String)> {
        let unavailable = |error: StoreError| (Told::Unavailable, error.to_string());
        let Pending { user, scopes, .. } = &self.pending;
        let grant = Grant::of(tokens, scopes, self.desk.host.now());
        if !grant.has_all(scopes) {
            return Err((
                Told::TooLittle,
                "not everything that was asked for was allowed".into(),
            ));
        }
        let place = grant_of(user, &self.provider.id);
        for _ in 0..3 {
            let kept: Kept<Grant> = self
                .desk
                .kept(&self.keys, &place)
                .await
                .map_err(unavailable)?;
            let written = self
                .desk
                .keep(&self.keys, &place, &grant, KEPT_FOR, kept.version);
            if written.await.map_err(unavailable)? {
                return Ok(());
            }
        }
        Err((Told::Unavailable, "the grant cannot be written".into()))
    }
}

fn said(base: &str, hash: &str, nonce: &str) -> Challenge {
    let id = format!("{hash}{nonce}");
    let check_url = format!("{base}/authorization/challenges/{id}");
    Challenge {
        url: format!("{check_url}/start"),
        check_url,
        id,
    }
}

pub(super) fn grant_of(user: &str, provider: &str) -> String {
    format!("grant#{}", place_of("grant", user, provider, &[]))
}

fn redirect_uri(base: &str, provider: &str) -> String {
    format!("{base}/authorization/{provider}/callback")
}

/// Never one that was there before, so that nobody takes a new item for the one they have read.
pub(super) fn next_version(over: Option<u64>, now: SystemTime) -> u64 {
    let now = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
    over.map_or(now, |over| now.max(over + 1))
}
