//! The web pages that may send requests.
//!
//! A browser says which origin a request comes from; a program does not. MCP requires servers to
//! reject other origins (2025-11-25, Transports, Security Warning).

use http::{
    HeaderMap,
    header::{HOST, ORIGIN},
};

/// Allows every origin.
const ALL: &str = "*";

/// The allowed origins, besides the server's own and those of the machine that the page is on.
#[derive(Default)]
pub(crate) struct AllowedOrigins(Vec<String>);

impl AllowedOrigins {
    pub(crate) fn of(origins: Vec<String>) -> Self {
        Self(origins)
    }

    /// True for a request from no web page, or from an allowed one.
    pub(super) fn allow(&self, headers: &HeaderMap) -> bool {
        let mut origins = headers.get_all(ORIGIN).iter();
        let (first, second) = (origins.next(), origins.next());
        let Some(origin) = first else {
            return true;
        };
        if self.0.iter().any(|allowed| allowed == ALL) {
            return true;
        }
        let Some(origin) = origin.to_str().ok().filter(|_| second.is_none()) else {
            return false;
        };
        let Some((_, authority)) = origin.split_once("://") else {
            return false;
        };
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        host.is_some_and(|host| host.eq_ignore_ascii_case(authority))
            || is_loopback(authority)
            || self
                .0
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }
}

/// A page on the user's own machine, such as a development tool.
fn is_loopback(authority: &str) -> bool {
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|host| {
        let port = authority.strip_prefix(host);
        port.is_some_and(|port| {
            let digits = port.strip_prefix(':').unwrap_or("0");
            (port.is_empty() || port.starts_with(':')) && digits.parse::<u16>().is_ok()
        })
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn request(origins: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("tools.example"));
        for origin in origins {
            headers.append(ORIGIN, HeaderValue::from_static(origin));
        }
        headers
    }

    #[test]
    fn programs_and_known_pages_are_allowed() {
        let allowed = AllowedOrigins::of(vec!["https://app.example".to_owned()]);
        assert!(allowed.allow(&request(&[])));
        for origin in [
            "https://app.example",
            "https://Tools.example",
            "http://localhost",
            "http://localhost:6274",
            "http://127.0.0.1:80",
            "http://[::1]:1",
        ] {
            assert!(allowed.allow(&request(&[origin])), "{origin}");
        }
    }

    #[test]
    fn other_pages_are_not() {
        let allowed = AllowedOrigins::of(vec!["https://app.example".to_owned()]);
        for origin in [
            "",
            "null",
            "https://evil.example",
            "http://app.example",
            "https://app.example:8443",
            "https://app.example.evil.example",
            "http://localhost.evil.example",
            "http://localhost:6274.evil.example",
            "http://localhost@evil.example",
            "http://127.0.0.10",
        ] {
            assert!(!allowed.allow(&request(&[origin])), "{origin}");
        }
        let twice = request(&["https://app.example", "https://evil.example"]);
        assert!(!allowed.allow(&twice));
        assert!(AllowedOrigins::of(vec![ALL.to_owned()]).allow(&twice));
    }
}
