//! What a binding, or the bundle that it belongs to, says about objects that the provider had before.

use carrick_bind_api::existing::{EXISTING_OBJECTS_ANNOTATION, Existing, ExistingError};
use carrick_bind_api::v1alpha2::{ApiServiceBinding, ApiServiceBindingBundle};

/// What becomes of objects that the provider had before: the binding's own word counts, then that of the bundle which controls it.
pub fn of_binding(binding: &ApiServiceBinding, bundles: &[ApiServiceBindingBundle]) -> Result<Existing, ExistingError> {
    let own = binding.metadata.annotation(EXISTING_OBJECTS_ANNOTATION);
    let controller = binding.metadata.owner_references.iter().find(|owner| owner.controller);
    let bundle = controller.and_then(|owner| bundles.iter().find(|bundle| bundle.metadata.uid == owner.uid));
    let bundled = bundle.and_then(|bundle| bundle.metadata.annotation(EXISTING_OBJECTS_ANNOTATION));
    Existing::of_annotation(own.or(bundled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrick_bind_api::carrick_kcp::meta::OwnerReference;

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
            of_binding(binding, &[stranger.clone(), bundle.clone()])
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
