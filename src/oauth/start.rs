//! The way to the provider: a question, and then the redirect.
//!
//! Following a challenge's URL must not be enough. Previews of links follow it too, and a provider
//! that has the user's consent already may ask nothing more: then our own page is the only one
//! that says to whom the account is lent.

use std::sync::Arc;

use http::HeaderMap;

use super::{
    Provider,
    broker::{Broker, grant_of},
    challenge::{ChallengeStatus, StoredChallenge, parse_id},
    grant::Grants,
    keys::EncryptionKeys,
    page::{BrowserResponse, CallbackPage, ConsentPage},
    records::Versioned,
    state::{OAuthState, StateBinding, cookie, cookie_in, cookie_name},
};
use crate::{StoreError, text::clipped};

/// What an authorizer calls somebody may be of any length; this is in bytes.
const LONGEST_CALLER: usize = 256;

/// A challenge that can be answered.
struct OpenChallenge<'a> {
    keys: EncryptionKeys,
    record_id: String,
    pending: StoredChallenge,
    version: Option<u64>,
    provider: &'a Arc<Provider>,
    base: String,
}

impl OpenChallenge<'_> {
    fn is_https(&self) -> bool {
        self.base.starts_with("https://")
    }

    fn binding<'a>(&'a self, id: &'a str, browser: &'a str) -> StateBinding<'a> {
        StateBinding {
            challenge: id,
            provider: &self.provider.id,
            browser,
        }
    }
}

impl Broker {
    /// `GET url`: asks the user, and changes nothing.
    pub(crate) async fn question(
        &self,
        id: &str,
        base: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<BrowserResponse, StoreError> {
        let open = match self.open(id, base).await? {
            Ok(open) => open,
            Err(page) => return Ok(BrowserResponse::Page(page)),
        };
        let name = cookie_name(id, open.is_https());
        // A second tab goes on with what the first one has: either may come back.
        let known = cookie_in(headers, &name).map(str::to_owned);
        let new = || format!("{}{}", self.clock.id().simple(), self.clock.id().simple());
        let browser = known.unwrap_or_else(new);
        let page = ConsentPage {
            form: open.binding(id, &browser).form(&open.keys),
            scopes: self.scopes_for(&open).await?,
            is_https: open.is_https(),
            provider: open.provider.id.clone(),
            caller: clipped(&open.pending.caller, LONGEST_CALLER).into_owned(),
            user: open.pending.user,
        };
        let life = self.settings.challenge_life;
        Ok(BrowserResponse::Consent {
            cookie: cookie(&name, &browser, life, page.is_https),
            page: Box::new(page),
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
    ) -> Result<BrowserResponse, StoreError> {
        let open = match self.open(id, base).await? {
            Ok(open) => open,
            Err(page) => return Ok(BrowserResponse::Page(page)),
        };
        let name = cookie_name(id, open.is_https());
        let browser = cookie_in(headers, &name);
        let was_asked = |browser: &&str| {
            let binding = open.binding(id, browser);
            form.is_some_and(|form| binding.was_asked(&open.keys, form))
        };
        let Some(browser) = browser.filter(was_asked) else {
            return Ok(BrowserResponse::Page(CallbackPage::OtherBrowser));
        };
        let binding = open.binding(id, browser);
        let life = self.settings.challenge_life;
        let salt = self.clock.id().simple().to_string();
        let state = OAuthState::begin(&open.keys, &binding, self.clock.now() + life, &salt);
        let (scopes, provider) = (self.scopes_for(&open).await?, open.provider);
        let redirect = provider.redirect_uri(&open.base);
        let urls = provider.urls().await;
        let url = urls.and_then(|urls| {
            provider.authorize_url(urls, &redirect, &scopes, state.state, state.verifier)
        });
        let url = url.map_err(|refusal| refusal.into_error(&provider.id))?;
        let cookie = cookie(&name, browser, life, open.is_https());
        // From now on there is time for the way; another tab may have written the same.
        let pending = StoredChallenge {
            asked_for: scopes,
            ..open.pending
        };
        self.records
            .save(&open.keys, &open.record_id, &pending, life, open.version)
            .await?;
        Ok(BrowserResponse::Redirect { url, cookie })
    }

    /// The challenge with this id, or what the page says of it.
    async fn open(
        &self,
        id: &str,
        base: Option<&str>,
    ) -> Result<Result<OpenChallenge<'_>, CallbackPage>, StoreError> {
        let (Some((hash, nonce)), Some(base)) = (parse_id(id), self.base(base)) else {
            return Ok(Err(CallbackPage::Expired));
        };
        let keys = self.keys(None).await?;
        let record_id = format!("challenge#{hash}");
        let versioned: Versioned<StoredChallenge> = self.records.load(&keys, &record_id).await?;
        let Some(pending) = versioned.value.filter(|it| it.is_named_by(nonce)) else {
            return Ok(Err(CallbackPage::Expired));
        };
        match pending.status {
            ChallengeStatus::Pending => {}
            ChallengeStatus::Exchanging => return Ok(Err(CallbackPage::InUse)),
            ChallengeStatus::Completed => return Ok(Err(CallbackPage::Completed)),
            ChallengeStatus::Failed => return Ok(Err(CallbackPage::Failed)),
        }
        let Some(provider) = self.provider(&pending.provider) else {
            return Ok(Err(CallbackPage::Failed));
        };
        Ok(Ok(OpenChallenge {
            keys,
            record_id,
            pending,
            version: versioned.version,
            provider,
            base,
        }))
    }

    /// What the tool needs, and what the user has allowed before: one token is for all of it.
    async fn scopes_for(&self, open: &OpenChallenge<'_>) -> Result<Vec<String>, StoreError> {
        let (pending, provider) = (&open.pending, open.provider);
        let record_id = grant_of(&pending.caller, &pending.user, &provider.id);
        let versioned: Versioned<Grants> = self.records.load(&open.keys, &record_id).await?;
        let before = versioned.value.unwrap_or_default();
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
