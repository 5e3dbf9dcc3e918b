//! How the agent is doing, in two or three words: the badge of the page and of `carrick top`. Pure.

use serde_json::Value;

/// How the agent is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Badge {
    /// In words.
    pub text: String,
    /// `good`, `warn` or `bad`.
    pub level: &'static str,
}

/// The worst of everything that is known. An agent whose orders fail does not work, however well the rest of it does.
pub(super) fn verdict(ready: bool, leading: Option<bool>, failing: usize, attention: bool) -> Badge {
    let (level, text) = match failing {
        _ if !ready => ("bad", "not ready".to_owned()),
        _ if leading == Some(false) => ("good", "stands by".to_owned()),
        1 => ("bad", "1 order fails".to_owned()),
        2.. => ("bad", format!("{failing} orders fail")),
        0 if attention => ("warn", "needs attention".to_owned()),
        0 => ("good", "works".to_owned()),
    };
    Badge { text, level }
}

/// What is wrong with a PublishedResource, as it is shown.
pub(super) fn trouble(pr: &Value) -> Option<&str> {
    // Some only wait for another one, and that no schema is held back is good news.
    let waits = |condition: &Value| {
        let reason = condition["reason"].as_str().unwrap_or_default();
        ["Pending", "NotPublished", "NotSyncing"].contains(&reason)
    };
    let is_wrong =
        |condition: &&Value| condition["status"] == "False" && condition["type"] != "SchemaHeld" && !waits(condition);
    let wrong = pr["conditions"].as_array().into_iter().flatten().find(is_wrong);
    pr["problem"].as_str().or(pr["failing"].as_str()).or(wrong.and_then(|condition| condition["message"].as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_works_only_if_nothing_is_wrong() {
        for (ready, leading, failing, attention, level, text) in [
            (true, None, 0, false, "good", "works"),
            (true, Some(true), 0, false, "good", "works"),
            (true, Some(true), 0, true, "warn", "needs attention"),
            (true, None, 1, false, "bad", "1 order fails"),
            (true, Some(true), 20, true, "bad", "20 orders fail"),
            (true, Some(false), 0, false, "good", "stands by"),
            (false, Some(false), 0, false, "bad", "not ready"),
            (false, None, 3, true, "bad", "not ready"),
        ] {
            let wanted = Badge { text: text.to_owned(), level };
            assert_eq!(verdict(ready, leading, failing, attention), wanted);
        }
    }

    #[test]
    fn what_is_wrong_with_a_published_resource_is_told_and_waiting_is_not_wrong() {
        let condition =
            |kind: &str, reason: &str| json!({"type": kind, "status": "False", "reason": reason, "message": "m"});
        for (pr, wanted) in [
            (json!({"conditions": []}), None),
            (json!({"problem": "p", "failing": "f", "conditions": []}), Some("p")),
            (json!({"problem": null, "failing": "f"}), Some("f")),
            (json!({"conditions": [condition("Synced", "Forbidden")]}), Some("m")),
            (json!({"conditions": [condition("Synced", "Pending"), condition("SchemaHeld", "X")]}), None),
        ] {
            assert_eq!(trouble(&pr), wanted, "{pr}");
        }
    }
}
