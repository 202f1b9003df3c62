//! The authorization server: what all of its endpoints share.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use super::{
    SignIn,
    documents::Documents,
    identity::{Identity, IdentitySource, described, github_identity, identity_in, may_sign_in},
    own_keys::{JWKS_PATH, jwks},
    request::ServerScopes,
};
use crate::{
    AccessToken, Caller, Secret, StoreError,
    oauth::{Broker, FlowError, Provider, Records, RefreshedToken, grant_record_id},
    text::LONGEST_ID,
};

/// The maximum size of a user's groups, in bytes: they are in every access token, and event sources
/// limit headers to little more than 8 KiB.
const LARGEST_GROUPS: usize = 4 * 1024;

/// The settings of sign-in, with everything that is needed to apply them.
pub struct AuthorizationServer {
    pub(super) settings: SignIn,
    pub(super) broker: Arc<Broker>,
    pub(super) documents: Documents,
    pub(super) scopes: ServerScopes,
}

impl AuthorizationServer {
    /// Creates the server. `required` are the scopes of every call, `known` those of any.
    pub fn new(
        settings: SignIn,
        broker: Arc<Broker>,
        required: Vec<String>,
        known: BTreeSet<String>,
    ) -> Arc<Self> {
        Arc::new(Self {
            documents: Documents::new(broker.clock.clone(), settings.document_client.clone()),
            scopes: ServerScopes { required, known },
            settings,
            broker,
        })
    }

    pub(super) fn provider(&self) -> &Arc<Provider> {
        &self.settings.provider
    }

    pub(super) async fn records(&self) -> Result<Records, StoreError> {
        self.broker.records(None).await
    }

    /// Returns true if this is the id of the provider at which users sign in.
    pub fn has_provider(&self, id: &str) -> bool {
        self.provider().id() == id
    }

    /// Returns the metadata of this server as an issuer: RFC 8414, section 2; RFC 9207, section 3;
    /// OAuth Client ID Metadata Document. The last two lists are required by OpenID Connect Discovery
    /// 1.0, 3, and so is RS256 in the second one, although this server issues no ID tokens.
    pub fn metadata(&self, issuer: &str) -> Value {
        let mut metadata = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "registration_endpoint": format!("{issuer}/register"),
            "revocation_endpoint": format!("{issuer}/revoke"),
            "jwks_uri": format!("{issuer}{JWKS_PATH}"),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["EdDSA", "RS256"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": true,
        });
        if !self.scopes.known.is_empty() {
            metadata["scopes_supported"] = json!(self.scopes.known);
        }
        metadata
    }

    /// Returns the public keys of access tokens.
    pub async fn jwks(&self) -> Result<Value, StoreError> {
        let records = self.records().await?;
        let secrets: Vec<_> = records.keys.secrets().cloned().collect();
        Ok(jwks(&secrets))
    }

    /// Returns the id of the record with a user's tokens at the provider: the same as for tools that
    /// require them.
    pub(super) fn grant_record(&self, issuer: &str, user: &str) -> String {
        let caller = Caller::AccessToken(Arc::new(AccessToken::of(issuer.into())));
        grant_record_id(&caller.namespace(), user, self.provider().id())
    }

    /// Identifies the person for whom the provider has issued tokens.
    pub(super) async fn identify(
        &self,
        access: &Secret,
        id_token: Option<&str>,
        nonce: Option<&str>,
    ) -> Result<Identity, FlowError> {
        let (claims, clock) = (&self.settings.claims, &self.broker.clock);
        match &self.settings.source {
            IdentitySource::IdToken(tokens) => {
                tokens.identity(id_token, nonce, claims, clock).await
            }
            IdentitySource::GitHub(api) => {
                github_identity(api, access, &claims.user_claim, &self.settings.rules).await
            }
        }
    }

    /// Asks the provider about a person for whom a refresh has brought no ID token: OpenID Connect
    /// Core 1.0, 5.3. If it cannot be asked, the refresh alone confirms the person.
    pub(super) async fn userinfo(
        &self,
        token: &RefreshedToken,
        old: &Identity,
    ) -> Result<Identity, FlowError> {
        let (provider, names) = (self.provider(), &self.settings.claims);
        let urls = provider.urls().await;
        let urls = urls.map_err(|error| error.into_store_error(provider.id()))?;
        let (IdentitySource::IdToken(tokens), Some(url)) = (&self.settings.source, &urls.userinfo)
        else {
            return Ok(old.clone());
        };
        let described = described(url, &token.access).await?;
        let described = described.filter(|it| it["sub"] == *old.subject);
        let Some(Value::Object(mut claims)) = described else {
            let text = "the provider does not name the user";
            return Err(FlowError::Denied(text));
        };
        // It need not have the claim that is the user, because `sub` identifies the account.
        let user = || old.user.clone().into();
        claims.entry(&*names.user_claim).or_insert_with(user);
        let person = identity_in(&claims, names, tokens.addresses)?;
        if token.is_shared && person.groups.is_empty() && !old.groups.is_empty() {
            // Another call has got the ID token, which may be all that names groups. Whoever tries again
            // gets one, too; to keep groups that nobody has confirmed could go on for ever.
            let text = "another call has just asked the provider who the user is";
            return Err(FlowError::Unavailable(text.to_owned()));
        }
        Ok(person)
    }

    /// Checks that a person may sign in, and fits into an access token.
    pub(super) fn check_allowed(&self, person: Identity) -> Result<Identity, FlowError> {
        let size: usize = person.groups.iter().map(String::len).sum();
        if size > LARGEST_GROUPS || person.user.len() > LONGEST_ID {
            return Err(FlowError::Denied("the user's name or groups are too long"));
        }
        if may_sign_in(&self.settings.rules, &person) {
            return Ok(person);
        }
        Err(FlowError::Denied("no rule lets the user sign in"))
    }
}
