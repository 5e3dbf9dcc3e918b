//! Kubernetes' own kinds that the plane serves.

use std::sync::Arc;

use super::groups::{ADMISSION, AUTHENTICATION, AUTHORIZATION, RBAC};
use super::kind::{ALL_VERBS, Column, Origin, Resource, Scale, Version};
use super::text::SchemaText;
use super::{events, shapes};
use crate::config::Mode;
use crate::schema::Schema;

struct Row {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    singular: &'static str,
    kind: &'static str,
    short: &'static [&'static str],
    categories: &'static [&'static str],
    namespaced: bool,
    status: bool,
}

const fn row(
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    singular: &'static str,
    kind: &'static str,
    namespaced: bool,
) -> Row {
    Row { group, version, plural, singular, kind, short: &[], categories: &[], namespaced, status: false }
}

impl Row {
    const fn short(mut self, names: &'static [&'static str]) -> Self {
        self.short = names;
        self
    }

    const fn all(self) -> Self {
        self.categories(&["all"])
    }

    const fn categories(mut self, names: &'static [&'static str]) -> Self {
        self.categories = names;
        self
    }

    const fn status(mut self) -> Self {
        self.status = true;
        self
    }
}

/// Served in every workspace and in the service cluster.
const COMMON: &[Row] = &[
    row("", "v1", "configmaps", "configmap", "ConfigMap", true).short(&["cm"]),
    row("", "v1", "events", "event", "Event", true).short(&["ev"]),
    row("", "v1", "namespaces", "namespace", "Namespace", false).short(&["ns"]).status(),
    row("", "v1", "resourcequotas", "resourcequota", "ResourceQuota", true).short(&["quota"]).status(),
    row("", "v1", "secrets", "secret", "Secret", true),
    row("", "v1", "serviceaccounts", "serviceaccount", "ServiceAccount", true).short(&["sa"]),
    row(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "customresourcedefinition",
        "CustomResourceDefinition",
        false,
    )
    .short(&["crd", "crds"])
    .status(),
    row(
        ADMISSION,
        "v1",
        "mutatingwebhookconfigurations",
        "mutatingwebhookconfiguration",
        "MutatingWebhookConfiguration",
        false,
    )
    .categories(&["api-extensions"]),
    row(
        ADMISSION,
        "v1",
        "validatingadmissionpolicies",
        "validatingadmissionpolicy",
        "ValidatingAdmissionPolicy",
        false,
    )
    .categories(&["api-extensions"])
    .status(),
    row(
        ADMISSION,
        "v1",
        "validatingadmissionpolicybindings",
        "validatingadmissionpolicybinding",
        "ValidatingAdmissionPolicyBinding",
        false,
    )
    .categories(&["api-extensions"]),
    row(
        ADMISSION,
        "v1",
        "validatingwebhookconfigurations",
        "validatingwebhookconfiguration",
        "ValidatingWebhookConfiguration",
        false,
    )
    .categories(&["api-extensions"]),
    row("coordination.k8s.io", "v1", "leases", "lease", "Lease", true),
    row("events.k8s.io", "v1", "events", "event", "Event", true).short(&["ev"]),
    row(RBAC, "v1", "clusterrolebindings", "clusterrolebinding", "ClusterRoleBinding", false),
    row(RBAC, "v1", "clusterroles", "clusterrole", "ClusterRole", false),
    row(RBAC, "v1", "rolebindings", "rolebinding", "RoleBinding", true),
    row(RBAC, "v1", "roles", "role", "Role", true),
];

/// Reviews, which are answered but not stored.
const REVIEWS: &[Row] = &[
    row("authentication.k8s.io", "v1", "selfsubjectreviews", "selfsubjectreview", "SelfSubjectReview", false),
    row("authentication.k8s.io", "v1", "tokenreviews", "tokenreview", "TokenReview", false),
    row(AUTHORIZATION, "v1", "localsubjectaccessreviews", "localsubjectaccessreview", "LocalSubjectAccessReview", true),
    row(AUTHORIZATION, "v1", "selfsubjectaccessreviews", "selfsubjectaccessreview", "SelfSubjectAccessReview", false),
    row(AUTHORIZATION, "v1", "selfsubjectrulesreviews", "selfsubjectrulesreview", "SelfSubjectRulesReview", false),
    row(AUTHORIZATION, "v1", "subjectaccessreviews", "subjectaccessreview", "SubjectAccessReview", false),
];

/// Served in the service cluster only: stored, but nothing acts on them.
const WORKLOADS: &[Row] = &[
    row("", "v1", "pods", "pod", "Pod", true).short(&["po"]).all().status(),
    row("", "v1", "services", "service", "Service", true).short(&["svc"]).all().status(),
    row("", "v1", "endpoints", "endpoints", "Endpoints", true).short(&["ep"]),
    row("", "v1", "persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim", true)
        .short(&["pvc"])
        .status(),
    row("", "v1", "persistentvolumes", "persistentvolume", "PersistentVolume", false).short(&["pv"]).status(),
    row("", "v1", "nodes", "node", "Node", false).short(&["no"]).status(),
    row("apps", "v1", "daemonsets", "daemonset", "DaemonSet", true).short(&["ds"]).all().status(),
    row("apps", "v1", "deployments", "deployment", "Deployment", true).short(&["deploy"]).all().status(),
    row("apps", "v1", "replicasets", "replicaset", "ReplicaSet", true).short(&["rs"]).all().status(),
    row("apps", "v1", "statefulsets", "statefulset", "StatefulSet", true).short(&["sts"]).all().status(),
    row("batch", "v1", "cronjobs", "cronjob", "CronJob", true).short(&["cj"]).all().status(),
    row("batch", "v1", "jobs", "job", "Job", true).all().status(),
    row("networking.k8s.io", "v1", "ingresses", "ingress", "Ingress", true).short(&["ing"]).status(),
    row("networking.k8s.io", "v1", "networkpolicies", "networkpolicy", "NetworkPolicy", true).short(&["netpol"]),
    row("policy", "v1", "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget", true)
        .short(&["pdb"])
        .status(),
];

/// The built-in kinds of a plane.
pub fn builtins(mode: Mode) -> Vec<Arc<Resource>> {
    let workloads: &[Row] = if mode == Mode::Kube { WORKLOADS } else { &[] };
    COMMON.iter().chain(REVIEWS).chain(workloads).map(|row| Arc::new(resource(row))).collect()
}

fn resource(row: &Row) -> Resource {
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
    let mut verbs = ALL_VERBS.to_vec();
    if row.plural == "namespaces" {
        verbs.retain(|verb| *verb != "deletecollection");
    }
    if matches!(row.group, AUTHENTICATION | AUTHORIZATION) {
        verbs = vec!["create"];
    }
    let shape = shapes::schema(row.group, row.kind);
    let version = Version {
        name: row.version.into(),
        served: true,
        storage: true,
        deprecated: None,
        // The schemas are constants that compile; a kind without one is stored unchecked.
        schema: shape.as_ref().and_then(|shape| Schema::compile(shape).ok()).map(Arc::new),
        openapi: SchemaText::new(&shape.unwrap_or_default()),
        status: row.status,
        scale: matches!(row.plural, "deployments" | "replicasets" | "statefulsets").then(|| Scale {
            spec: ".spec.replicas".into(),
            status: ".status.replicas".into(),
            selector: String::new(),
        }),
        columns: columns(row),
        selectable: selectable(row).iter().map(|path| (*path).to_owned()).collect(),
    };
    let events = row.group == "events.k8s.io";
    Resource {
        group: row.group.into(),
        plural: row.plural.into(),
        singular: row.singular.into(),
        kind: row.kind.into(),
        list_kind: format!("{}List", row.kind).into(),
        short_names: names(row.short),
        categories: names(row.categories),
        namespaced: row.namespaced,
        identity: "".into(),
        versions: vec![version],
        origin: Origin::Builtin,
        convert: if row.plural == "events" { Some(events::convert) } else { None },
        conversion: None,
        verbs,
        // Both event groups are views of one set of objects.
        stored_group: if events { "" } else { row.group }.into(),
        established: true,
        terminating: false,
        revision: 0,
    }
}

fn wide(mut column: Column) -> Column {
    column.priority = 1;
    column
}

/// Columns after the name. Paths that start with `=` are computed, see the table module.
fn columns(row: &Row) -> Vec<Column> {
    let text = |name: &str, path: &str| Column::new(name, "string", path);
    let created = || Column::new("Created At", "date", "=created");
    match row.plural {
        "secrets" => vec![text("Type", ".type"), text("Data", "=data"), Column::age()],
        "configmaps" => vec![text("Data", "=data"), Column::age()],
        "namespaces" | "pods" => vec![text("Status", ".status.phase"), Column::age()],
        "leases" => vec![text("Holder", ".spec.holderIdentity"), Column::age()],
        "roles" | "clusterroles" | "customresourcedefinitions" => vec![created()],
        "rolebindings" | "clusterrolebindings" => vec![
            text("Role", "=role"),
            Column::age(),
            wide(text("Users", "=User")),
            wide(text("Groups", "=Group")),
            wide(text("ServiceAccounts", "=ServiceAccount")),
        ],
        "events" => vec![
            text("Last Seen", "=lastSeen"),
            text("Type", ".type"),
            text("Reason", ".reason"),
            text("Object", "=object"),
            wide(text("Subobject", ".involvedObject.fieldPath")),
            wide(text("Source", "=source")),
            text("Message", ".message"),
            wide(text("First Seen", "=firstSeen")),
            wide(text("Count", ".count")),
            wide(text("Name", ".metadata.name")),
        ],
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => {
            vec![Column::new("Webhooks", "integer", "=webhooks"), Column::age()]
        }
        "validatingadmissionpolicies" => {
            vec![Column::new("Validations", "integer", "=validations"), text("ParamKind", "=paramKind"), Column::age()]
        }
        "validatingadmissionpolicybindings" => {
            vec![text("PolicyName", ".spec.policyName"), text("ParamRef", "=paramRef"), Column::age()]
        }
        "deployments" => vec![
            text("Ready", "=ready"),
            text("Up-to-date", "=updated"),
            text("Available", "=available"),
            Column::age(),
        ],
        "services" => vec![
            text("Type", ".spec.type"),
            text("Cluster-IP", ".spec.clusterIP"),
            text("Port(s)", "=ports"),
            Column::age(),
        ],
        _ => vec![Column::age()],
    }
}

fn selectable(row: &Row) -> &'static [&'static str] {
    match row.plural {
        "secrets" => &[".type"],
        "namespaces" => &[".status.phase"],
        "pods" => &[".spec.nodeName", ".status.phase"],
        "events" if row.group.is_empty() => &[
            ".involvedObject.kind",
            ".involvedObject.namespace",
            ".involvedObject.name",
            ".involvedObject.uid",
            ".involvedObject.apiVersion",
            ".involvedObject.resourceVersion",
            ".involvedObject.fieldPath",
            ".reason",
            ".reportingComponent",
            ".source",
            ".type",
        ],
        "events" => {
            &[".regarding.kind", ".regarding.namespace", ".regarding.name", ".regarding.uid", ".reason", ".type"]
        }
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_a_usable_schema() {
        for resource in builtins(Mode::Kube) {
            for version in &resource.versions {
                assert_eq!(version.schema.is_some(), version.openapi.get().is_some(), "{resource:?}");
            }
        }
        assert!(builtins(Mode::Kcp).iter().filter(|resource| resource.versions[0].schema.is_some()).count() >= 9);
    }
}
