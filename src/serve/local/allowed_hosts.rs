//! The hosts under which a local server may be called, and whose pages may call it.

use std::net::IpAddr;

use super::host_name::HostName;
use crate::serve::settings::{self, InvalidSetting};

/// Allows every host and every page.
const ALL: &str = "*";

/// The hosts that a request may name.
pub(super) struct AllowedHosts {
    hosts: Vec<HostName>,
    /// Set where other machines can reach the server, by addresses that it need not know. A
    /// browser names an address as the host only when it asks for that very address; DNS rebinding
    /// needs a name.
    has_addresses: bool,
}

impl AllowedHosts {
    /// Reads `ALLOWED_HOSTS` for a server that listens at this address; `None` is all hosts.
    pub(super) fn from_environment(listens_at: IpAddr) -> Result<Option<Self>, InvalidSetting> {
        let names = settings::list("ALLOWED_HOSTS", "")?;
        Self::of(&names, !listens_at.is_loopback())
    }

    fn of(names: &[String], has_addresses: bool) -> Result<Option<Self>, InvalidSetting> {
        if names.iter().any(|name| name == ALL) {
            return Ok(None);
        }
        let hosts = names.iter().map(|name| parsed(name));
        Ok(Some(Self {
            hosts: hosts.collect::<Result<_, _>>()?,
            has_addresses,
        }))
    }

    /// True if a request may be for this host.
    pub(super) fn has(&self, host: &HostName) -> bool {
        self.is_named(host) || self.has_addresses && matches!(host, HostName::Address(_))
    }

    /// True if a page from `origin` may send a request for `host`, which has to be allowed itself.
    pub(super) fn has_origin(&self, origin: &HostName, host: Option<&HostName>) -> bool {
        self.is_named(origin) || host == Some(origin)
    }

    fn is_named(&self, host: &HostName) -> bool {
        host.is_this_machine() || self.hosts.contains(host)
    }
}

fn parsed(name: &str) -> Result<HostName, InvalidSetting> {
    HostName::parse(name).ok_or_else(|| {
        InvalidSetting(format!(
            "ALLOWED_HOSTS has '{name}', which is not a host by itself: write names and addresses \
             without scheme and port, as in app.example, 192.0.2.7 or [2001:db8::1], or * for all"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    fn allowed(has_addresses: bool) -> AllowedHosts {
        let names = ["Tunnel.Example".to_owned(), "192.0.2.1".to_owned()];
        AllowedHosts::of(&names, has_addresses).unwrap().unwrap()
    }

    #[test]
    fn on_a_loopback_address_only_named_hosts_are_allowed() {
        let allowed = allowed(false);
        for name in [
            "localhost",
            "127.0.0.1",
            "[::1]",
            "tunnel.example",
            "192.0.2.1",
        ] {
            assert!(allowed.has(&host(name)), "{name}");
            assert!(allowed.has_origin(&host(name), None), "{name}");
        }
        for name in ["evil.example", "localhost.", "127.0.0.2", "[::2]"] {
            assert!(!allowed.has(&host(name)), "{name}");
            assert!(!allowed.has_origin(&host(name), None), "{name}");
        }
    }

    #[test]
    fn elsewhere_every_address_is_allowed_and_pages_that_it_serves() {
        let allowed = allowed(true);
        let (ours, other) = (host("192.0.2.7"), host("192.0.2.8"));
        assert!(allowed.has(&ours) && allowed.has(&host("[2001:db8::1]")));
        assert!(!allowed.has(&host("evil.example")));
        assert!(allowed.has_origin(&ours, Some(&ours)));
        assert!(allowed.has_origin(&host("localhost"), Some(&ours)));
        assert!(!allowed.has_origin(&other, Some(&ours)));
        assert!(!allowed.has_origin(&other, None));
    }

    #[test]
    fn names_are_hosts_or_all() {
        let of = |name: &str| AllowedHosts::of(&["app.example".into(), name.into()], false);
        assert!(of("*").unwrap().is_none());
        for name in ["https://app.example", "app.example:80", "*.example", "::1"] {
            let error = of(name).err().map(|error| error.to_string());
            assert!(error.is_some_and(|it| it.contains(name)), "{name}");
        }
    }
}
