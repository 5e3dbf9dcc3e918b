//! Pins: a binding stays with the contract that it was made for, whatever its Secret says later.

use carrick_bind_api::identity::{Contract, ContractError};
use carrick_bind_api::v1alpha2::ApiServiceBinding;

/// Annotation of a binding (ours): the contract that it was made for.
pub const CONTRACT_PIN: &str = "kube-bind.io/contract";

/// What a binding's contract is to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pin {
    /// The contract that it was made for.
    Same,
    /// The first one, or more is known about it: remember this text, then go on.
    Remember(String),
    /// Another one.
    Other(ContractError),
}

/// Compares the contract of a binding with the one that it was made for.
pub fn decide(binding: &ApiServiceBinding, now: &Contract) -> Pin {
    let known = binding.metadata.annotation(CONTRACT_PIN).and_then(Contract::remembered);
    let text = now.to_text();
    match known {
        Some(before) => match before.check(now) {
            Err(error) => Pin::Other(error),
            // An identity that is known stays so, even if the backend keeps quiet about it for a while.
            Ok(()) if before.identity.is_some() || before.to_text() == text => Pin::Same,
            Ok(()) => Pin::Remember(text),
        },
        None => Pin::Remember(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract(uid: &str, identity: Option<&str>) -> Contract {
        Contract { namespace: "c-1".to_owned(), uid: uid.to_owned(), identity: identity.map(str::to_owned) }
    }

    #[test]
    fn a_binding_stays_with_its_contract() {
        let mut binding = ApiServiceBinding::new("b");
        for (now, wanted) in [
            (contract("1", None), "remember"),
            (contract("1", None), "same"),
            (contract("1", Some("us")), "remember"),
            (contract("1", None), "same"),
            (contract("1", Some("them")), "other"),
            (contract("2", Some("us")), "other"),
        ] {
            let got = match decide(&binding, &now) {
                Pin::Same => "same",
                Pin::Remember(text) => {
                    binding.metadata.annotate(CONTRACT_PIN, text);
                    "remember"
                }
                Pin::Other(_) => "other",
            };
            assert_eq!(got, wanted, "{now:?}");
        }
    }
}
