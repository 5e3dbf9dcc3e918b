//! What a Connection says about itself.

use carrick_bind_api::core::conditions::{
    AS_EXPECTED, CLUSTER_IDENTITY_CHANGED, CONNECTED, DRAINING_BINDINGS, FORBIDDEN, Finding, PENDING,
    PERMISSION_DENIED, READY, SECRET_NOT_FOUND, SECRET_VALID,
};

/// How far a Connection has come; each step needs the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The Secret is missing or cannot be used: why.
    NoSecret(String),
    /// The provider does not answer: why.
    Unreachable(String),
    /// The provider refuses something that is needed: what.
    Forbidden(String),
    /// The kubeconfig leads to another cluster than before.
    OtherCluster {
        /// The one that was pinned.
        pinned: String,
        /// The one that it leads to now.
        found: String,
    },
    /// It works.
    Ready,
    /// It is being deleted and waits for this many bindings.
    Draining(usize),
}

/// The conditions of a Connection. Of those that need an earlier step nothing is said before it was taken.
pub fn findings(progress: &Progress) -> Vec<Finding> {
    let secret = Finding::yes(SECRET_VALID, AS_EXPECTED, "kubeconfig secret resolved");
    let allowed = || Finding::no(PERMISSION_DENIED, AS_EXPECTED, "no RBAC denials");
    let connected = || Finding::yes(CONNECTED, AS_EXPECTED, "connected to provider");
    match progress {
        Progress::NoSecret(why) => vec![
            Finding::no(SECRET_VALID, SECRET_NOT_FOUND, why),
            Finding::no(READY, SECRET_NOT_FOUND, "kubeconfig secret not usable yet"),
        ],
        Progress::Unreachable(why) => vec![
            secret,
            Finding::no(CONNECTED, PENDING, why),
            Finding::no(READY, PENDING, "cannot reach provider cluster"),
        ],
        Progress::Forbidden(what) => {
            vec![secret, Finding::yes(PERMISSION_DENIED, FORBIDDEN, what), Finding::no(READY, FORBIDDEN, what)]
        }
        Progress::OtherCluster { pinned, found } => {
            let words = format!("kubeconfig now points at cluster {found}, but {pinned} was pinned");
            vec![
                secret,
                Finding::no(CONNECTED, CLUSTER_IDENTITY_CHANGED, words),
                Finding::no(READY, CLUSTER_IDENTITY_CHANGED, "provider cluster identity changed"),
            ]
        }
        Progress::Ready => {
            vec![secret, connected(), allowed(), Finding::yes(READY, AS_EXPECTED, "connection ready")]
        }
        Progress::Draining(count) => {
            let words = format!("waiting for {count} binding(s) to finish unbinding");
            vec![Finding::no(READY, DRAINING_BINDINGS, words)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_connection_that_works_is_ready_and_each_state_says_why() {
        let text = || "why".to_owned();
        for (progress, reason) in [
            (Progress::NoSecret(text()), SECRET_NOT_FOUND),
            (Progress::Unreachable(text()), PENDING),
            (Progress::Forbidden(text()), FORBIDDEN),
            (Progress::OtherCluster { pinned: text(), found: text() }, CLUSTER_IDENTITY_CHANGED),
            (Progress::Ready, AS_EXPECTED),
            (Progress::Draining(2), DRAINING_BINDINGS),
        ] {
            let all = findings(&progress);
            let ready = all.iter().find(|finding| finding.type_ == READY).unwrap();
            assert_eq!((ready.holds, ready.reason), (progress == Progress::Ready, reason));
            let denied = all.iter().any(|finding| finding.type_ == PERMISSION_DENIED && finding.holds);
            assert_eq!(denied, matches!(progress, Progress::Forbidden(_)));
        }
    }
}
