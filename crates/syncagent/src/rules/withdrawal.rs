//! Withdrawal: a kind leaves the export on a date that its consumers know. Pure.
//!
//! ```text
//!  withdraw-at ──▶ announced: every order carries the notice
//!       │ the date comes
//!       ▼
//!  withdrawnAt ──▶ orders are released ──▶ schema and claims leave the export
//! ```
//!
//! All of it is in the PublishedResource, so that any agent can go on where another one was killed.

use jiff::Timestamp;

use crate::api::{PublishedResource, WITHDRAW_AT, WITHDRAW_MESSAGE};

/// How far the withdrawal of a PublishedResource has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdrawal<'a> {
    /// Nobody withdraws it.
    None,
    /// The date cannot be read.
    Unclear(&'a str),
    /// It is withdrawn at this time.
    Announced(Timestamp),
    /// It is withdrawn.
    Done,
}

impl<'a> Withdrawal<'a> {
    /// What a PublishedResource says about it.
    pub fn of(pr: &'a PublishedResource) -> Self {
        let date = pr.metadata.annotations.get(WITHDRAW_AT).map(String::as_str);
        match date.map(|date| (date, date.trim().parse())) {
            _ if pr.is_withdrawn() => Self::Done,
            None => Self::None,
            Some((_, Ok(at))) => Self::Announced(at),
            Some((date, Err(_))) => Self::Unclear(date),
        }
    }
}

/// What consumers are told about it, on each of their objects.
pub fn notice(pr: &PublishedResource) -> Option<String> {
    let date = pr.metadata.annotations.get(WITHDRAW_AT)?;
    let at: Timestamp = date.trim().parse().ok()?;
    let at = at.strftime("%Y-%m-%dT%H:%M:%SZ");
    let message = pr.metadata.annotations.get(WITHDRAW_MESSAGE).map(|message| message.trim());
    Some(match message.filter(|message| !message.is_empty()) {
        Some(message) => format!("{at}: {message}"),
        None => at.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotations_and_status_say_how_far_it_has_come() {
        let at: Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
        let date = "2026-12-01T00:00:00Z";
        for (annotations, came, withdrawal, told) in [
            (json!({}), "", Withdrawal::None, None),
            (json!({}), date, Withdrawal::None, None),
            (json!({ WITHDRAW_MESSAGE: "why?" }), "", Withdrawal::None, None),
            (json!({ WITHDRAW_AT: "soon" }), "", Withdrawal::Unclear("soon"), None),
            (json!({ WITHDRAW_AT: "2026-12-01T01:00:00+01:00" }), "", Withdrawal::Announced(at), Some(date)),
            (
                json!({ WITHDRAW_AT: date, WITHDRAW_MESSAGE: "use Vaults" }),
                "",
                Withdrawal::Announced(at),
                Some("2026-12-01T00:00:00Z: use Vaults"),
            ),
            (json!({ WITHDRAW_AT: date }), date, Withdrawal::Done, Some(date)),
            // Somebody has given it more time.
            (json!({ WITHDRAW_AT: date }), "2026-11-01T00:00:00Z", Withdrawal::Announced(at), Some(date)),
        ] {
            let pr = json!({ "metadata": { "annotations": annotations }, "status": { "withdrawnAt": came } });
            let pr: PublishedResource = serde_json::from_value(pr).unwrap();
            assert_eq!((Withdrawal::of(&pr), notice(&pr).as_deref()), (withdrawal, told), "{annotations} {came}");
        }
    }
}
