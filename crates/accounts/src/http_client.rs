//! The HTTP client for identity providers.
//!
//! Providers are outside of the owner's control: the time and the size of their responses are
//! limited, and redirects are not followed.

use std::{fmt, sync::OnceLock, time::Duration};

use http::StatusCode;
#[cfg(feature = "oidc")]
use http::{HeaderMap, header::CACHE_CONTROL};
use reqwest::{RequestBuilder, Url};
use serde::de::DeserializeOwned;

/// The time limit of one request to a provider.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(8);
/// The maximum size of a response, in bytes.
pub(crate) const LARGEST_RESPONSE: usize = 256 * 1024;

/// The reason why there is no response.
#[cfg_attr(not(feature = "oauth"), expect(unreachable_pub))]
#[derive(Debug)]
pub struct TransportError(pub &'static str);

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for TransportError {}

impl From<reqwest::Error> for TransportError {
    fn from(error: reqwest::Error) -> Self {
        Self(if error.is_timeout() {
            "did not answer in time"
        } else if error.is_connect() {
            "cannot be reached"
        } else {
            "closed the connection during its response"
        })
    }
}

/// Returns the client for all providers, which the first request creates.
pub(crate) fn http_client() -> Result<reqwest::Client, TransportError> {
    static CLIENT: OnceLock<Option<reqwest::Client>> = OnceLock::new();
    let client = CLIENT.get_or_init(|| {
        let client = reqwest::Client::builder()
            // A redirected token request could send the client secret to another server.
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
            .build();
        client.ok()
    });
    client.clone().ok_or(TransportError(
        "cannot be reached: TLS is not available on this machine",
    ))
}

/// Sends a `GET` request.
pub(crate) async fn get(url: &str) -> Result<http::Response<Vec<u8>>, TransportError> {
    sent(http_client()?.get(url)).await
}

/// Sends a request, and returns the response, whatever its status.
pub(crate) async fn sent(
    request: RequestBuilder,
) -> Result<http::Response<Vec<u8>>, TransportError> {
    let response = request.send().await?;
    let (status, headers) = (response.status(), response.headers().clone());
    let mut sent = http::Response::new(body_up_to(LARGEST_RESPONSE, response).await?);
    *sent.status_mut() = status;
    *sent.headers_mut() = headers;
    Ok(sent)
}

/// Reads the body of a response, up to a limit in bytes.
pub(crate) async fn body_up_to(
    largest: usize,
    mut response: reqwest::Response,
) -> Result<Vec<u8>, TransportError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > largest {
            return Err(TransportError("sent a response that is too large"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Returns the `max-age` of a response: RFC 9111, 5.2.2.1.
#[cfg(feature = "oidc")]
pub(crate) fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(CACHE_CONTROL).into_iter();
    let directives = values.filter_map(|it| it.to_str().ok());
    let mut directives = directives.flat_map(|it| it.split(','));
    directives.find_map(|directive| {
        let seconds = directive.trim().to_ascii_lowercase();
        let seconds = seconds.strip_prefix("max-age=")?.trim_matches('"');
        Some(Duration::from_secs(seconds.parse().ok()?))
    })
}

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

/// Fetches the metadata of an issuer: `OpenID` Connect Discovery 1.0, section 4, or else RFC 8414,
/// section 3. `issuer_in` returns the issuer that it names.
pub(crate) async fn discover<T: DeserializeOwned>(
    issuer: &str,
    issuer_in: fn(&T) -> &str,
) -> Result<T, DiscoveryError> {
    let base = issuer.trim_end_matches('/');
    let mut fetched = get(&format!("{base}/.well-known/openid-configuration")).await?;
    if fetched.status() == StatusCode::NOT_FOUND {
        let url =
            Url::parse(base).map_err(|_| DiscoveryError::Invalid("the issuer is not a URL"))?;
        let origin = url.origin().ascii_serialization();
        let path = url.path().trim_end_matches('/');
        let url = format!("{origin}/.well-known/oauth-authorization-server{path}");
        fetched = get(&url).await?;
    }
    if !fetched.status().is_success() {
        return Err(DiscoveryError::Status(fetched.status()));
    }
    let invalid = |_| DiscoveryError::Invalid("the response is not the metadata of an issuer");
    let metadata = serde_json::from_slice(fetched.body()).map_err(invalid)?;
    // RFC 8414, 3.3: otherwise another issuer could pass off its keys or endpoints as this one's.
    if issuer_in(&metadata).trim_end_matches('/') != base {
        let text = "the metadata is from another issuer";
        return Err(DiscoveryError::Invalid(text));
    }
    Ok(metadata)
}

/// Returns true if a URL may carry tokens and secrets: it uses TLS, or its host is this machine.
pub(crate) fn is_safe(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.scheme() == "https" || is_loopback(&url))
}

/// Returns true for a URL of this machine, which needs no TLS.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    url.scheme() == "http" && matches!(host, "127.0.0.1" | "localhost" | "[::1]")
}

/// Returns true for a URL without a fragment and credentials.
pub(crate) fn is_bare(url: &Url) -> bool {
    url.fragment().is_none() && url.username().is_empty() && url.password().is_none()
}

/// Returns true if a path can be appended to a URL.
pub fn is_base_url(url: &str) -> bool {
    // The URL is compared and sent as it is written, but a parser repairs these mistakes.
    let is_repaired = url.contains(|it: char| it.is_whitespace() || it.is_control() || it == '\\');
    let has_scheme = ["https://", "http://"].iter().any(|it| url.starts_with(it));
    has_scheme
        && !is_repaired
        && is_safe(url)
        && Url::parse(url).is_ok_and(|url| url.query().is_none() && is_bare(&url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_used_as_it_is_written() {
        for url in [
            "https://tools.example",
            "https://tools.example:8443/a/b/",
            "http://127.0.0.1:9000",
        ] {
            assert!(is_base_url(url), "{url}");
        }
        let urls = "https:tools.example https:\\\\tools.example HTTPS://tools.example https://tools.example? \
            https://tools.example# https://user@tools.example https://:password@tools.example \
            http://tools.example http://127.0.0.1.example tools.example";
        let spaced = [
            "https://tools.example\n",
            " https://tools.example",
            "https://tools.example/a b",
        ];
        for url in urls.split(' ').chain(spaced) {
            assert!(!is_base_url(url), "{url:?}");
        }
    }
}
