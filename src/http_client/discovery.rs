//! The metadata of an issuer: `OpenID` Connect Discovery 1.0, section 4, or else RFC 8414, section 3.

use std::fmt;

use reqwest::{StatusCode, Url};
use serde::de::DeserializeOwned;

use super::{TransportError, get};

/// The reason why there is no metadata.
pub(crate) enum DiscoveryError {
    Transport(TransportError),
    Status(StatusCode),
    Invalid(&'static str),
}

impl fmt::Display for DiscoveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transport(error) => error.fmt(f),
            Self::Status(status) => write!(f, "the issuer's metadata has the status {status}"),
            Self::Invalid(reason) => f.write_str(reason),
        }
    }
}

impl From<TransportError> for DiscoveryError {
    fn from(error: TransportError) -> Self {
        Self::Transport(error)
    }
}

/// Fetches the metadata of an issuer. `issuer_in` returns the issuer that it names.
pub(crate) async fn discover<T: DeserializeOwned>(
    issuer: &str,
    issuer_in: fn(&T) -> &str,
) -> Result<T, DiscoveryError> {
    let base = issuer.trim_end_matches('/');
    let mut fetched = get(&format!("{base}/.well-known/openid-configuration")).await?;
    if fetched.status == StatusCode::NOT_FOUND {
        let url =
            Url::parse(base).map_err(|_| DiscoveryError::Invalid("the issuer is not a URL"))?;
        let origin = url.origin().ascii_serialization();
        let path = url.path().trim_end_matches('/');
        let url = format!("{origin}/.well-known/oauth-authorization-server{path}");
        fetched = get(&url).await?;
    }
    if !fetched.status.is_success() {
        return Err(DiscoveryError::Status(fetched.status));
    }
    let invalid = |_| DiscoveryError::Invalid("the response is not the metadata of an issuer");
    let metadata = serde_json::from_slice(&fetched.body).map_err(invalid)?;
    // RFC 8414, 3.3: otherwise another issuer could pass off its keys or endpoints as this one's.
    if issuer_in(&metadata).trim_end_matches('/') != base {
        let text = "the metadata is from another issuer";
        return Err(DiscoveryError::Invalid(text));
    }
    Ok(metadata)
}
