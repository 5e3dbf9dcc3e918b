//! Why related objects cannot be read, and the way out.

use carrick_client::Error;
use carrick_sync::executor::refusal::{Access, Then, follows};
use thiserror::Error;

use crate::decide::{Role, Side};
use crate::rules::metadata::KCP_SIDE;
use crate::rules::related::{Gvr, Related, RelatedError};

/// The flag that says how much of one workspace is kept in memory.
pub(super) const CACHED_BYTES: &str = "--max-cached-bytes";

/// Why related objects cannot be read.
#[derive(Debug, Error)]
pub(in crate::agent::objects) enum ReadError {
    /// The rules fail on these primaries.
    #[error("related resource {identifier:?}: {source}")]
    Rules {
        /// Identifier of the entry.
        identifier: String,
        /// What is wrong.
        source: RelatedError,
    },
    /// A server refused or did not answer.
    #[error("related resource {identifier:?}: {source}")]
    Server {
        /// Identifier of the entry.
        identifier: String,
        /// What the server said.
        source: Error,
    },
    /// The agent lacks a right, or the consumer has not accepted a claim.
    #[error(transparent)]
    Forbidden(Box<Forbidden>),
    /// Something that should be deleted with its primary is out of reach.
    #[error("related resource {identifier:?}: {at} is left behind; {way_out}")]
    LeftBehind {
        /// Identifier of the entry.
        identifier: String,
        /// Where it is.
        side: Side,
        /// The object.
        at: String,
        /// What is missing.
        way_out: String,
    },
    /// An original that is held is not shown to the agent any more.
    #[error(
        "related resource {identifier:?}: {at} cannot be seen any more, perhaps because of the selector of a claim; if it exists, it keeps its finalizer"
    )]
    Hidden {
        /// Identifier of the entry.
        identifier: String,
        /// The object.
        at: String,
    },
    /// A server does not have the resource.
    #[error("related resource {identifier:?}: {side} has no resource {}.{}/{}", .gvr.resource, .gvr.group, .gvr.version)]
    NoKind {
        /// Identifier of the entry.
        identifier: String,
        /// Which side.
        side: &'static str,
        /// The resource.
        gvr: Gvr,
    },
}

impl ReadError {
    /// The error of a server that was asked for a resource.
    pub fn of(identifier: &str, side: Side, gvr: &Gvr, source: Error) -> Self {
        let identifier = identifier.to_owned();
        if follows(&source, Access::Read, side.role).then == Then::AwaitRight {
            let (way_out, gvr) = (way_out(side, gvr), gvr.clone());
            return Self::Forbidden(Box::new(Forbidden { identifier, side, gvr, way_out, source }));
        }
        Self::Server { identifier, source }
    }

    /// Whether there is no room for the objects of the workspace.
    pub fn is_for_want_of_room(&self) -> bool {
        matches!(self, Self::Rules { source: RelatedError::TooMany { flag, .. }, .. } if *flag == CACHED_BYTES)
    }

    /// The kind for which the consumer has not accepted a claim, if that is why.
    pub fn unclaimed(&self) -> Option<String> {
        let Self::Forbidden(forbidden) = self else { return None };
        (forbidden.side.role == Role::Consumer).then(|| claimed(&forbidden.gvr))
    }

    /// The same without the provider's servers, accounts and rights: what a consumer can do something about, or that nothing can be done.
    pub fn for_consumer(&self) -> String {
        let provider_side =
            |identifier: &str| format!("related resource {identifier:?}: a provider-side issue has occurred");
        match self {
            Self::Forbidden(forbidden) => match forbidden.side.role {
                Role::Consumer => format!("related resource {:?}: {}", forbidden.identifier, forbidden.way_out),
                Role::Provider => provider_side(&forbidden.identifier),
            },
            Self::Server { identifier, .. } => provider_side(identifier),
            Self::LeftBehind { identifier, side, .. } if side.role == Role::Provider => provider_side(identifier),
            Self::NoKind { .. } | Self::LeftBehind { .. } | Self::Hidden { .. } | Self::Rules { .. } => {
                self.to_string()
            }
        }
    }
}

/// A right that is missing.
#[derive(Debug, Error)]
#[error("related resource {identifier:?}: {source}; {way_out}")]
pub(in crate::agent::objects) struct Forbidden {
    /// Identifier of the entry.
    pub identifier: String,
    /// On which side.
    pub side: Side,
    /// For what.
    pub gvr: Gvr,
    /// What to do about it.
    pub way_out: String,
    /// What the server said.
    pub source: Error,
}

/// What to do about missing rights.
pub(super) fn way_out(side: Side, gvr: &Gvr) -> String {
    match side.role {
        Role::Consumer => format!("the consumer's APIBinding must accept the claim for {}", claimed(gvr)),
        // One right that is missing has one remedy: the condition names exactly the verbs that are not granted.
        Role::Provider => {
            format!("grant the agent what condition RightsGranted of the PublishedResource names for {}", claimed(gvr))
        }
    }
}

/// How a claim names a kind.
fn claimed(Gvr { group, resource, .. }: &Gvr) -> String {
    if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") }
}

/// A server does not have a resource.
pub(super) fn no_kind(rules: &Related, side: Side, gvr: &Gvr) -> ReadError {
    ReadError::NoKind {
        identifier: rules.identifier.clone(),
        side: if side == KCP_SIDE { "the consumer's workspace" } else { "the service cluster" },
        gvr: gvr.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::metadata::SERVICE_SIDE;

    #[test]
    fn the_way_out_of_a_missing_right_asks_for_no_more_than_what_is_missing() {
        let gvr = Gvr { group: String::new(), version: "v1".to_owned(), resource: "configmaps".to_owned() };
        let provider = way_out(SERVICE_SIDE, &gvr);
        assert!(provider.contains("RightsGranted") && provider.ends_with(" configmaps"), "{provider}");
        let wide = ["ClusterRole", "create", "update", "patch", "delete"];
        assert!(!wide.iter().any(|word| provider.contains(word)), "{provider}");
        assert!(way_out(KCP_SIDE, &gvr).contains("accept the claim for configmaps"));
    }

    #[test]
    fn what_is_left_behind_on_the_service_cluster_is_the_providers_business() {
        let gvr = Gvr { group: String::new(), version: "v1".to_owned(), resource: "configmaps".to_owned() };
        let left = |side: Side| ReadError::LeftBehind {
            identifier: "settings".to_owned(),
            side,
            at: format!("{} ConfigMap kcp-system/one", side.name),
            way_out: way_out(side, &gvr),
        };
        assert!(left(SERVICE_SIDE).to_string().contains("kcp-system/one is left behind; grant the agent"));
        let provider = left(SERVICE_SIDE).for_consumer();
        assert_eq!(provider, "related resource \"settings\": a provider-side issue has occurred");
        let consumer = left(KCP_SIDE).for_consumer();
        assert!(consumer.contains("one is left behind") && consumer.contains("accept the claim"), "{consumer}");
    }
}
