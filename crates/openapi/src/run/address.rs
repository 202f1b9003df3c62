//! The addresses that requests may go to.

use std::net::IpAddr;

use lambda_tools_core::addresses::{is_global, only_global};
use reqwest::{Url, dns};

use crate::{ApiTools, OpenApiError, plan::Credential, servers};

/// Checks the URLs of an API, which come from its document.
pub(super) fn check(tools: &ApiTools) -> Result<(), OpenApiError> {
    let own = tools
        .tools
        .iter()
        .filter_map(|it| it.request.base_url.as_ref());
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
        return Err(error(
            "has an address that is not reachable from the internet",
        ));
    }
    Ok(())
}

/// A resolver of names that finds only addresses that are reachable from the internet.
pub(super) struct PublicNames;

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
