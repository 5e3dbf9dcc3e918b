//! Where an uploaded kubeconfig may lead. Whoever uploads one makes the backend connect to what she names, from where the backend is.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network, such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a network such as 10.0.0.0/8");
        let (address, length) = text.split_once('/').ok_or_else(wrong)?;
        let (address, length): (IpAddr, u8) =
            (address.parse().map_err(|_| wrong())?, length.parse().map_err(|_| wrong())?);
        let most = if address.is_ipv4() { 32 } else { 128 };
        if length > most { Err(wrong()) } else { Ok(Self { address, length }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl Network {
    fn has(&self, address: IpAddr) -> bool {
        let (known, asked, width) = match (self.address, address) {
            (IpAddr::V4(known), IpAddr::V4(asked)) => (u128::from(known.to_bits()), u128::from(asked.to_bits()), 32),
            (IpAddr::V6(known), IpAddr::V6(asked)) => (known.to_bits(), asked.to_bits(), 128),
            _ => return false,
        };
        let rest = width - u32::from(self.length);
        (known ^ asked).checked_shr(rest).unwrap_or_default() == 0
    }
}

/// Whether a consumer's cluster may be at an address: on the public Internet, or in a network that the provider has named.
pub(super) fn is_allowed(address: IpAddr, networks: &[Network]) -> bool {
    // An IPv4 address in the clothes of IPv6 is still one.
    let address = address.to_canonical();
    networks.iter().any(|network| network.has(address))
        || match address {
            IpAddr::V4(address) => is_public_v4(address),
            IpAddr::V6(address) => is_public_v6(address),
        }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || matches!((a, b, c), (0 | 224.., ..) | (100, 64..=127, _) | (192, 0, 0) | (198, 18 | 19, _));
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    // Tunnels lead to IPv4 addresses that are not checked.
    let is_special = matches!((first, second), (0x2001, 0 | 0xdb8) | (0x2002, _));
    first & 0xe000 == 0x2000 && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_reached_unless_networks_are_named() {
        let named: Vec<Network> = ["10.1.0.0/16", "fd00::/8"].iter().map(|it| it.parse().unwrap()).collect();
        for (address, public, allowed) in [
            ("8.8.8.8", true, true),
            ("2a00:1450::1", true, true),
            ("127.0.0.1", false, false),
            ("10.0.0.1", false, false),
            ("10.1.2.3", false, true),
            ("172.16.0.1", false, false),
            ("192.168.1.1", false, false),
            ("169.254.169.254", false, false),
            ("100.100.100.200", false, false),
            ("192.0.0.192", false, false),
            ("198.18.0.1", false, false),
            ("0.0.0.0", false, false),
            ("224.0.0.1", false, false),
            ("255.255.255.255", false, false),
            ("::1", false, false),
            ("::", false, false),
            ("fe80::1", false, false),
            ("fd00::1", false, true),
            ("fc00::1", false, false),
            ("::ffff:127.0.0.1", false, false),
            ("::ffff:10.1.0.1", false, true),
            ("64:ff9b::a9fe:a9fe", false, false),
            ("2002:7f00:1::", false, false),
            ("ff02::1", false, false),
        ] {
            let parsed = address.parse().unwrap();
            assert_eq!(is_allowed(parsed, &[]), public, "{address}");
            assert_eq!(is_allowed(parsed, &named), allowed, "{address}");
        }
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(is_allowed("127.0.0.1".parse().unwrap(), &[all]));
        for bad in ["", "10.0.0.0", "10.0.0.0/33", "x/8", "::/129", "10.0.0.0/-1"] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
        assert_eq!(named[0].to_string(), "10.1.0.0/16");
    }
}
