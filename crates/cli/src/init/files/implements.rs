//! The part of a PublishedResource that serves an API of somebody else. Pure.

use std::fmt::Write as _;

use carrick_syncagent::rules::report::has_room_for_placed;
use serde_json::Value;

use crate::init::implements::written;
use crate::init::offer::{Implemented, Offer};

/// When a copy counts as available: what most operators report.
const READY: &str = "has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == \"Ready\" && c.status == \"True\") \
                     ? \"Available\" : \"Provisioning\"";

/// `spec.implements`: the API as it is, and first steps.
pub fn shown(offer: &Offer, implemented: &Implemented) -> anyhow::Result<String> {
    let (api, kind) = (&implemented.api, &offer.kind);
    let place =
        api.from.as_ref().map(|from| format!(", as APIExport {} in workspace {} has it", from.export, from.path));
    let mut text = format!(
        "  # The API that consumers order{}. carrick doctor says when it changes there.\n  implements:\n",
        place.unwrap_or_default()
    );
    // Nothing that is written to a String can fail.
    indent(&mut text, &serde_saphyr::to_string(&written(api)?)?);
    let draft = &implemented.draft;
    let _ = writeln!(
        text,
        "    # What makes a {kind} of an order: a first draft, by fields of the same name. self is the {kind} so far, other the order,\n    # copy the name and namespace of the {kind}."
    );
    let nothing = if draft.spec.is_empty() { " []" } else { "" };
    let _ = writeln!(text, "    spec:{nothing}");
    for (step, comment) in &draft.spec {
        let comment = comment.as_ref().map(|comment| format!("    # {comment}")).unwrap_or_default();
        let _ = writeln!(text, "    - {}{comment}", one_line(step));
    }
    if !draft.unread.is_empty() {
        let _ = writeln!(text, "    # No step reads {} of orders yet.", draft.unread.join(", "));
    }
    if !draft.status.is_empty() {
        let _ = writeln!(text, "    # What makes the status of an order.\n    status:");
        for step in &draft.status {
            let _ = writeln!(text, "    - {}", one_line(step));
        }
    }
    Ok(text)
}

/// `spec.report`, as far as the API has room for it.
pub fn report(offer: &Offer) -> String {
    let schema = offer.seen().schema;
    let status = &schema["properties"]["status"]["properties"];
    let has_conditions = offer.schema.pointer("/properties/status/properties/conditions").is_some();
    let mut lines = Vec::new();
    if status["status"]["type"] == "string" && has_conditions {
        lines.push(format!("    # Available is what brokers wait for.\n    status: '{READY}'"));
    }
    if !status["relatedResources"].is_object() {
        lines.push("    related: false".to_owned());
    }
    if !has_room_for_placed(&schema) {
        lines.push("    conditions: None".to_owned());
    }
    let has_nothing = lines.len() == 2 && status["status"].is_null();
    match lines.as_slice() {
        // The API has no room for anything.
        _ if has_nothing => String::new(),
        [] => "  # What the status of orders says of where they are.\n  report: {}\n".to_owned(),
        lines => format!("  # What the status of orders says of where they are.\n  report:\n{}\n", lines.join("\n")),
    }
}

/// A step in one line of YAML.
fn one_line(step: &Value) -> String {
    let parts = step.as_object().into_iter().flatten().map(|(name, value)| format!("{name}: {value}"));
    parts.collect::<Vec<_>>().join(", ")
}

fn indent(text: &mut String, yaml: &str) {
    for line in yaml.trim_end().lines() {
        let _ = writeln!(text, "    {line}");
    }
}
