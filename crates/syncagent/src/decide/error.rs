//! Why nothing can be decided for an object.

use carrick_sync::PairError;
use thiserror::Error;

use super::refusal::Refusal;
use super::restored::Setback;
use crate::rules::mutation::MutationError;
use crate::rules::naming::NamingError;

/// Why nothing can be decided for an object. The message names the object or the rule.
#[derive(Debug, Error)]
pub enum DecideError {
    /// Several copies claim to belong to one source.
    #[error("several copies of one object exist on the service cluster: {}; delete all but one", .0.join(", "))]
    Ambiguous(Vec<String>),
    /// An object that existed before is in the place of a copy.
    #[error(
        "{0} is in the place of the copy and belongs to somebody else; remove or rename it, or allow taking it over: by its annotation syncagent.kcp.io/adoption: TakeOver, or, on the service cluster only, by spec.adoption: TakeOver in the PublishedResource"
    )]
    Taken(String),
    /// A copy that was there before would have to be made anew.
    #[error(
        "{0} cannot be changed in place, and is not deleted, because it was there before it became a copy; delete it, and the copy is made anew"
    )]
    Immutable(String),
    /// The copy was made for an earlier object of the same name, which was deleted by force.
    #[error(
        "{copy} is the copy of an earlier object of the same name (UID {uid}) that was deleted by force, without its copy; delete that copy to start with a new one, or hand it over with all the data behind it: by its annotation syncagent.kcp.io/adoption: TakeOver, or by spec.adoption: TakeOver in the PublishedResource"
    )]
    Earlier {
        /// The copy.
        copy: String,
        /// UID of the earlier object.
        uid: String,
    },
    /// A copy that does not name the kind of its source may belong to several sources.
    #[error(
        "{copy} may be the copy of an object of {ours} or of one of {theirs}, and does not say which; annotate it with syncagent.kcp.io/remote-object-resource: {ours} or {theirs}"
    )]
    Disputed {
        /// The copy.
        copy: String,
        /// The resource of this source in kcp.
        ours: String,
        /// The resource of the other one.
        theirs: String,
    },
    /// The order has gone back in time.
    #[error(
        "{0}; the order is held, and the service cluster stays as it is: see both sides with carrick restore status, and go on with what kcp has with carrick restore accept"
    )]
    Held(Setback),
    /// The provider does not want the object.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The copy cannot be named.
    #[error(transparent)]
    Naming(#[from] NamingError),
    /// A mutation failed.
    #[error(transparent)]
    Mutation(#[from] MutationError),
}

impl From<PairError<MutationError>> for DecideError {
    fn from(error: PairError<MutationError>) -> Self {
        match error {
            PairError::Taken(copy) => Self::Taken(copy),
            PairError::Immutable(copy) => Self::Immutable(copy),
            PairError::Transform(error) => Self::Mutation(error),
        }
    }
}
