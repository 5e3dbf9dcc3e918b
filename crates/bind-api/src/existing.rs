//! What becomes of objects that are on the provider before anybody here has asked for them.

use std::fmt;

use crate::v1alpha2::{ApiServiceBinding, ApiServiceBindingBundle};

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

    /// What becomes of objects that the provider had before: the binding's own word counts, then that of the bundle which controls it.
    pub fn of_binding(binding: &ApiServiceBinding, bundles: &[ApiServiceBindingBundle]) -> Result<Self, ExistingError> {
        let own = binding.metadata.annotation(EXISTING_OBJECTS_ANNOTATION);
        let controller = binding.metadata.owner_references.iter().find(|owner| owner.controller);
        let bundle = controller.and_then(|owner| bundles.iter().find(|bundle| bundle.metadata.uid == owner.uid));
        let bundled = bundle.and_then(|bundle| bundle.metadata.annotation(EXISTING_OBJECTS_ANNOTATION));
        Self::of_annotation(own.or(bundled))
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

#[cfg(test)]
mod tests {
    use super::*;
    use carrick_kcp::meta::OwnerReference;

    #[test]
    fn the_binding_has_the_first_word_and_its_bundle_the_second() {
        let mut bundle = ApiServiceBindingBundle::new("all");
        "u".clone_into(&mut bundle.metadata.uid);
        let mut stranger = ApiServiceBindingBundle::new("stranger");
        "s".clone_into(&mut stranger.metadata.uid);
        stranger.metadata.annotate(EXISTING_OBJECTS_ANNOTATION, "Adopt");
        let mut binding = ApiServiceBinding::new("b");
        let mut owner = OwnerReference::to(&bundle);
        owner.controller = true;
        binding.metadata.owner_references.push(owner);
        let of = |binding: &ApiServiceBinding, bundle: &ApiServiceBindingBundle| {
            Existing::of_binding(binding, &[stranger.clone(), bundle.clone()])
        };
        assert_eq!(of(&binding, &bundle), Ok(Existing::Leave));
        bundle.metadata.annotate(EXISTING_OBJECTS_ANNOTATION, "Show");
        assert_eq!(of(&binding, &bundle), Ok(Existing::Show));
        binding.metadata.annotate(EXISTING_OBJECTS_ANNOTATION, "Adopt");
        assert_eq!(of(&binding, &bundle), Ok(Existing::Adopt));
        binding.metadata.annotate(EXISTING_OBJECTS_ANNOTATION, "yes");
        let problem = of(&binding, &bundle).unwrap_err().to_string();
        assert!(problem.contains("\"yes\"") && problem.contains("Show or Adopt"), "{problem}");
    }
}
