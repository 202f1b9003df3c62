//! The hosts that requests name.
//!
//! The grammar of hosts is stricter than RFC 3986: a web page could hide its own host in the parts that a
//! lenient parser drops or repairs.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// The maximum length of a DNS name.
const LONGEST: usize = 253;

/// A host without its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostName {
    /// In lower case.
    Name(String),
    Address(IpAddr),
}

impl HostName {
    /// Parses `name`, `name:port`, `[v6]` or `[v6]:port`, and nothing after it.
    pub(crate) fn in_authority(text: &str) -> Option<Self> {
        match text.rsplit_once(':') {
            // Not the last colon of an IPv6 address.
            Some((host, port)) if !port.ends_with(']') => {
                // The integer parser also accepts a sign.
                let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
                let is_port = is_number && port.parse::<u16>().is_ok();
                is_port.then(|| Self::parse(host)).flatten()
            }
            _ => Self::parse(text),
        }
    }

    /// Parses `scheme://`, then the syntax of [`in_authority`](Self::in_authority), and nothing
    /// after it.
    pub(crate) fn in_origin(text: &str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let is_scheme = !scheme.is_empty() && scheme.bytes().all(is_scheme);
        is_scheme.then(|| Self::in_authority(authority)).flatten()
    }

    /// Parses a host without a port: `name` or `[v6]`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix('[') {
            let address: Ipv6Addr = rest.strip_suffix(']')?.parse().ok()?;
            return Some(Self::Address(address.into()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_name = (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_allowed);
        is_name.then(|| Self::Name(text.to_ascii_lowercase()))
    }

    /// Returns true for `localhost`, 127.0.0.1 and `[::1]`.
    pub(crate) fn is_this_machine(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost",
            Self::Address(address) => [
                IpAddr::from(Ipv4Addr::LOCALHOST),
                Ipv6Addr::LOCALHOST.into(),
            ]
            .contains(address),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_may_have_a_port_and_nothing_else() {
        for (text, host) in [
            ("localhost", "localhost"),
            ("LocalHost:9000", "localhost"),
            ("a-b.my_host.example:0", "a-b.my_host.example"),
            ("127.0.0.1:65535", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[0:0:0:0:0:0:0:1]:9000", "[::1]"),
            ("[2001:DB8::1]:80", "[2001:db8::1]"),
        ] {
            let parsed = HostName::in_authority(text).map(|host| host.to_string());
            assert_eq!(parsed.as_deref(), Some(host), "{text}");
        }
        let texts = ":80 localhost: localhost:+80 localhost:65536 localhost:80:80 localhost/ \
            localhost,evil.example user@localhost http://localhost ::1 [::1 \
            [::1].evil.example [::1]evil:80 [::1]: [::1%25eth0] [127.0.0.1] [localhost] \
            []";
        for text in texts
            .split(' ')
            .chain(["", "localhost evil.example", "localhost\u{e9}"])
        {
            assert_eq!(HostName::in_authority(text), None, "{text}");
        }
        assert_eq!(HostName::in_authority(&"x".repeat(LONGEST + 1)), None);
    }

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        let texts = "http://localhost:3000 https://app.example chrome-extension://abcdef \
            http://[::1]:80";
        for text in texts.split(' ') {
            assert!(HostName::in_origin(text).is_some(), "{text}");
        }
        let texts = "null localhost ://localhost http:// http://localhost/ http://localhost/evil \
            http://http://localhost http://evil.example@localhost";
        for text in texts
            .split(' ')
            .chain(["", "http://localhost http://evil.example"])
        {
            assert_eq!(HostName::in_origin(text), None, "{text}");
        }
    }

    #[test]
    fn an_invalid_address_is_a_name() {
        for text in ["0x7f.1", "127.1", "192.0.2.300", "192.0.2.7.evil.example"] {
            let host = HostName::in_authority(text);
            assert_eq!(host, Some(HostName::Name(text.into())), "{text}");
        }
    }
}
