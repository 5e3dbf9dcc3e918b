//! Which claims of a binding somebody has accepted.

use carrick_bind_api::claims::Accepted;
use carrick_bind_api::kinds::API_SERVICE_BINDING_BUNDLE;
use carrick_bind_api::names::ACCEPTED_CLAIMS_ANNOTATION;
use carrick_bind_api::v1alpha2::{ApiServiceBinding, ApiServiceBindingBundle};

/// The accepted claims of a binding. Whoever has created it by hand has accepted all, unless the annotation says which ones; what a bundle has made
/// accepts nothing by itself, because its provider alone has chosen it.
pub fn of_binding(binding: &ApiServiceBinding, bundles: &[ApiServiceBindingBundle]) -> Accepted {
    let own = binding.metadata.annotation(ACCEPTED_CLAIMS_ANNOTATION);
    let mut owners = binding.metadata.owner_references.iter();
    let Some(owner) = owners.find(|owner| owner.controller && owner.kind == API_SERVICE_BINDING_BUNDLE.kind) else {
        return own.map_or(Accepted::All, |words| Accepted::of_words([words]));
    };
    let bundle = bundles.iter().find(|bundle| bundle.metadata.uid == owner.uid);
    let bundled = bundle.and_then(|bundle| bundle.metadata.annotation(ACCEPTED_CLAIMS_ANNOTATION));
    Accepted::of_words(own.into_iter().chain(bundled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrick_bind_api::carrick_kcp::meta::OwnerReference;
    use carrick_bind_api::v1alpha2::{PermissionClaim, Selector};

    #[test]
    fn a_bundle_accepts_nothing_unless_somebody_says_so() {
        let claim = PermissionClaim::new("", "secrets", Selector::default());
        let mut binding = ApiServiceBinding::new("b");
        assert!(of_binding(&binding, &[]).accepts(&claim), "somebody has created it");
        binding.metadata.annotate(ACCEPTED_CLAIMS_ANNOTATION, "configmaps");
        assert!(!of_binding(&binding, &[]).accepts(&claim), "and has said which claims are meant");
        let mut bundle = ApiServiceBindingBundle::new("all");
        "u".clone_into(&mut bundle.metadata.uid);
        let mut binding = ApiServiceBinding::new("b");
        let mut owner = OwnerReference::to(&bundle);
        owner.controller = true;
        binding.metadata.owner_references.push(owner);
        for bundles in [vec![], vec![bundle.clone()]] {
            assert!(!of_binding(&binding, &bundles).accepts(&claim));
        }
        bundle.metadata.annotate(ACCEPTED_CLAIMS_ANNOTATION, "secrets");
        assert!(of_binding(&binding, &[bundle.clone()]).accepts(&claim));
        assert!(!of_binding(&binding, &[]).accepts(&claim), "a bundle that is not known says nothing");
        binding.metadata.annotate(ACCEPTED_CLAIMS_ANNOTATION, "secrets");
        assert!(of_binding(&binding, &[]).accepts(&claim));
    }
}
