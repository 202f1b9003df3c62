//! HTTP requests to one server, with limits on time and size.
//!
//! The protocols' own clients send everything through this one, which also decides where credentials
//! may go, and keeps them out of errors.

use std::{net::IpAddr, time::Duration};

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE},
};
use lambda_tools_core::Secret;
use reqwest::{Url, redirect::Policy};

use super::{
    ClientError, ClientOptions,
    response::{ReceivedResponse, unreachable},
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An HTTP client for one server.
#[derive(Clone, Debug)]
pub(super) struct HttpClient {
    client: reqwest::Client,
    pub(super) base: Url,
    pub(super) options: ClientOptions,
    /// The header of API keys; without one, they are bearer tokens.
    pub(super) key_header: Option<HeaderName>,
}

/// A request: a `GET`, or with a body a `POST`.
#[derive(Default)]
pub(super) struct ClientRequest {
    /// The path below the base URL.
    pub(super) path: &'static str,
    pub(super) headers: HeaderMap,
    /// A JSON text.
    pub(super) body: Option<String>,
    /// The confidential values in the body.
    pub(super) secrets: Vec<Secret>,
}

impl HttpClient {
    pub(super) fn new(base: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let base = Url::parse(base)
            .map_err(|error| ClientError::Setup(format!("the base URL is invalid: {error}")))?;
        let is_http = matches!(base.scheme(), "http" | "https");
        let has_credentials = !base.username().is_empty() || base.password().is_some();
        let has_more = base.query().is_some() || base.fragment().is_some();
        if !is_http || has_credentials || has_more {
            let text = "the base URL must start with http:// or https://, and have no credentials \
                        (pass them with api_key or jwt), query or fragment";
            return Err(ClientError::Setup(text.into()));
        }
        let mut client = reqwest::Client::builder()
            // A redirect could turn a POST into a GET and send credentials to another server.
            .redirect(Policy::none())
            .connect_timeout(Duration::from_secs(10));
        if base.scheme() == "http" && is_local(&base) {
            // A proxy may be on another machine.
            client = client.no_proxy();
        }
        let client = client.build();
        let client = client.map_err(|error| ClientError::Setup(error.to_string()))?;
        Ok(Self {
            client,
            base,
            options,
            key_header: None,
        })
    }

    /// Returns the base URL followed by this path.
    pub(super) fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let path = format!("{}/{path}", self.base.path().trim_end_matches('/'));
        url.set_path(&path);
        url
    }

    /// Sends a request and reads its response.
    pub(super) async fn exchange(
        &self,
        request: &ClientRequest,
        timeout: Duration,
    ) -> Result<ReceivedResponse, ClientError> {
        let url = self.url(request.path);
        let builder = match &request.body {
            Some(body) => {
                let post = self.client.post(url).body(body.clone());
                post.header(CONTENT_TYPE, JSON)
            }
            None => self.client.get(url),
        };
        let mut builder = builder
            .headers(request.headers.clone())
            .header(ACCEPT, JSON)
            .timeout(timeout);
        let mut secrets = request.secrets.clone();
        let credentials = self.options.credentials.header(self.key_header.as_ref())?;
        if let Some((name, value, secret)) = credentials {
            builder = builder.header(name, value);
            secrets.push(secret);
        }
        let is_private = is_local(&self.base) || self.base.scheme() == "https";
        if !secrets.is_empty() && !is_private && !self.options.allows_http {
            let text = "credentials would be sent unencrypted to another machine; use https://, \
                        or allow_http for a server inside a trusted network";
            return Err(ClientError::Setup(text.into()));
        }
        let response = builder.send().await.map_err(unreachable)?;
        ReceivedResponse::read(response, secrets).await
    }
}

/// Returns true for URLs of this machine.
fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|it| it.is_loopback())
}
