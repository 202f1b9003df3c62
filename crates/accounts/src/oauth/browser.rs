//! A user's browser: this server's cookies in it, the parameters of its requests, and the responses.

use std::{collections::BTreeMap, time::Duration};

use http::{HeaderMap, header::COOKIE};

use crate::{StoreError, clock::Clock};

/// The browser that has sent a request.
#[derive(Clone, Copy)]
pub struct Browser<'a> {
    /// The server's URL, as browsers reach it.
    pub(crate) base: &'a str,
    headers: &'a HeaderMap,
}

impl<'a> Browser<'a> {
    /// Creates the browser that has sent a request with these headers.
    pub fn new(base: &'a str, headers: &'a HeaderMap) -> Self {
        Self { base, headers }
    }

    /// Returns true if browsers reach this server over TLS.
    pub(crate) fn is_https(&self) -> bool {
        self.base.starts_with("https://")
    }

    /// Returns the name of a cookie that no other host can set, because of its prefix: RFC 6265bis,
    /// 4.1.3.2.
    fn own_name(&self, name: &str) -> String {
        let prefix = if self.is_https() { "__Host-" } else { "" };
        format!("{prefix}{name}")
    }

    /// Returns the `Set-Cookie` value of a cookie. With `SameSite=Lax`, browsers send it with the
    /// provider's redirect, but not with another site's form.
    pub(crate) fn cookie(&self, name: &str, value: &str, life: Duration) -> String {
        let (name, life) = (self.own_name(name), life.as_secs());
        let secure = if self.is_https() { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Lax{secure}")
    }

    /// Returns the value of a cookie that binds this browser, if it has the format that this server
    /// gives it.
    pub(crate) fn binding(&self, name: &str) -> Option<&'a str> {
        let value = self.cookie_value(name)?;
        let is_valid = value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_valid.then_some(value)
    }

    /// Returns the value that binds this browser, or a new one. A second tab reuses that of the
    /// first one, so that either can finish.
    pub(crate) fn binding_or_new(&self, name: &str, clock: &Clock) -> String {
        let new = || format!("{}{}", clock.id().simple(), clock.id().simple());
        self.binding(name).map_or_else(new, str::to_owned)
    }

    /// Returns the first value of a cookie. Those of other sites may have any bytes.
    pub(crate) fn cookie_value(&self, name: &str) -> Option<&'a str> {
        let name = self.own_name(name);
        let all = self.headers.get_all(COOKIE).iter();
        let pairs = all.flat_map(|it| it.as_bytes().split(|byte| *byte == b';'));
        let mut values = pairs.filter_map(|pair| {
            // Only spaces of ASCII: to a browser, others are part of a name, which then needs no
            // prefix.
            let pair = std::str::from_utf8(pair.trim_ascii()).ok()?;
            let (key, value) = pair.split_once('=')?;
            (key == name).then_some(value)
        });
        values.next()
    }
}

/// The parameters of a query or a form: RFC 6749, 3.1 and 3.2. None occurs twice.
pub struct Parameters(BTreeMap<String, String>);

impl Parameters {
    /// Parses a query or the body of a form. `None` if a parameter occurs twice (RFC 6749, 3.1).
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut parameters = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(text) {
            if parameters
                .insert(name.into_owned(), value.into_owned())
                .is_some()
            {
                return None;
            }
        }
        Some(Self(parameters))
    }

    /// Returns the value of a parameter. An empty one counts as absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name).map(String::as_str);
        value.filter(|it| !it.is_empty())
    }
}

/// A response to a browser. `A` is who asks for consent, `P` the page of an outcome.
pub enum BrowserResponse<A, P> {
    /// The consent page.
    Consent(Box<ConsentPage<A>>),
    /// A redirect, with status 303.
    Redirect {
        /// The target.
        url: String,
        /// The values of `Set-Cookie`.
        cookies: Vec<String>,
    },
    /// The page of an outcome.
    Page(P),
}

/// The page on which the user agrees before the redirect to the provider.
pub struct ConsentPage<A> {
    /// Who asks.
    pub asker: A,
    /// The provider's name as shown to users.
    pub provider: String,
    /// The scopes that are asked for.
    pub scopes: Vec<RequestedScope>,
    /// The value that the form sends back.
    pub form: String,
    /// True if browsers reach this server over TLS.
    pub is_https: bool,
    /// The value of `Set-Cookie` that binds the browser.
    pub cookie: String,
}

/// A scope that is asked for.
pub struct RequestedScope {
    /// The scope, as the provider spells it.
    pub name: String,
    /// The permission, in plain words.
    pub description: Option<String>,
}

/// A response about a challenge.
pub type ChallengeResponse = BrowserResponse<ChallengeAsker, ChallengePage>;

/// The user of a call that needs a token, and the call's caller.
pub struct ChallengeAsker {
    /// The caller's name as shown to the user; empty if unknown.
    pub caller: String,
    /// The user whom the caller has named.
    pub user: String,
}

/// The page on which a challenge ends, or cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChallengePage {
    /// Tools can act for the user.
    Completed,
    /// The user has not agreed.
    NotAllowed,
    /// The user has not agreed to everything.
    InsufficientScopes,
    /// There is no such challenge any more.
    Expired,
    /// The form or the redirect belongs to another browser, or comes too late.
    OtherBrowser,
    /// Another window has the same challenge at the provider, or has completed it.
    InUse,
    /// The provider or the setup has made it impossible.
    Failed,
    /// The store or the provider does not answer.
    Unavailable,
}

impl From<StoreError> for ChallengePage {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "a challenge could not be processed");
        Self::Unavailable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_among_those_of_other_sites() {
        const OWN: &[u8] = b"__Host-sign-in=own";
        let found = |lines: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(COOKIE, http::HeaderValue::from_bytes(line).unwrap());
            }
            let browser = Browser::new("https://tools.example", &headers);
            browser.cookie_value("sign-in").map(str::to_owned)
        };
        for foreign in [
            "a=b".as_bytes(),
            "__utmz=utmccn=Unders\u{f8}gelse".as_bytes(),
            b"y=\xe9",
            b"y=\xff\xfe\x80",
            "\u{e9}=1".as_bytes(),
            b"no-value",
            b"=",
            b"",
            "__Host-sign-in\u{e9}=x".as_bytes(),
            // A page of a neighbouring host can set it, because its name has no prefix.
            "\u{2000}__Host-sign-in=x".as_bytes(),
            "\u{a0}__Host-sign-in=x".as_bytes(),
            b"__host-sign-in=x",
        ] {
            // RFC 9113, 8.2.3: HTTP/2 may split the header.
            let joined = [foreign, b"; ", OWN, b";", foreign].concat();
            let together: &[&[u8]] = &[&joined];
            for lines in [together, &[foreign, OWN], &[OWN, foreign]] {
                assert_eq!(found(lines).as_deref(), Some("own"), "{lines:?}");
            }
            assert_eq!(found(&[foreign]), None, "{foreign:?}");
        }
        let spaced = found(&[b"a=1;\t__Host-sign-in=own \t;b=2"]);
        assert_eq!(spaced.as_deref(), Some("own"));
        assert_eq!(found(&[b"__Host-sign-in=\xe9"]), None);
    }
}
