//! The owner's rules: who may sign in, and with which clients.

use reqwest::Url;

use super::{identity::Identity, redirect_uri};

/// A rule for who may sign in: people to whom at least one rule applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SignInRule {
    Anyone,
    /// The user, as tools get it.
    User(String),
    /// An email address that the provider has verified.
    Address(String),
    /// The domain of a company, or of verified addresses.
    Domain(String),
    /// At GitHub, an organization in lower case.
    Organization(String),
    Group(String),
}

impl SignInRule {
    /// Parses `anyone` or `KIND:VALUE`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "anyone" {
            return Ok(Self::Anyone);
        }
        let invalid = || {
            format!(
                "the rule '{text}' is not anyone, user:ID, address:ADDRESS, domain:DOMAIN, \
                 organization:NAME or group:NAME"
            )
        };
        let (kind, value) = text.split_once(':').ok_or_else(invalid)?;
        let value = value.trim().to_owned();
        if value.is_empty() {
            return Err(invalid());
        }
        Ok(match kind.trim() {
            "user" => Self::User(value),
            "address" => Self::Address(value.to_ascii_lowercase()),
            "domain" => Self::Domain(value.to_ascii_lowercase()),
            "organization" => Self::Organization(value.to_ascii_lowercase()),
            "group" => Self::Group(value),
            _ => return Err(invalid()),
        })
    }

    fn allows(&self, person: &Identity) -> bool {
        match self {
            Self::Anyone => true,
            Self::User(user) => *user == person.user,
            Self::Address(address) => person.address.as_ref() == Some(address),
            Self::Domain(domain) => person.domain.as_ref() == Some(domain),
            Self::Organization(name) | Self::Group(name) => person.groups.contains(name),
        }
    }

    /// Returns true if this provider can say to whom the rule applies: GitHub has no groups but its
    /// organizations, and Entra ID does not verify addresses.
    pub(super) fn is_known_at(&self, provider: &str) -> bool {
        match self {
            Self::Anyone | Self::User(_) => true,
            Self::Organization(_) => provider == "github",
            Self::Group(_) => provider != "github",
            Self::Address(_) | Self::Domain(_) => !["github", "entra"].contains(&provider),
        }
    }
}

/// Returns true if a rule lets the person sign in.
pub(super) fn may_sign_in(rules: &[SignInRule], person: &Identity) -> bool {
    rules.iter().any(|rule| rule.allows(person))
}

/// The clients that the owner has listed: hosts and redirect URIs. Without any, every client may
/// ask users to sign in.
#[derive(Clone, Debug, Default)]
pub(super) struct ListedClients(pub(super) Vec<String>);

impl ListedClients {
    /// Returns the entry that is neither a host nor a redirect URI, if there is one.
    pub(super) fn mistake(&self) -> Option<&str> {
        let is_host = |entry: &str| !entry.contains(['/', ':', '@', '?', '#', ' ']);
        let is_valid = |entry: &str| is_host(entry) || redirect_uri::parse(entry, true).is_some();
        let mistake = self.0.iter().find(|entry| !is_valid(entry));
        mistake.map(String::as_str)
    }

    pub(super) fn allows_host(&self, host: &str) -> bool {
        let is_listed = |entry: &String| entry.eq_ignore_ascii_case(host);
        self.0.is_empty() || self.0.iter().any(is_listed)
    }

    /// Returns true if a document at this host may describe a client: the host is listed, or a
    /// redirect URI is, which the document may name.
    pub(super) fn may_describe(&self, host: &str) -> bool {
        self.allows_host(host) || self.0.iter().any(|entry| entry.contains(':'))
    }

    /// Returns true if a client with this id may use this redirect URI: one of the two is listed, or
    /// its host is.
    pub(super) fn allows(&self, client_id: &str, redirect_uri: &str) -> bool {
        let document = Url::parse(client_id).ok();
        let host = document.as_ref().and_then(Url::host_str);
        host.is_some_and(|host| self.allows_host(host)) || self.allows_redirect(redirect_uri)
    }

    /// Returns true if the owner has listed a redirect URI itself.
    pub(super) fn names(&self, uri: &str) -> bool {
        self.0.iter().any(|entry| redirect_uri::is_same(entry, uri))
    }

    /// Returns true if users may be sent to this redirect URI: it is listed, or its host is.
    pub(super) fn allows_redirect(&self, uri: &str) -> bool {
        let url = Url::parse(uri).ok().filter(|url| url.scheme() == "https");
        let host = url.as_ref().and_then(Url::host_str);
        self.0.is_empty() || self.names(uri) || host.is_some_and(|host| self.allows_host(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ada() -> Identity {
        Identity {
            user: "1".into(),
            subject: "1".into(),
            groups: vec!["staff".into(), "acme".into()],
            address: Some("ada@acme.example".into()),
            domain: Some("acme.example".into()),
        }
    }

    #[test]
    fn one_rule_that_applies_is_enough() {
        let texts = "anyone,user:1,address:Ada@Acme.example,address:ADA@ACME.EXAMPLE,domain: acme.example,\
            domain:Acme.Example, domain : ACME.example ,organization:Acme,group:staff";
        for text in texts.split(',') {
            let rules = ["user:2", text].map(|it| SignInRule::parse(it).unwrap());
            assert!(may_sign_in(&rules, &ada()), "{text}");
        }
        let texts = "user:ada address:ada@other.example address:ada@acme.example.evil \
            address:acme.example domain:ada@acme.example domain:example \
            domain:evil-acme.example organization:other group:Staff";
        for text in texts.split(' ') {
            let rule = SignInRule::parse(text).unwrap();
            assert!(!may_sign_in(&[rule], &ada()), "{text}");
        }
        let texts = ",everyone,Anyone,anyone:,user:,user: ,team:x,Domain:acme.example,acme.example";
        for text in texts.split(',') {
            assert!(SignInRule::parse(text).is_err(), "{text}");
        }
    }

    /// Lower case joins letters of ASCII with others: that of KELVIN SIGN is `k`.
    #[test]
    fn only_the_case_of_ascii_does_not_count() {
        for (rule, identity) in [
            ("address:mike@acme.example", "mi\u{212a}e@acme.example"),
            ("address:mi\u{212a}e@acme.example", "mike@acme.example"),
            ("domain:kelvin.example", "\u{212a}elvin.example"),
            ("domain:\u{212a}elvin.example", "kelvin.example"),
            ("organization:kelvin", "\u{212a}elvin"),
            ("organization:\u{212a}elvin", "kelvin"),
            ("domain:\u{130}x.example", "i\u{307}x.example"),
            ("group:kelvin", "\u{212a}elvin"),
            ("user:kelvin", "\u{212a}elvin"),
        ] {
            let person = Identity {
                user: identity.to_owned(),
                subject: identity.to_owned(),
                groups: vec![identity.to_owned()],
                address: Some(identity.to_owned()),
                domain: Some(identity.to_owned()),
            };
            let rule = SignInRule::parse(rule).unwrap();
            assert!(
                !may_sign_in(std::slice::from_ref(&rule), &person),
                "{rule:?} {identity}"
            );
        }
    }

    #[test]
    fn listed_clients_are_hosts_and_redirect_uris() {
        let entries = ["claude.ai", "http://localhost/callback", "myapp://cb"];
        let listed = ListedClients(entries.map(str::to_owned).to_vec());
        assert_eq!(listed.mistake(), None);
        for uri in [
            "https://claude.ai/api/mcp/auth_callback",
            "http://localhost:3118/callback",
            "myapp://cb",
        ] {
            assert!(listed.allows_redirect(uri), "{uri}");
        }
        let uris = "https://claude.ai.evil.example/cb https://evil.example/claude.ai \
            http://localhost:3118/other http://127.0.0.1:3118/callback myapp://other \
            other://claude.ai/cb";
        for uri in uris.split(' ') {
            assert!(!listed.allows_redirect(uri), "{uri}");
        }
        assert!(listed.allows_host("Claude.ai") && !listed.allows_host("evil.example"));
        assert!(ListedClients::default().allows_redirect("https://any.example/cb"));
        for mistake in [
            "https://claude.ai/#a",
            "http://intranet/cb",
            "a b",
            "claude.ai/cb",
        ] {
            let listed = ListedClients(vec![mistake.to_owned()]);
            assert_eq!(listed.mistake(), Some(mistake));
        }
    }
}
