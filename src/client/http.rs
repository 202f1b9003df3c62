//! HTTP requests with limits on time, size and redirects.
//!
//! The protocols' own clients send everything through this one, which also decides where credentials
//! may go, and keeps them out of errors.

use std::{error::Error as _, fmt, net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method,
    header::{ACCEPT, CONTENT_TYPE},
};
use reqwest::{Url, redirect::Policy};

use super::{ClientError, budget::ResponseBudget, credentials::ClientCredentials};

#[cfg(fuzzing)]
pub(super) use super::response::received;
pub(super) use super::response::{LONGEST_MESSAGE, ReceivedResponse, decode};

/// The default maximum size of a response: more than Lambda can send.
const MAX_RESPONSE_SIZE: usize = 16 * 1024 * 1024;

/// An HTTP client for one server.
#[derive(Clone)]
pub(super) struct HttpClient {
    client: reqwest::Client,
    base: Url,
    pub(super) credentials: ClientCredentials,
    pub(super) max_response_size: usize,
    /// True if credentials may be sent to other machines unencrypted.
    pub(super) allows_http: bool,
    /// The budget of all responses together, if they are the pages of one list.
    budget: Option<Arc<ResponseBudget>>,
    /// The media types that the protocol's responses may have.
    pub(super) accept: HeaderValue,
}

impl HttpClient {
    pub(super) fn new(base: &str) -> Result<Self, ClientError> {
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
            credentials: ClientCredentials::None,
            max_response_size: MAX_RESPONSE_SIZE,
            allows_http: false,
            budget: None,
            accept: HeaderValue::from_static("application/json"),
        })
    }

    /// The same client for the pages of one list, which together are limited like one response.
    pub(super) fn for_one_list(&self) -> Self {
        let budget = Some(self.budget());
        Self {
            budget,
            ..self.clone()
        }
    }

    /// The budget of the next response.
    pub(super) fn budget(&self) -> Arc<ResponseBudget> {
        let of_list = self.budget.clone();
        of_list.unwrap_or_else(|| ResponseBudget::new(self.max_response_size))
    }

    /// Refuses to send credentials that other machines could read on their way.
    pub(super) fn check_encryption(&self) -> Result<(), ClientError> {
        if is_local(&self.base) || self.allows_http || self.base.scheme() == "https" {
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

    /// Sets the path of a base URL that has none.
    pub(super) fn with_default_path(mut self, path: &str) -> Self {
        if self.base.path() == "/" {
            self.base.set_path(path);
        }
        self
    }

    /// The base URL followed by this path.
    pub(super) fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let path = format!("{}/{path}", self.base.path().trim_end_matches('/'));
        url.set_path(&path);
        url
    }

    pub(super) fn base(&self) -> &Url {
        &self.base
    }

    pub(super) async fn get(
        &self,
        url: Url,
        headers: HeaderMap,
        timeout: Duration,
    ) -> Result<ReceivedResponse, ClientError> {
        let request = (Method::GET, url, headers, Bytes::new());
        self.send(request, timeout, self.budget(), |_, _| false)
            .await
    }

    pub(super) async fn post(
        &self,
        url: Url,
        headers: HeaderMap,
        body: Bytes,
        timeout: Duration,
    ) -> Result<ReceivedResponse, ClientError> {
        let request = (Method::POST, url, headers, body);
        self.send(request, timeout, self.budget(), |_, _| false)
            .await
    }

    /// Reads the response's body to its end, or until `is_complete` returns true for what has
    /// arrived: a stream of events may stay open.
    pub(super) async fn post_until(
        &self,
        url: Url,
        headers: HeaderMap,
        body: Bytes,
        timeout: Duration,
        budget: Arc<ResponseBudget>,
        is_complete: impl FnMut(&HeaderMap, &[u8]) -> bool,
    ) -> Result<ReceivedResponse, ClientError> {
        let request = (Method::POST, url, headers, body);
        self.send(request, timeout, budget, is_complete).await
    }

    async fn send(
        &self,
        (method, url, headers, body): (Method, Url, HeaderMap, Bytes),
        timeout: Duration,
        budget: Arc<ResponseBudget>,
        mut is_complete: impl FnMut(&HeaderMap, &[u8]) -> bool,
    ) -> Result<ReceivedResponse, ClientError> {
        // Credentials are sent only to this server, even if it names a URL on another one.
        let is_same_origin = url.origin() == self.base.origin();
        let has_body = method == Method::POST;
        let mut request = self
            .client
            .request(method, url)
            .headers(headers)
            .header(ACCEPT, self.accept.clone())
            .timeout(timeout);
        if has_body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let mut secrets = Vec::new();
        if let (true, Some((name, value, secret))) = (is_same_origin, self.credentials.header()?) {
            self.check_encryption()?;
            request = request.header(name, value);
            secrets.push(secret);
        }
        let unreachable = |error| ClientError::Unreachable(text_of(error));
        let mut response = request.send().await.map_err(unreachable)?;
        let limit = self.max_response_size;
        let length = response.content_length().unwrap_or_default();
        if usize::try_from(length).map_or(true, |length| length > limit) {
            return Err(ClientError::TooLarge { limit });
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            budget.take(chunk.len())?;
            body.extend_from_slice(&chunk);
            if is_complete(response.headers(), &body) {
                break;
            }
        }
        Ok(ReceivedResponse {
            status: response.status(),
            headers: std::mem::take(response.headers_mut()),
            body: body.into(),
            budget,
            secrets,
        })
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("base", &self.base.as_str())
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}

/// True for URLs of this machine.
fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|it| it.is_loopback())
}

/// The text of an error and its causes, without the URL, which may be confidential.
fn text_of(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = if error.is_timeout() {
        "no response in time".to_owned()
    } else {
        error.to_string()
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
