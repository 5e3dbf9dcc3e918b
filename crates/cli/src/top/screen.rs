//! One screen: what an agent is doing, fitted to a terminal. Pure.

use console::{StyledObject, measure_text_width, style, truncate_str};
use serde_json::Value;

/// How many workspaces are listed where there is room.
const LISTED: usize = 10;

/// How large the screen is, and whether it has colours.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Columns; `None` for no limit.
    pub width: Option<usize>,
    /// Lines; `None` for no limit.
    pub height: Option<usize>,
    /// Whether to use colours.
    pub colours: bool,
}

/// What is wrong with a PublishedResource, as the dashboard reports it.
pub fn trouble(pr: &Value) -> Option<&str> {
    pr["trouble"].as_str()
}

/// The whole screen. Where there is a height, somebody sits before it, and is told how to leave.
pub fn text(state: &Value, size: Size) -> String {
    let mut lines = header(state, size);
    let list = |key: &str| state[key].as_array().cloned().unwrap_or_default();
    let published: Vec<Vec<Cell>> = list("publishedResources").iter().map(published_row).collect();
    let mut workspaces = list("workspaces");
    workspaces.sort_by_key(|workspace| std::cmp::Reverse(workspace["objects"].as_u64()));
    let consumers = workspaces.iter().any(|workspace| workspace["consumer"].is_string());
    let workspaces: Vec<Vec<Cell>> = workspaces.iter().map(|workspace| workspace_row(workspace, consumers)).collect();
    // The last line of a terminal stays empty, and one says how to leave.
    let room = |lines: &[String]| size.height.map(|height| height.saturating_sub(lines.len() + 2));
    // Workspaces get a third of what is left, if there are so many.
    let third = room(&lines).map(|room| room - (room / 3).min(workspaces.len() + 2));
    if published.is_empty() {
        lines.extend([String::new(), "no PublishedResource yet".to_owned()]);
    }
    lines.extend(part(&["PUBLISHED", "ORDERS", "COPIES", "STATE"], &published, third, size));
    let left = room(&lines).map(|room| room.min(LISTED + 3)).or(Some(LISTED + 3));
    // Only a broker puts consumers behind workspaces.
    let headings = ["WORKSPACE", "ORDERS", "LOGICAL CLUSTER", "CONSUMER"];
    lines.extend(part(&headings[..if consumers { 4 } else { 3 }], &workspaces, left, size));
    if let Some(height) = size.height {
        lines.truncate(height.saturating_sub(2));
        lines.push(painted(style("q quits".to_owned()).dim(), size));
        lines.truncate(height.saturating_sub(1));
    }
    let fitted = lines.into_iter().map(|line| match size.width {
        Some(width) => truncate_str(&line, width, "…").into_owned(),
        None => line,
    });
    fitted.map(|line| line + "\n").collect()
}

/// An empty line, a heading and rows, in so many lines; what does not fit is counted. Nothing if there is no room for one row.
fn part(headings: &[&str], rows: &[Vec<Cell>], room: Option<usize>, size: Size) -> Vec<String> {
    let fits = room.map_or(rows.len(), |room| room.saturating_sub(2));
    let shown = if rows.len() > fits { fits.saturating_sub(1) } else { rows.len() };
    if rows.is_empty() || shown == 0 {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    lines.extend(table(headings, &rows[..shown], size));
    if rows.len() > shown {
        lines.push(format!("and {} more", rows.len() - shown));
    }
    lines
}

fn header(state: &Value, size: Size) -> Vec<String> {
    let (agent, now) = (&state["agent"], &state["now"]);
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let badge = style(word(&agent["verdict"])).bold();
    let badge = match agent["level"].as_str() {
        Some("good") => badge.green(),
        Some("warn") => badge.yellow(),
        _ => badge.red(),
    };
    let mut lines = vec![
        format!(
            "{}  {}  up {}  version {}",
            painted(style(word(&agent["name"])).bold(), size),
            painted(badge, size),
            duration(agent["uptimeSeconds"].as_u64().unwrap_or_default()),
            word(&agent["version"]),
        ),
        format!("APIExport {} in {}", word(&agent["export"]), word(&agent["workspace"])),
        format!(
            "longest wait {:.1} s  waiting {:.0}  writes {:.0}  errors {:.0}",
            number(&now["lagSeconds"]),
            number(&now["queued"]),
            number(&now["steps"]),
            number(&now["errors"]),
        ),
    ];
    let list = |key: &str| state[key].as_array().into_iter().flatten();
    let problems = list("problems").map(word);
    let failures = list("failures").map(|it| format!("{}: {}", word(&it["about"]), word(&it["message"])));
    // What the provider does not want is no failure.
    let stopped = list("stopped").filter(|it| it["reason"] != "NotPlaced").map(|it| {
        let orders = it["orders"].as_u64().unwrap_or_default();
        let (plural, verb) = if orders == 1 { ("", "fails") } else { ("s", "fail") };
        let (example, message) = (word(&it["example"]), word(&it["message"]));
        let reason = word(&it["reason"]);
        format!("{orders} order{plural} of {} {verb} ({reason}): {example}: {message}", word(&it["publishedResource"]))
    });
    let all = problems.chain(failures).chain(stopped).flat_map(|problem| wrapped(&format!("! {problem}"), size.width));
    lines.extend(all.map(|line| painted(style(line).red(), size)));
    lines
}

/// A text in lines of so many columns, those after the first indented: what is wrong is of no use when its end is cut off.
fn wrapped(text: &str, width: Option<usize>) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map(|line| measure_text_width(line)).unwrap_or_default();
        let is_full = width.is_some_and(|width| line + 1 + measure_text_width(word) > width);
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if !is_full || line == "!" => line.extend([" ", word]),
            _ => lines.push(format!("  {word}")),
        }
    }
    lines
}

/// One cell of a table.
struct Cell {
    text: String,
    number: bool,
    look: fn(StyledObject<String>) -> StyledObject<String>,
}

impl Cell {
    fn text(text: String) -> Self {
        Self { text, number: false, look: |it| it }
    }

    fn number(value: &Value) -> Self {
        Self { text: format!("{:.0}", value.as_f64().unwrap_or_default()), number: true, look: |it| it }
    }
}

fn published_row(pr: &Value) -> Vec<Cell> {
    let state = match (trouble(pr), word(&pr["schema"])) {
        (Some(trouble), _) => Cell { look: StyledObject::yellow, ..Cell::text(trouble.to_owned()) },
        (None, schema) if schema.is_empty() => Cell::text("not published yet".to_owned()),
        (None, schema) => Cell { look: StyledObject::green, ..Cell::text(format!("published as {schema}")) },
    };
    vec![Cell::text(word(&pr["name"])), Cell::number(&pr["sources"]), Cell::number(&pr["copies"]), state]
}

fn workspace_row(workspace: &Value, consumers: bool) -> Vec<Cell> {
    let (cluster, path) = (word(&workspace["cluster"]), word(&workspace["path"]));
    let name = if path.is_empty() { cluster.clone() } else { path };
    let mut row = vec![Cell::text(name), Cell::number(&workspace["objects"]), Cell::text(cluster)];
    row.extend(consumers.then(|| Cell::text(word(&workspace["consumer"]))));
    row
}

/// A table whose columns are as wide as what is in them; numbers stand on the right.
fn table(headings: &[&str], rows: &[Vec<Cell>], size: Size) -> Vec<String> {
    let width = |at: usize| {
        let widest = rows.iter().filter_map(|row| row.get(at)).map(|cell| measure_text_width(&cell.text)).max();
        widest.unwrap_or(0).max(headings[at].len())
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let is_number = |at: usize| rows.first().is_some_and(|row| row.get(at).is_some_and(|cell| cell.number));
    let padded = |text: &str, at: usize| {
        let gap = " ".repeat(widths[at].saturating_sub(measure_text_width(text)));
        match (is_number(at), at + 1 == headings.len()) {
            (true, _) => (gap, String::new()),
            // Nothing stands behind the last column.
            (false, true) => (String::new(), String::new()),
            (false, false) => (String::new(), gap),
        }
    };
    let heading: Vec<String> = headings
        .iter()
        .enumerate()
        .map(|(at, heading)| {
            let (before, after) = padded(heading, at);
            format!("{before}{}{after}", painted(style((*heading).to_owned()).dim(), size))
        })
        .collect();
    let mut lines = vec![heading.join("  ")];
    for row in rows {
        let cells = row.iter().enumerate().map(|(at, cell)| {
            let (before, after) = padded(&cell.text, at);
            format!("{before}{}{after}", painted((cell.look)(style(cell.text.clone())), size))
        });
        lines.push(cells.collect::<Vec<_>>().join("  "));
    }
    lines
}

fn painted<T: std::fmt::Display>(text: StyledObject<T>, size: Size) -> String {
    text.force_styling(size.colours).to_string()
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const WIDE: Size = Size { width: None, height: None, colours: false };

    fn state() -> Value {
        json!({
            "agent": { "name": "a", "version": "1", "export": "e", "workspace": "root:p", "verdict": "not ready", "level": "bad", "uptimeSeconds": 3 },
            "problems": ["connection to kcp: refused"],
            "now": { "lagSeconds": 1.25, "queued": 2.0, "steps": 3.0, "errors": 4.0 },
            "publishedResources": [
                { "name": "buckets", "schema": "v1.buckets.e", "trouble": null, "sources": 5.0, "copies": 4.0 },
                { "name": "broken", "trouble": "no such kind", "sources": 0.0, "copies": 0.0 },
            ],
            "workspaces": [
                { "cluster": "1k2j3h4k5j6h", "path": "root:orgs:a-rather-long-name:team", "objects": 1 },
                { "cluster": "many", "path": null, "objects": 9 },
            ],
        })
    }

    #[test]
    fn a_screen_shows_state_problems_and_counts_in_columns() {
        let text = text(&state(), WIDE);
        let wanted = "\
a  not ready  up 3 s  version 1
APIExport e in root:p
longest wait 1.2 s  waiting 2  writes 3  errors 4
! connection to kcp: refused

PUBLISHED  ORDERS  COPIES  STATE
buckets         5       4  published as v1.buckets.e
broken          0       0  no such kind

WORKSPACE                          ORDERS  LOGICAL CLUSTER
many                                    9  many
root:orgs:a-rather-long-name:team       1  1k2j3h4k5j6h
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn whoever_orders_through_a_broker_is_named() {
        let mut state = state();
        state["workspaces"][0]["path"] = json!("root:staging:staging-1");
        state["workspaces"][0]["consumer"] = json!("2h3k");
        let text = text(&state, WIDE);
        let wanted = "\
WORKSPACE               ORDERS  LOGICAL CLUSTER  CONSUMER
many                         9  many             \n\
root:staging:staging-1       1  1k2j3h4k5j6h     2h3k
";
        assert!(text.ends_with(wanted), "{text}");
    }

    #[test]
    fn a_small_terminal_gets_what_fits() {
        let mut state = state();
        state["workspaces"] = (0..50).map(|at| json!({ "cluster": format!("c{at}"), "objects": at })).collect();
        state["publishedResources"] =
            (0..30).map(|at| json!({ "name": format!("kind-{at}"), "schema": "s" })).collect();
        state["failures"] = json!([{ "about": "APIExport e", "message": "forbidden ".repeat(9) }]);
        for (width, height) in [(80, 24), (40, 15), (40, 10), (20, 8), (10, 3), (10, 1)] {
            let text = text(&state, Size { width: Some(width), height: Some(height), colours: true });
            assert!(text.lines().count() < height, "{text}");
            assert!(text.lines().all(|line| measure_text_width(line) <= width), "{text}");
        }
        let text = |width, height| text(&state, Size { width: Some(width), height: Some(height), colours: false });
        let wide = text(80, 24);
        for wanted in ["\nkind-0 ", "\nand 2", "\nWORKSPACE", "\nc49 ", "\nand 4", "\n  forbidden", "\nq quits\n"] {
            assert!(wide.contains(wanted), "{wanted:?}:\n{wide}");
        }
        // What is wrong comes before everything else.
        let small = text(40, 10);
        assert!(small.contains("! connection to kcp: refused\n") && small.ends_with("q quits\n"), "{small}");
    }

    #[test]
    fn an_agent_with_nothing_to_publish_says_so() {
        let mut state = state();
        state["publishedResources"] = json!([]);
        assert!(text(&state, WIDE).contains("\n\nno PublishedResource yet\n\nWORKSPACE"), "{}", text(&state, WIDE));
    }

    #[test]
    fn what_fails_is_told_with_an_example() {
        let mut state = state();
        state["agent"]["verdict"] = json!("3 orders fail");
        state["failures"] = json!([{ "about": "APIExport e", "message": "forbidden" }]);
        let stopped = |orders: u64, reason: &str| json!({ "publishedResource": "buckets", "orders": orders, "reason": reason, "example": "root:a/default/b", "message": "no" });
        state["stopped"] = json!([stopped(2, "Forbidden"), stopped(1, "Invalid"), stopped(4, "NotPlaced")]);
        let text = text(&state, WIDE);
        assert!(text.starts_with("a  3 orders fail  up 3 s"), "{text}");
        let told: Vec<&str> = text.lines().filter(|line| line.starts_with('!')).collect();
        let wanted = [
            "! connection to kcp: refused",
            "! APIExport e: forbidden",
            "! 2 orders of buckets fail (Forbidden): root:a/default/b: no",
            "! 1 order of buckets fails (Invalid): root:a/default/b: no",
        ];
        assert_eq!(told, wanted);
    }
}
