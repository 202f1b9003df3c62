//! The provider's redirect back to this server, and this server's redirect back to the client.

use std::sync::Arc;

use http::HeaderMap;
use subtle::ConstantTimeEq;

use super::{
    AuthorizationServer, BrowserAnswer, SignInPage,
    approvals::{Approvals, user_of},
    authorize::{LIFE, PendingSignIn, cookie_name},
    identity::{Identity, IdentityError, IdentitySource},
    request::RequestError,
    session::{Session, Stage, code},
};
use crate::{
    Secret, StoreError,
    clock::since_epoch,
    oauth::{
        CallbackQuery, EncryptionKeys, Grant, ProviderError, ProviderTokens, Versioned, cookie_in,
    },
    store::{Change, Start},
};

/// Returns true for the `state` of a sign-in; those of challenges are different.
pub(crate) fn is_sign_in_state(state: &str) -> bool {
    state.starts_with("sign-in.")
}

/// The reason why a sign-in fails: what the client gets, and what the log gets.
struct SignInFailure(RequestError, String);

impl SignInFailure {
    fn denied(reason: impl Into<String>) -> Self {
        let text = "The user may not sign in to this server with this account";
        Self(RequestError::new("access_denied", text), reason.into())
    }

    fn unavailable(reason: impl Into<String>) -> Self {
        let text = "The user cannot sign in at the moment";
        Self(
            RequestError::new("temporarily_unavailable", text),
            reason.into(),
        )
    }

    fn failed(reason: impl Into<String>) -> Self {
        let text = "The identity provider did not confirm the user";
        Self(RequestError::new("server_error", text), reason.into())
    }
}

impl From<IdentityError> for SignInFailure {
    fn from(error: IdentityError) -> Self {
        match error {
            IdentityError::Unavailable(why) => Self::unavailable(why),
            IdentityError::Rejected(why) => Self::denied(why),
        }
    }
}

impl From<StoreError> for SignInFailure {
    fn from(error: StoreError) -> Self {
        Self::unavailable(error.to_string())
    }
}

impl From<ProviderError> for SignInFailure {
    fn from(error: ProviderError) -> Self {
        match error {
            ProviderError::Unavailable(why) => Self::unavailable(why),
            other => Self::failed(format!("{other:?}")),
        }
    }
}

impl AuthorizationServer {
    /// Answers the provider's redirect, and signs the user in.
    pub(crate) async fn callback(
        self: &Arc<Self>,
        query: CallbackQuery,
        base: &str,
        headers: &HeaderMap,
    ) -> Result<BrowserAnswer, StoreError> {
        let is_https = base.starts_with("https://");
        let state = query.state.as_deref().unwrap_or_default();
        let id = state.strip_prefix("sign-in.").unwrap_or_default();
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(browser) = cookie_in(headers, &cookie_name(is_https)).filter(|_| is_id) else {
            return Ok(BrowserAnswer::Page(SignInPage::Expired));
        };
        let keys = self.keys().await?;
        let Some(pending) = self.take(&keys, id, browser).await? else {
            return Ok(BrowserAnswer::Page(SignInPage::Expired));
        };
        let approvals = Approvals::read(&keys, headers, is_https);
        let (server, base) = (Arc::clone(self), base.to_owned());
        // In a task, because the browser may disconnect and a code works only once.
        let answer = tokio::spawn(async move {
            let signed_in = server.sign_in(&keys, &pending, query, &base).await;
            answer(&keys, pending, signed_in, approvals, &base)
        });
        answer
            .await
            .map_err(|_| StoreError::unavailable("the sign-in stopped"))
    }

    /// Takes a pending sign-in out of the store. Of several requests with the same state, one gets
    /// it.
    async fn take(
        &self,
        keys: &EncryptionKeys,
        id: &str,
        browser: &str,
    ) -> Result<Option<PendingSignIn>, StoreError> {
        let take = |versioned: Versioned<PendingSignIn>| {
            let is_same = |it: &PendingSignIn| it.browser.as_bytes().ct_eq(browser.as_bytes());
            let pending = versioned
                .value
                .filter(|it| !it.is_taken && bool::from(is_same(it)));
            let Some(pending) = pending else {
                return Change::Leave(None);
            };
            let is_taken = true;
            let taken = PendingSignIn {
                is_taken,
                ..pending
            };
            Change::Write(taken.clone(), Some(taken))
        };
        let (records, id) = (&self.broker.records, format!("sign-in#{id}"));
        records.update(Start::Current, keys, &id, LIFE, take).await
    }

    /// Exchanges the provider's code, identifies the user, and saves the session. Returns the
    /// person and the code for the client.
    async fn sign_in(
        &self,
        keys: &EncryptionKeys,
        pending: &PendingSignIn,
        query: CallbackQuery,
        base: &str,
    ) -> Result<(Identity, String), SignInFailure> {
        let tokens = self.provider_tokens(pending, query, base).await?;
        let access = Secret::from(&*tokens.access);
        let (id_token, nonce) = (tokens.id_token.as_deref(), Some(&*pending.nonce));
        let person = self.identify(&access, id_token, nonce).await?;
        let person = self.check_allowed(person)?;
        if pending
            .approved_by
            .as_ref()
            .is_some_and(|it| *it != user_of(&person.subject))
        {
            return Err(SignInFailure::denied("another user has agreed before"));
        }
        let is_github = matches!(self.settings.source, IdentitySource::GitHub(_));
        // GitHub's tokens may last until they are revoked.
        let is_lasting = is_github && tokens.expires_in.is_none();
        let mut grant = Grant::new(tokens, &self.provider().scopes, self.broker.clock.now());
        grant.subject = Some(person.subject.clone());
        // Where tools that require the provider's tokens find it, too.
        let record_id = self.grant_record(base, &person.user);
        self.broker.add_grant(keys, &record_id, &grant).await?;
        let id = self.broker.clock.id().simple().to_string();
        let mut request = pending.request.clone();
        request.state = None;
        let session = Session {
            request,
            begun_at: since_epoch(self.broker.clock.now()).as_secs(),
            person: person.clone(),
            is_refreshable: grant.can_be_refreshed() || is_lasting,
            stage: Stage::Code,
        };
        self.begin_session(keys, &id, &session).await?;
        Ok((person, code(keys, &id)))
    }

    async fn provider_tokens(
        &self,
        pending: &PendingSignIn,
        query: CallbackQuery,
        base: &str,
    ) -> Result<ProviderTokens, SignInFailure> {
        let provider = self.provider();
        if !provider
            .urls()
            .await?
            .is_from_issuer(query.issuer.as_deref())
        {
            return Err(SignInFailure::failed(
                "the response comes from another issuer",
            ));
        }
        if let Some(error) = query.error {
            return Err(match error.as_str() {
                "access_denied" => SignInFailure::denied("the user has not agreed at the provider"),
                "temporarily_unavailable" => SignInFailure::unavailable("the provider says so"),
                _ => SignInFailure::failed("the provider has returned an error"),
            });
        }
        let code = query
            .code
            .ok_or_else(|| SignInFailure::failed("the response has no code"))?;
        let secret = self.broker.client_secret(provider).await?;
        let (redirect, verifier) = (provider.redirect_uri(base), pending.verifier.clone());
        Ok(provider
            .exchange(&secret, &redirect, code, verifier)
            .await?)
    }
}

/// Returns the redirect to the client.
fn answer(
    keys: &EncryptionKeys,
    pending: PendingSignIn,
    signed_in: Result<(Identity, String), SignInFailure>,
    approvals: Approvals,
    base: &str,
) -> BrowserAnswer {
    let request = pending.request;
    let client = &*request.client;
    let is_https = base.starts_with("https://");
    let (url, agreed) = match signed_in {
        Ok((person, code)) => {
            let user = &person.user;
            tracing::info!(user, client, "a user has signed in");
            (request.success(&code, base), Some(user_of(&person.subject)))
        }
        Err(SignInFailure(error, reason)) => {
            tracing::warn!(client, reason, "a user could not sign in");
            // Without an agreement: next time, the consent page is shown again.
            (request.failure(error, base), None)
        }
    };
    let cookie = approvals.with(&request, agreed, keys, is_https);
    let cookies = cookie.into_iter().collect();
    let failed = BrowserAnswer::Page(SignInPage::Expired);
    url.map_or(failed, |url| BrowserAnswer::Redirect { url, cookies })
}
