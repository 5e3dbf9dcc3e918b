//! What is said about an AcceptAPI. Pure.

use serde_json::Value;

use super::plan::{Plan, Why, Wish};
use crate::api::{DRAIN, PublishedResource};

/// The condition that says it.
pub(crate) const CONDITION: &str = "AcceptAPIKept";
/// Its reason when somebody else's AcceptAPI is in the way.
pub(super) const FOREIGN: &str = "Foreign";
const NOT_ASKED: &str = "NotAsked";

/// How the AcceptAPI of one PublishedResource is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AcceptReport {
    /// Whether brokers find what the PublishedResource says.
    pub(crate) holds: bool,
    /// One word for machines.
    pub(crate) reason: &'static str,
    /// How it is doing, and what can be done.
    pub(crate) message: String,
}

impl AcceptReport {
    fn not(reason: &'static str, message: String) -> Self {
        Self { holds: false, reason, message }
    }

    /// A server refuses, or cannot be reached.
    pub(super) fn failed(problem: &str) -> Self {
        let message = format!(
            "{problem}; the agent needs get, list, watch, create, update and delete on acceptapis.{} in the workspace of its APIExport",
            super::plan::GROUP
        );
        Self::not("Refused", message)
    }

    /// The kind is not there.
    pub(super) fn unserved(workspace: &str) -> Self {
        let message = format!(
            "Workspace {workspace} does not serve AcceptAPIs: bind the platform's APIExport of acceptapis.{} there, with its claims accepted.",
            super::plan::GROUP
        );
        Self::not("NotServed", message)
    }

    /// What was written comes back as something else.
    pub(super) fn stubborn(name: &str) -> Self {
        Self::not("Refused", format!("AcceptAPI {name} is stored with another spec than was written; see its schema."))
    }

    /// What is so once nothing is left to be done but what was planned last.
    pub(super) fn of(wish: &Wish, plans: &[Plan], found: Option<&Value>) -> Self {
        let ending = plans.iter().find_map(|plan| match plan {
            Plan::Ending(name) => Some(name),
            _ => None,
        });
        let until = |name: &String| format!(" AcceptAPI {name} is on its way out until the broker lets it go.");
        let waits = ending.map(until).unwrap_or_default();
        match wish {
            Wish::Hold(why) => match found {
                Some(_) => Self { holds: true, reason: "Held", message: format!("It stays as it is, because {why}.") },
                None => Self::not("Waiting", format!("It is made later, because {why}.")),
            },
            Wish::None(_, why) => {
                let (holds, reason, message) = match why {
                    // Wanted, but easily forgotten.
                    Why::Drained => {
                        let undo = format!("to take orders again, remove annotation {DRAIN}");
                        let message = format!("There is none, so that the broker moves all orders elsewhere; {undo}.");
                        (false, "Drained", message)
                    }
                    Why::Withdrawn => (true, "Withdrawn", "There is none, because the API is withdrawn.".to_owned()),
                    Why::NotAsked => (true, NOT_ASKED, "spec.implements.accept asks for none.".to_owned()),
                };
                Self { holds, reason, message: format!("{message}{waits}") }
            }
            Wish::Offer(name, _) => match plans.first() {
                Some(Plan::Foreign(_)) => Self::not(
                    FOREIGN,
                    format!(
                        "AcceptAPI {name} was made by somebody else and stays as it is. To hand it over to the agent: kubectl label \
                         acceptapi {name} {}={}.",
                        super::plan::MANAGED_BY,
                        super::plan::MANAGER
                    ),
                ),
                Some(Plan::Ending(_)) => Self::not(
                    "Ending",
                    format!("It is made again once it is gone.{waits} All orders are moved meanwhile."),
                ),
                _ => {
                    let verdict = found.map(verdict).unwrap_or_default();
                    let message = format!("AcceptAPI {name} says which orders brokers may bring here.{verdict}");
                    Self { holds: true, reason: "Kept", message }
                }
            },
        }
    }
}

/// What the broker says.
fn verdict(found: &Value) -> String {
    let all = found["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    match all.iter().find(|condition| condition["type"] == "Ready") {
        None => " No broker has taken note of it yet.".to_owned(),
        Some(ready) if ready["status"] == "True" => " The broker has verified it.".to_owned(),
        // What went wrong stands at its step.
        Some(_) => {
            let step = all.iter().find(|it| it["type"] == "BindingVerified").or(all.first());
            let said = step.and_then(|it| it["message"].as_str()).unwrap_or_default();
            format!(" The broker has not verified it yet: {said}.")
        }
    }
}

/// Whether there is something to keep or to say for a PublishedResource.
pub(super) fn concerns(pr: &PublishedResource) -> bool {
    let asks = pr.spec.implements.as_ref().is_some_and(|implements| implements.accept.is_some());
    asks || said(pr).is_some_and(|condition| condition["reason"] != NOT_ASKED)
}

/// What the status says.
pub(super) fn said(pr: &PublishedResource) -> Option<&Value> {
    pr.status.conditions.iter().map(|condition| &condition.0).find(|condition| condition["type"] == CONDITION)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_says_what_to_do() {
        let offer = Wish::Offer("cs.example.com".to_owned(), json!({}));
        let name = || "cs.example.com".to_owned();
        let ready = |status: &str| {
            json!({ "status": { "conditions": [
                { "type": "BindingVerified", "status": status, "message": "no such export" }, { "type": "Ready", "status": status },
            ]}})
        };
        let of = |wish: &Wish, plan: Plan, found: Option<&Value>| AcceptReport::of(wish, &[plan], found);
        for (report, holds, reason, words) in [
            (of(&offer, Plan::Keep(name()), Some(&json!({}))), true, "Kept", "No broker"),
            (of(&offer, Plan::Keep(name()), Some(&ready("True"))), true, "Kept", "has verified it"),
            (
                of(&offer, Plan::Keep(name()), Some(&ready("Unknown"))),
                true,
                "Kept",
                "not verified it yet: no such export",
            ),
            (of(&offer, Plan::Foreign(name()), None), false, FOREIGN, "kubectl label acceptapi cs.example.com"),
            (of(&offer, Plan::Ending(name()), None), false, "Ending", "until the broker lets it go"),
            (of(&Wish::None(None, Why::Drained), Plan::Ending(name()), None), false, "Drained", DRAIN),
            (AcceptReport::of(&Wish::None(None, Why::NotAsked), &[], None), true, "NotAsked", "asks for none"),
            (AcceptReport::of(&Wish::Hold("of x"), &[], None), false, "Waiting", "because of x"),
            (AcceptReport::of(&Wish::Hold("of x"), &[], Some(&json!({}))), true, "Held", "stays as it is"),
        ] {
            assert_eq!((report.holds, report.reason), (holds, reason), "{}", report.message);
            assert!(report.message.contains(words), "{}", report.message);
        }
    }
}
