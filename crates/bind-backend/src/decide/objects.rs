//! What there is of one contract.

use std::collections::BTreeMap;

use carrick_bind_api::carrick_kcp::meta::ObjectMeta;
use carrick_bind_api::identity::identity_of;
use carrick_bind_api::names::{
    AUTHOR_ANNOTATION, CLUSTER_PRETTY_NAME_ANNOTATION, MADE_FOR_ANNOTATION, REQUESTED_FROM_ANNOTATION,
    SERVICE_NAMESPACE_ANNOTATION, SHARED_WITH_ANNOTATION,
};
use carrick_bind_api::v1alpha2::{
    ApiServiceExport, ApiServiceExportRequest, ApiServiceExportTemplate, ApiServiceNamespace, BoundSchema,
    ClusterBinding,
};
use serde_json::{Value, json};

use super::ordered;

/// A contract: the namespace that stands for one consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Name of the namespace.
    pub namespace: String,
    /// Its uid.
    pub uid: String,
    /// The identity of the consumer.
    pub identity: String,
    /// Who asked for it first, if that is known.
    pub author: Option<String>,
    /// Namespace of the request that founded it, with its uid; none if a login did, or another backend.
    pub requested_from: Option<String>,
    /// What people call the consumer.
    pub pretty_name: String,
    /// Whether the namespace is being deleted.
    pub deleting: bool,
    /// Whether the identity stands in the annotation of the oldest backends only.
    pub legacy: bool,
    /// The templates that were ordered; none if it may ask for whatever is offered.
    pub ordered: Option<Vec<String>>,
}

impl Contract {
    /// The contract that a Namespace stands for; none if it stands for none.
    pub fn of(namespace: &Value) -> Option<Self> {
        let metadata: ObjectMeta = serde_json::from_value(namespace["metadata"].clone()).ok()?;
        let identity = identity_of(&metadata)?.to_owned();
        Some(Self {
            legacy: metadata.annotation(carrick_bind_api::names::IDENTITY_ANNOTATION).is_none(),
            author: metadata.annotation(AUTHOR_ANNOTATION).filter(|author| !author.is_empty()).map(str::to_owned),
            requested_from: metadata.annotation(REQUESTED_FROM_ANNOTATION).map(str::to_owned),
            ordered: ordered::of_namespace(namespace),
            pretty_name: metadata.annotation(CLUSTER_PRETTY_NAME_ANNOTATION).unwrap_or_default().to_owned(),
            deleting: metadata.is_deleting(),
            identity,
            namespace: metadata.name,
            uid: metadata.uid,
        })
    }

    /// Whether somebody who has logged in may have it, given as whom. One that a request has founded is held by others, whatever it says.
    ///
    /// kube-bind's own backend notes down the subject alone. There is one issuer only, so that says as much; but what looks like an author of ours is
    /// never taken for a subject.
    pub fn is_for_login(&self, author: &str, subject: &str) -> bool {
        let issuer = author.strip_suffix(subject).unwrap_or(author);
        let is_subject = |known: &str| !subject.is_empty() && known == subject && !known.starts_with(issuer);
        self.requested_from.is_none() && self.author.as_ref().is_none_or(|known| known == author || is_subject(known))
    }

    /// The reference by which objects belong to the contract's namespace.
    pub fn owner(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "Namespace", "name": self.namespace, "uid": self.uid})
    }

    /// The ServiceAccount that the consumer is, as a subject of bindings.
    pub fn subject(&self) -> Value {
        json!({"kind": "ServiceAccount", "name": carrick_bind_api::names::BINDER, "namespace": self.namespace})
    }
}

/// What is known of a Namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceFacts {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The contract namespace and the APIServiceNamespace that it serves.
    pub serves: Option<(String, String)>,
    /// Those that share it, in the order in which they came.
    pub shared: Vec<(String, String)>,
    /// Whether a backend has made it for that, so that it goes when nobody wants it any more. One that was there before, and that its owner
    /// shares by the same annotation, stays.
    pub made: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The Namespace itself.
    pub object: Value,
}

impl NamespaceFacts {
    /// What a Namespace says about itself.
    pub fn of(namespace: &Value) -> Self {
        let metadata = &namespace["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        let annotation = |name: &str| metadata["annotations"][name].as_str();
        let serves = annotation(SERVICE_NAMESPACE_ANNOTATION).and_then(|it| it.split_once('/'));
        let shared = annotation(SHARED_WITH_ANNOTATION).unwrap_or_default().split(',');
        let shared = shared.filter_map(|it| it.split_once('/'));
        let name = text("name");
        // kube-bind's own backend leaves no mark on what it makes, but makes only what is called like this.
        let is_called_so = serves.is_some_and(|(contract, wanted)| name == format!("{contract}-{wanted}"));
        let is_marked = serves.is_some() && annotation(MADE_FOR_ANNOTATION) == annotation(SERVICE_NAMESPACE_ANNOTATION);
        Self {
            made: is_called_so || is_marked,
            name,
            uid: text("uid"),
            serves: serves.map(|(contract, name)| (contract.to_owned(), name.to_owned())),
            shared: shared.map(|(contract, name)| (contract.to_owned(), name.to_owned())).collect(),
            deleting: metadata["deletionTimestamp"].is_string(),
            object: namespace.clone(),
        }
    }

    /// The contracts that may work in it, with the APIServiceNamespace of each.
    pub fn users(&self) -> impl Iterator<Item = &(String, String)> {
        self.serves.iter().chain(&self.shared)
    }

    /// Whether it serves this APIServiceNamespace of this contract, alone or among others.
    pub fn is_for(&self, contract: &str, name: &str) -> bool {
        self.users().any(|(of, it)| of == contract && it == name)
    }

    /// Whether this contract is the one that it serves, and not one that shares it.
    pub fn serves_first(&self, contract: &str) -> bool {
        self.serves.as_ref().is_some_and(|(of, _)| of == contract)
    }
}

/// What there is of one contract.
#[derive(Clone, Debug)]
pub struct ContractObjects {
    /// The contract.
    pub contract: Contract,
    /// Its ClusterBinding.
    pub cluster_binding: Option<ClusterBinding>,
    /// Its requests.
    pub requests: Vec<ApiServiceExportRequest>,
    /// Its exports.
    pub exports: Vec<ApiServiceExport>,
    /// Its schemas.
    pub schemas: Vec<BoundSchema>,
    /// Its namespaces.
    pub namespaces: Vec<ApiServiceNamespace>,
    /// Namespaces that its APIServiceNamespaces name or need, and those that say that they serve it.
    pub found: BTreeMap<String, NamespaceFacts>,
    /// Why the policy that keeps consumers apart cannot be written, if that is known: nobody may write cluster-scoped objects then.
    pub unguarded: Option<String>,
    /// Those of the ordered templates that exist.
    pub templates: Vec<ApiServiceExportTemplate>,
}

impl ContractObjects {
    /// A schema by name.
    pub fn schema(&self, name: &str) -> Option<&BoundSchema> {
        self.schemas.iter().find(|schema| schema.metadata.name == name)
    }

    /// An export by name.
    pub fn export(&self, name: &str) -> Option<&ApiServiceExport> {
        self.exports.iter().find(|export| export.metadata.name == name)
    }

    /// Namespaces of the provider that are assigned and serve this contract: where its consumer may work.
    pub fn service_namespaces(&self) -> Vec<&NamespaceFacts> {
        let assigned = self.namespaces.iter().filter(|it| !it.metadata.is_deleting());
        let facts = assigned.filter_map(|it| Some((self.found.get(&it.status.namespace)?, &it.metadata.name)));
        facts
            .filter(|(facts, name)| !facts.deleting && facts.is_for(&self.contract.namespace, name))
            .map(|(facts, _)| facts)
            .collect()
    }
}

#[cfg(test)]
impl ContractObjects {
    /// A contract with nothing in it.
    pub(crate) fn example() -> Self {
        let contract = Contract {
            namespace: "cluster-a".to_owned(),
            uid: "ns-uid".to_owned(),
            identity: "the consumer".to_owned(),
            author: Some("jane".to_owned()),
            requested_from: Some("default/default-uid".to_owned()),
            pretty_name: String::new(),
            deleting: false,
            legacy: false,
            ordered: None,
        };
        let none = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (requests, exports, schemas, namespaces) = none;
        Self {
            contract,
            cluster_binding: None,
            requests,
            exports,
            schemas,
            namespaces,
            found: BTreeMap::new(),
            templates: Vec::new(),
            unguarded: None,
        }
    }
}
