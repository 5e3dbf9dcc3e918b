//! Helpers of unit tests.

use carrick_client::Client;

/// A client that reaches nobody.
pub(crate) fn unreachable() -> Client {
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap_or_default());
    #[allow(clippy::unwrap_used)] // only tests come here
    Client::try_from(config).unwrap()
}
