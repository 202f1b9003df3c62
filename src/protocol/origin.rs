//! The web pages that may send requests.
//!
//! A browser says which origin a request comes from; a program does not. MCP requires servers to
//! reject other origins (2025-11-25, Transports, Security Warning). So do the other protocols: a
//! browser sends a simple POST from any page, with the user's cookies and from the user's network.

use http::{HeaderMap, header::ORIGIN};

use crate::hosts::HostName;

/// The entry that allows every origin.
const ALL: &str = "*";

/// The allowed origins, besides the function's own and those of the machine that the page is on.
#[derive(Default)]
pub(crate) struct AllowedOrigins(pub(crate) Vec<String>);

impl AllowedOrigins {
    /// Returns true for a request from no web page, or from an allowed one. `own` are the
    /// function's URLs.
    pub(super) fn allow(&self, headers: &HeaderMap, own: [Option<&str>; 2]) -> bool {
        let mut origins = headers.get_all(ORIGIN).iter();
        let (first, second) = (origins.next(), origins.next());
        let Some(origin) = first else {
            return true;
        };
        if self.0.iter().any(|allowed| allowed == ALL) {
            return true;
        }
        let origin = origin.to_str().ok().filter(|_| second.is_none());
        let Some(origin) = origin.filter(|it| is_origin(it)) else {
            return false;
        };
        let is_same = |allowed: &str| allowed.eq_ignore_ascii_case(origin);
        own.into_iter().flatten().any(|url| is_same(origin_of(url)))
            || HostName::in_origin(origin).is_some_and(|host| host.is_this_machine())
            || self.0.iter().any(|allowed| is_same(allowed))
    }
}

/// Returns true for `*` and for an origin as browsers send it: `http` or `https`, a host, and a
/// port unless it is the scheme's own.
pub(crate) fn is_allowed_origin(text: &str) -> bool {
    let has_own_port = text.starts_with("https:") && text.ends_with(":443")
        || text.starts_with("http:") && text.ends_with(":80");
    text == ALL || is_origin(text) && !has_own_port
}

fn is_origin(text: &str) -> bool {
    let is_http = text.starts_with("http://") || text.starts_with("https://");
    is_http && HostName::in_origin(text).is_some()
}

/// Returns a URL without its path.
fn origin_of(url: &str) -> &str {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let end = url[authority..].find('/');
    end.map_or(url, |end| &url[..authority + end])
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// Returns true for a request from these origins to a server with this setting and URL.
    fn allows(setting: &str, origins: &[&'static str], own: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        for origin in origins {
            headers.append(ORIGIN, HeaderValue::from_static(origin));
        }
        AllowedOrigins(vec![setting.to_owned()]).allow(&headers, [own, None])
    }

    #[test]
    fn programs_and_known_pages_are_allowed_and_other_pages_are_not() {
        const APP: &str = "https://app.example";
        const OWN: Option<&str> = Some("https://tools.example/prod");
        assert!(allows(APP, &[], None));
        let origins = "https://app.example https://Tools.example http://localhost \
            http://localhost:6274 http://127.0.0.1:80 http://[::1]:1";
        for origin in origins.split(' ') {
            assert!(allows(APP, &[origin], OWN), "{origin}");
        }
        let origins = "null https://evil.example http://app.example http://tools.example \
            ftp://localhost https://app.example:8443 https://app.example.evil.example \
            http://localhost.evil.example http://localhost:6274.evil.example \
            http://localhost:+80 http://localhost@evil.example http://127.0.0.10";
        for origin in origins.split(' ').chain([""]) {
            assert!(!allows(APP, &[origin], OWN), "{origin}");
        }
        assert!(!allows(APP, &["https://tools.example"], None));
        let twice = [APP, "https://evil.example"];
        assert!(!allows(APP, &twice, OWN));
        assert!(allows(ALL, &twice, None));
    }

    #[test]
    fn a_setting_is_an_origin_as_browsers_send_it() {
        let texts = "* https://app.example http://localhost:3000 https://[::1]:8443";
        for valid in texts.split(' ') {
            assert!(is_allowed_origin(valid), "{valid}");
        }
        let texts = "null app.example https://app.example/ https://app.example:443 \
            http://app.example:80 ftp://app.example https://*.example";
        for invalid in texts.split(' ').chain([""]) {
            assert!(!is_allowed_origin(invalid), "{invalid}");
        }
    }
}
