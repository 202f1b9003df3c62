//! The addresses that are globally reachable.
//!
//! Whoever chooses a URL that the function requests could otherwise make it send requests to its
//! own network, and to the credentials service of its platform.

use std::{
    net::{IpAddr, SocketAddr},
    sync::LazyLock,
};

use ipnet::IpNet;

/// The blocks that are not globally reachable, or that lead to other addresses: IANA IPv4 and IPv6
/// Special-Purpose Address Registries, and multicast. The first three of IPv6 are all that is not in
/// `2000::/3`: loopback, mapped and translated IPv4 addresses, unique local and link-local ones.
const OTHERS: &str = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 \
    192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 \
    203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 ::/3 4000::/2 8000::/1 2001::/23 2001:db8::/32 2002::/16 \
    3fff::/20";

static BLOCKS: LazyLock<Vec<IpNet>> = LazyLock::new(|| {
    let blocks = OTHERS.split(' ').map(str::parse);
    blocks.map(|it| it.expect("a test parses all")).collect()
});

/// Returns true for an address that anyone on the internet could reach, too.
pub fn is_global(address: IpAddr) -> bool {
    let address = address.to_canonical();
    !BLOCKS.iter().any(|block| block.contains(&address))
}

/// Returns the addresses if all of them are global: a name that also has another one is suspect.
pub fn only_global(addresses: Vec<SocketAddr>) -> Option<Vec<SocketAddr>> {
    let are_global = addresses.iter().all(|it| is_global(it.ip()));
    (are_global && !addresses.is_empty()).then_some(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_own_network_are_not_global_in_any_spelling() {
        let addresses = "127.0.0.1 127.255.255.254 0.0.0.0 10.1.2.3 100.64.0.1 169.254.169.254 \
            169.254.170.2 172.31.255.255 192.168.1.1 192.0.0.1 192.0.2.1 198.19.0.1 224.0.0.1 \
            255.255.255.255 ::1 :: ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::127.0.0.1 \
            64:ff9b::a9fe:a9fe 64:ff9b:1::a00:1 2002:7f00:1:: \
            2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:db8::1 fd00:ec2::254 fe80::1 fec0::1 \
            ff02::1 100::1";
        for address in addresses.split(' ') {
            assert!(!is_global(address.parse().unwrap()), "{address}");
        }
        for address in "1.1.1.1 160.79.104.10 2606:4700:4700::1111 ::ffff:1.1.1.1".split(' ') {
            assert!(is_global(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn one_other_address_is_enough_to_reject_a_name() {
        let of = |all: &[&str]| {
            let all = all.iter().map(|it| format!("{it}:443").parse().unwrap());
            only_global(all.collect())
        };
        assert!(of(&["1.1.1.1", "8.8.8.8"]).is_some());
        assert!(of(&["1.1.1.1", "127.0.0.1"]).is_none());
        assert!(of(&[]).is_none());
    }
}
