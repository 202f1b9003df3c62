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
    oauth::{Change, EncryptionKeys, Start, Versioned, cookie, cookie_in},
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

pub(super) fn cookie_name(is_https: bool) -> &'static str {
    if is_https {
        "__Host-sign-in"
    } else {
        "sign-in"
    }
}

fn purpose_of_form(browser: &str) -> String {
    format!("sign-in form {browser}")
}

fn page<T>(page: SignInPage) -> Result<T, BrowserAnswer> {
    Err(BrowserAnswer::Page(page))
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
        let request = match self.request(query, base, &keys).await {
            Ok(request) => request,
            Err(answer) => return Ok(answer),
        };
        let is_https = base.starts_with("https://");
        let (name, clock) = (cookie_name(is_https), &self.broker.clock);
        let existing = cookie_in(headers, name).map(str::to_owned);
        let new = || format!("{}{}", clock.id().simple(), clock.id().simple());
        let browser = existing.unwrap_or_else(new);
        let approvals = Approvals::read(&keys, headers, is_https);
        if let Some(user) = approvals.user_for(&request) {
            let user = Some(user.to_owned());
            return self.begin(&keys, request, user, &browser, base).await;
        }
        let form = ConsentForm {
            expires_at: since_epoch(clock.now() + LIFE).as_secs(),
            request,
        };
        let text = serde_json::to_vec(&form).expect("texts and numbers");
        let request = form.request;
        let page = SignInConsent {
            name: request.client.name,
            host: request.client.host,
            redirect_uri: request.redirect_uri,
            scopes: request.scopes,
            provider: self.provider().shown_title().to_owned(),
            form: keys.seal_text(&purpose_of_form(&browser), &text),
            is_https,
        };
        Ok(BrowserAnswer::Consent {
            page: Box::new(page),
            cookie: cookie(name, &browser, LIFE, is_https),
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
        let browser = cookie_in(headers, cookie_name(base.starts_with("https://")));
        let now = self.broker.clock.now();
        let opened = browser.and_then(|browser| {
            let form = opened_form(&keys, browser, form.get("form")?, now)?;
            Some((browser, form.request))
        });
        let Some((browser, request)) = opened else {
            return Ok(BrowserAnswer::Page(SignInPage::Expired));
        };
        if form.get("answer") != Some("continue") {
            let denied = RequestError::new("access_denied", "The user has not agreed");
            return Ok(redirect(request.failure(denied, base)));
        }
        self.begin(&keys, request, None, browser, base).await
    }

    /// Parses a request. An error is a page, unless it can be sent to the client.
    async fn request(
        &self,
        query: &str,
        base: &str,
        keys: &EncryptionKeys,
    ) -> Result<AuthorizationRequest, BrowserAnswer> {
        let Some(parameters) = Parameters::parse(query.as_bytes()) else {
            return page(SignInPage::Request("a parameter occurs twice"));
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
        let (label, is_trusted) = (client.label().to_owned(), !listed.0.is_empty());
        let checked =
            AuthorizationRequest::check(&parameters, client, uri.clone(), base, &self.scopes);
        checked.map_err(|error| {
            let reason = error.description;
            tracing::warn!(
                client = label,
                reason,
                "an authorization request is invalid"
            );
            // Anyone can register any address, or name it in a document (RFC 9700, 4.11.2).
            if !is_trusted {
                return BrowserAnswer::Page(SignInPage::Request(error.description));
            }
            redirect(error_url(&uri, error, parameters.get("state"), base))
        })
    }

    /// Sends the user to the provider.
    async fn begin(
        &self,
        keys: &EncryptionKeys,
        request: AuthorizationRequest,
        approved_by: Option<String>,
        browser: &str,
        base: &str,
    ) -> Result<BrowserAnswer, StoreError> {
        let (provider, clock) = (self.provider(), &self.broker.clock);
        let new = || format!("{}{}", clock.id().simple(), clock.id().simple());
        let (id, verifier, nonce) = (clock.id().simple().to_string(), new(), new());
        let urls = provider.urls().await;
        let url = urls.and_then(|urls| {
            let (redirect, state) = (provider.redirect_uri(base), format!("sign-in.{id}"));
            let verifier = verifier.clone();
            provider.authorize_url(
                urls,
                &redirect,
                &provider.scopes,
                state,
                verifier,
                Some(&nonce),
            )
        });
        let url = url.map_err(|error| error.into_store_error(provider.id()))?;
        let pending = PendingSignIn {
            request,
            browser: browser.to_owned(),
            verifier,
            nonce,
            approved_by,
            is_taken: false,
        };
        let write = |_: Versioned<PendingSignIn>| Change::Write(pending.clone(), ());
        let (records, id) = (&self.broker.records, format!("sign-in#{id}"));
        records
            .update(Start::Absent, keys, &id, LIFE, write)
            .await?;
        let is_https = base.starts_with("https://");
        let cookie = cookie(cookie_name(is_https), browser, LIFE, is_https);
        Ok(BrowserAnswer::Redirect {
            url,
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
