//! Who a consumer is, and which contract belongs to it.

use sha2::{Digest, Sha224};

use crate::kinds::ApiObject as _;
use crate::names::{IDENTITY_ANNOTATION, LEGACY_IDENTITY_ANNOTATION};
use crate::v1alpha2::ClusterBinding;

const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// The name that kube-bind's backend gives to the contract namespace of a consumer. Existing ones are found by annotation, not by name.
///
/// ```
/// use carrick_bind_api::identity::contract_namespace;
///
/// assert_eq!(contract_namespace("kube-bind-", "test-id-123"), "kube-bind-37p3oxx6sh4fd");
/// ```
pub fn contract_namespace(prefix: &str, identity: &str) -> String {
    let mut first = [0; 8];
    first.copy_from_slice(&Sha224::digest(identity.as_bytes())[..8]);
    format!("{prefix}{}", base36(first))
}

/// Big-endian bytes as a number; each leading zero byte is one digit 0.
fn base36(bytes: [u8; 8]) -> String {
    let mut number = u64::from_be_bytes(bytes);
    let mut digits = Vec::new();
    while number > 0 {
        digits.push(char::from(DIGITS[usize::try_from(number % 36).unwrap_or_default()]));
        number /= 36;
    }
    digits.extend(bytes.iter().take_while(|byte| **byte == 0).map(|_| '0'));
    digits.iter().rev().collect()
}

/// The identity that a contract namespace or a ClusterBinding is for.
pub fn identity_of(metadata: &carrick_kcp::meta::ObjectMeta) -> Option<&str> {
    let identity = metadata.annotation(IDENTITY_ANNOTATION).or_else(|| metadata.annotation(LEGACY_IDENTITY_ANNOTATION));
    identity.filter(|identity| !identity.is_empty())
}

/// A contract as a konnector knows it again: the kubeconfig in a Secret may change at any time, the contract may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// The contract namespace.
    pub namespace: String,
    /// Uid of its ClusterBinding: another namespace of the same name on another server has another one.
    pub uid: String,
    /// The identity it was made for, if the backend says so.
    pub identity: Option<String>,
}

/// Why a contract is not the one that is expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContractError {
    /// The kubeconfig names another contract namespace.
    #[error("contract namespace {now} instead of {before}")]
    OtherNamespace {
        /// What it was.
        before: String,
        /// What it is.
        now: String,
    },
    /// The ClusterBinding is another one, so it is another server, or the provider has started from scratch.
    #[error(
        "ClusterBinding cluster in namespace {namespace} has another uid, so it is another provider or a new contract"
    )]
    OtherProvider {
        /// The contract namespace.
        namespace: String,
    },
    /// The contract was made for another identity than before.
    #[error("contract namespace {namespace} now belongs to identity {now:?} instead of {before:?}")]
    OtherIdentity {
        /// The contract namespace.
        namespace: String,
        /// What it was.
        before: String,
        /// What it is.
        now: String,
    },
}

impl Contract {
    /// The contract of a ClusterBinding.
    pub fn of(binding: &ClusterBinding) -> Self {
        let metadata = binding.metadata();
        Self {
            namespace: metadata.namespace.clone(),
            uid: metadata.uid.clone(),
            identity: identity_of(metadata).map(str::to_owned),
        }
    }

    /// Whether another look at the contract sees the same one. An identity that was not known before may become known.
    pub fn check(&self, now: &Self) -> Result<(), ContractError> {
        if self.namespace != now.namespace {
            return Err(ContractError::OtherNamespace { before: self.namespace.clone(), now: now.namespace.clone() });
        }
        if self.uid != now.uid {
            return Err(ContractError::OtherProvider { namespace: now.namespace.clone() });
        }
        match (&self.identity, &now.identity) {
            (Some(before), Some(now_)) if before != now_ => Err(ContractError::OtherIdentity {
                namespace: now.namespace.clone(),
                before: before.clone(),
                now: now_.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Whether the contract was made for another cluster, given the uid of the own one. Identities that people chose say nothing about that.
    pub fn is_of_another_cluster(&self, own_uid: &str) -> bool {
        self.identity.as_deref().is_some_and(|identity| is_uid(identity) && identity != own_uid)
    }

    /// The text to remember it by; see [`Contract::remembered`].
    pub fn to_text(&self) -> String {
        format!("{}/{}/{}", self.namespace, self.uid, self.identity.as_deref().unwrap_or_default())
    }

    /// The contract that a text of [`Contract::to_text`] stands for.
    pub fn remembered(text: &str) -> Option<Self> {
        let (namespace, rest) = text.split_once('/')?;
        // The identity comes last because it may hold slashes.
        let (uid, identity) = rest.split_once('/')?;
        let identity = (!identity.is_empty()).then(|| identity.to_owned());
        let named = !namespace.is_empty() && !uid.is_empty();
        named.then(|| Self { namespace: namespace.to_owned(), uid: uid.to_owned(), identity })
    }
}

/// Whether a text has the form of a uid of Kubernetes.
fn is_uid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "5b2c8f4e-0a51-4d6c-9a53-1d4e8c0f7a21";

    fn contract() -> Contract {
        Contract { namespace: "cluster-a".to_owned(), uid: "1".to_owned(), identity: Some(UID.to_owned()) }
    }

    #[test]
    fn names_of_contract_namespaces_are_those_of_kube_bind() {
        assert_eq!(contract_namespace("", "test-id-123"), "37p3oxx6sh4fd");
        assert_eq!(base36([0; 8]), "00000000");
        assert_eq!(base36([0, 0, 0, 0, 0, 0, 0, 36]), "000000010");
        assert_eq!(base36([255; 8]), "3w5e11264sgsf");
    }

    #[test]
    fn a_contract_stays_the_same_whatever_the_kubeconfig_says() {
        let mut later = contract();
        assert_eq!(contract().check(&later), Ok(()));
        later.identity = None;
        assert_eq!(contract().check(&later), Ok(()));
        assert_eq!(later.check(&contract()), Ok(()));
        later.identity = Some("other".to_owned());
        assert!(matches!(contract().check(&later), Err(ContractError::OtherIdentity { .. })));
        let mut later = contract();
        later.uid = "2".to_owned();
        assert!(matches!(contract().check(&later), Err(ContractError::OtherProvider { .. })));
        later.namespace = "cluster-b".to_owned();
        let error = contract().check(&later).unwrap_err();
        assert_eq!(error.to_string(), "contract namespace cluster-b instead of cluster-a");
    }

    #[test]
    fn a_contract_is_remembered_with_any_identity() {
        for identity in [None, Some(UID), Some("https://issuer.example/user/7"), Some("/")] {
            let contract = Contract { identity: identity.map(str::to_owned), ..contract() };
            assert_eq!(Contract::remembered(&contract.to_text()), Some(contract));
        }
        for broken in ["", "a", "a/b", "/b/c", "a//c"] {
            assert_eq!(Contract::remembered(broken), None, "{broken}");
        }
    }

    #[test]
    fn only_uids_tell_clusters_apart() {
        assert!(!contract().is_of_another_cluster(UID));
        assert!(contract().is_of_another_cluster("6b2c8f4e-0a51-4d6c-9a53-1d4e8c0f7a21"));
        let chosen = Contract { identity: Some("https://issuer.example/user".to_owned()), ..contract() };
        assert!(!chosen.is_of_another_cluster(UID));
    }

    #[test]
    fn the_identity_of_old_backends_is_read_too() {
        let mut binding = ClusterBinding::new("cluster");
        binding.metadata.annotate(LEGACY_IDENTITY_ANNOTATION, "old");
        assert_eq!(Contract::of(&binding).identity.as_deref(), Some("old"));
        binding.metadata.annotate(IDENTITY_ANNOTATION, "new");
        assert_eq!(Contract::of(&binding).identity.as_deref(), Some("new"));
        binding.metadata.annotate(IDENTITY_ANNOTATION, "");
        assert_eq!(Contract::of(&binding).identity, None);
    }
}
