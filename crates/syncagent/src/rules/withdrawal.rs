//! Withdrawal: a kind leaves the export on a date that its consumers know. Pure.
//!
//! ```text
//!  withdraw-at ──▶ announced: every order carries the notice, and servers warn whoever uses the API
//!       │ the date comes
//!       ▼
//!  withdrawnAt ──▶ orders are released ──▶ schema and claims leave the export
//! ```
//!
//! All of it is in the PublishedResource, so that any agent can go on where another one was killed.

use jiff::Timestamp;

use super::crd::Crd;
use crate::api::{PublishedResource, WITHDRAW_AT, WITHDRAW_MESSAGE};

/// The longest warning that servers take, in bytes.
const LONGEST_WARNING: usize = 256;

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

/// Marks all versions of a published CRD as deprecated, so that servers send a warning with every answer and kubectl prints it.
///
/// This is a change of the schema. Where each of those waits for a person, none is made.
pub fn warn(pr: &PublishedResource, published: &mut Crd) {
    let Some(notice) = notice(pr).filter(|_| pr.spec.schema_updates != "Manual") else { return };
    let spec = &mut published.spec;
    let warning = printable(&format!("{}.{} will be withdrawn at {notice}", spec.names.plural, spec.group));
    for version in &mut spec.versions {
        version.deprecated = true;
        version.deprecation_warning = Some(warning.clone());
    }
}

/// A text as servers take it for a warning: one line, without anything that a terminal obeys, and not too long.
fn printable(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() || letter.is_whitespace() { ' ' } else { letter };
    let mut text: String = text.chars().map(plain).collect();
    text.truncate(text.floor_char_boundary(LONGEST_WARNING));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn servers_warn_in_one_short_line_unless_every_schema_waits_for_a_person() {
        let warned = |updates: &str, message: &str| {
            let annotations = json!({ WITHDRAW_AT: "2026-12-01T00:00:00Z", WITHDRAW_MESSAGE: message });
            let pr = json!({ "metadata": { "annotations": annotations }, "spec": { "schemaUpdates": updates } });
            let crd = json!({
                "metadata": { "name": "buckets.x.io" },
                "spec": {
                    "group": "x.io", "scope": "Namespaced", "names": { "plural": "buckets", "kind": "Bucket" },
                    "versions": [{ "name": "v1", "deprecated": true, "deprecationWarning": "use v2" }, { "name": "v2" }],
                },
            });
            let mut crd: Crd = Crd::from_json(&crd).unwrap();
            warn(&serde_json::from_value(pr).unwrap(), &mut crd);
            crd.spec.versions.into_iter().map(|it| it.deprecation_warning).collect::<Vec<_>>()
        };
        let text = |message: &str| Some(format!("buckets.x.io will be withdrawn at 2026-12-01T00:00:00Z{message}"));
        assert_eq!(warned("", ""), [text(""), text("")]);
        assert_eq!(
            warned("Compatible", "use\tVaults\n\u{1b}[2J!"),
            [text(": use Vaults  [2J!"), text(": use Vaults  [2J!")]
        );
        assert_eq!(warned("Manual", ""), [Some("use v2".to_owned()), None]);
        let long = warned("", &"é".repeat(200)).remove(0).unwrap();
        assert!((255..=256).contains(&long.len()) && long.ends_with('é'), "{long}");
    }

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
