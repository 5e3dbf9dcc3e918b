//! Bundles: one APIServiceBinding for every APIServiceExport of a contract.

use std::collections::BTreeSet;

use carrick_bind_api::carrick_kcp::meta::OwnerReference;
use carrick_bind_api::conditions::{self, Condition, SECRET_VALID, SYNCED};
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::problems::BundleProblem;
use carrick_bind_api::secret::SecretError;
use carrick_bind_api::v1alpha2::{ApiServiceBinding, ApiServiceBindingBundle, ApiServiceBindingBundleStatus};

use super::Seen;

/// What a bundle is decided on.
#[derive(Clone, Debug)]
pub struct BundleView<'a> {
    /// The bundle.
    pub bundle: &'a ApiServiceBindingBundle,
    /// The contract namespace of its kubeconfig, or why that cannot be used.
    pub contract: Result<&'a str, SecretError>,
    /// The names of the exports in the contract namespace. A list that was read is no reason to delete anything unless it is `confirmed`.
    pub exports: Seen<&'a [String]>,
    /// Those of them that are withdrawn: nobody binds them any more.
    pub leaving: &'a [String],
    /// Whether a second list said the same and the ClusterBinding of the contract was there in between.
    pub confirmed: bool,
    /// All bindings of the cluster.
    pub bindings: &'a [ApiServiceBinding],
    /// What could not be done last time.
    pub failed: &'a [String],
    /// What time it is.
    pub now: Timestamp,
}

/// What to do about a bundle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BundlePlan {
    /// Bindings to create.
    pub create: Vec<ApiServiceBinding>,
    /// Bindings to delete, by name and uid.
    pub delete: Vec<(String, String)>,
    /// Whether the list has to be confirmed before bindings are deleted.
    pub confirm: bool,
    /// The status, if it has changed.
    pub status: Option<ApiServiceBindingBundleStatus>,
}

/// Decides about a bundle.
pub fn decide(view: &BundleView<'_>) -> BundlePlan {
    let mut plan = BundlePlan::default();
    let synced = match (&view.contract, &view.exports) {
        // Its Secret says why nothing else is known.
        (Err(_), _) => None,
        (Ok(contract), Seen::Unknown(problem)) => {
            let (contract, problem) = ((*contract).to_owned(), problem.clone());
            Some(Err(BundleProblem::ListExportsFailed { contract, problem }))
        }
        // The resource itself is gone: that is no empty list.
        (Ok(contract), Seen::Absent) => {
            let problem = "the provider no longer serves APIServiceExports".to_owned();
            Some(Err(BundleProblem::ListExportsFailed { contract: (*contract).to_owned(), problem }))
        }
        (Ok(_), Seen::Present(exports)) => Some(follow(view, exports, &mut plan)),
    };
    let mut status = view.bundle.status.clone();
    let secret_valid = match &view.contract {
        Ok(_) => Condition::holds(SECRET_VALID),
        Err(error) => error.clone().of_bundle().condition(),
    };
    conditions::set(&mut status.conditions, secret_valid, view.now);
    if let Some(synced) = synced {
        let condition = match synced {
            Ok(()) => Condition::holds(SYNCED),
            Err(problem) => problem.condition(),
        };
        conditions::set(&mut status.conditions, condition, view.now);
    }
    conditions::summarize(&mut status.conditions, view.now);
    plan.status = (status != view.bundle.status).then_some(status);
    plan
}

/// Compares the exports with the bindings.
fn follow(view: &BundleView<'_>, exports: &[String], plan: &mut BundlePlan) -> Result<(), BundleProblem> {
    let mut taken = view.failed.to_vec();
    for export in exports.iter().collect::<BTreeSet<_>>() {
        match view.bindings.iter().find(|binding| binding.metadata.name == *export) {
            None if view.leaving.contains(export) => {}
            None => plan.create.push(binding(view.bundle, export)),
            Some(known) if known.spec.kubeconfig_secret_ref == view.bundle.spec.kubeconfig_secret_ref => {}
            Some(_) => taken.push(format!("APIServiceBinding {export} exists already and leads to another provider")),
        }
    }
    let owned = view.bindings.iter().filter(|binding| is_owned(binding, view.bundle));
    let orphans = owned.filter(|binding| !exports.contains(&binding.metadata.name) && !binding.metadata.is_deleting());
    let orphans: Vec<_> = orphans.map(|it| (it.metadata.name.clone(), it.metadata.uid.clone())).collect();
    if view.confirmed {
        plan.delete = orphans;
    } else {
        plan.confirm = !orphans.is_empty();
    }
    if taken.is_empty() { Ok(()) } else { Err(BundleProblem::SyncErrors { problem: taken.join("; ") }) }
}

fn is_owned(binding: &ApiServiceBinding, bundle: &ApiServiceBindingBundle) -> bool {
    let uid = &bundle.metadata.uid;
    !uid.is_empty() && binding.metadata.owner_references.iter().any(|owner| owner.controller && owner.uid == *uid)
}

/// The binding of an export.
fn binding(bundle: &ApiServiceBindingBundle, export: &str) -> ApiServiceBinding {
    let mut owner = OwnerReference::to(bundle);
    owner.controller = true;
    let mut binding = ApiServiceBinding::new(export);
    binding.metadata.owner_references.push(owner);
    binding.spec.kubeconfig_secret_ref = bundle.spec.kubeconfig_secret_ref.clone();
    binding
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrick_bind_api::v1alpha2::SecretKeyReference;

    fn bundle() -> ApiServiceBindingBundle {
        let mut bundle = ApiServiceBindingBundle::new("all");
        "u".clone_into(&mut bundle.metadata.uid);
        bundle.spec.kubeconfig_secret_ref = SecretKeyReference::new("kube-bind", "provider", "kubeconfig");
        bundle
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn ask(
        bundle: &ApiServiceBindingBundle,
        exports: Seen<&[String]>,
        confirmed: bool,
        bindings: &[ApiServiceBinding],
    ) -> BundlePlan {
        let now = Timestamp::from_second(1).unwrap();
        decide(&BundleView {
            bundle,
            contract: Ok("c-1"),
            exports,
            leaving: &[],
            confirmed,
            bindings,
            failed: &[],
            now,
        })
    }

    fn reason(plan: &BundlePlan) -> String {
        plan.status.as_ref().unwrap().conditions[0].reason.clone()
    }

    #[test]
    fn every_export_gets_a_binding_and_then_all_is_quiet() {
        let mut bundle = bundle();
        let exports = names(&["a", "b"]);
        let plan = ask(&bundle, Seen::Present(&exports), false, &[]);
        assert_eq!(plan.create.iter().map(|it| it.metadata.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(plan.create[0].spec.kubeconfig_secret_ref, bundle.spec.kubeconfig_secret_ref);
        bundle.status = plan.status.unwrap();
        assert_eq!(bundle.status.conditions[0].status.as_str(), "True");
        assert_eq!(ask(&bundle, Seen::Present(&exports), false, &plan.create), BundlePlan::default());
    }

    #[test]
    fn bindings_are_deleted_only_on_a_confirmed_list() {
        let bundle = bundle();
        let bindings = ask(&bundle, Seen::Present(&names(&["a"])), false, &[]).create;
        for seen in [Seen::Unknown("403 Forbidden".to_owned()), Seen::Absent] {
            let plan = ask(&bundle, seen, true, &bindings);
            assert!(plan.delete.is_empty() && !plan.confirm);
            assert_eq!(reason(&plan), "ListExportsFailed");
        }
        let plan = ask(&bundle, Seen::Present(&[]), false, &bindings);
        assert!(plan.delete.is_empty() && plan.confirm);
        let plan = ask(&bundle, Seen::Present(&[]), true, &bindings);
        assert_eq!(plan.delete, [("a".to_owned(), String::new())]);
    }

    #[test]
    fn bindings_of_others_are_left_alone_and_clashes_are_told() {
        let bundle = bundle();
        let mut own = ApiServiceBinding::new("a");
        own.spec.kubeconfig_secret_ref = bundle.spec.kubeconfig_secret_ref.clone();
        let mut other = ApiServiceBinding::new("b");
        other.spec.kubeconfig_secret_ref = SecretKeyReference::new("kube-bind", "another", "kubeconfig");
        let bindings = [own, other];
        let plan = ask(&bundle, Seen::Present(&names(&["a", "b"])), true, &bindings);
        assert!(plan.create.is_empty() && plan.delete.is_empty());
        assert_eq!(reason(&plan), "SyncErrors");
        assert!(ask(&bundle, Seen::Present(&[]), true, &bindings).delete.is_empty());
    }

    #[test]
    fn a_secret_that_cannot_be_used_is_told_and_nothing_happens() {
        let bundle = bundle();
        let bindings = ask(&bundle, Seen::Present(&names(&["a"])), false, &[]).create;
        let contract = Err(SecretError::NotFound("kube-bind/provider".to_owned()));
        let now = Timestamp::from_second(1).unwrap();
        let exports = Seen::Present(&[][..]);
        let plan = decide(&BundleView {
            bundle: &bundle,
            contract,
            exports,
            leaving: &[],
            confirmed: true,
            bindings: &bindings,
            failed: &[],
            now,
        });
        assert_eq!(reason(&plan), "KubeconfigSecretNotFound");
        assert!(plan.create.is_empty() && plan.delete.is_empty());
    }
}
