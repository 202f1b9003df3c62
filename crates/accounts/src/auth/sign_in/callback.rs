//! The provider's redirect back to this server, and this server's redirect back to the client.

use std::sync::Arc;

use super::{
    AuthorizationServer, SignInPage, SignInResponse,
    authorize::{
        Approvals, COOKIE, FLOW, LIFE, PendingSignIn, approvals_cookie, record_id, user_of,
    },
    identity::{Identity, IdentitySource},
    request::OAuthError,
    session::{Session, Stage, code},
};
use crate::{
    Secret, StoreError,
    clock::since_epoch,
    oauth::{
        Browser, BrowserResponse, Flow, FlowError, Grant, Parameters, Records, ReturnedFlow,
        Versioned, split_state,
    },
    store::Change,
};

/// Returns true for the `state` of a sign-in; those of challenges are different.
pub fn is_sign_in_state(state: &str) -> bool {
    state.starts_with(FLOW)
}

/// Returns the error that the client gets.
fn error_of(error: &FlowError) -> OAuthError {
    match error {
        FlowError::Denied(_) => OAuthError::new(
            "access_denied",
            "The user may not sign in to this server with this account",
        ),
        FlowError::Unavailable(_) | FlowError::Interrupted(_) => OAuthError::new(
            "temporarily_unavailable",
            "The user cannot sign in at the moment",
        ),
        FlowError::Failed(_) => OAuthError::new(
            "server_error",
            "The identity provider did not confirm the user",
        ),
    }
}

impl AuthorizationServer {
    /// Answers the provider's redirect, and signs the user in.
    pub async fn callback(
        self: &Arc<Self>,
        query: Parameters,
        browser: Browser<'_>,
    ) -> Result<SignInResponse, StoreError> {
        let expired = Ok(BrowserResponse::Page(SignInPage::Expired));
        let state = query.get("state").and_then(split_state);
        let Some(((id, signature), binding)) = state.zip(browser.binding(COOKIE)) else {
            return expired;
        };
        let records = self.records().await?;
        let flow = Flow::new(id, self.provider(), binding);
        let Some(returned) = flow.returned(&records.keys, signature) else {
            return expired;
        };
        let id = record_id(id.strip_prefix(FLOW).unwrap_or(id));
        let Some(pending) = take(&records, &id).await? else {
            return expired;
        };
        let approvals = Approvals::read(&records.keys, browser);
        let (server, base) = (Arc::clone(self), browser.base.to_owned());
        // In a task, because the browser may disconnect and a code works only once.
        let task = tokio::spawn(async move {
            let (request, client) = (&pending.request, &*pending.request.client);
            let signed_in = server.sign_in(&records, &pending, returned, &query, &base);
            let (result, agreed) = match signed_in.await {
                Ok((person, code)) => {
                    let user = &person.user;
                    tracing::info!(user, client, "a user has signed in");
                    (Ok(code), Some(user_of(&person.subject)))
                }
                Err(error) => {
                    let reason = error.reason();
                    tracing::warn!(client, reason, "a user could not sign in");
                    // Without an agreement: next time, the consent page is shown again.
                    (Err(error_of(&error)), None)
                }
            };
            let url = request.response_url(result.as_deref(), &base);
            (url, approvals.with(request, agreed, &records.keys))
        });
        let stopped = |_| StoreError::unavailable("the sign-in stopped");
        let (url, approvals) = task.await.map_err(stopped)?;
        let cookies = approvals.map(|sealed| approvals_cookie(browser, &sealed));
        let cookies = cookies.into_iter().collect();
        Ok(BrowserResponse::Redirect { url, cookies })
    }

    /// Exchanges the provider's code, identifies the user, and saves the session. Returns the
    /// person and the code for the client.
    async fn sign_in(
        &self,
        records: &Records,
        pending: &PendingSignIn,
        returned: ReturnedFlow,
        query: &Parameters,
        base: &str,
    ) -> Result<(Identity, String), FlowError> {
        let (provider, clock) = (self.provider(), &records.clock);
        let tokens = self
            .broker
            .redeem(provider, base, query, returned.verifier)
            .await?;
        let access = Secret::from(&*tokens.access);
        let (id_token, nonce) = (tokens.id_token.as_deref(), Some(&*returned.nonce));
        let person = self.identify(&access, id_token, nonce).await?;
        let person = self.check_allowed(person)?;
        let user = user_of(&person.subject);
        if pending.approved_by.as_ref().is_some_and(|it| *it != user) {
            return Err(FlowError::Denied("another user has agreed before"));
        }
        let is_github = matches!(self.settings.source, IdentitySource::GitHub(_));
        // GitHub's tokens may last until they are revoked.
        let is_lasting = is_github && tokens.expires_in.is_none();
        let mut grant = Grant::new(tokens, &provider.scopes, clock.now());
        grant.subject = Some(person.subject.clone());
        // Where tools that require the provider's tokens find it, too.
        let record_id = self.grant_record(base, &person.user);
        records.add_grant(&record_id, &grant).await?;
        let id = clock.id().simple().to_string();
        let mut request = pending.request.clone();
        request.state = None;
        let session = Session {
            request,
            begun_at: since_epoch(clock.now()).as_secs(),
            person: person.clone(),
            is_refreshable: grant.can_be_refreshed() || is_lasting,
            stage: Stage::Code,
        };
        session.begin(records, &id).await?;
        Ok((person, code(&records.keys, &id)))
    }
}

/// Takes a pending sign-in out of the store. Of several requests with the same state, one gets it.
async fn take(records: &Records, id: &str) -> Result<Option<PendingSignIn>, StoreError> {
    let take = |versioned: Versioned<PendingSignIn>| {
        let Some(pending) = versioned.value.filter(|it| !it.is_taken) else {
            return Change::Leave(None);
        };
        let mut taken = pending.clone();
        taken.is_taken = true;
        Change::Write(taken, Some(pending))
    };
    records.update(id, LIFE, take).await
}
