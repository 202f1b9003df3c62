//! The HTTP client of an API.

use std::{sync::Arc, sync::OnceLock, time::Duration};

use http::header::CONTENT_TYPE;
use lambda_tools_core::{Context, Failure, testing::api_responses};
use reqwest::{
    Client, Request, Response, Url,
    redirect::{Action, Attempt, Policy},
};
use serde_json::{Value, json};

use super::{address::PublicNames, failure, response::body_of};

/// The time left for the answer after a request has timed out.
const RESERVE: Duration = Duration::from_millis(200);
/// The maximum number of redirects that are followed.
const MOST_REDIRECTS: usize = 3;

/// A client that the first call creates: a cold start does not wait for it.
pub(super) struct ApiClient {
    client: OnceLock<Option<Client>>,
    allows_private: bool,
}

impl ApiClient {
    pub(super) fn new(allows_private: bool) -> Self {
        Self {
            client: OnceLock::new(),
            allows_private,
        }
    }

    /// Sends a request, within the time of the call. `repeats` says whether it may be sent again.
    pub(super) async fn send(
        &self,
        mut request: Request,
        repeats: bool,
        cx: &Context,
    ) -> Result<Response, Failure> {
        let limit = cx.remaining();
        *request.timeout_mut() = Some(limit.saturating_sub(RESERVE).max(limit / 2));
        let client = self.client()?;
        client
            .execute(request)
            .await
            .map_err(|error| failure::of_error(error, repeats))
    }

    pub(super) fn client(&self) -> Result<&Client, Failure> {
        let client = self
            .client
            .get_or_init(|| created(self.allows_private).ok());
        client
            .as_ref()
            .ok_or_else(|| Failure::new("TLS is not available on this machine"))
    }
}

/// Returns the method and the path of a request below the API's URL, if the server records events: a
/// replay has another URL in place of the API's own.
pub(super) fn recorded_as(request: &Request, base: &str) -> Option<String> {
    api_responses().as_ref()?;
    let base = Url::parse(base).map_or_else(|_| String::new(), Into::into);
    let url = request.url().as_str();
    let path = url.strip_prefix(base.trim_end_matches('/')).unwrap_or(url);
    Some(format!("{} {path}", request.method()))
}

/// Keeps what the API has answered, without the secrets of the call.
pub(super) async fn recorded(
    request: &str,
    response: Response,
    repeats: bool,
    cx: &Context,
) -> Result<Response, Failure> {
    let mut copy = http::Response::new(());
    (*copy.status_mut(), *copy.headers_mut()) = (response.status(), response.headers().clone());
    let kind = failure::header_of(&response, CONTENT_TYPE);
    let body = body_of(response, repeats).await?;
    let clean = |text: &str| cx.redacted(text).unwrap_or_else(|| text.to_owned());
    let text = clean(&String::from_utf8_lossy(&body));
    let value = serde_json::from_str(&text).ok();
    // A failure quotes the body, so a replay needs the same text.
    let value = value.filter(|it: &Value| {
        let written = it.to_string();
        !it.is_string() && written == text
    });
    let answer = json!({"status": copy.status().as_u16(), "content_type": kind, "body": value.unwrap_or(text.into())});
    if let Some(all) = &mut *api_responses() {
        all.insert(clean(request), answer);
    }
    Ok(copy.map(|()| body).into())
}

fn created(allows_private: bool) -> reqwest::Result<Client> {
    let client = Client::builder()
        // A proxy would look names up itself.
        .no_proxy()
        .user_agent(concat!("lambda_tools/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::custom(on_the_same_origin));
    let client = if allows_private {
        client
    } else {
        client.dns_resolver(Arc::new(PublicNames))
    };
    client.build()
}

/// Follows redirects of one server alone: another one would get what is meant for the first.
fn on_the_same_origin(attempt: Attempt) -> Action {
    let before = attempt.previous();
    let is_same = before
        .last()
        .is_some_and(|it| it.origin() == attempt.url().origin());
    if is_same && before.len() <= MOST_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}
