//! What an order that is placed still waits for, in words for its consumer. Pure.
//!
//! Nothing of the provider is named but what consumers see anyway: identifiers of related objects, and their kinds.

use super::related::{Arrived, RelatedView};
use crate::api::Origin;
use crate::rules::related::Related;

/// What an order waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// Nothing.
    No,
    /// For this.
    For(String),
    /// Not known at the moment; what was reported before stays.
    Unknown,
}

impl Waiting {
    /// What an order waits for whose related objects have not been read.
    pub(super) fn unread(entries: &[Related]) -> Self {
        if entries.is_empty() { Self::No } else { Self::Unknown }
    }

    /// What an order waits for: claims that are not accepted, and objects without which it is not complete.
    pub(super) fn of(entries: &[Related], view: &RelatedView, arrived: &[Arrived]) -> Self {
        let is_there = |at: usize| arrived.iter().any(|it| it.entry == at);
        let lacks = |at: usize, entry: &Related| match view.unclaimed.get(&at) {
            Some(claim) => Some(format!("the claim for {claim}, which the APIBinding does not accept")),
            None if entry.required && !is_there(at) => Some(missing(entry)),
            None => None,
        };
        let is_open = |(at, entry): (usize, &Related)| {
            entry.required && view.unknown.contains(&at) && !view.unclaimed.contains_key(&at)
        };
        if entries.iter().enumerate().any(is_open) {
            return Self::Unknown;
        }
        let mut lacking: Vec<String> = entries.iter().enumerate().filter_map(|(at, entry)| lacks(at, entry)).collect();
        lacking.dedup();
        if lacking.is_empty() { Self::No } else { Self::For(lacking.join("; ")) }
    }

    /// The words that an object shall have for it, given those that it has.
    pub(super) fn words(&self, before: Option<&str>) -> Option<String> {
        match self {
            Self::No => None,
            Self::For(what) => Some(what.clone()),
            Self::Unknown => before.map(str::to_owned),
        }
    }
}

fn missing(entry: &Related) -> String {
    let identifier = &entry.identifier;
    match entry.origin {
        Origin::Service => {
            format!(
                "the related object {identifier:?} ({}), which the provider has not made yet",
                entry.destination.resource
            )
        }
        Origin::Kcp => {
            format!(
                "the related object {identifier:?} ({}), which is expected in this workspace",
                entry.source.resource
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;
    use crate::decide::ObjectAddress;
    use crate::rules::Rules;
    use crate::rules::metadata::{KCP_SIDE, SourceKey};
    use crate::rules::tests::{crontab, published};

    #[test]
    fn an_order_waits_for_claims_and_for_what_is_required_and_not_there() {
        let entry = |identifier: &str, origin: &str, required: bool| {
            json!({"identifier": identifier, "origin": origin, "kind": "Secret", "required": required,
                "object": {"template": {"template": identifier}}})
        };
        let related =
            json!([entry("creds", "service", true), entry("ca", "kcp", true), entry("extra", "service", false)]);
        let rules = Rules::compile(&published(json!({ "related": related })), &crontab(), "agent").unwrap();
        let key = SourceKey { cluster: "c".into(), namespace: "n".into(), name: "a".into() };
        let at = ObjectAddress::of_source(KCP_SIDE, &rules.remote, &key);
        let creds = "the related object \"creds\" (secrets), which the provider has not made yet";
        let ca = "the related object \"ca\" (secrets), which is expected in this workspace";
        let claim = "the claim for secrets, which the APIBinding does not accept";
        for (arrived, unknown, unclaimed, wanted) in [
            (vec![0, 1], vec![], vec![], Waiting::No),
            (vec![0], vec![], vec![], Waiting::For(ca.to_owned())),
            (vec![], vec![2], vec![], Waiting::For(format!("{creds}; {ca}"))),
            (vec![1], vec![0], vec![], Waiting::Unknown),
            (vec![], vec![0, 1, 2], vec![0, 1, 2], Waiting::For(claim.to_owned())),
            (vec![0, 1], vec![2], vec![2], Waiting::For(claim.to_owned())),
        ] {
            let view = RelatedView {
                unknown: HashSet::from_iter(unknown),
                unclaimed: unclaimed.into_iter().map(|at| (at, "secrets".to_owned())).collect(),
                ..RelatedView::default()
            };
            let there: Vec<Arrived> = arrived.iter().map(|entry| Arrived { entry: *entry, at: at.clone() }).collect();
            assert_eq!(Waiting::of(&rules.related, &view, &there), wanted, "{arrived:?}");
        }
        assert_eq!(Waiting::unread(&[]), Waiting::No);
        assert_eq!(Waiting::unread(&rules.related), Waiting::Unknown);
        assert_eq!(Waiting::Unknown.words(Some("before")).as_deref(), Some("before"));
    }
}
