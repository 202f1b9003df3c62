//! The HTTP client of an API, and the addresses that its requests may go to.

use std::{net::IpAddr, sync::Arc, time::Duration};

use http::header::CONTENT_TYPE;
use lambda_tools_core::{
    Context, Failure,
    addresses::{is_global, only_global},
    testing::api_responses,
};
use reqwest::{
    Client, Request, Response, Url, dns,
    redirect::{Action, Attempt, Policy},
};
use serde_json::{Value, json};

use super::{Api, failure, response::body_of};
use crate::{
    ApiTools, OpenApiError,
    plan::{ApiTool, Credential},
    servers,
};

/// The time left for the answer after a request has timed out.
const RESERVE: Duration = Duration::from_millis(200);
/// The maximum number of redirects that are followed.
const MOST_REDIRECTS: usize = 3;

impl Api {
    /// Sends the request of a tool, and records the response if the server records events.
    pub(super) async fn send(
        &self,
        request: Request,
        plan: &ApiTool,
        cx: &Context,
    ) -> Result<Response, Failure> {
        let repeats = self.may_repeat(plan);
        let recorded_as = recorded_as(&request, self.base_of(plan));
        let response = self.execute(request, repeats, cx).await?;
        match recorded_as {
            Some(request) => recorded(&request, response, repeats, cx).await,
            None => Ok(response),
        }
    }

    /// Sends a request, within the time of the call. `repeats` says whether it may be sent again.
    pub(super) async fn execute(
        &self,
        mut request: Request,
        repeats: bool,
        cx: &Context,
    ) -> Result<Response, Failure> {
        let limit = cx.remaining();
        *request.timeout_mut() = Some(limit.saturating_sub(RESERVE).max(limit / 2));
        // The first call creates it: a cold start does not wait for it.
        let client = self.client.get_or_init(|| created(&self.settings).ok());
        let error = || Failure::new("TLS is not available on this machine");
        let client = client.as_ref().ok_or_else(error)?;
        let response = client.execute(request).await;
        response.map_err(|error| failure::of_error(error, repeats))
    }
}

/// Returns the method and the path of a request below the API's URL, if the server records events: a
/// replay has another URL in place of the API's own.
fn recorded_as(request: &Request, base: &str) -> Option<String> {
    api_responses().as_ref()?;
    let base = Url::parse(base).map_or_else(|_| String::new(), Into::into);
    let url = request.url().as_str();
    let path = url.strip_prefix(base.trim_end_matches('/')).unwrap_or(url);
    Some(format!("{} {path}", request.method()))
}

/// Keeps what the API has answered, without the secrets of the call.
async fn recorded(
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

fn created(settings: &ApiTools) -> reqwest::Result<Client> {
    let mut client = Client::builder()
        // A proxy would look names up itself.
        .no_proxy()
        .user_agent(concat!("lambda_tools/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::custom(on_the_same_origin));
    if !settings.allow_private {
        client = client.dns_resolver(Arc::new(PublicNames));
    }
    client.build()
}

/// Follows redirects of one server alone: another one would get what is meant for the first.
fn on_the_same_origin(attempt: Attempt) -> Action {
    let before = attempt.previous();
    let own = before.last().map(Url::origin);
    if own == Some(attempt.url().origin()) && before.len() <= MOST_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// Checks the URLs of an API, which come from its document.
pub(super) fn check_urls(tools: &ApiTools) -> Result<(), OpenApiError> {
    let own = tools.tools.iter();
    let own = own.filter_map(|it| it.request.base_url.as_ref());
    let issuers = tools.credentials.values().filter_map(|it| match it {
        Credential::User { token_url, .. } | Credential::Client { token_url, .. } => {
            Some(token_url)
        }
        _ => None,
    });
    let urls = std::iter::once(&tools.base_url).chain(own);
    urls.clone()
        .try_for_each(|url| servers::checked(url).map(drop))
        .map_err(OpenApiError::new)?;
    if tools.allow_private {
        return Ok(());
    }
    urls.chain(issuers).try_for_each(|url| check_public(url))
}

fn check_public(url: &str) -> Result<(), OpenApiError> {
    let error = |reason: &str| {
        OpenApiError::new(format!(
            "the URL {url:?} {reason}; if it is right, allow it with allow_private or --allow-private"
        ))
    };
    let parsed = Url::parse(url).map_err(|_| error("is not valid"))?;
    if parsed.scheme() != "https" {
        return Err(error("does not use TLS"));
    }
    let host = parsed.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    // A parsed URL has an address in its usual spelling.
    let is_private = host.parse().is_ok_and(|it: IpAddr| !is_global(it));
    if is_private || host == "localhost" || host.ends_with(".localhost") {
        let reason = "has an address that is not reachable from the internet";
        return Err(error(reason));
    }
    Ok(())
}

/// A resolver of names that finds only addresses that are reachable from the internet.
struct PublicNames;

impl dns::Resolve for PublicNames {
    fn resolve(&self, name: dns::Name) -> dns::Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found = only_global(found.collect())
                .ok_or("the name leads to an address that is not reachable from the internet")?;
            Ok(Box::new(found.into_iter()) as dns::Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use reqwest::dns::Resolve;

    use super::*;

    #[tokio::test]
    async fn names_of_this_machine_are_not_found() {
        let found = PublicNames.resolve("localhost".parse().unwrap()).await;
        let error = found.err().unwrap().to_string();
        assert!(error.contains("not reachable from the internet"), "{error}");
        let found = PublicNames.resolve("1.1.1.1".parse().unwrap()).await;
        assert_eq!(found.ok().unwrap().count(), 1);
    }
}
