//! Clients and watches against a scripted server on loopback.

#![allow(clippy::unwrap_used)] // helpers of tests are tests too

#[path = "scripted/kcp.rs"]
mod kcp;
#[path = "scripted/outage.rs"]
mod outage;
#[path = "scripted/requests.rs"]
mod requests;
#[path = "scripted/server.rs"]
mod server;
#[path = "scripted/watch.rs"]
mod watch;
#[path = "scripted/ways.rs"]
mod ways;
