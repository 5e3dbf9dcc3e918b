//! What the Helm chart renders, as it is committed in `charts/tests/konnector`: its rights are those that `konnector roles` prints, and its flags are known.

use std::path::Path;

use carrick_bind_api::claims::Accepted;
use carrick_bind_api::existing::Existing;
use carrick_bind_api::roles::{self, Subject};
use carrick_bind_api::v1alpha2::{
    ApiServiceBinding, BoundSchemaReference, PermissionClaim, SecretKeyReference, Selector,
};
use carrick_konnector::options::Options;
use clap::Parser;
use serde_json::Value;

fn rendered(name: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/tests/konnector").join(name);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let documents = text.trim_start_matches("---\n").split("\n---\n");
    documents.map(|document| serde_saphyr::from_str::<Value>(document).unwrap()).filter(Value::is_object).collect()
}

fn subject(account: &str, lease: &str) -> Subject {
    Subject {
        account: account.to_owned(),
        namespace: "kube-bind".to_owned(),
        lease_namespace: "kube-bind".to_owned(),
        lease_name: lease.to_owned(),
    }
}

/// Roles and bindings without the chart's labels, in an order of their own.
fn rights(objects: Vec<Value>) -> Vec<String> {
    let mut all: Vec<String> = objects
        .into_iter()
        .filter(|object| object["apiVersion"] == "rbac.authorization.k8s.io/v1")
        .map(|mut object| {
            object["metadata"].as_object_mut().unwrap().remove("labels");
            object.to_string()
        })
        .collect();
    all.sort();
    all
}

#[test]
fn the_base_rights_are_those_that_roles_prints() {
    assert_eq!(rights(rendered("minimal.yaml")), rights(roles::base(&subject("konnector", "kube-bind"))));
}

#[test]
fn the_rights_of_bindings_are_those_that_roles_prints() {
    let subject = subject("joiner", "other");
    let mut wanted = roles::base(&subject);
    let bound = |name: &str, resources: &[&str], claims: &[&str]| {
        let mut binding = ApiServiceBinding::new(name);
        binding.spec.kubeconfig_secret_ref = SecretKeyReference::new("kube-bind", "provider", "kubeconfig");
        let schema = |resource: &&str| BoundSchemaReference::new("example.com", *resource);
        binding.status.bound_schemas = resources.iter().map(schema).collect();
        let claim = |resource: &&str| PermissionClaim::new("", *resource, Selector::default());
        binding.status.permission_claims = claims.iter().map(claim).collect();
        binding
    };
    wanted.extend(roles::of_binding(
        &bound("databases", &["databases"], &["secrets"]),
        Existing::Leave,
        &Accepted::All,
        &subject,
    ));
    wanted.extend(roles::of_binding(
        &bound("account", &["buckets", "queues"], &[]),
        Existing::Show,
        &Accepted::All,
        &subject,
    ));
    assert_eq!(rights(rendered("full.yaml")), rights(wanted));
}

#[test]
fn a_konnector_that_works_elsewhere_gets_no_rights_and_no_token_here() {
    let objects = rendered("workspace.yaml");
    assert_eq!(rights(objects.clone()), Vec::<String>::new());
    let account = objects.iter().find(|object| object["kind"] == "ServiceAccount").unwrap();
    assert_eq!(account["automountServiceAccountToken"], false);
}

#[test]
fn the_program_knows_every_flag_of_the_chart() {
    for name in ["minimal.yaml", "full.yaml", "workspace.yaml"] {
        let objects = rendered(name);
        let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
        let args = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap().clone();
        let args = args.iter().map(|arg| arg.as_str().unwrap().to_owned());
        let options = Options::try_parse_from(["konnector".to_owned()].into_iter().chain(args)).unwrap();
        // What is added by hand comes last and counts.
        if name == "full.yaml" {
            assert_eq!(options.provider_polling_interval.as_secs(), 120);
        }
    }
}
