//! Clients and watches against a scripted server on loopback.

#[cfg(feature = "kcp")]
mod kcp;
mod outage;
mod requests;
mod restored;
mod server;
mod watch;
mod ways;
