//! The start of a challenge: the consent page, and then the redirect to the provider.
//!
//! Following a challenge's URL must not be enough. Link previews follow it too, and a provider that
//! already has the user's consent may not ask again: then only our own page tells the user whose
//! calls will use the account.

use std::sync::Arc;

use super::{
    Browser, Provider,
    broker::Broker,
    challenge::{StoredChallenge, attempt_id, cookie_name, parse_id},
    flow::Flow,
    grant::{Grants, grant_record_id},
    page::{
        BrowserResponse, ChallengeAsker, ChallengePage, ChallengeResponse, ConsentPage,
        RequestedScope,
    },
    records::{Records, Versioned},
};
use crate::{StoreError, store::Over, text::clipped};

/// The maximum length of a caller's name, in bytes. A name from an authorizer can have any length.
const LONGEST_CALLER: usize = 256;

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

impl Broker {
    /// Shows the consent page, for `GET url`, and changes nothing.
    pub(crate) async fn consent_page(
        &self,
        id: &str,
        browser: Browser<'_>,
    ) -> Result<ChallengeResponse, StoreError> {
        let open = match self.open(id).await? {
            Ok(open) => open,
            Err(page) => return Ok(BrowserResponse::Page(page)),
        };
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
        };
        Ok(BrowserResponse::Consent {
            cookie: browser.cookie(&name, &binding, self.settings.challenge_life),
            page: Box::new(page),
        })
    }

    /// Redirects the browser to the provider, for `POST url` with the token of the consent page's
    /// form, and binds the provider's redirect back to this browser.
    pub(crate) async fn start(
        &self,
        id: &str,
        browser: Browser<'_>,
        form_token: Option<&str>,
    ) -> Result<ChallengeResponse, StoreError> {
        let open = match self.open(id).await? {
            Ok(open) => open,
            Err(page) => return Ok(BrowserResponse::Page(page)),
        };
        let (name, keys) = (cookie_name(id), &open.records.keys);
        let binding = browser.binding(&name);
        let flow = binding.map(|binding| Flow::new(id, open.provider, binding));
        let has_consented =
            |flow: &Flow<'_>| form_token.is_some_and(|token| flow.is_form_token(keys, token));
        let Some(flow) = flow.filter(has_consented) else {
            return Ok(BrowserResponse::Page(ChallengePage::OtherBrowser));
        };
        let life = self.settings.challenge_life;
        let attempt = attempt_id(id, self.clock.now() + life, self.clock.id());
        let attempt = Flow::new(&attempt, open.provider, flow.browser);
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
        let cookies = vec![browser.cookie(&name, flow.browser, life)];
        Ok(BrowserResponse::Redirect { url, cookies })
    }

    /// Returns the pending challenge with this id, or the page that explains why there is none.
    async fn open(&self, id: &str) -> Result<Result<OpenChallenge<'_>, ChallengePage>, StoreError> {
        let Some((record_id, nonce)) = parse_id(id) else {
            return Ok(Err(ChallengePage::Expired));
        };
        let records = self.records(None).await?;
        let versioned: Versioned<StoredChallenge> = records.load(&record_id).await?;
        let Some(pending) = versioned.value.filter(|it| it.has_nonce(nonce)) else {
            return Ok(Err(ChallengePage::Expired));
        };
        if let Some(page) = pending.status.page() {
            return Ok(Err(page));
        }
        let Some(provider) = self.provider(&pending.provider) else {
            return Ok(Err(ChallengePage::Failed));
        };
        let scopes = self.scopes_for(&records, &pending, provider).await?;
        Ok(Ok(OpenChallenge {
            records,
            record_id,
            pending,
            over: versioned.over,
            provider,
            scopes,
        }))
    }

    async fn scopes_for(
        &self,
        records: &Records,
        pending: &StoredChallenge,
        provider: &Provider,
    ) -> Result<Vec<String>, StoreError> {
        let record_id = grant_record_id(&pending.caller, &pending.user, &provider.id);
        let grants: Grants = records.load(&record_id).await?.value.unwrap_or_default();
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
