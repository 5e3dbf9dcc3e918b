//! What becomes of objects that are on the provider before anybody here has asked for them.

use std::fmt;

/// Annotation of an APIServiceBinding, or of the APIServiceBindingBundle that it belongs to (ours): `Show` or `Adopt`. Without it nothing that the
/// provider has made itself is touched.
pub const EXISTING_OBJECTS_ANNOTATION: &str = "kube-bind.io/existing-objects";

/// Annotation of a consumer's object that was adopted (ours): the uid of the provider's object that it was made from.
pub const ADOPTED_ANNOTATION: &str = "kube-bind.io/adopted-from";

/// Annotation of a cluster-scoped object of the provider's own (ours): the contract namespace of the one consumer that may adopt it. Where names do not
/// say whose an object is, somebody at the provider has to.
pub const ADOPTABLE_ANNOTATION: &str = "kube-bind.io/adoptable";

/// What becomes of objects that the provider has made itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Existing {
    /// They are left alone, and nobody sees them on the consumer.
    #[default]
    Leave,
    /// They are mirrored on the consumer, and the provider goes on owning them.
    Show,
    /// They are created on the consumer once, which owns them from then on.
    Adopt,
}

/// Why nobody knows what should become of objects that the provider had before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExistingError {
    /// The annotation has another value than those that there are.
    #[error("annotation {EXISTING_OBJECTS_ANNOTATION} is {0:?}; it must be Show or Adopt, or be left out")]
    Unknown(String),
    /// There are many consumers, and the objects belong to none of them.
    #[error(
        "annotation {EXISTING_OBJECTS_ANNOTATION} is {0:?}, but the consumers are workspaces, which see only what they have made; leave it out"
    )]
    ManyConsumers(String),
}

impl Existing {
    /// What a value of [`EXISTING_OBJECTS_ANNOTATION`] means.
    ///
    /// ```
    /// use carrick_bind_api::existing::Existing;
    ///
    /// assert_eq!(Existing::of_annotation(Some("Show")), Ok(Existing::Show));
    /// assert_eq!(Existing::of_annotation(None), Ok(Existing::Leave));
    /// assert!(Existing::of_annotation(Some("show")).is_err());
    /// ```
    pub fn of_annotation(value: Option<&str>) -> Result<Self, ExistingError> {
        match value {
            None => Ok(Self::Leave),
            Some("Show") => Ok(Self::Show),
            Some("Adopt") => Ok(Self::Adopt),
            Some(other) => Err(ExistingError::Unknown(other.to_owned())),
        }
    }

    /// Whether objects of the provider make objects of the consumer.
    pub fn makes_objects(self) -> bool {
        self != Self::Leave
    }
}

impl fmt::Display for Existing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leave => "Leave",
            Self::Show => "Show",
            Self::Adopt => "Adopt",
        })
    }
}
