//! What browsers ask for: the way to the provider, and the way back.

use std::sync::Arc;

use http::HeaderMap;

use super::{
    Provider,
    desk::{Desk, Kept, grant_of},
    grant::Grants,
    keys::Keys,
    pending::{Pending, Status, halves_of},
    redemption::Redemption,
    state::{Journey, Trip, cookie_in, cookie_name, parts_of},
};
use crate::StoreError;

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

/// What the provider sends back, read from a query.
#[derive(Default)]
pub(crate) struct Back {
    pub(crate) state: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) issuer: Option<String>,
}

impl Desk {
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
        let place = format!("challenge#{hash}");
        let kept: Kept<Pending> = self.kept(&keys, &place).await?;
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
        let salt = self.host.id().simple().to_string();
        let journey = Journey::begin(&keys, &trip, self.host.now() + life, &salt);
        let scopes = self.scopes_for(&keys, provider, &pending).await?;
        let redirect = redirect_uri(&base, &provider.id);
        let urls = provider.urls().await;
        let url = urls.and_then(|urls| {
            provider.authorize_url(urls, &redirect, &scopes, journey.state, journey.verifier)
        });
        let url = url.map_err(|refusal| refusal.into_error(&provider.id))?;
        // From now on there is time for the way; another tab may have written the same.
        let asked_for = scopes;
        let pending = Pending {
            asked_for,
            ..pending
        };
        self.keep(&keys, &place, &pending, life, kept.version)
            .await?;
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
        let kept: Kept<Grants> = self
            .kept(
                keys,
                &grant_of(&pending.caller, &pending.user, &provider.id),
            )
            .await?;
        let before = kept.value.unwrap_or_default();
        // One that no tool needs any longer may be one that the provider no longer knows.
        let is_needed = |scope: &&String| {
            self.declared
                .contains(&(provider.id.clone(), (*scope).clone()))
        };
        let before = before.scopes().filter(is_needed);
        let mut scopes = Vec::new();
        for scope in pending.scopes.iter().chain(&provider.scopes).chain(before) {
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
            tracing::warn!(
                provider = provider.id,
                "a redirect came back after its challenge"
            );
            return Ok(Told::Expired);
        };
        let told = match pending.status {
            Status::Pending => None,
            Status::Exchanging => Some(Told::InUse),
            Status::Completed => Some(Told::Completed),
            Status::Failed => Some(Told::Failed),
        };
        if let Some(told) = told {
            tracing::warn!(
                provider = provider.id,
                "a redirect came back again; it works once"
            );
            return Ok(told);
        }
        let redemption = Redemption {
            desk: Arc::clone(self),
            keys,
            provider: Arc::clone(provider),
            redirect: redirect_uri(&base, &provider.id),
            verifier,
            place,
            pending,
        };
        // A task of its own: a code works once, and the browser may leave.
        let done = tokio::spawn(redemption.run(version, back)).await;
        done.unwrap_or(Ok(Told::Unavailable))
    }
}

fn redirect_uri(base: &str, provider: &str) -> String {
    format!("{base}/authorization/{provider}/callback")
}
