//! The authorization endpoint: the consent page, and then the redirect to the provider.
//!
//! The page comes before the provider, which may already have the user's consent to this server and
//! then does not ask: a stranger's client would get a code unnoticed (confused deputy).

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use serde::{Deserialize, Serialize};

use super::{
    AuthorizationServer,
    approvals::Approvals,
    client::{Client, ClientError},
    parameters::Parameters,
    request::{AuthorizationRequest, RequestError, error_url},
};
use crate::{
    StoreError,
    clock::since_epoch,
    oauth::{EncryptionKeys, ProviderError, Versioned, cookie, cookie_in, own_name},
    store::{Change, Start},
    text::{LONGEST_SHOWN, clipped},
};

/// The time that a user has for the consent page, and again for the provider's pages.
pub(super) const LIFE: Duration = Duration::from_mins(10);

/// A response to a browser.
pub(crate) enum BrowserAnswer {
    /// The consent page, with a cookie.
    Consent {
        page: Box<SignInConsent>,
        cookie: String,
    },
    Redirect {
        url: String,
        cookies: Vec<String>,
    },
    Page(SignInPage),
}

/// A page that ends a sign-in that cannot be sent back to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignInPage {
    Client(ClientError),
    /// The request has this error, and the owner has not listed its client, so that the redirect URI
    /// may be anyone's.
    Request(&'static str),
    /// The sign-in belongs to another browser, has been finished, or was begun too long ago.
    Expired,
}

/// The page on which the user agrees to sign in for a client.
pub(crate) struct SignInConsent {
    /// The name that the client gives itself.
    pub(crate) name: String,
    /// The host that vouches for the client; `None` if anyone can have registered it.
    pub(crate) host: Option<String>,
    pub(crate) redirect_uri: String,
    pub(crate) scopes: Vec<String>,
    /// The provider's name as shown to users.
    pub(crate) provider: String,
    /// The value that the form sends back.
    pub(crate) form: String,
    /// True if browsers reach this server over TLS.
    pub(crate) is_https: bool,
}

/// The content of the consent page's form, sealed for one browser.
#[derive(Deserialize, Serialize)]
struct ConsentForm {
    /// The id of the sign-in: a form that is sent again goes on with the same one.
    id: String,
    request: AuthorizationRequest,
    /// Seconds since 1970.
    expires_at: u64,
}

/// A sign-in for which the user is at the provider.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct PendingSignIn {
    pub(super) request: AuthorizationRequest,
    /// The cookie's value.
    pub(super) browser: String,
    pub(super) verifier: String,
    pub(super) nonce: String,
    /// The user who has agreed before, if the consent page was not shown.
    pub(super) approved_by: Option<String>,
    pub(super) is_taken: bool,
}

pub(super) fn cookie_name(is_https: bool) -> String {
    own_name("sign-in", is_https)
}

fn purpose_of_form(browser: &str) -> String {
    format!("sign-in form {browser}")
}

fn redirect(url: Option<String>) -> BrowserAnswer {
    let cookies = Vec::new();
    let invalid = BrowserAnswer::Page(SignInPage::Client(ClientError::RedirectUri));
    url.map_or(invalid, |url| BrowserAnswer::Redirect { url, cookies })
}

impl AuthorizationServer {
    /// Answers `GET /authorize`: with the consent page, or, where the user has agreed before, with a
    /// redirect to the provider.
    pub(crate) async fn authorize(
        &self,
        query: &str,
        base: &str,
        headers: &HeaderMap,
    ) -> Result<BrowserAnswer, StoreError> {
        let keys = self.keys().await?;
        let (client, request) = match self.request(query, base, &keys).await {
            Ok(checked) => checked,
            Err(answer) => return Ok(answer),
        };
        let is_https = base.starts_with("https://");
        let (name, clock) = (cookie_name(is_https), &self.broker.clock);
        let existing = cookie_in(headers, &name).map(str::to_owned);
        let new = || format!("{}{}", clock.id().simple(), clock.id().simple());
        let browser = existing.unwrap_or_else(new);
        let approvals = Approvals::read(&keys, headers, is_https);
        let form = ConsentForm {
            id: clock.id().simple().to_string(),
            expires_at: since_epoch(clock.now() + LIFE).as_secs(),
            request,
        };
        if let Some(user) = approvals.user_for(&form.request) {
            let user = Some(user.to_owned());
            return self.begin(&keys, form, user, &browser, base).await;
        }
        let text = serde_json::to_vec(&form).expect("texts and numbers");
        let request = form.request;
        let page = SignInConsent {
            name: client.name,
            host: client.host,
            redirect_uri: request.redirect_uri,
            scopes: request.scopes,
            provider: self.provider().shown_title().to_owned(),
            form: keys.seal_text(&purpose_of_form(&browser), &text),
            is_https,
        };
        Ok(BrowserAnswer::Consent {
            page: Box::new(page),
            cookie: cookie(&name, &browser, LIFE, is_https),
        })
    }

    /// Answers `POST /authorize`, the form of the consent page.
    pub(crate) async fn consent(
        &self,
        form: &Parameters,
        base: &str,
        headers: &HeaderMap,
    ) -> Result<BrowserAnswer, StoreError> {
        let keys = self.keys().await?;
        let browser = cookie_in(headers, &cookie_name(base.starts_with("https://")));
        let now = self.broker.clock.now();
        let opened = browser.and_then(|browser| {
            let form = opened_form(&keys, browser, form.get("form")?, now)?;
            Some((browser, form))
        });
        let Some((browser, opened)) = opened else {
            return Ok(BrowserAnswer::Page(SignInPage::Expired));
        };
        if form.get("answer") != Some("continue") {
            let denied = RequestError::new("access_denied", "The user has not agreed");
            return Ok(redirect(opened.request.failure(denied, base)));
        }
        self.begin(&keys, opened, None, browser, base).await
    }

    /// Parses a request. An error is a page, unless it can be sent to the client.
    async fn request(
        &self,
        query: &str,
        base: &str,
        keys: &EncryptionKeys,
    ) -> Result<(Client, AuthorizationRequest), BrowserAnswer> {
        let Some(parameters) = Parameters::parse(query.as_bytes()) else {
            let twice = SignInPage::Request("a parameter occurs twice");
            return Err(BrowserAnswer::Page(twice));
        };
        let rejected = |id: &str, error: ClientError| {
            let client = &*clipped(id, LONGEST_SHOWN);
            tracing::warn!(client, ?error, "a client may not ask users to sign in");
            BrowserAnswer::Page(SignInPage::Client(error))
        };
        let id = parameters.get("client_id").unwrap_or_default();
        let listed = &self.settings.clients;
        let client = Client::find(id, keys, &self.documents, listed).await;
        let client = client.map_err(|error| rejected(id, error))?;
        let uri = client.redirect_uri(parameters.get("redirect_uri"), listed);
        let uri = uri.map_err(|error| rejected(client.label(), error))?;
        let checked =
            AuthorizationRequest::check(&parameters, &client, uri.clone(), base, &self.scopes);
        let checked = checked.map_err(|error| {
            let (client, reason) = (client.label(), error.description);
            tracing::warn!(client, reason, "an authorization request is invalid");
            // Anyone can register any address, or name it in a document (RFC 9700, 4.11.2).
            if listed.0.is_empty() {
                return BrowserAnswer::Page(SignInPage::Request(reason));
            }
            redirect(error_url(&uri, error, parameters.get("state"), base))
        });
        Ok((client, checked?))
    }

    /// Sends the user to the provider. A form that is sent again goes on with the same sign-in.
    async fn begin(
        &self,
        keys: &EncryptionKeys,
        form: ConsentForm,
        approved_by: Option<String>,
        browser: &str,
        base: &str,
    ) -> Result<BrowserAnswer, StoreError> {
        let (provider, clock) = (self.provider(), &self.broker.clock);
        let new = || format!("{}{}", clock.id().simple(), clock.id().simple());
        let unavailable = |error: ProviderError| error.into_store_error(provider.id());
        let urls = provider.urls().await.map_err(unavailable)?;
        let pending = PendingSignIn {
            request: form.request,
            browser: browser.to_owned(),
            verifier: new(),
            nonce: new(),
            approved_by,
            is_taken: false,
        };
        let write = |begun: Versioned<PendingSignIn>| {
            let pending = begun.value.unwrap_or_else(|| pending.clone());
            Change::Write(pending.clone(), pending)
        };
        let (records, id) = (&self.broker.records, format!("sign-in#{}", form.id));
        let begun = records.update(Start::Absent, keys, &id, LIFE, write);
        let begun = begun.await?;
        if begun.is_taken {
            return Ok(BrowserAnswer::Page(SignInPage::Expired));
        }
        let url = provider.authorize_url(
            urls,
            &provider.redirect_uri(base),
            &provider.scopes,
            format!("sign-in.{}", form.id),
            begun.verifier,
            Some(&begun.nonce),
        );
        let is_https = base.starts_with("https://");
        let cookie = cookie(&cookie_name(is_https), browser, LIFE, is_https);
        Ok(BrowserAnswer::Redirect {
            url: url.map_err(unavailable)?,
            cookies: vec![cookie],
        })
    }
}

/// Returns the content of a form that this server has shown to this browser.
fn opened_form(
    keys: &EncryptionKeys,
    browser: &str,
    sealed: &str,
    now: SystemTime,
) -> Option<ConsentForm> {
    let text = keys.open_text(&purpose_of_form(browser), sealed)?;
    let form: ConsentForm = serde_json::from_slice(&text).ok()?;
    (since_epoch(now).as_secs() < form.expires_at).then_some(form)
}
