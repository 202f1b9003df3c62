//! The way to the provider: a question, and then the redirect.
//!
//! Following a challenge's URL must not be enough. Previews of links follow it too, and a provider
//! that has the user's consent already may ask nothing more: then our own page is the only one
//! that says to whom the account is lent.

use std::sync::Arc;

use http::HeaderMap;

use super::{
    Provider,
    desk::{Desk, grant_of},
    grant::Grants,
    keys::Keys,
    page::{Answer, Question, Told},
    pending::{Pending, Status, halves_of},
    records::Kept,
    state::{Journey, Trip, cookie, cookie_in, cookie_name},
};
use crate::{StoreError, text::clipped};

/// What an authorizer calls somebody may be of any length; this is in bytes.
const LONGEST_CALLER: usize = 256;

/// A challenge that can be answered.
struct Open<'a> {
    keys: Keys,
    place: String,
    pending: Pending,
    version: Option<u64>,
    provider: &'a Arc<Provider>,
    base: String,
}

impl Open<'_> {
    fn is_https(&self) -> bool {
        self.base.starts_with("https://")
    }

    fn trip<'a>(&'a self, id: &'a str, browser: &'a str) -> Trip<'a> {
        Trip {
            challenge: id,
            provider: &self.provider.id,
            browser,
        }
    }
}

impl Desk {
    /// `GET url`: asks the user, and changes nothing.
    pub(crate) async fn question(
        &self,
        id: &str,
        base: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<Answer, StoreError> {
        let open = match self.open(id, base).await? {
            Ok(open) => open,
            Err(told) => return Ok(Answer::Page(told)),
        };
        let name = cookie_name(id, open.is_https());
        // A second tab goes on with what the first one has: either may come back.
        let known = cookie_in(headers, &name).map(str::to_owned);
        let new = || format!("{}{}", self.host.id().simple(), self.host.id().simple());
        let browser = known.unwrap_or_else(new);
        let question = Question {
            form: open.trip(id, &browser).form(&open.keys),
            scopes: self.scopes_for(&open).await?,
            is_https: open.is_https(),
            provider: open.provider.id.clone(),
            caller: clipped(&open.pending.caller, LONGEST_CALLER).into_owned(),
            user: open.pending.user,
        };
        let life = self.settings.challenge_life;
        Ok(Answer::Question {
            cookie: cookie(&name, &browser, life, question.is_https),
            question: Box::new(question),
        })
    }

    /// `POST url`, with what the form of the page has sent: sends the browser to the provider, and
    /// binds what follows to it.
    pub(crate) async fn start(
        &self,
        id: &str,
        base: Option<&str>,
        headers: &HeaderMap,
        form: Option<&str>,
    ) -> Result<Answer, StoreError> {
        let open = match self.open(id, base).await? {
            Ok(open) => open,
            Err(told) => return Ok(Answer::Page(told)),
        };
        let name = cookie_name(id, open.is_https());
        let browser = cookie_in(headers, &name);
        let was_asked = |browser: &&str| {
            let trip = open.trip(id, browser);
            form.is_some_and(|form| trip.was_asked(&open.keys, form))
        };
        let Some(browser) = browser.filter(was_asked) else {
            return Ok(Answer::Page(Told::OtherBrowser));
        };
        let trip = open.trip(id, browser);
        let life = self.settings.challenge_life;
        let salt = self.host.id().simple().to_string();
        let journey = Journey::begin(&open.keys, &trip, self.host.now() + life, &salt);
        let (scopes, provider) = (self.scopes_for(&open).await?, open.provider);
        let redirect = provider.redirect_uri(&open.base);
        let urls = provider.urls().await;
        let url = urls.and_then(|urls| {
            provider.authorize_url(urls, &redirect, &scopes, journey.state, journey.verifier)
        });
        let url = url.map_err(|refusal| refusal.into_error(&provider.id))?;
        let cookie = cookie(&name, browser, life, open.is_https());
        // From now on there is time for the way; another tab may have written the same.
        let pending = Pending {
            asked_for: scopes,
            ..open.pending
        };
        self.records
            .save(&open.keys, &open.place, &pending, life, open.version)
            .await?;
        Ok(Answer::Redirect { url, cookie })
    }

    /// The challenge with this id, or what the page says of it.
    async fn open(
        &self,
        id: &str,
        base: Option<&str>,
    ) -> Result<Result<Open<'_>, Told>, StoreError> {
        let (Some((hash, nonce)), Some(base)) = (halves_of(id), self.base(base)) else {
            return Ok(Err(Told::Expired));
        };
        let keys = self.keys(None).await?;
        let place = format!("challenge#{hash}");
        let kept: Kept<Pending> = self.records.load(&keys, &place).await?;
        let Some(pending) = kept.value.filter(|it| it.is_named_by(nonce)) else {
            return Ok(Err(Told::Expired));
        };
        match pending.status {
            Status::Pending => {}
            Status::Exchanging => return Ok(Err(Told::InUse)),
            Status::Completed => return Ok(Err(Told::Completed)),
            Status::Failed => return Ok(Err(Told::Failed)),
        }
        let Some(provider) = self.provider(&pending.provider) else {
            return Ok(Err(Told::Failed));
        };
        Ok(Ok(Open {
            keys,
            place,
            pending,
            version: kept.version,
            provider,
            base,
        }))
    }

    /// What the tool needs, and what the user has allowed before: one token is for all of it.
    async fn scopes_for(&self, open: &Open<'_>) -> Result<Vec<String>, StoreError> {
        let (pending, provider) = (&open.pending, open.provider);
        let place = grant_of(&pending.caller, &pending.user, &provider.id);
        let kept: Kept<Grants> = self.records.load(&open.keys, &place).await?;
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
}
