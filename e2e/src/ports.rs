//! Ports for servers that have to be told one before they start.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::Context;

/// Systems take the ports of connections from above this range: none of it can be taken by chance before its server listens on it.
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

/// Ports of the loopback interface that nobody listens on, and that nobody else in this process was given lately.
pub fn free<const N: usize>() -> anyhow::Result<[u16; N]> {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    // Test runs side by side begin at different ones.
    let begin = u16::try_from(std::process::id().wrapping_mul(61) % u32::from(COUNT))?;
    let mut ports = [0; N];
    for port in &mut ports {
        let next = || FIRST + begin.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        *port = (0..COUNT).map(|_| next()).find(is_free).context("every port is taken")?;
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gets_what_another_has() {
        let [first, second] = free().unwrap();
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, second)).unwrap();
        let [third] = free().unwrap();
        assert!(first != second && first != third && second != third);
        drop(held);
    }
}
