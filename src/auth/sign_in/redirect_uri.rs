//! Redirect URIs of clients: RFC 6749, 3.1.2; RFC 8252, 7.

use reqwest::Url;

/// The maximum length of a redirect URI, in bytes.
const LONGEST: usize = 1024;
/// The schemes of editors that do not follow RFC 8252, 7.1, which requires a dot.
const EDITORS: [&str; 4] = ["cursor", "vscode", "vscode-insiders", "windsurf"];

/// Parses a redirect URI to which codes may be sent: over TLS, to the user's own machine, or to the
/// app that has registered a scheme there. `is_listed` is true for the URIs that the owner has
/// listed, whose scheme may be any.
pub(super) fn parse(uri: &str, is_listed: bool) -> Option<Url> {
    let is_written = uri.len() <= LONGEST && uri.bytes().all(|byte| byte.is_ascii_graphic());
    let url = Url::parse(uri).ok().filter(|_| is_written)?;
    let is_bare = url.fragment().is_none() && url.username().is_empty() && url.password().is_none();
    let is_safe = match url.scheme() {
        "https" => true,
        "http" => is_loopback(&url),
        scheme => is_listed || scheme.contains('.') || EDITORS.contains(&scheme),
    };
    (is_bare && is_safe).then_some(url)
}

/// Returns true for a URI of the user's own machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    url.scheme() == "http" && matches!(host, "127.0.0.1" | "localhost" | "[::1]")
}

/// Returns true if a requested URI is the registered one. Of those of the user's own machine, the
/// port does not count: a client listens on a free one (RFC 8252, 7.3).
pub(super) fn is_same(registered: &str, requested: &str) -> bool {
    let without_port = |uri: &str| {
        let mut url = Url::parse(uri).ok().filter(is_loopback)?;
        url.set_port(None).ok()?;
        Some(url)
    };
    registered == requested
        || without_port(registered).is_some_and(|it| Some(it) == without_port(requested))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sent_over_tls_to_this_machine_or_to_an_app() {
        let uris = "https://claude.ai/api/mcp/auth_callback https://client.example/cb?a=1 \
            http://localhost/callback http://127.0.0.1:3118/callback http://[::1]:1/ \
            cursor://anysphere.cursor-mcp/oauth/callback com.example.app:/callback";
        for uri in uris.split(' ') {
            assert!(parse(uri, false).is_some(), "{uri}");
        }
        let uris = "http://client.example/cb http://localhost.evil.example/cb http://localhost@evil.example/cb \
            http://127.0.0.1.evil.example/cb https://user@client.example/cb https://client.example/cb#fragment \
            javascript:alert(1) data:text/html,x file:///etc/passwd myapp://callback /callback";
        let spaced = [
            "",
            "https://client.example/c b",
            "https://client.example/\r\nSet-Cookie:a",
        ];
        for uri in uris.split(' ').chain(spaced) {
            assert!(parse(uri, false).is_none(), "{uri}");
        }
        assert!(parse("myapp://callback", true).is_some());
        assert!(parse("http://client.example/cb", true).is_none());
    }

    #[test]
    fn only_the_port_of_this_machine_may_differ() {
        for (registered, requested) in [
            (
                "http://localhost/callback",
                "http://localhost:3118/callback",
            ),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb"),
            ("https://a.example/cb", "https://a.example/cb"),
        ] {
            assert!(is_same(registered, requested), "{registered} {requested}");
        }
        let registered = "http://localhost/callback";
        let others = "http://localhost:3118/other http://localhost:3118/callback?a=b \
            http://127.0.0.1:3118/callback http://u@localhost:3118/callback \
            https://localhost:3118/callback";
        for requested in others.split(' ') {
            assert!(!is_same(registered, requested), "{requested}");
        }
        for requested in [
            "https://a.example:8443/cb",
            "https://a.example/cb/",
            "https://A.example/cb",
        ] {
            assert!(!is_same("https://a.example/cb", requested), "{requested}");
        }
    }
}
