//! Contracts: heartbeats, and credentials that the provider has renewed.

use std::time::Duration;

use carrick_bind_api::conditions::{self, Condition, SECRET_VALID, VALID_VERSION};
use carrick_bind_api::heartbeat::{self, Beat, INTERVAL};
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::problems::ClusterBindingProblem;
use carrick_bind_api::secret::{self, SecretError};
use carrick_bind_api::v1alpha2::{ClusterBinding, ClusterBindingStatus, SecretKeyReference, SecretReference};
use carrick_bind_api::version;
use serde_json::Value;

use super::Seen;

/// What a contract is decided on.
#[derive(Clone, Debug)]
pub struct ContractView<'a> {
    /// The ClusterBinding of the contract.
    pub binding: &'a ClusterBinding,
    /// The provider's Secret that it names.
    pub provider_secret: Seen<&'a Value>,
    /// The consumer's Secret.
    pub consumer_secret: Seen<&'a Value>,
    /// Whether that still holds the credentials in use. Others, which its owner has put there, are not undone.
    pub in_use: bool,
    /// Where the consumer's Secret is.
    pub at: &'a SecretKeyReference,
    /// The version of this program.
    pub version: &'a str,
    /// What time it is.
    pub now: Timestamp,
}

/// What to do about a contract.
#[derive(Clone, Debug, PartialEq)]
pub struct ContractPlan {
    /// The consumer's Secret with the new credentials, to be written before the status.
    pub secret: Option<Value>,
    /// The status of the ClusterBinding, if it has changed.
    pub status: Option<ClusterBindingStatus>,
    /// When to look again.
    pub look_again: Duration,
}

/// Decides about a contract. `check` reads a kubeconfig with care: the contract namespace in it, or why it is refused.
pub fn decide(view: &ContractView<'_>, check: impl Fn(&str) -> Result<String, String>) -> ContractPlan {
    let mut status = view.binding.status.clone();
    let mut secret = None;
    if let Some(checked) = renewed(view, check) {
        let condition = match checked {
            Ok(new) => {
                secret = new;
                Condition::holds(SECRET_VALID)
            }
            Err(problem) => problem.condition(),
        };
        conditions::set(&mut status.conditions, condition, view.now);
    }
    status.consumer_secret_ref = Some(SecretReference::new(&view.at.namespace, &view.at.name));
    view.version.clone_into(&mut status.konnector_version);
    let valid = match version::of_program(view.version) {
        Ok(_) => Condition::holds(VALID_VERSION),
        Err(problem) => problem.condition(),
    };
    conditions::set(&mut status.conditions, valid, view.now);
    conditions::summarize(&mut status.conditions, view.now);
    let look_again = match heartbeat::next(&status, INTERVAL, view.now) {
        Beat::Wait(wait) => wait,
        Beat::Due => {
            heartbeat::beat(&mut status, INTERVAL, view.now);
            INTERVAL / 2
        }
    };
    ContractPlan { secret, status: (status != view.binding.status).then_some(status), look_again }
}

/// The consumer's Secret with new credentials, if there are any; none at all if nothing is known.
fn renewed(
    view: &ContractView<'_>,
    check: impl Fn(&str) -> Result<String, String>,
) -> Option<Result<Option<Value>, ClusterBindingProblem>> {
    let contract = &view.binding.metadata.namespace;
    let reference = &view.binding.spec.kubeconfig_secret_ref;
    let at = SecretKeyReference::new(contract, &reference.name, &reference.key);
    let provider = match &view.provider_secret {
        Seen::Unknown(_) => return None,
        Seen::Absent => None,
        Seen::Present(secret) => Some(*secret),
    };
    let text = match secret::text(provider, &at) {
        Ok(text) => text,
        Err(error) => return Some(Err(error.of_cluster_binding())),
    };
    let refused = |problem: String| {
        let secret = format!("{contract}/{}", reference.name);
        Some(Err(SecretError::Invalid { secret, problem }.of_cluster_binding()))
    };
    // Whatever a provider puts there would be used from then on: it is looked at as carefully as the first one.
    match check(&text) {
        Err(problem) => return refused(problem),
        Ok(namespace) if namespace != *contract => {
            return refused(format!("its context names namespace {namespace:?} instead of {contract:?}"));
        }
        Ok(_) => {}
    }
    // A Secret that its owner has deleted stays deleted; the binding says so.
    let consumer = view.consumer_secret.present().filter(|_| view.in_use)?;
    Some(Ok(secret::rotated(consumer, provider?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrick_bind_api::v1alpha2::LocalSecretKeyReference;
    use serde_json::json;

    fn binding() -> ClusterBinding {
        let mut binding = ClusterBinding::new("cluster");
        "c-1".clone_into(&mut binding.metadata.namespace);
        binding.spec.kubeconfig_secret_ref = LocalSecretKeyReference::new("kubeconfig", "kubeconfig");
        binding
    }

    /// Kubeconfigs in these tests are nothing but the namespace of their context.
    fn check(text: &str) -> Result<String, String> {
        if text == "evil" { Err("the kubeconfig names a program".to_owned()) } else { Ok(text.to_owned()) }
    }

    fn secret(base64: &str) -> Value {
        json!({"metadata": {"name": "provider"}, "data": {"kubeconfig": base64, "own": "b3du"}})
    }

    fn ask(binding: &ClusterBinding, provider: Seen<&Value>, consumer: Seen<&Value>, second: i64) -> ContractPlan {
        ask_with(binding, provider, consumer, true, second)
    }

    fn ask_with(
        binding: &ClusterBinding,
        provider: Seen<&Value>,
        consumer: Seen<&Value>,
        in_use: bool,
        second: i64,
    ) -> ContractPlan {
        let at = SecretKeyReference::new("kube-bind", "provider", "kubeconfig");
        let now = Timestamp::from_second(second).unwrap();
        let view = ContractView {
            binding,
            provider_secret: provider,
            consumer_secret: consumer,
            in_use,
            at: &at,
            version: "v0.8.1",
            now,
        };
        decide(&view, check)
    }

    const OURS: &str = "Yy0x"; // c-1
    const OTHER: &str = "Yy0y"; // c-2
    const EVIL: &str = "ZXZpbA==";

    #[test]
    fn a_heartbeat_goes_out_and_then_all_is_quiet_until_the_next() {
        let (mut binding, same) = (binding(), secret(OURS));
        let seen = || (Seen::Present(&same), Seen::Present(&same));
        let plan = ask(&binding, seen().0, seen().1, 0);
        assert_eq!((plan.secret, plan.look_again), (None, INTERVAL / 2));
        binding.status = plan.status.unwrap();
        assert_eq!(binding.status.last_heartbeat_time, "1970-01-01T00:00:00Z");
        assert_eq!(binding.status.consumer_secret_ref, Some(SecretReference::new("kube-bind", "provider")));
        assert_eq!(ask(&binding, seen().0, seen().1, 100).status, None);
        let plan = ask(&binding, seen().0, seen().1, 151);
        assert_eq!(plan.status.unwrap().last_heartbeat_time, "1970-01-01T00:02:31Z");
    }

    #[test]
    fn new_credentials_are_taken_over_once() {
        let (old, new) = (json!({"data": {"kubeconfig": "b2xk", "own": "b3du"}}), secret(OURS));
        let plan = ask(&binding(), Seen::Present(&new), Seen::Present(&old), 0);
        let written = plan.secret.unwrap();
        assert_eq!(written["data"], json!({"kubeconfig": OURS, "own": "b3du"}));
        assert_eq!(ask(&binding(), Seen::Present(&new), Seen::Present(&written), 0).secret, None);
    }

    #[test]
    fn credentials_that_somebody_has_put_there_meanwhile_are_not_undone() {
        let (theirs, provider) = (json!({"data": {"kubeconfig": "bmV3"}}), secret(OURS));
        let plan = ask_with(&binding(), Seen::Present(&provider), Seen::Present(&theirs), false, 0);
        assert_eq!(plan.secret, None);
    }

    #[test]
    fn credentials_that_could_do_harm_are_refused() {
        for (data, wanted) in [(EVIL, "names a program"), (OTHER, "\"c-2\" instead of \"c-1\""), ("%", "not base64")] {
            let (old, new) = (secret(OURS), secret(data));
            let plan = ask(&binding(), Seen::Present(&new), Seen::Present(&old), 0);
            assert_eq!(plan.secret, None, "{data}");
            let status = plan.status.unwrap();
            let condition = conditions::find(&status.conditions, SECRET_VALID).unwrap();
            assert!(condition.reason == "ProviderSecretInvalid" && condition.message.contains(wanted), "{condition:?}");
            assert!(!status.last_heartbeat_time.is_empty(), "the heartbeat goes out all the same");
        }
    }

    #[test]
    fn what_is_not_known_changes_nothing() {
        let (own, new) = (secret(OURS), secret(OURS));
        let unknown = || Seen::Unknown("timeout".to_owned());
        let plan = ask(&binding(), unknown(), Seen::Present(&own), 0);
        assert_eq!(conditions::find(&plan.status.unwrap().conditions, SECRET_VALID), None);
        for consumer in [unknown(), Seen::Absent] {
            assert_eq!(ask(&binding(), Seen::Present(&new), consumer, 0).secret, None);
        }
        let plan = ask(&binding(), Seen::Absent, Seen::Present(&own), 0);
        assert_eq!(plan.secret, None);
        let status = plan.status.unwrap();
        assert_eq!(conditions::find(&status.conditions, SECRET_VALID).unwrap().reason, "ProviderSecretNotFound");
    }
}
