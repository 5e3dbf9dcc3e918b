//! What fails beside the orders, in words and with the way out, for people.

use std::collections::VecDeque;

use parking_lot::Mutex;
use serde::Serialize;

/// How many failures are remembered, and how much of each.
const REMEMBERED: usize = 20;
const LONGEST: usize = 600;

/// The failures that are not healed, the last one first.
#[derive(Default)]
pub struct Recent(Mutex<VecDeque<Failure>>);

/// Something that failed, once or several times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// When it failed last.
    pub at: String,
    /// What failed.
    pub about: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, in the words of whoever refused.
    pub message: String,
    /// How often.
    pub times: u64,
    /// What to do about it.
    pub fix: &'static str,
}

impl Recent {
    /// Remembers a failure. One that is known counts again.
    pub fn note(&self, about: &str, reason: &str, message: &str, now: jiff::Timestamp) {
        let mut all = self.0.lock();
        let message: String = message.chars().take(LONGEST).collect();
        let known = all.iter().position(|one| one.about == about && one.reason == reason && one.message == message);
        let times = known.and_then(|at| all.remove(at)).map_or(0, |one| one.times);
        let at = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let (about, fix, reason) = (about.to_owned(), fix(reason), reason.to_owned());
        all.push_front(Failure { at, about, reason, message, times: times + 1, fix });
        all.truncate(REMEMBERED);
    }

    /// Forgets what failed about something that works now, or is gone.
    pub fn healed(&self, about: &str) {
        self.0.lock().retain(|one| one.about != about);
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.0.lock().clear();
    }

    /// All that are remembered.
    pub fn all(&self) -> Vec<Failure> {
        self.0.lock().iter().cloned().collect()
    }
}

/// What to do about a failure.
pub(crate) fn fix(reason: &str) -> &'static str {
    match reason {
        "Forbidden" | "Unauthorized" => {
            "The agent lacks a right. carrick doctor, with the flags of the agent, tells which one, on which side, and prints the RBAC to apply."
        }
        "Invalid" | "BadRequest" | "UnprocessableEntity" => {
            "The server refuses what would be written. carrick explain shows it; correct the mutation or naming of the PublishedResource, or the order itself."
        }
        "NotFound" => {
            "A kind or a namespace is not there. Install the CRD on the service cluster, or let the consumer accept the claims of the APIExport; carrick doctor names which."
        }
        "Rules" => {
            "A rule of the PublishedResource does not work for this object. Try it with carrick toolkit template, cel or path on the object, and correct it."
        }
        "Related" => {
            "A related object cannot be read. Let the consumer accept the claims, and let the agent read that kind on the service cluster; carrick doctor tells."
        }
        "Taken" => {
            "An object of that name exists already and belongs to somebody else. Change the naming of the PublishedResource, or remove that object."
        }
        "AlreadyExists" | "Conflict" => {
            "Somebody else writes the same object. The agent tries again; if it goes on, look for a second agent."
        }
        "Contested" => {
            "Something deletes or changes what the agent writes, every time. Find it by the managedFields and the audit log of that server, and end it on one side."
        }
        "TooOften" => {
            "Something changes an order, or the status of its copy, without end. Find out who does, by the managedFields; the newest state follows every minute. Or raise --max-writes-per-minute."
        }
        "NoRoom" => {
            "One workspace has more orders than the agent keeps in memory. Ask its owner to delete some, or raise --max-cached-bytes and the memory limit of the agent."
        }
        "NotPlaced" => {
            "The provider does not want this order, or cannot place it for now. The consumer was informed; change the order, or spec.admission or spec.limits of the PublishedResource."
        }
        "Held" => {
            "kcp went back in time, and this order with it. carrick restore status shows both sides; carrick restore accept goes on with what kcp has."
        }
        "NotSelected" => "Label the order as spec.filter of the PublishedResource asks, or change that filter.",
        "Status" => {
            "The workspace refuses the status of the copy. Let the published schema allow it, or correct what the operator writes."
        }
        "Token" => {
            "The Secret holds no token that can be renewed. Run carrick provider up again, which writes one, or start the agent without --renew-kcp-token."
        }
        "Panic" | "Undecodable" => {
            "A defect of the agent. Other objects are not affected; please report it with the agent's log."
        }
        _ => {
            "A server does not answer as it should. The agent tries again by itself; carrick doctor checks both servers from where you are."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_failure_counts_and_old_ones_go() {
        let (recent, now) = (Recent::default(), jiff::Timestamp::UNIX_EPOCH);
        for (about, message) in [("a", "no"), ("b", "no"), ("a", "no"), ("a", "never")] {
            recent.note(about, "Forbidden", message, now);
        }
        let told: Vec<_> = recent.all().iter().map(|one| (one.about.clone(), one.message.clone(), one.times)).collect();
        let wanted = [("a", "never", 1), ("a", "no", 2), ("b", "no", 1)];
        assert_eq!(told, wanted.map(|(about, message, times)| (about.to_owned(), message.to_owned(), times)));
        assert_eq!(recent.all()[0].at, "1970-01-01T00:00:00Z");
        assert!(recent.all()[0].fix.contains("carrick doctor"));
        recent.healed("a");
        assert_eq!(recent.all().iter().map(|one| one.about.as_str()).collect::<Vec<_>>(), ["b"]);
        for number in 0..100 {
            recent.note(&number.to_string(), "Invalid", &"x".repeat(2000), now);
        }
        let all = recent.all();
        assert_eq!((all.len(), all[0].about.as_str(), all[0].message.len()), (REMEMBERED, "99", LONGEST));
    }
}
