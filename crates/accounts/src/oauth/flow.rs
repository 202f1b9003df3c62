//! A user's way to a provider and back, and the values that bind it to one browser: the consent page's
//! form, `state`, the nonce, and the PKCE verifier.
//!
//! None of these is stored. Each is a signature that covers the cookie's value, so it is valid in one
//! browser only, as long as that of which the flow has the id: a challenge, or a sign-in, both of
//! which are used once.

use super::{
    Parameters, Provider,
    broker::Broker,
    exchange::{ProviderError, ProviderTokens},
    keys::EncryptionKeys,
};
use crate::StoreError;

// The purposes of the derived keys.
const CONSENT_FORM: &str = "question";
const STATE: &str = "state";
const VERIFIER: &str = "verifier";
const NONCE: &str = "nonce";

/// A user's way to a provider in one browser.
pub(crate) struct Flow<'a> {
    /// The id of a challenge, or that of a sign-in with its prefix.
    id: &'a str,
    provider: &'a Provider,
    /// The cookie's value.
    browser: &'a str,
}

/// The secrets of a flow whose `state` the provider's redirect has brought back.
#[cfg_attr(test, derive(Debug, PartialEq, Eq))]
pub(crate) struct ReturnedFlow {
    /// RFC 7636: 43 characters.
    pub(crate) verifier: String,
    /// OpenID Connect Core 1.0, 3.1.2.1.
    pub(crate) nonce: String,
}

/// Returns the parts of a `state`: the flow's id, and the signature.
pub(crate) fn split_state(state: &str) -> Option<(&str, &str)> {
    state.rsplit_once('.')
}

impl<'a> Flow<'a> {
    pub(crate) fn new(id: &'a str, provider: &'a Provider, browser: &'a str) -> Self {
        Self {
            id,
            provider,
            browser,
        }
    }

    fn parts(&self) -> [&str; 3] {
        [self.id, &self.provider.id, self.browser]
    }

    /// Returns the token that the consent page's form sends back. Other sites do not know it.
    pub(super) fn form_token(&self, keys: &EncryptionKeys) -> String {
        keys.sign(CONSENT_FORM, &self.parts())
    }

    /// Returns true if the consent page with this token was shown in this browser, for this flow.
    pub(super) fn is_form_token(&self, keys: &EncryptionKeys, token: &str) -> bool {
        keys.signer(CONSENT_FORM, &self.parts(), token).is_some()
    }

    pub(crate) fn nonce(&self, keys: &EncryptionKeys) -> String {
        keys.sign(NONCE, &self.parts())
    }

    /// Returns the URL of the provider's page for this flow.
    pub(crate) async fn provider_url(
        &self,
        keys: &EncryptionKeys,
        base: &str,
        scopes: &[String],
        nonce: Option<&str>,
    ) -> Result<String, StoreError> {
        let (state, verifier) = (self.state(keys), keys.sign(VERIFIER, &self.parts()));
        let url = self
            .provider
            .authorize_url(base, scopes, state, verifier, nonce);
        url.await
            .map_err(|error| error.into_store_error(&self.provider.id))
    }

    fn state(&self, keys: &EncryptionKeys) -> String {
        format!("{}.{}", self.id, keys.sign(STATE, &self.parts()))
    }

    /// Returns the secrets of this flow, if the signature in its state is valid.
    pub(crate) fn returned(&self, keys: &EncryptionKeys, signature: &str) -> Option<ReturnedFlow> {
        let parts = self.parts();
        let signer = keys.signer(STATE, &parts, signature)?;
        Some(ReturnedFlow {
            verifier: keys.sign_as(signer, VERIFIER, &parts),
            nonce: keys.sign_as(signer, NONCE, &parts),
        })
    }
}

/// The reason why a user's way to a provider and back has failed.
#[derive(Debug)]
pub(crate) enum FlowError {
    /// The user has not agreed, or the provider does not name a user who may go on.
    Denied(&'static str),
    /// The code, if there is one, has not been used: the same may succeed later.
    Unavailable(String),
    /// The provider does not answer, and the code may have been used.
    Interrupted(String),
    /// The setup is wrong, or the provider's answer is not acceptable.
    Failed(String),
}

impl FlowError {
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Denied(reason) => reason,
            Self::Unavailable(reason) | Self::Interrupted(reason) | Self::Failed(reason) => reason,
        }
    }
}

impl From<StoreError> for FlowError {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<ProviderError> for FlowError {
    fn from(error: ProviderError) -> Self {
        match error {
            ProviderError::Unavailable(why) => Self::Unavailable(why.to_owned()),
            other => Self::Failed(format!("{other:?}")),
        }
    }
}

impl Broker {
    /// Exchanges the code in a provider's redirect, whose `state` has been checked.
    pub(crate) async fn redeem(
        &self,
        provider: &Provider,
        base: &str,
        query: &Parameters,
        verifier: String,
    ) -> Result<ProviderTokens, FlowError> {
        let failed = |why: &str| FlowError::Failed(why.to_owned());
        if !provider.urls().await?.is_from_issuer(query.get("iss")) {
            return Err(failed("the response comes from another issuer"));
        }
        // RFC 6749, 4.1.2.1.
        match query.get("error") {
            None => {}
            Some("access_denied") => {
                return Err(FlowError::Denied("the user has not agreed at the provider"));
            }
            Some("temporarily_unavailable") => {
                return Err(FlowError::Interrupted("the provider says so".to_owned()));
            }
            Some("invalid_scope") => return Err(failed("the provider says: invalid_scope")),
            Some("server_error") => return Err(failed("the provider says: server_error")),
            Some(_) => return Err(failed("the provider has returned another error")),
        }
        let code = query.get("code");
        let code = code.ok_or_else(|| failed("the response has no code"))?;
        let secret = self.client_secret(provider).await?;
        let exchanged = provider.exchange(&secret, base, code.to_owned(), verifier);
        exchanged
            .await
            .map_err(|error| match FlowError::from(error) {
                FlowError::Unavailable(why) => FlowError::Interrupted(why),
                other => other,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_states_are_valid_for_one_challenge_provider_and_browser() {
        let new = |id| Provider::openid(id, "client", "SECRET", "https://p.example");
        let (google, github) = (new("google"), new("github"));
        let own = Flow::new("c", &google, "b");
        let (old, new) = (
            "an-old-key-of-this-server-0123456789",
            "a-new-key-of-this-server-0123456789",
        );
        let (old, rotated) = (EncryptionKeys::of([old]), EncryptionKeys::of([new, old]));
        let (form, state) = (own.form_token(&old), own.state(&old));
        let (id, signature) = split_state(&state).unwrap();
        assert_eq!(id, "c");
        let returned = own.returned(&old, signature).unwrap();
        assert_eq!(returned.verifier.len(), 43);
        assert!(own.is_form_token(&rotated, &form));
        // The verifier is that of the old key, too.
        assert_eq!(own.returned(&rotated, signature), Some(returned));
        for other in [
            Flow::new("d", &google, "b"),
            Flow::new("c", &github, "b"),
            Flow::new("c", &google, "a"),
        ] {
            assert!(!other.is_form_token(&rotated, &form));
            assert_eq!(other.returned(&rotated, signature), None);
        }
        let other_key = EncryptionKeys::of([new]);
        assert!(!own.is_form_token(&other_key, &form));
        assert_eq!(own.returned(&other_key, signature), None);
        // A signature for another purpose.
        assert!(!own.is_form_token(&rotated, signature));
        assert_eq!(own.returned(&rotated, &form), None);
    }
}
