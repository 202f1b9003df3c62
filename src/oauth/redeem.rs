//! The provider's redirect back, and the exchange of its code for tokens.

use super::{
    Parameters, Provider,
    broker::Broker,
    exchange::{ProviderError, ProviderTokens},
};
use crate::StoreError;

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
        let redirect = provider.redirect_uri(base);
        let exchanged = provider.exchange(&secret, &redirect, code.to_owned(), verifier);
        exchanged
            .await
            .map_err(|error| match FlowError::from(error) {
                FlowError::Unavailable(why) => FlowError::Interrupted(why),
                other => other,
            })
    }
}
