//! Taking an import back: the link or the order goes, and never the object.

use serde_json::Value;

use super::link::{is_of_import, marks};
use crate::api::IMPORTED;
use crate::rules::Rules;
use crate::rules::metadata::{WORDS, annotation};

/// What takes an import back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undo {
    /// There is nothing to take back.
    Nothing,
    /// The link goes: there is no order.
    Unlink,
    /// The end of the order would delete the object, because nobody has said that it is kept. Whoever says so at the same moment may be
    /// too late: the agent decides by what it has seen.
    NotKept,
    /// The order goes, and the agent takes the link off.
    EndOrder,
    /// It is no import, with the reason.
    Refused(String),
}

/// What takes the import of an object back, given the order that it is linked to, if that exists.
pub fn undo(rules: &Rules, object: &Value, order: Option<&Value>) -> Undo {
    if marks(object).next().is_none() {
        return Undo::Nothing;
    }
    let agent = crate::rules::metadata::label(object, WORDS.agent_name);
    if agent != Some(rules.agent_name.as_str()) {
        return Undo::Refused(format!("it belongs to agent {}", agent.unwrap_or("(none)")));
    }
    match order {
        None if is_of_import(object) => Undo::Unlink,
        None => {
            Undo::Refused("it was placed for an order that does not exist any more; it was not imported".to_owned())
        }
        Some(order) if annotation(order, IMPORTED).is_none() => {
            Undo::Refused(format!("its order has no annotation {IMPORTED}: it was placed for that order"))
        }
        Some(_) if !carrick_sync::acquired::is_kept(&WORDS, object) => Undo::NotKept,
        Some(_) => Undo::EndOrder,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::{ON_DELETE, REMOTE_UID};
    use crate::decide::import::{OnDelete, link_patch};
    use crate::rules::metadata::SourceKey;
    use crate::rules::tests::{crontab, published};

    #[test]
    fn the_object_is_never_what_goes() {
        let rules = Rules::compile(&published(json!({})), &crontab(), "agent").unwrap();
        let key = SourceKey { cluster: "c1".into(), namespace: "team".into(), name: "mine".into() };
        let free = json!({"metadata": {"name": "x", "uid": "u", "resourceVersion": "1"}});
        let linked = |on_delete: OnDelete| {
            let mut object = free.clone();
            carrick_json::merge::apply(&mut object, &link_patch(&rules, &free, &key, None, on_delete));
            object
        };
        let mut placed = linked(OnDelete::Delete);
        placed["metadata"]["annotations"][REMOTE_UID] = "o".into();
        let mut kept = placed.clone();
        kept["metadata"]["annotations"][ON_DELETE] = "Keep".into();
        let mut theirs = linked(OnDelete::Keep);
        theirs["metadata"]["labels"][WORDS.agent_name] = "other".into();
        let order = json!({"metadata": {"annotations": {IMPORTED: "t"}}});
        let plain = json!({"metadata": {}});
        for (object, order, expected) in [
            (&free, None, "Nothing"),
            (&free, Some(&order), "Nothing"),
            (&linked(OnDelete::Keep), None, "Unlink"),
            (&linked(OnDelete::Delete), None, "Unlink"),
            (&placed, None, "Refused"),
            (&kept, None, "Unlink"),
            (&linked(OnDelete::Delete), Some(&order), "NotKept"),
            (&placed, Some(&order), "NotKept"),
            (&kept, Some(&order), "EndOrder"),
            (&kept, Some(&plain), "Refused"),
            (&theirs, None, "Refused"),
            (&theirs, Some(&order), "Refused"),
        ] {
            let found = format!("{:?}", undo(&rules, object, order));
            assert!(found.starts_with(expected), "{object}: {found}");
        }
    }
}
