//! IP addresses and networks.

use std::net::IpAddr;

/// A network: an address, which may have more bits than the prefix, and the length of the prefix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cidr {
    pub address: IpAddr,
    /// The length of the prefix.
    pub bits: u8,
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Cidr {
    /// Parses `10.0.0.0/8`.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.rsplit_once('/')?;
        let address = parse_ip(address)?;
        let plain = bits == "0" || bits.starts_with(|c: char| ('1'..='9').contains(&c));
        let bits: u8 = bits.parse().ok().filter(|_| plain)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        (bits <= most).then_some(Self { address, bits })
    }

    /// The network alone, with zeros after the prefix.
    pub fn masked(&self) -> Self {
        let bits = u32::from(self.bits);
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                IpAddr::V4((u32::from(address) & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
                IpAddr::V6((u128::from(address) & mask).into())
            }
        };
        Self { address, bits: self.bits }
    }

    /// Whether an address is part of the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && Self { address, bits: self.bits }.masked().address == self.masked().address
    }
}

/// An address without zone that is not an IPv4 address in disguise.
pub(crate) fn parse_ip(text: &str) -> Option<IpAddr> {
    text.parse::<IpAddr>().ok().filter(|found| match found {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => address.to_ipv4_mapped().is_none(),
    })
}
