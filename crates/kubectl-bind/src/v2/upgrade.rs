//! A binding of 0.8 becomes one of v2, and back, with the same objects here and the same copies at the provider.
//!
//! ```text
//!   check    every copy has the name of its object; whatever v2 has no word for is named       (nothing is written)
//!   CRDs     from the APIServiceBinding to the Connection: 0.8 stops
//!   binding  the APIServiceBinding goes without unbinding: nothing is deleted for it
//!   copies   v2's marks, and the field manager of `spec`
//!   objects  v2's finalizer in the place of 0.8's
//!   binding  a ClusterBinding: v2 begins
//! ```
//!
//! Each step may be repeated, so that whoever is interrupted runs the command again. What has to be known for the way back stands on the CRDs; 0.8's
//! marks stay on copies, where v2 ignores them.

mod back;
mod facts;
mod forth;
mod marks;
mod writes;

use carrick_client::Client;

use super::V2Error;
use crate::options;

/// Upgrades, or goes back; returns what to print.
pub async fn run(client: &Client, request: &options::Upgrade) -> Result<String, V2Error> {
    match &request.connection {
        Some(connection) => forth::run(client, request, connection).await,
        None => back::run(client, request).await,
    }
}
