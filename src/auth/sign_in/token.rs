//! The token endpoint and the revocation endpoint: RFC 6749, 4.1.3 and 6; RFC 7009.

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{
    AuthorizationServer,
    client::{hash_of, registration_in},
    identity::{Identity, IdentityError, IdentitySource},
    own_keys::sign,
    parameters::Parameters,
    request::is_server,
    session::{Presented, Session, Stage, Turn, record_id, refresh_token},
};
use crate::{
    Secret, StoreError,
    clock::since_epoch,
    oauth::{EncryptionKeys, Grants, TokenRefresh, Versioned, WantedGrant},
};

/// The time that the provider has to confirm a user, doubled.
const CONFIRMATION: Duration = Duration::from_secs(20);

/// The error of an endpoint.
#[derive(Debug)]
pub(crate) enum EndpointError {
    /// A code of RFC 6749, 5.2, RFC 7009, 2.2.1, RFC 7591, 3.2.2, or RFC 8707, section 2, and a
    /// description.
    Rejected(&'static str, &'static str),
    /// The same request may succeed later.
    Unavailable(String),
}

impl EndpointError {
    pub(super) fn rejected(code: &'static str, description: &'static str) -> Self {
        Self::Rejected(code, description)
    }

    fn grant(description: &'static str) -> Self {
        Self::Rejected("invalid_grant", description)
    }

    fn request(description: &'static str) -> Self {
        Self::Rejected("invalid_request", description)
    }
}

impl From<StoreError> for EndpointError {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// Returns the error for what this server seems not to have issued.
fn unknown(keys: &EncryptionKeys, text: &'static str) -> EndpointError {
    if keys.is_incomplete {
        return EndpointError::Unavailable("an old key cannot be read".to_owned());
    }
    EndpointError::grant(text)
}

/// Returns the id of a client that exists: RFC 6749, 5.2. One that does not registers again.
fn client_in<'a>(form: &'a Parameters, keys: &EncryptionKeys) -> Result<&'a str, EndpointError> {
    let id = form
        .get("client_id")
        .ok_or(EndpointError::request("client_id is missing"))?;
    if id.starts_with("https:") || registration_in(id, keys).is_some() {
        return Ok(id);
    }
    Err(match unknown(keys, "The client is not registered here") {
        EndpointError::Rejected(_, text) => EndpointError::Rejected("invalid_client", text),
        unavailable @ EndpointError::Unavailable(_) => unavailable,
    })
}

/// The lifetime of access tokens.
const TOKEN_LIFE: Duration = Duration::from_mins(30);
const UNKNOWN_CODE: &str = "The code is not valid, has expired, or has been used";
const UNKNOWN_TOKEN: &str = "The refresh token is not valid any more: the user must sign in again";

impl AuthorizationServer {
    /// Answers `POST /token`.
    pub(crate) async fn token(
        self: &Arc<Self>,
        form: &Parameters,
        base: &str,
    ) -> Result<Value, EndpointError> {
        let keys = self.keys().await?;
        let client = client_in(form, &keys)?;
        match form.get("grant_type") {
            Some("authorization_code") => self.redeem(form, client, &keys, base).await,
            Some("refresh_token") => self.refresh(form, client, &keys, base).await,
            None => Err(EndpointError::request("grant_type is missing")),
            Some(_) => Err(EndpointError::rejected(
                "unsupported_grant_type",
                "grant_type must be authorization_code or refresh_token",
            )),
        }
    }

    /// Answers `POST /revoke`. A token that is not this client's is left alone.
    pub(crate) async fn revoke(&self, form: &Parameters) -> Result<(), EndpointError> {
        let keys = self.keys().await?;
        let client = client_in(form, &keys)?;
        let token = form
            .get("token")
            .ok_or(EndpointError::request("token is missing"))?;
        let Some(presented) = Presented::refresh_token(token, &keys) else {
            if token.starts_with("ey") {
                let text = "Access tokens cannot be revoked; they expire soon";
                return Err(EndpointError::rejected("unsupported_token_type", text));
            }
            return Ok(());
        };
        if let Some(session) = self.session(&keys, presented.session).await? {
            check_client(client, &session)?;
            self.end_session(&keys, presented.session).await?;
        }
        Ok(())
    }

    async fn session(
        &self,
        keys: &EncryptionKeys,
        id: &str,
    ) -> Result<Option<Session>, StoreError> {
        let records = &self.broker.records;
        let versioned: Versioned<Session> = records.load(keys, &record_id(id)).await?;
        Ok(versioned.value)
    }

    /// Exchanges a code for tokens.
    async fn redeem(
        &self,
        form: &Parameters,
        client: &str,
        keys: &EncryptionKeys,
        base: &str,
    ) -> Result<Value, EndpointError> {
        let text = form
            .get("code")
            .ok_or(EndpointError::request("code is missing"))?;
        let unknown = || unknown(keys, UNKNOWN_CODE);
        let presented = Presented::code(text, keys).ok_or_else(unknown)?;
        let session = self.session(keys, presented.session).await?;
        let session = session.ok_or_else(unknown)?;
        check_client(client, &session)?;
        // OAuth 2.1 leaves it out: the verifier binds the code to the client that asked for it.
        if form
            .get("redirect_uri")
            .is_some_and(|uri| uri != session.request.redirect_uri)
        {
            let text = "redirect_uri is not that of the authorization request";
            return Err(EndpointError::grant(text));
        }
        check_verifier(form.get("code_verifier"), &session.request.challenge)?;
        check_resource(form, &session)?;
        let advanced = self
            .advance_session(keys, &presented, &session.person)
            .await?;
        let Some(session) = advanced else {
            // RFC 6749, 4.1.2: somebody else has the code.
            self.end_reused(keys, &presented, &session).await?;
            return Err(unknown());
        };
        self.tokens(keys, &presented, (client, &session), base)
    }

    /// Exchanges a refresh token for new tokens, once the provider has confirmed the user.
    async fn refresh(
        self: &Arc<Self>,
        form: &Parameters,
        client: &str,
        keys: &EncryptionKeys,
        base: &str,
    ) -> Result<Value, EndpointError> {
        let text = form.get("refresh_token");
        let text = text.ok_or(EndpointError::request("refresh_token is missing"))?;
        let unknown = || unknown(keys, UNKNOWN_TOKEN);
        let presented = Presented::refresh_token(text, keys).ok_or_else(unknown)?;
        let session = self.session(keys, presented.session).await?;
        let session = session
            .filter(|it| it.stage != Stage::Ended)
            .ok_or_else(unknown)?;
        check_client(client, &session)?;
        check_resource(form, &session)?;
        if !self
            .settings
            .clients
            .allows(client, &session.request.redirect_uri)
        {
            return Err(EndpointError::grant(
                "This server accepts listed clients only",
            ));
        }
        let person = match presented.turn(session.stage, self.broker.clock.now()) {
            Turn::Next => match self.confirmed(keys, &session, base).await {
                Ok(person) => person,
                Err(IdentityError::Unavailable(why)) => {
                    return Err(EndpointError::Unavailable(why));
                }
                Err(IdentityError::Rejected(reason)) => {
                    let (user, client) = (&session.person.user, &session.request.client);
                    tracing::warn!(user, client, reason, "a user's session has ended");
                    self.end_session(keys, presented.session).await?;
                    return Err(unknown());
                }
            },
            // Confirmed less than a minute ago.
            Turn::Again | Turn::Reused => session.person.clone(),
        };
        let Some(session) = self.advance_session(keys, &presented, &person).await? else {
            self.end_reused(keys, &presented, &session).await?;
            return Err(unknown());
        };
        self.tokens(keys, &presented, (client, &session), base)
    }

    async fn end_reused(
        &self,
        keys: &EncryptionKeys,
        presented: &Presented<'_>,
        session: &Session,
    ) -> Result<(), StoreError> {
        let (user, client) = (&session.person.user, &session.request.client);
        tracing::warn!(
            user,
            client,
            "a code or refresh token was used again; its session has ended"
        );
        self.end_session(keys, presented.session).await
    }

    /// Asks the provider who the user is: someone who has left loses access.
    async fn confirmed(
        self: &Arc<Self>,
        keys: &EncryptionKeys,
        session: &Session,
        base: &str,
    ) -> Result<Identity, IdentityError> {
        const WITHDRAWN: IdentityError =
            IdentityError::Rejected("the provider has withdrawn the user's tokens");
        let (broker, old) = (&self.broker, &session.person);
        let end = Duration::from_secs(session.begun_at).saturating_add(self.settings.session_life);
        if since_epoch(broker.clock.now()) >= end {
            return Err(IdentityError::Rejected("it has lasted as long as it may"));
        }
        let record_id = self.grant_record(base, &old.user);
        let find = |grants: &Grants| grants.of_account(&old.subject).cloned();
        let grant = broker.current_grant(keys, &record_id, find).await?;
        let grant = grant.ok_or(WITHDRAWN)?;
        let is_github = matches!(self.settings.source, IdentitySource::GitHub(_));
        if is_github && !grant.can_be_refreshed() {
            let person = self
                .identify(&Secret::from(grant.access), None, None)
                .await?;
            return self.check_same(person, old);
        }
        let refresh = TokenRefresh {
            provider: Arc::clone(self.provider()),
            record_id,
            wanted: WantedGrant::OfAccount {
                subject: old.subject.clone(),
                access: grant.access,
            },
        };
        let token = broker.refreshed_token(refresh, CONFIRMATION).await?;
        let token = token.ok_or(WITHDRAWN)?;
        if !is_github && token.id_token.is_none() {
            // OpenID Connect Core 1.0, 12.2: optional.
            return self.check_same(self.userinfo(&token, old).await?, old);
        }
        let person = self.identify(&token.access, token.id_token.as_deref(), None);
        match person.await {
            Ok(person) => self.check_same(person, old),
            // The provider has refreshed the token, so it knows the user.
            Err(IdentityError::Rejected(why)) if !is_github => {
                Err(IdentityError::Unavailable(why.to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    fn check_same(&self, person: Identity, old: &Identity) -> Result<Identity, IdentityError> {
        if person.subject == old.subject && person.user == old.user {
            return self.check_allowed(person);
        }
        Err(IdentityError::Rejected("the provider names another user"))
    }

    /// Returns the response with tokens: RFC 6749, 5.1.
    fn tokens(
        &self,
        keys: &EncryptionKeys,
        presented: &Presented<'_>,
        (client, session): (&str, &Session),
        base: &str,
    ) -> Result<Value, EndpointError> {
        let (life, clock) = (TOKEN_LIFE.as_secs(), &self.broker.clock);
        let scope = session.request.scopes.join(" ");
        let now = since_epoch(clock.now()).as_secs();
        // RFC 9068, 2.2.
        let mut claims = json!({
            "iss": base,
            "sub": session.person.user,
            "aud": session.request.resource,
            "client_id": client,
            "iat": now,
            "exp": now + life,
            "jti": clock.id().simple().to_string(),
        });
        let mut response = json!({"token_type": "Bearer", "expires_in": life});
        if !session.person.groups.is_empty() {
            claims["groups"] = json!(session.person.groups);
        }
        if !scope.is_empty() {
            claims["scope"] = json!(scope);
            response["scope"] = scope.into();
        }
        let newest = keys.secrets().next().expect("there is at least one key");
        response["access_token"] = sign(newest, &claims)?.into();
        if let Stage::Tokens { number, .. } = session.stage
            && session.is_refreshable
        {
            response["refresh_token"] = refresh_token(keys, presented.session, number).into();
        }
        Ok(response)
    }
}

/// Checks the id by which a public client identifies itself: RFC 6749, 3.2.1.
fn check_client(client_id: &str, session: &Session) -> Result<(), EndpointError> {
    if hash_of(client_id) == session.request.client_hash {
        return Ok(());
    }
    Err(EndpointError::grant(
        "client_id is not the client that the code or token was issued to",
    ))
}

/// Checks the PKCE verifier: RFC 7636, 4.6.
fn check_verifier(verifier: Option<&str>, challenge: &str) -> Result<(), EndpointError> {
    let is_valid = verifier.is_some_and(|verifier| {
        let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
        (43..=128).contains(&verifier.len())
            && bool::from(hash.as_bytes().ct_eq(challenge.as_bytes()))
    });
    if is_valid {
        return Ok(());
    }
    Err(EndpointError::grant(
        "code_verifier does not match the code_challenge",
    ))
}

/// Checks that the token is for this server: RFC 8707, 2.2.
fn check_resource(form: &Parameters, session: &Session) -> Result<(), EndpointError> {
    let is_same = |it: &str| is_server(it, session.request.resource.trim_end_matches('/'));
    if form.get("resource").is_none_or(is_same) {
        return Ok(());
    }
    let text = "resource is not that of the authorization request";
    Err(EndpointError::rejected("invalid_target", text))
}
