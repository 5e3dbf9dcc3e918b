//! What to do with a claimed object, seen on both sides at once.
//!
//! The source decides: labels that select a copy prove nothing, and an owner label moves an object only where its present owner has put it. So a
//! provider can neither pull a Secret of the consumer by making one of the same name, nor overwrite it.

use serde_json::Value;

use super::barred::Barred;
use crate::copies::{self, Ownership, annotation, uid};
use crate::mapping::ObjectKey;
use crate::names::{
    CONSUMER_UID_ANNOTATION, CONTRACT_ANNOTATION, Owner, PROVIDER_UID_ANNOTATION, PROVIDER_WRITES_LABEL,
    is_system_namespace,
};

/// What to do with a claimed object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is none of this claim's business.
    Leave,
    /// The consumer's object is the source: the provider's copy has to be as it is.
    CopyToProvider,
    /// The provider's object is the source: the consumer's copy has to be as it is.
    CopyToConsumer,
    /// The source on the consumer is gone: the provider's copy goes.
    DeleteOnProvider,
    /// The source on the provider is gone: the consumer's copy goes.
    DeleteOnConsumer,
    /// Nothing is done, and somebody should know why.
    Conflict(ClaimConflict),
}

/// Why nothing is done with a claimed object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimConflict {
    /// Both sides have one, and neither is a copy of the other.
    #[error(
        "both clusters had one of this name before; delete one of them, or label the one that may be overwritten with the other side as kube-bind.io/owner"
    )]
    BothExist,
    /// The provider's object is a copy of another contract.
    #[error("the provider's object belongs to contract {0}; another consumer shares this name")]
    OtherContract(String),
    /// The consumer's object is a copy that another provider's contract has made.
    #[error("it is a copy of contract {0}; two providers claim the same object")]
    OtherProvider(String),
    /// The provider wants to write into a namespace of the cluster itself.
    #[error("providers do not write into namespace {0}")]
    SystemNamespace(String),
    /// The provider wants to write into a namespace that has nothing to do with it.
    #[error(
        "providers write only where somebody uses their API: create one of its objects in namespace {namespace}, or run \
         kubectl label namespace {namespace} {PROVIDER_WRITES_LABEL}={contract}"
    )]
    UnusedNamespace {
        /// The namespace.
        namespace: String,
        /// The contract that it would be allowed to.
        contract: String,
    },
    /// It is named, but it never travels.
    #[error("it is not copied: {0}")]
    Barred(Barred),
}

/// One side's object, and whether the selector selects it there.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The object.
    pub object: &'a Value,
    /// Whether it is selected, by its own labels, its name or a reference.
    pub selected: bool,
    /// Why it does not travel all the same.
    pub barred: Option<Barred>,
    /// Whether somebody has named it, and not only described it: then it is worth a word that it does not travel.
    pub named: bool,
}

impl<'a> Side<'a> {
    /// An object that may travel.
    pub fn new(object: &'a Value, selected: bool) -> Self {
        Self { object, selected, barred: None, named: false }
    }

    /// Whether it is selected and may travel.
    fn travels(&self) -> bool {
        self.selected && self.barred.is_none()
    }
}

/// What an object of the consumer is to this contract.
enum Here<'a> {
    /// A copy of the provider's object with this uid.
    Copy(&'a str),
    /// A copy that another contract has made.
    OtherCopy(&'a str),
    /// The consumer's own.
    Own,
}

fn here<'a>(object: &'a Value, contract: &str) -> Here<'a> {
    // Sources have the uid of their copy too, so the owner label tells copies from sources.
    let is_copy = copies::labelled_owner(object) == Some(Owner::Provider);
    match (annotation(object, PROVIDER_UID_ANNOTATION).filter(|_| is_copy), annotation(object, CONTRACT_ANNOTATION)) {
        (Some(_), Some(other)) if other != contract => Here::OtherCopy(other),
        (Some(uid), _) => Here::Copy(uid),
        (None, _) => Here::Own,
    }
}

/// Decides about one claimed object of a contract, by its key on the consumer and what both sides have. A side that could not be read is not absent:
/// callers ask only when both are known.
pub fn verdict(key: &ObjectKey, contract: &str, consumer: Option<Side<'_>>, provider: Option<Side<'_>>) -> Verdict {
    let to_consumer = |provider: Side<'_>| match key.namespace.as_deref() {
        Some(namespace) if is_system_namespace(namespace) => {
            Verdict::Conflict(ClaimConflict::SystemNamespace(namespace.to_owned()))
        }
        Some(namespace) if provider.barred.is_some() => {
            let (namespace, contract) = (namespace.to_owned(), contract.to_owned());
            Verdict::Conflict(ClaimConflict::UnusedNamespace { namespace, contract })
        }
        _ => Verdict::CopyToConsumer,
    };
    match (consumer, provider) {
        (None, None) => Verdict::Leave,
        (Some(consumer), None) => match here(consumer.object, contract) {
            Here::Copy(_) => Verdict::DeleteOnConsumer,
            Here::OtherCopy(other) if consumer.selected => {
                Verdict::Conflict(ClaimConflict::OtherProvider(other.to_owned()))
            }
            Here::Own if consumer.travels() => Verdict::CopyToProvider,
            Here::Own => match consumer.barred.filter(|_| consumer.selected && consumer.named) {
                Some(barred) => Verdict::Conflict(ClaimConflict::Barred(barred)),
                None => Verdict::Leave,
            },
            Here::OtherCopy(_) => Verdict::Leave,
        },
        (None, Some(provider)) => match there(provider.object, contract) {
            There::Copy(_) => Verdict::DeleteOnProvider,
            // A konnector that leaves no other mark has made it, of something that is gone here.
            There::Own if copies::labelled_owner(provider.object) == Some(Owner::Consumer) => Verdict::Leave,
            There::Own if provider.selected => to_consumer(provider),
            There::OtherContract(_) | There::Own => Verdict::Leave,
        },
        (Some(consumer), Some(provider)) => both(contract, consumer, provider, to_consumer),
    }
}

/// What an object of the provider is to this contract.
enum There<'a> {
    /// A copy of the consumer's object with this uid.
    Copy(&'a str),
    /// A copy of another contract.
    OtherContract(String),
    /// The provider's own.
    Own,
}

fn there<'a>(object: &'a Value, contract: &str) -> There<'a> {
    match (copies::ownership(object, contract), annotation(object, CONSUMER_UID_ANNOTATION)) {
        (Ownership::Ours, Some(uid)) => There::Copy(uid),
        (Ownership::OtherContract(other), _) => There::OtherContract(other),
        _ => There::Own,
    }
}

/// Whether the consumer's cluster knows that its object has a copy which names this uid as its source.
fn is_recorded(object: &Value, source: &str) -> bool {
    source == uid(object) && copies::labelled_owner(object) == Some(Owner::Consumer)
}

fn both(contract: &str, consumer: Side<'_>, provider: Side<'_>, to_consumer: impl Fn(Side<'_>) -> Verdict) -> Verdict {
    match (here(consumer.object, contract), there(provider.object, contract)) {
        (_, There::OtherContract(other)) if consumer.travels() => {
            Verdict::Conflict(ClaimConflict::OtherContract(other))
        }
        (_, There::OtherContract(_)) => Verdict::Leave,
        // What we have copied before stays in sync. The record of that is in both clusters, because the provider could forge its half.
        (Here::Own, There::Copy(source))
            if consumer.barred.is_none() && (consumer.selected || is_recorded(consumer.object, source)) =>
        {
            Verdict::CopyToProvider
        }
        // The source was replaced by an object that nobody claims, its owner has taken the label off, or it should never have travelled.
        (Here::Own, There::Copy(_)) => Verdict::DeleteOnProvider,
        // What has come before goes on, even if nobody uses the API there any more.
        (Here::Copy(source), There::Own) if source == uid(provider.object) => {
            to_consumer(Side { barred: None, ..provider })
        }
        (Here::Copy(_), There::Own) if provider.travels() => to_consumer(provider),
        (Here::Copy(_), There::Own) => Verdict::DeleteOnConsumer,
        (Here::OtherCopy(other), _) if consumer.selected || provider.selected => {
            Verdict::Conflict(ClaimConflict::OtherProvider(other.to_owned()))
        }
        // Each of them gives way if its own cluster says so.
        (Here::Own, There::Own)
            if consumer.travels() && copies::labelled_owner(provider.object) == Some(Owner::Consumer) =>
        {
            Verdict::CopyToProvider
        }
        (Here::Own, There::Own)
            if provider.selected && copies::labelled_owner(consumer.object) == Some(Owner::Provider) =>
        {
            // Whoever has labelled it has said yes.
            to_consumer(Side { barred: None, ..provider })
        }
        (Here::Copy(_), There::Copy(_)) => Verdict::Conflict(ClaimConflict::BothExist),
        (Here::Own, There::Own) if consumer.travels() || provider.travels() => {
            Verdict::Conflict(ClaimConflict::BothExist)
        }
        (Here::OtherCopy(_) | Here::Own, _) => Verdict::Leave,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CONTRACT: &str = "c-1";

    #[allow(clippy::needless_pass_by_value)] // callers have no more use for them
    fn object(uid: &str, owner: &str, annotations: Value) -> Value {
        json!({"metadata": {"name": "s", "uid": uid, "labels": {"kube-bind.io/owner": owner}, "annotations": annotations}})
    }

    fn own(uid: &str) -> Value {
        json!({"metadata": {"name": "s", "uid": uid}})
    }

    /// The provider's copy of the consumer's object with this uid.
    fn copy_there(of: &str) -> Value {
        object("p", "consumer", json!({"kube-bind.io/cluster-namespace": CONTRACT, "kube-bind.io/consumer-uid": of}))
    }

    /// The consumer's copy of the provider's object with this uid.
    fn copy_here(of: &str) -> Value {
        object("c", "provider", json!({"kube-bind.io/provider-uid": of}))
    }

    /// Asks with both objects and whether each is selected.
    fn ask(consumer: Option<(&Value, bool)>, provider: Option<(&Value, bool)>) -> Verdict {
        let consumer = consumer.map(|(object, selected)| Side::new(object, selected));
        let provider = provider.map(|(object, selected)| Side::new(object, selected));
        verdict(&ObjectKey::namespaced("team", "s"), CONTRACT, consumer, provider)
    }

    #[test]
    fn what_one_side_has_goes_to_the_other_if_it_is_selected() {
        assert_eq!(ask(Some((&own("c"), true)), None), Verdict::CopyToProvider);
        assert_eq!(ask(Some((&own("c"), false)), None), Verdict::Leave);
        assert_eq!(ask(None, Some((&own("p"), true))), Verdict::CopyToConsumer);
        assert_eq!(ask(None, Some((&own("p"), false))), Verdict::Leave);
        assert_eq!(ask(None, None), Verdict::Leave);
    }

    #[test]
    fn a_copy_follows_its_source_as_long_as_there_is_one() {
        let shared = object("c", "consumer", json!({}));
        for selected in [true, false] {
            assert_eq!(ask(Some((&shared, selected)), Some((&copy_there("c"), false))), Verdict::CopyToProvider);
            assert_eq!(ask(Some((&copy_here("p"), false)), Some((&own("p"), selected))), Verdict::CopyToConsumer);
            assert_eq!(ask(None, Some((&copy_there("c"), selected))), Verdict::DeleteOnProvider);
            assert_eq!(ask(Some((&copy_here("p"), selected)), None), Verdict::DeleteOnConsumer);
        }
    }

    #[test]
    fn a_source_that_was_replaced_counts_only_if_it_is_selected_itself() {
        assert_eq!(ask(Some((&own("new"), true)), Some((&copy_there("c"), true))), Verdict::CopyToProvider);
        assert_eq!(ask(Some((&own("new"), false)), Some((&copy_there("c"), true))), Verdict::DeleteOnProvider);
        assert_eq!(ask(Some((&copy_here("p"), true)), Some((&own("new"), true))), Verdict::CopyToConsumer);
        assert_eq!(ask(Some((&copy_here("p"), true)), Some((&own("new"), false))), Verdict::DeleteOnConsumer);
    }

    #[test]
    fn a_provider_can_neither_pull_nor_overwrite_what_is_not_selected() {
        // The attack: an object of the same name on the provider, selected there, with any owner label.
        for owner in ["consumer", "provider", ""] {
            let bait = object("p", owner, json!({}));
            let verdict = ask(Some((&own("c"), false)), Some((&bait, true)));
            assert_eq!(verdict, Verdict::Conflict(ClaimConflict::BothExist), "{owner}");
            assert_eq!(ask(Some((&own("c"), false)), Some((&bait, false))), Verdict::Leave, "{owner}");
        }
        // A forged mark pulls nothing either: the consumer's object is not selected, so the forgery goes.
        for uid in ["not-the-uid", "c"] {
            let forged = copy_there(uid);
            assert_eq!(ask(Some((&own("c"), false)), Some((&forged, true))), Verdict::DeleteOnProvider, "{uid}");
        }
        let kube_system = ObjectKey::namespaced("kube-system", "s");
        let (bait, side) = (own("p"), |object| Some(Side::new(object, true)));
        let refused = Verdict::Conflict(ClaimConflict::SystemNamespace("kube-system".to_owned()));
        assert_eq!(verdict(&kube_system, CONTRACT, None, side(&bait)), refused);
    }

    #[test]
    fn whoever_had_one_before_gives_way_only_if_its_own_cluster_says_so() {
        let (here, there) = (own("c"), own("p"));
        assert_eq!(ask(Some((&here, true)), Some((&there, true))), Verdict::Conflict(ClaimConflict::BothExist));
        let gives_way = object("p", "consumer", json!({}));
        assert_eq!(ask(Some((&here, true)), Some((&gives_way, false))), Verdict::CopyToProvider);
        let gives_way = object("c", "provider", json!({}));
        assert_eq!(ask(Some((&gives_way, false)), Some((&there, true))), Verdict::CopyToConsumer);
    }

    #[test]
    fn two_contracts_do_not_fight_over_one_object() {
        let theirs =
            object("p", "consumer", json!({"kube-bind.io/cluster-namespace": "c-2", "kube-bind.io/consumer-uid": "x"}));
        let conflict = Verdict::Conflict(ClaimConflict::OtherContract("c-2".to_owned()));
        assert_eq!(ask(Some((&own("c"), true)), Some((&theirs, true))), conflict);
        assert_eq!(ask(None, Some((&theirs, true))), Verdict::Leave);
        let other_copy =
            object("c", "provider", json!({"kube-bind.io/provider-uid": "x", "kube-bind.io/cluster-namespace": "c-2"}));
        let conflict = Verdict::Conflict(ClaimConflict::OtherProvider("c-2".to_owned()));
        assert_eq!(ask(Some((&other_copy, true)), None), conflict, "a Secret of one provider does not go to another");
        assert_eq!(ask(Some((&other_copy, false)), Some((&own("p"), true))), conflict);
        assert_eq!(ask(Some((&other_copy, false)), None), Verdict::Leave);
    }

    #[test]
    fn what_is_barred_stays_and_a_copy_of_it_goes() {
        let (token, there) = (own("c"), copy_there("c"));
        let shared = object("c", "consumer", json!({}));
        let key = ObjectKey::namespaced("team", "s");
        for named in [true, false] {
            let side = |object| Some(Side { barred: Some(Barred::Token), named, ..Side::new(object, true) });
            let told = Verdict::Conflict(ClaimConflict::Barred(Barred::Token));
            let wanted = if named { told } else { Verdict::Leave };
            assert_eq!(verdict(&key, CONTRACT, side(&token), None), wanted);
            let copied = Some(Side::new(&there, true));
            assert_eq!(verdict(&key, CONTRACT, side(&shared), copied), Verdict::DeleteOnProvider);
        }
    }

    #[test]
    fn a_provider_starts_nothing_in_a_namespace_that_nobody_uses_but_goes_on_where_it_was() {
        let key = ObjectKey::namespaced("argocd", "s");
        let (source, other) = (own("p"), own("q"));
        let side = |object| Some(Side { barred: Some(Barred::Unused), ..Side::new(object, true) });
        let told = verdict(&key, CONTRACT, None, side(&source));
        let Verdict::Conflict(conflict) = told else { panic!("{told:?}") };
        assert!(conflict.to_string().contains("kubectl label namespace argocd kube-bind.io/provider-writes=c-1"));
        let here = copy_here("p");
        assert_eq!(verdict(&key, CONTRACT, Some(Side::new(&here, false)), side(&source)), Verdict::CopyToConsumer);
        assert_eq!(verdict(&key, CONTRACT, Some(Side::new(&here, false)), side(&other)), Verdict::DeleteOnConsumer);
        assert_eq!(verdict(&key, CONTRACT, Some(Side::new(&own("c"), false)), side(&source)), Verdict::Leave);
    }

    #[test]
    fn a_copy_of_what_is_gone_does_not_come_back() {
        let left = object("p", "consumer", json!({"kube-bind.io/consumer-uid": "gone"}));
        assert_eq!(ask(None, Some((&left, true))), Verdict::Leave);
        assert_eq!(ask(Some((&own("c"), true)), Some((&left, true))), Verdict::CopyToProvider);
    }
}
