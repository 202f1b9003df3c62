//! The start of a challenge: the consent page, and then the redirect to the provider.
//!
//! Following a challenge's URL must not be enough. Link previews follow it too, and a provider that
//! already has the user's consent may not ask again: then only our own page tells the user whose
//! calls will use the account.

use std::sync::Arc;

use http::HeaderMap;

use super::{
    Provider,
    broker::{Broker, grant_record_id},
    challenge::{StoredChallenge, parse_id},
    grant::Grants,
    keys::EncryptionKeys,
    page::{BrowserResponse, CallbackPage, ConsentPage, RequestedScope},
    records::Versioned,
    state::{OAuthState, StateBinding, cookie, cookie_in, cookie_name},
};
use crate::{StoreError, store::Over, text::clipped};

/// The maximum length of a caller's name, in bytes. A name from an authorizer can have any length.
const LONGEST_CALLER: usize = 256;

/// A pending challenge.
struct OpenChallenge<'a> {
    keys: EncryptionKeys,
    record_id: String,
    pending: StoredChallenge,
    over: Over,
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

fn described(scopes: Vec<String>, provider: &Provider) -> Vec<RequestedScope> {
    let describe = |name: String| {
        let description = provider.description_of(&name).map(str::to_owned);
        RequestedScope { name, description }
    };
    scopes.into_iter().map(describe).collect()
}

impl Broker {
    /// Shows the consent page, for `GET url`, and changes nothing.
    pub(crate) async fn consent_page(
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
        // A second tab reuses the first one's cookie, so that either can finish.
        let existing = cookie_in(headers, &name).map(str::to_owned);
        let new = || format!("{}{}", self.clock.id().simple(), self.clock.id().simple());
        let browser = existing.unwrap_or_else(new);
        let page = ConsentPage {
            form: open.binding(id, &browser).form_token(&open.keys),
            scopes: described(self.scopes_for(&open).await?, open.provider),
            is_https: open.is_https(),
            provider: open.provider.shown_title().to_owned(),
            caller: clipped(&open.pending.caller, LONGEST_CALLER).into_owned(),
            user: open.pending.user,
        };
        let life = self.settings.challenge_life;
        Ok(BrowserResponse::Consent {
            cookie: cookie(&name, &browser, life, page.is_https),
            page: Box::new(page),
        })
    }

    /// Redirects the browser to the provider, for `POST url` with the token of the consent page's
    /// form, and binds the provider's redirect back to this browser.
    pub(crate) async fn start(
        &self,
        id: &str,
        base: Option<&str>,
        headers: &HeaderMap,
        form_token: Option<&str>,
    ) -> Result<BrowserResponse, StoreError> {
        let open = match self.open(id, base).await? {
            Ok(open) => open,
            Err(page) => return Ok(BrowserResponse::Page(page)),
        };
        let name = cookie_name(id, open.is_https());
        let browser = cookie_in(headers, &name);
        let has_consented = |browser: &&str| {
            let binding = open.binding(id, browser);
            form_token.is_some_and(|token| binding.is_form_token(&open.keys, token))
        };
        let Some(browser) = browser.filter(has_consented) else {
            return Ok(BrowserResponse::Page(CallbackPage::OtherBrowser));
        };
        let binding = open.binding(id, browser);
        let life = self.settings.challenge_life;
        let salt = self.clock.id().simple().to_string();
        let state = OAuthState::new(&open.keys, &binding, self.clock.now() + life, &salt);
        let (scopes, provider) = (self.scopes_for(&open).await?, open.provider);
        let redirect = provider.redirect_uri(&open.base);
        let urls = provider.urls().await;
        let url = urls.and_then(|urls| {
            provider.authorize_url(urls, &redirect, &scopes, state.state, state.verifier, None)
        });
        let url = url.map_err(|error| error.into_store_error(&provider.id))?;
        let cookie = cookie(&name, browser, life, open.is_https());
        // The user gets the full time for the provider's pages. If another tab was first, it
        // wrote the same.
        let pending = StoredChallenge {
            requested: scopes,
            ..open.pending
        };
        self.records
            .save(&open.keys, &open.record_id, &pending, life, open.over)
            .await?;
        Ok(BrowserResponse::Redirect { url, cookie })
    }

    /// Returns the pending challenge with this id, or the page that explains why there is none.
    async fn open(
        &self,
        id: &str,
        base: Option<&str>,
    ) -> Result<Result<OpenChallenge<'_>, CallbackPage>, StoreError> {
        let (Some((hash, nonce)), Some(base)) = (parse_id(id), self.base_url(base)) else {
            return Ok(Err(CallbackPage::Expired));
        };
        let keys = self.keys(None).await?;
        let record_id = format!("challenge#{hash}");
        let versioned: Versioned<StoredChallenge> = self.records.load(&keys, &record_id).await?;
        let Some(pending) = versioned.value.filter(|it| it.has_nonce(nonce)) else {
            return Ok(Err(CallbackPage::Expired));
        };
        if let Some(page) = pending.status.page() {
            return Ok(Err(page));
        }
        let Some(provider) = self.provider(&pending.provider) else {
            return Ok(Err(CallbackPage::Failed));
        };
        Ok(Ok(OpenChallenge {
            keys,
            record_id,
            pending,
            over: versioned.over,
            provider,
            base,
        }))
    }

    /// Returns the scopes to request: those of the tool, those of the provider, and those granted
    /// before, so that one token covers them all.
    async fn scopes_for(&self, open: &OpenChallenge<'_>) -> Result<Vec<String>, StoreError> {
        let (pending, provider) = (&open.pending, open.provider);
        let record_id = grant_record_id(&pending.caller, &pending.user, &provider.id);
        let versioned: Versioned<Grants> = self.records.load(&open.keys, &record_id).await?;
        let grants = versioned.value.unwrap_or_default();
        // The provider may no longer know a scope that no tool needs any more.
        let is_needed = |scope: &&String| {
            self.declared
                .contains(&(provider.id.clone(), (*scope).clone()))
        };
        let granted = grants.scopes().filter(is_needed);
        let mut scopes = Vec::new();
        for scope in pending.scopes.iter().chain(&provider.scopes).chain(granted) {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        Ok(scopes)
    }
}
