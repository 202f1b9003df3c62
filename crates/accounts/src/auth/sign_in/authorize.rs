//! The authorization endpoint: the consent page, and then the redirect to the provider.
//!
//! The page comes before the provider, which may already have the user's consent to this server and
//! then does not ask: a stranger's client would get a code unnoticed (confused deputy).
//!
//! A user agrees once: the clients that users have agreed to in a browser are in a sealed cookie
//! there.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    AuthorizationServer,
    client::Client,
    request::{AuthorizationRequest, OAuthError, response_url},
};
use crate::{
    StoreError,
    clock::since_epoch,
    oauth::{
        Browser, BrowserResponse, ConsentPage, EncryptionKeys, Flow, Parameters, Records,
        RequestedScope, Versioned,
    },
    store::{Change, hash_of_texts},
    text::{LONGEST_SHOWN, clipped},
};

/// The time that a user has for the consent page, and again for the provider's pages.
pub(super) const LIFE: Duration = Duration::from_mins(10);
/// The name of the cookie that binds a browser.
pub(super) const COOKIE: &str = "sign-in";
/// The prefix of a sign-in's id in its `state`.
pub(super) const FLOW: &str = "sign-in.";
/// The name of the cookie, and the purpose for which it is sealed.
const APPROVALS: &str = "approvals";
/// The number of agreements in one browser; the oldest one is dropped first.
const MOST_APPROVALS: usize = 12;
const APPROVAL_LIFE: Duration = Duration::from_hours(90 * 24);

/// A response about a sign-in.
pub type SignInResponse = BrowserResponse<SignInAsker, SignInPage>;

/// A page that ends a sign-in that cannot be sent back to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInPage {
    /// The client's id is neither the URL of a document nor one that this server has issued.
    Unknown,
    /// The client's document cannot be fetched, or is not the client's.
    Document(&'static str),
    /// The owner has not listed the client.
    NotListed,
    /// The redirect URI is not one of the client's.
    RedirectUri,
    /// The request has this error, and the owner has not listed its client, so that the redirect URI
    /// may be anyone's.
    Request(&'static str),
    /// The sign-in belongs to another browser, has been finished, or was begun too long ago.
    Expired,
}

/// The client that asks a user to sign in.
pub struct SignInAsker {
    /// The name that it gives itself.
    pub name: String,
    /// The host that vouches for it; `None` if anyone can have registered it.
    pub host: Option<String>,
    /// The URI that the browser returns to.
    pub redirect_uri: String,
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
    /// The user who has agreed before, if the consent page was not shown.
    pub(super) approved_by: Option<String>,
    pub(super) is_taken: bool,
}

/// Returns the id of the record of a pending sign-in.
pub(super) fn record_id(id: &str) -> String {
    format!("sign-in#{id}")
}

fn purpose_of_form(binding: &str) -> String {
    format!("sign-in form {binding}")
}

fn redirect(url: String) -> SignInResponse {
    let cookies = Vec::new();
    BrowserResponse::Redirect { url, cookies }
}

impl AuthorizationServer {
    /// Answers `GET /authorize`: with the consent page, or, where the user has agreed before, with a
    /// redirect to the provider.
    pub async fn authorize(
        &self,
        query: &str,
        browser: Browser<'_>,
    ) -> Result<SignInResponse, StoreError> {
        let records = self.records().await?;
        let (keys, clock) = (&records.keys, &records.clock);
        let (client, request) = match self.request(query, browser.base, keys).await {
            Ok(checked) => checked,
            Err(response) => return Ok(response),
        };
        let binding = browser.binding_or_new(COOKIE, clock);
        let approvals = Approvals::read(keys, browser);
        let form = ConsentForm {
            id: clock.id().simple().to_string(),
            expires_at: since_epoch(clock.now() + LIFE).as_secs(),
            request,
        };
        if let Some(user) = approvals.user_for(&form.request) {
            let user = Some(user.to_owned());
            return self.begin(&records, form, user, browser, &binding).await;
        }
        let sealed = keys.seal_text(&purpose_of_form(&binding), &form);
        let request = form.request;
        let scope = |name| RequestedScope {
            name,
            description: None,
        };
        let page = ConsentPage {
            asker: SignInAsker {
                name: client.name,
                host: client.host,
                redirect_uri: request.redirect_uri,
            },
            scopes: request.scopes.into_iter().map(scope).collect(),
            provider: self.provider().shown_title().to_owned(),
            form: sealed,
            is_https: browser.is_https(),
            cookie: browser.cookie(COOKIE, &binding, LIFE),
        };
        Ok(BrowserResponse::Consent(Box::new(page)))
    }

    /// Answers `POST /authorize`, the form of the consent page.
    pub async fn consent(
        &self,
        form: &Parameters,
        browser: Browser<'_>,
    ) -> Result<SignInResponse, StoreError> {
        let records = self.records().await?;
        let now = since_epoch(records.clock.now()).as_secs();
        let opened = browser.binding(COOKIE).and_then(|binding| {
            let sealed = form.get("form")?;
            let form: ConsentForm = records.keys.open_text(&purpose_of_form(binding), sealed)?;
            (now < form.expires_at).then_some((binding, form))
        });
        let Some((binding, opened)) = opened else {
            return Ok(BrowserResponse::Page(SignInPage::Expired));
        };
        if form.get("answer") != Some("continue") {
            let denied = OAuthError::new("access_denied", "The user has not agreed");
            let url = opened.request.response_url(Err(&denied), browser.base);
            return Ok(redirect(url));
        }
        self.begin(&records, opened, None, browser, binding).await
    }

    /// Parses a request. An error is a page, unless it can be sent to the client.
    async fn request(
        &self,
        query: &str,
        base: &str,
        keys: &EncryptionKeys,
    ) -> Result<(Client, AuthorizationRequest), SignInResponse> {
        let Some(parameters) = Parameters::parse(query.as_bytes()) else {
            let twice = SignInPage::Request("a parameter occurs twice");
            return Err(BrowserResponse::Page(twice));
        };
        let rejected = |id: &str, error: SignInPage| {
            let client = &*clipped(id, LONGEST_SHOWN);
            tracing::warn!(client, ?error, "a client may not ask users to sign in");
            BrowserResponse::Page(error)
        };
        let id = parameters.get("client_id").unwrap_or_default();
        let client = self.client(id, keys).await;
        let client = client.map_err(|error| rejected(id, error))?;
        let listed = &self.settings.clients;
        let uri = client.redirect_uri(parameters.get("redirect_uri"), listed);
        let uri = uri.map_err(|error| rejected(client.label(), error))?;
        let checked = AuthorizationRequest::check(&parameters, &client, &uri, base, &self.scopes);
        let checked = checked.map_err(|error| {
            let (client, reason) = (client.label(), error.description);
            tracing::warn!(client, reason, "an authorization request is invalid");
            // Anyone can register any address, or name it in a document (RFC 9700, 4.11.2).
            if listed.0.is_empty() {
                return BrowserResponse::Page(SignInPage::Request(reason));
            }
            let state = parameters.get("state");
            redirect(response_url(&uri, state, Err(&error), base))
        });
        Ok((client, checked?))
    }

    /// Sends the user to the provider. A form that is sent again goes on with the same sign-in.
    async fn begin(
        &self,
        records: &Records,
        form: ConsentForm,
        approved_by: Option<String>,
        browser: Browser<'_>,
        binding: &str,
    ) -> Result<SignInResponse, StoreError> {
        let (keys, provider) = (&records.keys, self.provider());
        let flow_id = format!("{FLOW}{}", form.id);
        let flow = Flow::new(&flow_id, provider, binding);
        let nonce = flow.nonce(keys);
        let url = flow.provider_url(keys, browser.base, &provider.scopes, Some(&nonce));
        let url = url.await?;
        let pending = PendingSignIn {
            request: form.request,
            approved_by,
            is_taken: false,
        };
        let write = |begun: Versioned<PendingSignIn>| {
            let pending = begun.value.unwrap_or_else(|| pending.clone());
            let is_taken = pending.is_taken;
            Change::Write(pending, is_taken)
        };
        let id = record_id(&form.id);
        if records.update(&id, LIFE, write).await? {
            return Ok(BrowserResponse::Page(SignInPage::Expired));
        }
        let cookies = vec![browser.cookie(COOKIE, binding, LIFE)];
        Ok(BrowserResponse::Redirect { url, cookies })
    }
}

/// The agreements of users in one browser, each to a client. They are kept only for redirect URIs
/// over TLS: on the user's machine, any program could pretend to be another one (RFC 8252, 8.6). An
/// agreement counts only for the user who made it.
#[derive(Default, Deserialize, Serialize)]
pub(super) struct Approvals(Vec<(String, String)>);

impl Approvals {
    /// Reads the agreements in a browser's cookie.
    pub(super) fn read(keys: &EncryptionKeys, browser: Browser<'_>) -> Self {
        let sealed = browser.cookie_value(APPROVALS);
        let read = sealed.and_then(|sealed| keys.open_text(APPROVALS, sealed));
        read.unwrap_or_default()
    }

    /// Returns the user who has agreed to a request like this one.
    pub(super) fn user_for(&self, request: &AuthorizationRequest) -> Option<&str> {
        let client = client_in(request)?;
        let mut all = self.0.iter();
        let (_, user) = all.find(|(approved, _)| *approved == client)?;
        Some(user)
    }

    /// Replaces the agreement to a request like this one, and returns all of them, sealed. `None` if
    /// agreements to it are not kept.
    pub(super) fn with(
        mut self,
        request: &AuthorizationRequest,
        user: Option<String>,
        keys: &EncryptionKeys,
    ) -> Option<String> {
        let client = client_in(request)?;
        self.0.retain(|(approved, _)| *approved != client);
        self.0.extend(user.map(|user| (client, user)));
        let excess = self.0.len().saturating_sub(MOST_APPROVALS);
        self.0.drain(..excess);
        Some(keys.seal_text(APPROVALS, &self))
    }
}

/// Returns the cookie with sealed agreements.
pub(super) fn approvals_cookie(browser: Browser<'_>, sealed: &str) -> String {
    browser.cookie(APPROVALS, sealed, APPROVAL_LIFE)
}

/// Returns the name of a user in agreements.
pub(super) fn user_of(subject: &str) -> String {
    hash_of_texts(["user", subject])
}

fn client_in(request: &AuthorizationRequest) -> Option<String> {
    let (client, uri) = (&request.client_hash, &request.redirect_uri);
    let scopes = request.scopes.iter();
    let texts = [client, uri, &request.resource].into_iter().chain(scopes);
    uri.starts_with("https://").then(|| hash_of_texts(texts))
}
