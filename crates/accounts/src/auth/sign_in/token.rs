//! The token endpoint and the revocation endpoint: RFC 6749, 4.1.3 and 6; RFC 7009.

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{
    AuthorizationServer,
    client::{hash_of, registration_in},
    identity::{Identity, IdentitySource},
    own_keys::sign,
    request::{EndpointError, OAuthError},
    session::{Presented, SESSION_LIFE, Session, Stage, Turn, refresh_token},
};
use crate::{
    Secret,
    auth::oidc::is_server,
    clock::since_epoch,
    oauth::{EncryptionKeys, FlowError, Parameters, Records, TokenRefresh, WantedGrant},
};

/// The time that the provider has to confirm a user, doubled.
const CONFIRMATION: Duration = Duration::from_secs(20);
/// The lifetime of access tokens.
const TOKEN_LIFE: Duration = Duration::from_mins(30);

const UNREGISTERED: OAuthError =
    OAuthError::new("invalid_client", "The client is not registered here");
const UNKNOWN_CODE: OAuthError =
    OAuthError::grant("The code is not valid, has expired, or has been used");
const UNKNOWN_TOKEN: OAuthError =
    OAuthError::grant("The refresh token is not valid any more: the user must sign in again");

/// A client's request for tokens.
struct TokenRequest<'a> {
    form: &'a Parameters,
    /// The client's id.
    client: &'a str,
    base: &'a str,
    records: &'a Records,
}

/// Returns the error for what this server seems not to have issued.
fn unknown(keys: &EncryptionKeys, error: OAuthError) -> EndpointError {
    if keys.is_incomplete {
        return EndpointError::Unavailable("an old key cannot be read".to_owned());
    }
    error.into()
}

/// Returns a parameter that must not be missing.
fn required<'a>(
    form: &'a Parameters,
    name: &str,
    missing: &'static str,
) -> Result<&'a str, OAuthError> {
    form.get(name).ok_or(OAuthError::request(missing))
}

/// Returns the id of a client that exists: RFC 6749, 5.2. One that does not registers again.
fn client_in<'a>(form: &'a Parameters, keys: &EncryptionKeys) -> Result<&'a str, EndpointError> {
    let id = required(form, "client_id", "client_id is missing")?;
    if id.starts_with("https:") || registration_in(id, keys).is_some() {
        return Ok(id);
    }
    Err(unknown(keys, UNREGISTERED))
}

impl AuthorizationServer {
    /// Answers `POST /token`.
    pub async fn token(
        self: &Arc<Self>,
        form: &Parameters,
        base: &str,
    ) -> Result<Value, EndpointError> {
        let records = &self.records().await?;
        let request = TokenRequest {
            form,
            client: client_in(form, &records.keys)?,
            base,
            records,
        };
        match form.get("grant_type") {
            Some("authorization_code") => request.redeem().await,
            Some("refresh_token") => self.refresh(&request).await,
            None => Err(OAuthError::request("grant_type is missing").into()),
            Some(_) => {
                let text = "grant_type must be authorization_code or refresh_token";
                Err(OAuthError::new("unsupported_grant_type", text).into())
            }
        }
    }

    /// Answers `POST /revoke`. A token that is not this client's is left alone.
    pub async fn revoke(&self, form: &Parameters) -> Result<(), EndpointError> {
        let records = self.records().await?;
        let client = client_in(form, &records.keys)?;
        let token = required(form, "token", "token is missing")?;
        let Some(presented) = Presented::refresh_token(token, &records.keys) else {
            if token.starts_with("ey") {
                let text = "Access tokens cannot be revoked; they expire soon";
                return Err(OAuthError::new("unsupported_token_type", text).into());
            }
            return Ok(());
        };
        if let Some(session) = Session::load(&records, presented.session).await? {
            check_client(client, &session)?;
            Session::end(&records, presented.session).await?;
        }
        Ok(())
    }

    /// Exchanges a refresh token for new tokens, once the provider has confirmed the user.
    async fn refresh(self: &Arc<Self>, request: &TokenRequest<'_>) -> Result<Value, EndpointError> {
        let (form, records) = (request.form, request.records);
        let text = required(form, "refresh_token", "refresh_token is missing")?;
        let unknown = || unknown(&records.keys, UNKNOWN_TOKEN);
        let presented = Presented::refresh_token(text, &records.keys).ok_or_else(unknown)?;
        let session = Session::load(records, presented.session).await?;
        let session = session.filter(|it| it.stage != Stage::Ended);
        let session = session.ok_or_else(unknown)?;
        check_client(request.client, &session)?;
        check_resource(form, &session)?;
        let listed = &self.settings.clients;
        if !listed.allows(request.client, &session.request.redirect_uri) {
            return Err(OAuthError::grant("This server accepts listed clients only").into());
        }
        let person = match presented.turn(session.stage, records.clock.now()) {
            Turn::Next => match self.confirmed(records, &session, request.base).await {
                Ok(person) => person,
                Err(FlowError::Denied(reason)) => {
                    let (user, client) = (&session.person.user, &session.request.client);
                    tracing::warn!(user, client, reason, "a user's session has ended");
                    Session::end(records, presented.session).await?;
                    return Err(unknown());
                }
                Err(error) => return Err(EndpointError::Unavailable(error.reason().to_owned())),
            },
            // Confirmed less than a minute ago.
            Turn::Again | Turn::Reused => session.person.clone(),
        };
        (request.issue(&presented, &session, &person, UNKNOWN_TOKEN)).await
    }

    /// Asks the provider who the user is: someone who has left loses access.
    async fn confirmed(
        self: &Arc<Self>,
        records: &Records,
        session: &Session,
        base: &str,
    ) -> Result<Identity, FlowError> {
        const WITHDRAWN: FlowError =
            FlowError::Denied("the provider has withdrawn the user's tokens");
        let old = &session.person;
        let end = Duration::from_secs(session.begun_at).saturating_add(SESSION_LIFE);
        if since_epoch(records.clock.now()) >= end {
            return Err(FlowError::Denied("it has lasted as long as it may"));
        }
        let record_id = self.grant_record(base, &old.user);
        let grant = records.current_grant(&record_id, |grants| grants.of_account(&old.subject));
        let grant = grant.await?.ok_or(WITHDRAWN)?;
        let is_github = matches!(self.settings.source, IdentitySource::GitHub(_));
        if is_github && !grant.can_be_refreshed() {
            let access = Secret::from(grant.access);
            let person = self.identify(&access, None, None).await?;
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
        let token = self.broker.refreshed_token(refresh, CONFIRMATION).await?;
        let token = token.ok_or(WITHDRAWN)?;
        if !is_github && token.id_token.is_none() {
            // OpenID Connect Core 1.0, 12.2: optional.
            return self.check_same(self.userinfo(&token, old).await?, old);
        }
        let person = self.identify(&token.access, token.id_token.as_deref(), None);
        match person.await {
            Ok(person) => self.check_same(person, old),
            // The provider has refreshed the token, so it knows the user.
            Err(FlowError::Denied(why)) if !is_github => {
                Err(FlowError::Unavailable(why.to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    fn check_same(&self, person: Identity, old: &Identity) -> Result<Identity, FlowError> {
        if person.subject == old.subject && person.user == old.user {
            return self.check_allowed(person);
        }
        Err(FlowError::Denied("the provider names another user"))
    }
}

impl TokenRequest<'_> {
    /// Exchanges a code for tokens.
    async fn redeem(&self) -> Result<Value, EndpointError> {
        let (form, records) = (self.form, self.records);
        let text = required(form, "code", "code is missing")?;
        let unknown = || unknown(&records.keys, UNKNOWN_CODE);
        let presented = Presented::code(text, &records.keys).ok_or_else(unknown)?;
        let session = Session::load(records, presented.session).await?;
        let session = session.ok_or_else(unknown)?;
        check_client(self.client, &session)?;
        // OAuth 2.1 leaves it out: the verifier binds the code to the client that asked for it.
        let uri = form.get("redirect_uri");
        let is_same = uri.is_none_or(|uri| uri == session.request.redirect_uri);
        let text = "redirect_uri is not that of the authorization request";
        check(is_same, OAuthError::grant(text))?;
        check_verifier(form.get("code_verifier"), &session.request.challenge)?;
        check_resource(form, &session)?;
        (self.issue(&presented, &session, &session.person, UNKNOWN_CODE)).await
    }

    /// Moves a session to its next stage, and returns the response with tokens: RFC 6749, 5.1. If the
    /// code or the refresh token was used before, somebody else has it (4.1.2), and the session ends.
    async fn issue(
        &self,
        presented: &Presented<'_>,
        old: &Session,
        person: &Identity,
        unknown_error: OAuthError,
    ) -> Result<Value, EndpointError> {
        let records = self.records;
        let Some(session) = Session::advance(records, presented, person).await? else {
            let (user, client) = (&old.person.user, &old.request.client);
            let text = "a code or refresh token was used again; its session has ended";
            tracing::warn!(user, client, "{text}");
            Session::end(records, presented.session).await?;
            return Err(unknown(&records.keys, unknown_error));
        };
        let (life, clock, keys) = (TOKEN_LIFE.as_secs(), &records.clock, &records.keys);
        let scope = session.request.scopes.join(" ");
        let now = since_epoch(clock.now()).as_secs();
        // RFC 9068, 2.2.
        let mut claims = json!({
            "iss": self.base,
            "sub": session.person.user,
            "aud": session.request.resource,
            "client_id": self.client,
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

/// Returns an error unless a rule is met.
fn check(is_met: bool, error: OAuthError) -> Result<(), OAuthError> {
    is_met.then_some(()).ok_or(error)
}

/// Checks the id by which a public client identifies itself: RFC 6749, 3.2.1.
fn check_client(client_id: &str, session: &Session) -> Result<(), OAuthError> {
    let text = "client_id is not the client that the code or token was issued to";
    let is_same = hash_of(client_id) == session.request.client_hash;
    check(is_same, OAuthError::grant(text))
}

/// Checks the PKCE verifier: RFC 7636, 4.6.
fn check_verifier(verifier: Option<&str>, challenge: &str) -> Result<(), OAuthError> {
    let is_valid = verifier.is_some_and(|verifier| {
        let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
        (43..=128).contains(&verifier.len())
            && bool::from(hash.as_bytes().ct_eq(challenge.as_bytes()))
    });
    let text = "code_verifier does not match the code_challenge";
    check(is_valid, OAuthError::grant(text))
}

/// Checks that the token is for this server: RFC 8707, 2.2.
fn check_resource(form: &Parameters, session: &Session) -> Result<(), OAuthError> {
    let is_same = |it: &str| is_server(it, &session.request.resource);
    let text = "resource is not that of the authorization request";
    let error = OAuthError::new("invalid_target", text);
    check(form.get("resource").is_none_or(is_same), error)
}
