//! HTTP requests with limits on time, size and redirects.
//!
//! The protocols' own clients send everything through this one, which also decides where credentials
//! may go, and keeps them out of errors.

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{ACCEPT, CONTENT_TYPE},
};
use reqwest::{Url, redirect::Policy};

use super::{
    ClientError, ClientOptions,
    response::{ReceivedResponse, text_of, unreachable},
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

type Request = (Method, Url, HeaderMap, Bytes);

/// An HTTP client for one server.
#[derive(Clone, Debug)]
pub(super) struct HttpClient {
    client: reqwest::Client,
    pub(super) base: Url,
    pub(super) options: ClientOptions,
    /// The header of API keys; without one, they are bearer tokens.
    pub(super) key_header: Option<HeaderName>,
}

impl HttpClient {
    pub(super) fn new(base: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let setup = |text: String| ClientError::Setup(text);
        let base: Url = base
            .parse()
            .map_err(|error| setup(format!("the base URL is invalid: {error}")))?;
        let is_http = matches!(base.scheme(), "http" | "https") && base.has_host();
        if !is_http || base.query().is_some() || base.fragment().is_some() {
            let text =
                "the base URL must start with http:// or https:// and have no query or fragment";
            return Err(setup(text.into()));
        }
        if !base.username().is_empty() || base.password().is_some() {
            let text = "the base URL contains credentials; pass them with api_key or jwt";
            return Err(setup(text.into()));
        }
        let mut client = reqwest::Client::builder()
            // A redirect could turn a POST into a GET and send credentials to another server.
            .redirect(Policy::none())
            .connect_timeout(Duration::from_secs(10));
        if base.scheme() == "http" && is_local(&base) {
            // A proxy may be on another machine.
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| setup(text_of(error)))?;
        Ok(Self {
            client,
            base,
            options,
            key_header: None,
        })
    }

    /// Refuses to send credentials that other machines could read on their way.
    pub(super) fn check_encryption(&self) -> Result<(), ClientError> {
        let allows_http = self.options.allows_http;
        if is_local(&self.base) || allows_http || self.base.scheme() == "https" {
            return Ok(());
        }
        let text = "credentials would be sent unencrypted to another machine; use https://, or \
                    allow_http for a server inside a trusted network";
        Err(ClientError::Setup(text.into()))
    }

    /// Appends a path segment to the base URL, unless it already ends with it.
    pub(super) fn with_suffix(mut self, segment: &str) -> Self {
        let path = self.base.path().trim_end_matches('/');
        if path.rsplit('/').next() != Some(segment) {
            let path = format!("{path}/{segment}");
            self.base.set_path(&path);
        }
        self
    }

    /// Returns the base URL followed by this path.
    pub(super) fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let path = format!("{}/{path}", self.base.path().trim_end_matches('/'));
        url.set_path(&path);
        url
    }

    pub(super) async fn get(
        &self,
        url: Url,
        headers: HeaderMap,
        timeout: Duration,
    ) -> Result<ReceivedResponse, ClientError> {
        let request = (Method::GET, url, headers, Bytes::new());
        self.exchange(request, timeout).await
    }

    /// Sends a request and reads its response.
    pub(super) async fn exchange(
        &self,
        (method, url, headers, body): Request,
        timeout: Duration,
    ) -> Result<ReceivedResponse, ClientError> {
        // Credentials are sent only to this server, even if it names a URL on another one.
        let is_same_origin = url.origin() == self.base.origin();
        let has_body = method == Method::POST;
        let mut request = self
            .client
            .request(method, url)
            .headers(headers)
            .header(ACCEPT, JSON)
            .timeout(timeout);
        if has_body {
            request = request.header(CONTENT_TYPE, JSON).body(body);
        }
        let credentials = self.options.credentials.header(self.key_header.as_ref())?;
        let mut secrets = Vec::new();
        if let (true, Some((name, value, secret))) = (is_same_origin, credentials) {
            self.check_encryption()?;
            request = request.header(name, value);
            secrets.push(secret);
        }
        let response = match &self.options.transport {
            None => request.send().await,
            Some(transport) => transport.send(request),
        };
        let response = response.map_err(unreachable)?;
        ReceivedResponse::read(response, self.options.max_response_size, secrets).await
    }
}

/// Returns true for URLs of this machine.
fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|it| it.is_loopback())
}
