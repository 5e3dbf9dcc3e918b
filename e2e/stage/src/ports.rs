//! Ports for servers that have to be told one before they start.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::Context;

/// Systems take the ports of connections from above this range: none of it can be taken by chance before its server listens on it.
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

/// Ports of the loopback interface that nobody listens on, and that nobody else in this process was given lately.
pub fn free<const N: usize>() -> anyhow::Result<[u16; N]> {
    let mut ports = [0; N];
    for port in &mut ports {
        *port = row(1)?;
    }
    Ok(ports)
}

/// The first of several such ports in a row.
pub fn row(count: u16) -> anyhow::Result<u16> {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    // Test runs side by side begin at different ones.
    let begin = u16::try_from(std::process::id().wrapping_mul(61) % u32::from(COUNT))?;
    let next = || FIRST + begin.wrapping_add(GIVEN.fetch_add(count, Ordering::Relaxed)) % COUNT;
    let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    (0..COUNT).map(|_| next()).find(|first| (0..count).all(|n| is_free(first + n))).context("every port is taken")
}
