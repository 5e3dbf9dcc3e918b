//! Which object of the provider belongs to which object of the consumer, and back.
//!
//! | consumer sees | isolation | key on the provider of `ns/name` or `name` |
//! | --- | --- | --- |
//! | namespaced | any | `<assigned namespace of ns>/name` |
//! | cluster-scoped | Prefixed | `<contract>-name` |
//! | cluster-scoped | Namespaced | `<contract>/name` |
//! | cluster-scoped | None | `name` |
//!
//! What does not map back belongs to somebody else and is left alone.

mod service_namespaces;

use std::fmt;

use carrick_kcp::apis::v1alpha1::ResourceScope;
use carrick_kcp::meta::OwnerReference;

pub use service_namespaces::{NamespaceConflict, ServiceNamespaces};

use crate::v1alpha2::{BoundSchema, InformerScope, Isolation};

/// The longest name of an object.
const LONGEST: usize = 253;

/// Namespace and name of an object; cluster-scoped objects have no namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Namespace.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// An object in a namespace.
    pub fn namespaced(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), name: name.into() }
    }

    /// A cluster-scoped object.
    pub fn cluster(name: impl Into<String>) -> Self {
        Self { namespace: None, name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Why there is no key on the other side.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MappingError {
    /// The scope is none that Kubernetes has.
    #[error("its scope is {0:?} instead of Cluster or Namespaced")]
    UnknownScope(String),
    /// The isolation is none that is known. To guess would mix up consumers.
    #[error(
        "its isolation is {0:?} instead of Prefixed, Namespaced or None; update the konnector, or ask the provider"
    )]
    UnknownIsolation(String),
    /// The object has a namespace and should not, or the other way round.
    #[error("object {0} does not have the scope of its schema")]
    OtherScope(ObjectKey),
    /// The provider has not assigned a namespace yet.
    #[error("the provider has not assigned a namespace to {0} yet")]
    NamespacePending(String),
    /// The provider assigns none, and says why.
    #[error("the provider assigns no namespace to {namespace}: {reason}")]
    NamespaceRefused {
        /// The consumer's namespace.
        namespace: String,
        /// What the provider says.
        reason: String,
    },
    /// The name is too long for the provider.
    #[error(
        "object {key} would be called {name:?} on the provider, which has more than 253 characters; choose a shorter name"
    )]
    NameTooLong {
        /// The consumer's object.
        key: ObjectKey,
        /// Its name on the provider.
        name: String,
    },
}

/// How keys are mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    ServiceNamespaces,
    Prefixed,
    ContractNamespace,
    Unchanged,
}

/// The mapping of the keys of one API between a consumer and its contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyMapping {
    strategy: Strategy,
    contract: String,
}

impl KeyMapping {
    /// The mapping for objects that consumers see in this scope. An isolation that is left out is `None`, as in exports of the oldest backends.
    pub fn new(scope: &ResourceScope, isolation: &Isolation, contract: &str) -> Result<Self, MappingError> {
        let strategy = match (scope, isolation) {
            // A word that nobody knows is refused even where it would not matter: the provider means something by it.
            (_, Isolation::Other(word)) => return Err(MappingError::UnknownIsolation(word.clone())),
            (ResourceScope::Namespaced, _) => Strategy::ServiceNamespaces,
            (ResourceScope::Cluster, Isolation::Prefixed) => Strategy::Prefixed,
            (ResourceScope::Cluster, Isolation::Namespaced) => Strategy::ContractNamespace,
            (ResourceScope::Cluster, Isolation::None | Isolation::Unset) => Strategy::Unchanged,
            (other, _) => return Err(MappingError::UnknownScope(other.to_string())),
        };
        Ok(Self { strategy, contract: contract.to_owned() })
    }

    /// The key on the provider of a consumer's object.
    pub fn to_provider(&self, key: &ObjectKey, namespaces: &ServiceNamespaces) -> Result<ObjectKey, MappingError> {
        let mapped = match (&key.namespace, self.strategy) {
            (Some(namespace), Strategy::ServiceNamespaces) => {
                let pending = || match namespaces.refused(namespace) {
                    Some(reason) => {
                        let (namespace, reason) = (namespace.clone(), reason.to_owned());
                        MappingError::NamespaceRefused { namespace, reason }
                    }
                    None => MappingError::NamespacePending(namespace.clone()),
                };
                ObjectKey::namespaced(namespaces.assigned_to(namespace).ok_or_else(pending)?, &key.name)
            }
            (None, Strategy::Prefixed) => ObjectKey::cluster(format!("{}-{}", self.contract, key.name)),
            (None, Strategy::ContractNamespace) => ObjectKey::namespaced(&self.contract, &key.name),
            (None, Strategy::Unchanged) => key.clone(),
            _ => return Err(MappingError::OtherScope(key.clone())),
        };
        if mapped.name.len() > LONGEST {
            return Err(MappingError::NameTooLong { key: key.clone(), name: mapped.name });
        }
        Ok(mapped)
    }

    /// The key on the consumer of a provider's object; none if the object is none of this contract's.
    pub fn to_consumer(&self, key: &ObjectKey, namespaces: &ServiceNamespaces) -> Option<ObjectKey> {
        match (&key.namespace, self.strategy) {
            (Some(namespace), Strategy::ServiceNamespaces) => {
                Some(ObjectKey::namespaced(namespaces.mirrored_by(namespace)?, &key.name))
            }
            (None, Strategy::Prefixed) => {
                let name = key.name.strip_prefix(self.contract.as_str())?.strip_prefix('-')?;
                (!name.is_empty()).then(|| ObjectKey::cluster(name))
            }
            (Some(namespace), Strategy::ContractNamespace) => {
                (*namespace == self.contract).then(|| ObjectKey::cluster(&key.name))
            }
            (None, Strategy::Unchanged) => Some(key.clone()),
            _ => None,
        }
    }

    /// Whether objects have a namespace on the provider.
    pub fn is_namespaced_on_provider(&self) -> bool {
        matches!(self.strategy, Strategy::ServiceNamespaces | Strategy::ContractNamespace)
    }

    /// The owner of copies: the contract Namespace owns those that are cluster-scoped on the provider, so that they go with it.
    pub fn owner_of_copies(&self, contract_uid: &str) -> Option<OwnerReference> {
        if self.is_namespaced_on_provider() {
            return None;
        }
        let mut owner = OwnerReference::default();
        "v1".clone_into(&mut owner.api_version);
        "Namespace".clone_into(&mut owner.kind);
        owner.name.clone_from(&self.contract);
        contract_uid.clone_into(&mut owner.uid);
        Some(owner)
    }

    /// Where to watch on the provider.
    pub fn provider_watch(&self, scope: &InformerScope) -> ProviderWatch {
        match (self.strategy, scope) {
            (Strategy::ContractNamespace, _) => ProviderWatch::Namespace(self.contract.clone()),
            (Strategy::ServiceNamespaces, scope) if *scope != InformerScope::Cluster => {
                ProviderWatch::ServiceNamespaces
            }
            _ => ProviderWatch::Everywhere,
        }
    }

    /// The mapping for a BoundSchema.
    pub fn of_schema(schema: &BoundSchema, isolation: &Isolation, contract: &str) -> Result<Self, MappingError> {
        Self::new(&schema.spec.scope, isolation, contract)
    }
}

/// Where copies are watched on the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderWatch {
    /// One watch over all namespaces, or of cluster-scoped objects.
    Everywhere,
    /// One watch in this namespace.
    Namespace(String),
    /// One watch in each assigned namespace.
    ServiceNamespaces,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1alpha2::ApiServiceNamespace;

    fn namespaces(pairs: &[(&str, &str)]) -> ServiceNamespaces {
        let objects = pairs.iter().map(|(name, assigned)| {
            let mut object = ApiServiceNamespace::new(*name);
            (*assigned).clone_into(&mut object.status.namespace);
            object
        });
        ServiceNamespaces::new(&objects.collect::<Vec<_>>())
    }

    fn mapping(scope: &ResourceScope, isolation: &Isolation) -> KeyMapping {
        KeyMapping::new(scope, isolation, "c-1").unwrap()
    }

    #[test]
    fn each_of_the_four_mappings_leads_there_and_back() {
        let known = namespaces(&[("team", "c-1-team")]);
        let (cluster, namespaced) = (ResourceScope::Cluster, ResourceScope::Namespaced);
        let at = ObjectKey::namespaced;
        let cases = [
            (mapping(&namespaced, &Isolation::Prefixed), at("team", "db"), at("c-1-team", "db")),
            (mapping(&namespaced, &Isolation::None), at("team", "db"), at("c-1-team", "db")),
            (mapping(&cluster, &Isolation::Prefixed), ObjectKey::cluster("db"), ObjectKey::cluster("c-1-db")),
            (mapping(&cluster, &Isolation::Namespaced), ObjectKey::cluster("db"), at("c-1", "db")),
            (mapping(&cluster, &Isolation::None), ObjectKey::cluster("db"), ObjectKey::cluster("db")),
            (mapping(&cluster, &Isolation::Unset), ObjectKey::cluster("db"), ObjectKey::cluster("db")),
        ];
        for (mapping, consumer, provider) in cases {
            assert_eq!(mapping.to_provider(&consumer, &known).as_ref(), Ok(&provider), "{mapping:?}");
            assert_eq!(mapping.to_consumer(&provider, &known).as_ref(), Some(&consumer), "{mapping:?}");
            assert_eq!(mapping.is_namespaced_on_provider(), provider.namespace.is_some());
            let owner = mapping.owner_of_copies("7").map(|owner| (owner.kind, owner.name, owner.uid));
            let wanted =
                provider.namespace.is_none().then(|| ("Namespace".to_owned(), "c-1".to_owned(), "7".to_owned()));
            assert_eq!(owner, wanted);
        }
    }

    #[test]
    fn what_is_not_ours_maps_to_nothing() {
        let known = namespaces(&[("team", "c-1-team")]);
        let at = ObjectKey::namespaced;
        for (scope, isolation, foreign) in [
            (ResourceScope::Namespaced, Isolation::None, at("kube-system", "db")),
            (ResourceScope::Namespaced, Isolation::None, ObjectKey::cluster("db")),
            (ResourceScope::Cluster, Isolation::Prefixed, ObjectKey::cluster("c-2-db")),
            (ResourceScope::Cluster, Isolation::Prefixed, ObjectKey::cluster("c-1-")),
            (ResourceScope::Cluster, Isolation::Prefixed, ObjectKey::cluster("c-1")),
            (ResourceScope::Cluster, Isolation::Prefixed, ObjectKey::cluster("c-10-db")),
            (ResourceScope::Cluster, Isolation::Prefixed, at("c-1", "c-1-db")),
            (ResourceScope::Cluster, Isolation::Namespaced, at("c-2", "db")),
            (ResourceScope::Cluster, Isolation::Namespaced, at("c-10", "db")),
            (ResourceScope::Cluster, Isolation::Namespaced, ObjectKey::cluster("db")),
            (ResourceScope::Cluster, Isolation::None, at("c-1", "db")),
        ] {
            assert_eq!(mapping(&scope, &isolation).to_consumer(&foreign, &known), None, "{foreign}");
        }
    }

    #[test]
    fn what_cannot_be_mapped_says_why() {
        let known = namespaces(&[("team", "c-1-team"), ("new", "")]);
        let namespaced = mapping(&ResourceScope::Namespaced, &Isolation::None);
        for pending in ["new", "other"] {
            let error = namespaced.to_provider(&ObjectKey::namespaced(pending, "db"), &known).unwrap_err();
            assert_eq!(error, MappingError::NamespacePending(pending.to_owned()));
        }
        assert!(matches!(namespaced.to_provider(&ObjectKey::cluster("db"), &known), Err(MappingError::OtherScope(_))));
        let prefixed = mapping(&ResourceScope::Cluster, &Isolation::Prefixed);
        assert!(prefixed.to_provider(&ObjectKey::cluster("a".repeat(249)), &known).is_ok());
        let error = prefixed.to_provider(&ObjectKey::cluster("a".repeat(250)), &known).unwrap_err();
        assert!(error.to_string().ends_with("choose a shorter name"), "{error}");
        let unknown = Isolation::Other("Sharded".to_owned());
        for scope in [ResourceScope::Cluster, ResourceScope::Namespaced] {
            let error = KeyMapping::new(&scope, &unknown, "c-1").unwrap_err();
            assert_eq!(error, MappingError::UnknownIsolation("Sharded".to_owned()));
        }
        assert!(matches!(
            KeyMapping::new(&ResourceScope::Unset, &Isolation::None, "c-1"),
            Err(MappingError::UnknownScope(_))
        ));
    }

    #[test]
    fn watches_are_as_wide_as_they_must_be_and_no_wider() {
        let watch = |scope: &ResourceScope, isolation, informers| mapping(scope, &isolation).provider_watch(&informers);
        let (cluster, namespaced) = (ResourceScope::Cluster, ResourceScope::Namespaced);
        let in_contract = ProviderWatch::Namespace("c-1".to_owned());
        assert_eq!(watch(&cluster, Isolation::Namespaced, InformerScope::Cluster), in_contract);
        assert_eq!(watch(&cluster, Isolation::None, InformerScope::Namespaced), ProviderWatch::Everywhere);
        assert_eq!(watch(&cluster, Isolation::Prefixed, InformerScope::Namespaced), ProviderWatch::Everywhere);
        assert_eq!(watch(&namespaced, Isolation::None, InformerScope::Cluster), ProviderWatch::Everywhere);
        assert_eq!(watch(&namespaced, Isolation::None, InformerScope::Namespaced), ProviderWatch::ServiceNamespaces);
    }
}
