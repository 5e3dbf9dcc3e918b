//! What helps against a right that is missing: every error of a client says it, and so do conditions and the log.

use carrick_bind_api::grant::RolesLine;
use carrick_bind_api::install;
use carrick_bind_api::names::is_name;
use carrick_bind_api::roles::Subject;
use carrick_client::Client;

use super::config::{KonnectorConfig, LeaseConfig};

/// What stands before the line that grants a right here.
pub const GRANTED_WITH: &str = "whoever administers this cluster grants it with: ";

/// The consumer's cluster.
pub fn of_consumer(config: &KonnectorConfig) -> Client {
    let (lease, slice) = (config.lease.clone(), config.export.clone());
    config.server.client().advising(move |missing| Some(here(missing, lease.as_ref(), slice.as_deref())))
}

/// The provider of a contract.
pub fn of_provider(client: &Client, contract: &str) -> Client {
    let contract = contract.to_owned();
    client.advising(move |missing| Some(there(missing, &contract)))
}

/// Who grants what is missing here, and how.
fn here(missing: &str, lease: Option<&LeaseConfig>, slice: Option<&str>) -> String {
    let user = missing.split('"').nth(1).unwrap_or_default();
    let Some((namespace, account)) = account(user) else {
        return format!("whoever administers this cluster gives user {user:?} what `konnector roles` prints");
    };
    let usual = install::subject();
    let subject = Subject {
        account: account.to_owned(),
        namespace: namespace.to_owned(),
        lease_namespace: lease.map_or(namespace, |lease| lease.namespace.as_str()).to_owned(),
        lease_name: lease.map_or(usual.lease_name, |lease| lease.name.clone()),
    };
    format!("{GRANTED_WITH}{}", RolesLine::new(&subject, slice))
}

/// Who grants what is missing at the provider.
fn there(missing: &str, contract: &str) -> String {
    let of_contract = format!("in the namespace \"{contract}\"");
    let is_own = missing.ends_with(&of_contract) || missing.contains(&format!("{of_contract}:"));
    let user = missing.split('"').nth(1).unwrap_or_default();
    match account(user).filter(|_| is_own && is_name(contract)) {
        Some((namespace, account)) => format!(
            "the provider's kube-bind-backend grants it while it runs; without one, whoever administers the provider does: kubectl create rolebinding \
             kube-binder -n {contract} --clusterrole=kube-binder --serviceaccount={namespace}:{account}"
        ),
        None => "the provider's kube-bind-backend grants it while it runs; whoever administers the provider finds out what keeps it from that with: \
                 carrick bind doctor --provider-kubeconfig <file>"
            .to_owned(),
    }
}

/// Namespace and name of the ServiceAccount that a user is; kcp has words of its own for those of other workspaces.
fn account(user: &str) -> Option<(&str, &str)> {
    let rest = match user.strip_prefix("system:kcp:serviceaccount:") {
        Some(rest) => rest.split_once(':')?.1,
        None => user.strip_prefix("system:serviceaccount:")?,
    };
    rest.split_once(':').filter(|(namespace, name)| is_name(namespace) && is_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(user: &str, namespace: &str) -> String {
        format!("\"{user}\" cannot list resource \"secrets\" in API group \"\" in the namespace \"{namespace}\"")
    }

    #[test]
    fn the_cure_names_who_grants_a_right_and_the_line_for_this_very_konnector() {
        let lease = |namespace: &str| LeaseConfig {
            name: "kube-bind".to_owned(),
            namespace: namespace.to_owned(),
            identity: None,
            duration: None,
        };
        let usual = missing("system:serviceaccount:kube-bind:konnector", "x");
        for (missing, lease, slice, flags) in [
            (usual.clone(), None, None, ""),
            (usual.clone(), Some(lease("kube-bind")), None, ""),
            (usual.clone(), Some(lease("default")), None, " --lease-namespace default"),
            (usual, None, Some("wild.io"), " --apiexport-endpointslice-ref wild.io"),
            (missing("system:kcp:serviceaccount:1a2b:n:k", "x"), None, None, " --namespace n --service-account k"),
        ] {
            let said = here(&missing, lease.as_ref(), slice);
            assert_eq!(said, format!("{GRANTED_WITH}konnector roles{flags} | kubectl apply -f -"));
        }
        let said = here(&missing("jane", "x"), None, None);
        assert!(said.contains("gives user \"jane\" what `konnector roles` prints"), "{said}");
        assert!(!here(&missing("system:serviceaccount:a:$(id)", "x"), None, None).contains("kubectl apply"));
    }

    #[test]
    fn at_a_provider_it_is_the_backend_that_grants_rights() {
        let user = "system:serviceaccount:c-1:kube-binder";
        let said = there(&missing(user, "c-1"), "c-1");
        assert!(said.ends_with(
            "kubectl create rolebinding kube-binder -n c-1 --clusterrole=kube-binder --serviceaccount=c-1:kube-binder"
        ));
        for (missing, contract) in [(missing(user, "c-1-team"), "c-1"), (missing(user, "$(id)"), "$(id)")] {
            let said = there(&missing, contract);
            assert!(said.contains("kube-bind-backend grants it") && !said.contains("kubectl"), "{said}");
        }
    }
}
