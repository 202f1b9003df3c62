//! The hosts that requests to a local server may name, and whose pages may send such requests.

use std::net::IpAddr;

use crate::{
    host_name::HostName,
    serve::settings::{self, InvalidSetting},
};

/// Allows every host and every page.
const ALL: &str = "*";

/// The hosts that a request may name.
pub(super) struct AllowedHosts {
    hosts: Vec<HostName>,
    /// True if other machines can reach the server, at addresses that the server may not know. A
    /// browser names an address as the host only if it requests that very address; DNS rebinding
    /// needs a name.
    allows_any_address: bool,
}

impl AllowedHosts {
    /// Reads `ALLOWED_HOSTS` for a server that listens at this address; `None` allows all hosts.
    pub(super) fn from_environment(listens_at: IpAddr) -> Result<Option<Self>, InvalidSetting> {
        let names = settings::list("ALLOWED_HOSTS", "")?;
        Self::of(&names, !listens_at.is_loopback())
    }

    fn of(names: &[String], allows_any_address: bool) -> Result<Option<Self>, InvalidSetting> {
        if names.iter().any(|name| name == ALL) {
            return Ok(None);
        }
        let hosts = names.iter().map(|name| parse_host(name));
        Ok(Some(Self {
            hosts: hosts.collect::<Result<_, _>>()?,
            allows_any_address,
        }))
    }

    /// True if a request may name this host.
    pub(super) fn has(&self, host: &HostName) -> bool {
        self.is_named(host) || self.allows_any_address && matches!(host, HostName::Address(_))
    }

    /// True if a page from `origin` may send a request to `host`, which must itself be allowed.
    pub(super) fn has_origin(&self, origin: &HostName, host: Option<&HostName>) -> bool {
        self.is_named(origin) || host == Some(origin)
    }

    fn is_named(&self, host: &HostName) -> bool {
        host.is_this_machine() || self.hosts.contains(host)
    }
}

fn parse_host(name: &str) -> Result<HostName, InvalidSetting> {
    HostName::parse(name).ok_or_else(|| {
        InvalidSetting(format!(
            "ALLOWED_HOSTS has '{name}', which is not a host: write names and addresses without \
             a scheme or port, as in app.example, 192.0.2.7 or [2001:db8::1], or * for all"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    fn allowed(allows_any_address: bool) -> AllowedHosts {
        let names = ["Tunnel.Example".to_owned(), "192.0.2.1".to_owned()];
        AllowedHosts::of(&names, allows_any_address)
            .unwrap()
            .unwrap()
    }

    #[test]
    fn on_a_loopback_address_only_listed_hosts_are_allowed() {
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
    fn on_other_addresses_any_address_and_its_own_pages_are_allowed() {
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
    fn an_entry_is_a_host_or_a_star() {
        let of = |name: &str| AllowedHosts::of(&["app.example".into(), name.into()], false);
        assert!(of("*").unwrap().is_none());
        for name in ["https://app.example", "app.example:80", "*.example", "::1"] {
            let error = of(name).err().map(|error| error.to_string());
            assert!(error.is_some_and(|it| it.contains(name)), "{name}");
        }
    }
}
