//! The URL at which clients and browsers reach the server.

#[cfg(any(feature = "oauth", feature = "oidc"))]
use reqwest::Url;

/// The server's URL: the configured one, or the one that the platform provides.
#[derive(Clone, Debug, Default)]
pub(crate) struct PublicUrl {
    configured: Option<String>,
    /// The prefix of the server's paths, without leading or trailing slashes; appended to a base
    /// URL from the event.
    base_path: String,
}

impl PublicUrl {
    pub(crate) fn new(configured: Option<&str>, base_path: Option<&str>) -> Self {
        let base_path = base_path.unwrap_or_default().trim_matches('/');
        Self {
            configured: configured.map(|url| url.trim_end_matches('/').to_owned()),
            base_path: base_path.to_owned(),
        }
    }

    /// True if the URL does not depend on the event.
    #[cfg(feature = "oidc")]
    pub(crate) fn is_configured(&self) -> bool {
        self.configured.is_some()
    }

    /// The paths that the URL may have, without a trailing slash; the first one is empty.
    #[cfg(feature = "oidc")]
    pub(crate) fn prefixes(&self) -> Vec<String> {
        let configured = self.configured.as_deref();
        let url = configured.and_then(|url| Url::parse(url).ok());
        let path = url.map(|url| url.path().trim_end_matches('/').to_owned());
        let base_path = match self.base_path.as_str() {
            "" => None,
            path => Some(format!("/{path}")),
        };
        let mut prefixes = vec![String::new()];
        for prefix in [path, base_path].into_iter().flatten() {
            if !prefixes.contains(&prefix) {
                prefixes.push(prefix);
            }
        }
        prefixes
    }

    /// The configured URL, or else the event's base URL with the base path. Without a trailing
    /// slash.
    pub(crate) fn resolve(&self, event_base: Option<&str>) -> Option<String> {
        if let Some(url) = &self.configured {
            return Some(url.clone());
        }
        let event_base = event_base?.trim_end_matches('/');
        Some(match self.base_path.as_str() {
            "" => event_base.to_owned(),
            path => format!("{event_base}/{path}"),
        })
    }
}

/// Returns true if a URL may carry tokens and secrets: it uses TLS, or its host is this machine.
#[cfg(any(feature = "oauth", feature = "oidc"))]
pub(crate) fn is_safe(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default();
    let is_local = matches!(host, "127.0.0.1" | "localhost" | "[::1]");
    url.scheme() == "https" || (url.scheme() == "http" && is_local)
}

/// Returns true if both URLs are safe, and the second one is not less protected than the first.
#[cfg(feature = "oidc")]
pub(crate) fn is_as_safe(first: &str, second: &str) -> bool {
    let is_plain = |url: &str| Url::parse(url).is_ok_and(|url| url.scheme() == "http");
    is_safe(first) && is_safe(second) && (is_plain(first) || !is_plain(second))
}

/// Returns true if a path can be appended to a URL.
#[cfg(any(feature = "oauth", feature = "oidc"))]
pub(crate) fn is_base_url(url: &str) -> bool {
    let is_bare = |url: Url| {
        url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    };
    // The URL is compared and sent as it is written, but a parser repairs these mistakes.
    let is_repaired = url.contains(|it: char| it.is_whitespace() || it.is_control() || it == '\\');
    let has_scheme = ["https://", "http://"].iter().any(|it| url.starts_with(it));
    has_scheme && !is_repaired && is_safe(url) && Url::parse(url).is_ok_and(is_bare)
}

#[cfg(test)]
mod tests {
    #[cfg(any(feature = "oauth", feature = "oidc"))]
    use super::*;

    #[cfg(any(feature = "oauth", feature = "oidc"))]
    #[test]
    fn a_base_url_is_used_as_it_is_written() {
        for url in [
            "https://tools.example",
            "https://tools.example:8443/a/b/",
            "http://127.0.0.1:9000",
        ] {
            assert!(is_base_url(url), "{url}");
        }
        for url in [
            "https://tools.example\n",
            " https://tools.example",
            "https://tools.example/a b",
            "https:tools.example",
            "https:\\\\tools.example",
            "HTTPS://tools.example",
            "https://tools.example?",
            "https://tools.example#",
            "https://user@tools.example",
            "https://:password@tools.example",
            "http://tools.example",
            "http://127.0.0.1.example",
            "tools.example",
        ] {
            assert!(!is_base_url(url), "{url:?}");
        }
    }

    #[cfg(feature = "oidc")]
    #[test]
    fn keys_come_from_a_url_that_is_as_safe_as_the_issuer() {
        let (tls, local) = ("https://idp.example", "http://127.0.0.1:9000");
        assert!(is_as_safe(tls, "https://keys.example/keys"));
        assert!(is_as_safe(local, "http://localhost/keys"));
        for (issuer, keys) in [
            (tls, local),
            (tls, "HTTP://127.0.0.1:9000/keys"),
            (tls, " http://127.0.0.1:9000/keys"),
            (tls, "http:127.0.0.1:9000/keys"),
            (local, "http://keys.example/keys"),
            ("http://idp.example", "https://keys.example/keys"),
        ] {
            assert!(!is_as_safe(issuer, keys), "{issuer} {keys}");
        }
    }
}
