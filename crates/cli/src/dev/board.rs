//! What is synced, derived from the agent's dashboard. Pure.

use carrick_process::printable::scrub;
use serde_json::Value;

use crate::top;

/// One published kind, or one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardRow {
    /// `published` or `object`.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// How it is doing.
    pub text: String,
    /// Whether it is fine.
    pub health: Health,
}

/// Whether something is fine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It is fine.
    Well,
    /// It is in progress.
    Waits,
    /// It needs attention.
    Wrong,
}

/// Everything there is to show.
pub fn entries(state: &Value, found: &Value, home: &str) -> Vec<BoardRow> {
    // Messages quote what consumers have written.
    let (mut state, mut found) = (state.clone(), found.clone());
    scrub(&mut state);
    scrub(&mut found);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    // Parts of the agent are starting whenever something is published; that is not a problem.
    let problems = list(&state["problems"]).into_iter().map(|problem| word(&problem));
    let problems = problems.filter(|problem| !problem.ends_with(": starting")).map(|problem| {
        let (name, text) = problem.split_once(": ").unwrap_or(("agent", &problem));
        // So it is after every change, for a moment.
        let health = if text.ends_with(" yet") { Health::Waits } else { Health::Wrong };
        BoardRow { what: "agent", name: name.to_owned(), text: text.to_owned(), health }
    });
    let published = list(&state["publishedResources"]);
    let journeys = list(&found["found"]);
    problems.chain(published.iter().map(published_entry)).chain(journeys.iter().map(|one| object(one, home))).collect()
}

fn published_entry(pr: &Value) -> BoardRow {
    let kind = match word(&pr["group"]) {
        group if group.is_empty() => word(&pr["kind"]),
        group => format!("{}.{group}", word(&pr["kind"])),
    };
    let schema = pr["schema"].as_str().filter(|schema| !schema.is_empty());
    let (text, health) = match (top::trouble(pr), schema) {
        (Some(trouble), _) => (format!("{kind}: {trouble}"), Health::Wrong),
        (None, None) => (format!("{kind}: not published yet"), Health::Waits),
        (None, Some(schema)) => {
            let conditions = pr["conditions"].as_array().into_iter().flatten();
            let good: Vec<String> = conditions.map(|condition| word(&condition["type"])).collect();
            (format!("{kind} as {schema} ({})", good.join(", ")), Health::Well)
        }
    };
    BoardRow { what: "published", name: word(&pr["name"]), text, health }
}

fn object(journey: &Value, home: &str) -> BoardRow {
    let cluster = word(&journey["cluster"]);
    let place = if cluster == home { String::new() } else { format!("{cluster} ") };
    let (source, copy) = (&journey["source"], &journey["copy"]);
    let mut hops = vec![format!("order generation {}", source["generation"])];
    if copy.is_object() {
        hops.push(format!("copy generation {}", copy["generation"]));
    } else {
        hops.push("no copy".to_owned());
    }
    hops.push(if journey["hasStatus"] == true { "status is back" } else { "no status" }.to_owned());
    hops.extend(
        journey["related"].as_array().into_iter().flatten().map(|related| format!("related {}", word(related))),
    );
    let deleting = source["deleting"] == true;
    if deleting {
        hops.push("being deleted".to_owned());
    }
    let mut text = hops.join(" → ");
    if let Some(place) = copy["place"].as_str() {
        text.extend(["; copy: ", place]);
    }
    let stopped = &journey["stopped"];
    if let Some(why) = stopped["message"].as_str() {
        text = format!("{text}; stopped at {}: {why}", word(&stopped["station"]));
    }
    // What the provider does not want is no failure.
    let fails = stopped.is_object() && !["NotPlaced", "NotSelected"].contains(&word(&stopped["reason"]).as_str());
    let name = format!("{} {place}{}", word(&journey["publishedResource"]), word(&journey["object"]));
    let health = match copy.is_object() && !deleting {
        _ if fails => Health::Wrong,
        true => Health::Well,
        false => Health::Waits,
    };
    BoardRow { what: "object", name, text, health }
}

/// Whether the health of a row has turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Something is wrong that was not, or something else.
    Wrong,
    /// What was wrong no longer is.
    Fixed,
    /// Neither.
    None,
}

/// Whether the health of a row has turned since the previous look.
pub fn turn(before: &[BoardRow], row: &BoardRow) -> Turn {
    let old = before.iter().find(|old| (old.what, &old.name) == (row.what, &row.name));
    let was_wrong = old.is_some_and(|old| old.health == Health::Wrong);
    match row.health {
        Health::Wrong => Turn::Wrong,
        _ if was_wrong => Turn::Fixed,
        _ => Turn::None,
    }
}

/// What has changed since the previous look: rows that are new or different, and rows that are gone.
pub fn news<'a>(before: &'a [BoardRow], now: &'a [BoardRow]) -> (Vec<&'a BoardRow>, Vec<&'a BoardRow>) {
    let same = |a: &BoardRow, b: &BoardRow| (a.what, &a.name) == (b.what, &b.name);
    let changed = now.iter().filter(|entry| !before.contains(entry)).collect();
    let gone = before.iter().filter(|old| !now.iter().any(|entry| same(old, entry))).collect();
    (changed, gone)
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_and_object_has_a_line_with_its_hops() {
        let state = json!({
            "agent": { "name": "dev" },
            "problems": ["watch of CRDs: starting", "connection to kcp: refused", "objects of buckets: the API is not served yet"],
            "publishedResources": [
                { "name": "buckets", "kind": "Bucket", "group": "example.com", "schema": "v1.buckets.example.com",
                  "conditions": [{ "type": "ResourceValid", "status": "True" }, { "type": "ExportUpdated", "status": "True" }] },
                { "name": "wrong", "kind": "X", "group": "", "trouble": "no such kind", "conditions": [] },
                { "name": "new", "kind": "Y", "group": "", "conditions": [] },
            ],
        });
        let found = json!({ "found": [
            { "publishedResource": "buckets", "cluster": "home", "object": "default/a", "source": { "generation": 2, "deleting": false }, "hasStatus": true,
              "copy": { "place": "home/x", "generation": 1 }, "related": ["credentials: default/a"] },
            { "publishedResource": "buckets", "cluster": "other", "object": "default/b", "source": { "generation": 1, "deleting": true }, "related": [] },
        ]});
        let lines: Vec<String> = entries(&state, &found, "home")
            .iter()
            .map(|entry| format!("{:?} {} {}: {}", entry.health, entry.what, entry.name, entry.text))
            .collect();
        assert_eq!(
            lines,
            [
                "Wrong agent connection to kcp: refused",
                "Waits agent objects of buckets: the API is not served yet",
                "Well published buckets: Bucket.example.com as v1.buckets.example.com (ResourceValid, ExportUpdated)",
                "Wrong published wrong: X: no such kind",
                "Waits published new: Y: not published yet",
                "Well object buckets default/a: order generation 2 → copy generation 1 → status is back → related credentials: default/a; copy: home/x",
                "Waits object buckets other default/b: order generation 1 → no copy → no status → being deleted",
            ]
        );
    }

    #[test]
    fn nothing_that_consumers_have_written_forges_a_line_of_the_board() {
        let forged = "\u{1b}[2J\nWell published everything";
        let state = json!({
            "problems": [format!("objects of buckets: {forged}")],
            "publishedResources": [{ "name": "buckets", "kind": "Bucket", "trouble": forged, "conditions": [] }],
        });
        let found = json!({ "found": [{
            "publishedResource": "buckets", "cluster": forged, "object": forged, "source": { "generation": 1 },
            "related": [forged], "stopped": { "station": "copy", "reason": "Invalid", "message": forged },
        }]});
        let rows = entries(&state, &found, "home");
        assert_eq!(rows.len(), 3);
        for row in rows {
            let text = format!("{}{}", row.name, row.text);
            assert!(text.contains("\\u{1b}[2J\\nWell") && !text.contains(char::is_control), "{text:?}");
        }
    }

    #[test]
    fn only_what_changed_is_news() {
        let entry = |name: &str, text: &str| BoardRow {
            what: "object",
            name: name.to_owned(),
            text: text.to_owned(),
            health: Health::Well,
        };
        let (before, now) = ([entry("a", "1"), entry("b", "1"), entry("c", "1")], [entry("a", "1"), entry("b", "2")]);
        let (changed, gone) = news(&before, &now);
        assert_eq!((changed, gone), (vec![&now[1]], vec![&before[2]]));
        let wrong = BoardRow { health: Health::Wrong, ..entry("a", "2") };
        assert_eq!(turn(&before, &wrong), Turn::Wrong);
        assert_eq!(turn(std::slice::from_ref(&wrong), &now[0]), Turn::Fixed);
        assert_eq!(turn(&before, &now[1]), Turn::None);
    }
}
