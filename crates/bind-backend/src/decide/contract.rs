//! What a contract consists of: ClusterBinding, account, token, kubeconfig.

use carrick_bind_api::names::{
    AUTHOR_ANNOTATION, BINDER, CLUSTER_BINDING_NAME, CLUSTER_PRETTY_NAME_ANNOTATION, IDENTITY_ANNOTATION,
    KUBECONFIG_KEY,
};
use carrick_bind_api::response;
use carrick_bind_api::v1alpha2::{ClusterBinding, LocalSecretKeyReference};
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::kubeconfig;
use super::objects::Contract;
use super::plan::{Plan, Write};
use super::terms::Terms;

/// The type of Secrets that servers fill with a token.
const TOKEN_SECRET: &str = "kubernetes.io/service-account-token";

/// What there is of a contract's foundation.
#[derive(Clone, Copy, Debug)]
pub struct ContractView<'a> {
    /// The contract.
    pub contract: &'a Contract,
    /// Its Namespace.
    pub namespace: &'a Value,
    /// Its ClusterBinding.
    pub cluster_binding: Option<&'a ClusterBinding>,
    /// The ServiceAccount that the consumer is.
    pub account: Option<&'a Value>,
    /// What gives it the rights within the contract.
    pub role_binding: Option<&'a Value>,
    /// The Secret with its token.
    pub token: Option<&'a Value>,
    /// The Secret with its kubeconfig.
    pub kubeconfig: Option<&'a Value>,
}

/// Why a contract cannot be completed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContractProblem {
    /// A Secret of the name that is needed was made by somebody else.
    #[error("Secret {secret} in namespace {namespace} is none of the backend's: {problem}; rename or delete it")]
    ForeignSecret {
        /// The contract namespace.
        namespace: String,
        /// Name of the Secret.
        secret: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// The Namespace of a new contract.
pub fn namespace(name: &str, identity: &str, author: &str, pretty_name: &str) -> Value {
    let mut annotations = json!({IDENTITY_ANNOTATION: identity});
    for (key, value) in [(AUTHOR_ANNOTATION, author), (CLUSTER_PRETTY_NAME_ANNOTATION, pretty_name)] {
        if !value.is_empty() {
            annotations[key] = json!(value);
        }
    }
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}})
}

/// The name of the Secret with a contract's kubeconfig: an existing ClusterBinding says it.
pub fn kubeconfig_secret(binding: Option<&ClusterBinding>) -> LocalSecretKeyReference {
    let named = binding.map(|binding| &binding.spec.kubeconfig_secret_ref).filter(|named| !named.name.is_empty());
    let mut named = named.cloned().unwrap_or_else(|| LocalSecretKeyReference::new(KUBECONFIG_KEY, KUBECONFIG_KEY));
    if named.key.is_empty() {
        KUBECONFIG_KEY.clone_into(&mut named.key);
    }
    named
}

/// The kubeconfig in a Secret, if there is one.
pub fn kubeconfig_in(secret: &Value, key: &str) -> Option<Vec<u8>> {
    data(secret, key).filter(|text| !text.is_empty())
}

/// What has to be written until a contract is complete, or why it cannot be.
pub fn decide(view: &ContractView<'_>, terms: &Terms) -> (Plan, Option<ContractProblem>) {
    let ContractView { contract, cluster_binding, account, token, .. } = *view;
    let mut plan = Plan::default();
    if contract.legacy {
        let mut namespace = view.namespace.clone();
        namespace["metadata"]["annotations"][IDENTITY_ANNOTATION] = json!(contract.identity);
        plan.writes.push(Write::Replace(namespace));
    }
    let secret_ref = kubeconfig_secret(cluster_binding);
    if cluster_binding.is_none() {
        plan.create(&new_cluster_binding(contract, terms, &secret_ref));
    }
    let at = |name: &str| json!({"name": name, "namespace": contract.namespace});
    plan.ensure(account, &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": at(BINDER)}));
    plan.ensure(
        view.role_binding,
        &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": at(BINDER),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": BINDER},
            "subjects": [contract.subject()]}),
    );
    let foreign = |secret: &str, problem| {
        let (namespace, secret) = (contract.namespace.clone(), secret.to_owned());
        Some(ContractProblem::ForeignSecret { namespace, secret, problem })
    };
    let Some(token) = token else {
        let mut metadata = at(BINDER);
        metadata["annotations"] = json!({"kubernetes.io/service-account.name": BINDER});
        plan.writes.push(Write::Create(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": TOKEN_SECRET}),
        ));
        return (plan, None);
    };
    if token["type"] != TOKEN_SECRET {
        return (plan, foreign(BINDER, "it holds no token of a ServiceAccount"));
    }
    let text = |key: &str| data(token, key).and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let (secret_token, authority) = (text("token"), text("ca.crt"));
    if secret_token.is_empty() {
        // The server fills it, and the watch says so.
        return (plan, None);
    }
    let wanted = kubeconfig::text(&terms.address, &contract.namespace, &secret_token, &authority);
    let encoded = BASE64.encode(wanted.as_bytes());
    let Some(secret) = view.kubeconfig else {
        plan.writes.push(Write::Create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": at(&secret_ref.name),
            "type": "Opaque", "data": {secret_ref.key: encoded}})));
        return (plan, None);
    };
    let there = kubeconfig_in(secret, &secret_ref.key).and_then(|bytes| String::from_utf8(bytes).ok());
    let there = there.and_then(|text| kubeconfig::content(&text));
    match there {
        Some(content) if Some(&content) == kubeconfig::content(&wanted).as_ref() => (plan, None),
        // Whoever has written it knew another authority, and it may work: what was only found out does not replace it.
        Some(content) if !terms.address.authority_given && kubeconfig::differs_in_authority(&content, &wanted) => {
            (plan, None)
        }
        // Another address or a new token: konnectors follow.
        Some(content) if content[4] == contract.namespace => {
            let mut secret = secret.clone();
            secret["data"][secret_ref.key] = json!(encoded);
            plan.writes.push(Write::Replace(secret));
            (plan, None)
        }
        _ => (plan, foreign(&secret_ref.name, "it holds no kubeconfig of this contract")),
    }
}

fn new_cluster_binding(contract: &Contract, terms: &Terms, secret: &LocalSecretKeyReference) -> ClusterBinding {
    let mut binding = ClusterBinding::new(CLUSTER_BINDING_NAME);
    binding.metadata.namespace.clone_from(&contract.namespace);
    binding.metadata.annotate(IDENTITY_ANNOTATION, &contract.identity);
    if let Some(author) = &contract.author {
        binding.metadata.annotate(AUTHOR_ANNOTATION, author);
    }
    if !contract.pretty_name.is_empty() {
        binding.metadata.annotate(CLUSTER_PRETTY_NAME_ANNOTATION, &contract.pretty_name);
    }
    binding.spec.kubeconfig_secret_ref = secret.clone();
    binding.spec.provider_pretty_name.clone_from(&terms.pretty_name);
    binding
}

/// A value in a Secret.
fn data(secret: &Value, key: &str) -> Option<Vec<u8>> {
    secret["data"][key].as_str().and_then(response::decode)
}

#[cfg(test)]
mod tests {
    use carrick_bind_api::v1alpha2::{InformerScope, Isolation};

    use super::*;
    use crate::decide::objects::ContractObjects;

    fn terms() -> Terms {
        Terms::example(InformerScope::Cluster, Isolation::Prefixed)
    }

    /// Carries out plans until nothing is left to be done; the server fills the token.
    #[derive(Default)]
    struct Server {
        binding: Option<ClusterBinding>,
        account: Option<Value>,
        role_binding: Option<Value>,
        token: Option<Value>,
        kubeconfig: Option<Value>,
    }

    impl Server {
        fn decide(&self, terms: &Terms) -> (Plan, Option<ContractProblem>) {
            let contract = ContractObjects::example().contract;
            let namespace = json!({"metadata": {"name": "cluster-a"}});
            let view = ContractView {
                contract: &contract,
                namespace: &namespace,
                cluster_binding: self.binding.as_ref(),
                account: self.account.as_ref(),
                role_binding: self.role_binding.as_ref(),
                token: self.token.as_ref(),
                kubeconfig: self.kubeconfig.as_ref(),
            };
            decide(&view, terms)
        }

        fn carry_out(&mut self, writes: Vec<Write>) {
            for write in writes {
                let (Write::Create(object) | Write::Replace(object)) = write else { panic!("{write:?}") };
                match (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap()) {
                    ("ClusterBinding", _) => self.binding = serde_json::from_value(object).ok(),
                    ("ServiceAccount", _) => self.account = Some(object),
                    ("RoleBinding", _) => self.role_binding = Some(object),
                    ("Secret", BINDER) => self.token = Some(object),
                    ("Secret", _) => self.kubeconfig = Some(object),
                    other => panic!("{other:?}"),
                }
            }
        }

        fn fill(&mut self, token: &str) {
            let secret = self.token.as_mut().unwrap();
            secret["data"] = json!({"token": BASE64.encode(token.as_bytes()), "ca.crt": BASE64.encode(b"PEM")});
        }
    }

    #[test]
    fn a_contract_is_complete_after_the_token_has_come_and_then_stays_as_it_is() {
        let mut server = Server::default();
        let (plan, problem) = server.decide(&terms());
        assert_eq!((plan.writes.len(), problem), (4, None));
        server.carry_out(plan.writes);
        assert_eq!(server.decide(&terms()), (Plan::default(), None), "it waits for the token");
        server.fill("t1");
        let (plan, _) = server.decide(&terms());
        assert_eq!(plan.writes.len(), 1);
        server.carry_out(plan.writes);
        assert_eq!(server.decide(&terms()), (Plan::default(), None));
        let binding = server.binding.as_ref().unwrap();
        assert_eq!(binding.metadata.annotation(IDENTITY_ANNOTATION), Some("the consumer"));
        assert_eq!(binding.metadata.annotation(AUTHOR_ANNOTATION), Some("jane"));
        // A new token goes into the kubeconfig, which konnectors follow.
        server.fill("t2");
        let (plan, _) = server.decide(&terms());
        let [Write::Replace(secret)] = &plan.writes[..] else { panic!("{plan:?}") };
        let text = String::from_utf8(kubeconfig_in(secret, "kubeconfig").unwrap()).unwrap();
        assert_eq!(kubeconfig::content(&text).unwrap()[3], "t2");
    }

    #[test]
    fn secrets_of_others_are_left_alone() {
        let mut server = Server::default();
        let (plan, _) = server.decide(&terms());
        server.carry_out(plan.writes);
        server.fill("t");
        server.kubeconfig = Some(json!({"metadata": {"name": "kubeconfig"}, "data": {"kubeconfig": "YTogYg=="}}));
        let (plan, problem) = server.decide(&terms());
        assert_eq!(plan.writes, []);
        assert!(problem.unwrap().to_string().contains("Secret kubeconfig in namespace cluster-a is none"));
        server.token.as_mut().unwrap()["type"] = json!("Opaque");
        assert!(server.decide(&terms()).1.unwrap().to_string().contains("Secret kube-binder"));
    }

    #[test]
    fn an_existing_cluster_binding_says_where_the_kubeconfig_is() {
        let mut server = Server::default();
        let (plan, _) = server.decide(&terms());
        server.carry_out(plan.writes);
        server.binding.as_mut().unwrap().spec.kubeconfig_secret_ref = LocalSecretKeyReference::new("old", "config");
        server.fill("t");
        let (plan, _) = server.decide(&terms());
        let [Write::Create(secret)] = &plan.writes[..] else { panic!("{plan:?}") };
        assert_eq!(secret["metadata"]["name"], "old");
        assert!(secret["data"]["config"].is_string());
    }
}
