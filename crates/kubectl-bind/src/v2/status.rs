//! What Connections and bindings of both contracts say.

use std::fmt::Write as _;

use carrick_bind_api::core::{BINDING, CLUSTER_BINDING, CONNECTION};
use carrick_bind_api::kinds::{API_SERVICE_BINDING, Kind};
use carrick_client::{Client, ListOptions, Resource};
use carrick_process::printable::one_line;
use serde_json::Value;

use super::{V2Error, condition, resource};

/// Reads and prints it.
pub async fn run(client: &Client) -> Result<String, V2Error> {
    let mut rows = Vec::new();
    for kind in [CONNECTION, CLUSTER_BINDING, BINDING, API_SERVICE_BINDING] {
        for object in list(client, kind).await? {
            rows.push(row(kind, &object));
        }
    }
    Ok(table(&rows))
}

async fn list(client: &Client, kind: Kind) -> Result<Vec<Value>, V2Error> {
    let at: Resource = resource(kind);
    match client.list(&at, None, &ListOptions::default()).await {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        found => found.map_err(|source| V2Error::Server { what: format!("{}.{}", kind.plural, kind.group), source }),
    }
}

/// One line: what it is, of which provider, how it is, and what it has.
fn row(kind: Kind, object: &Value) -> [String; 6] {
    let text = |value: &Value| one_line(value.as_str().unwrap_or_default()).into_owned();
    let names = |list: &Value, name: &dyn Fn(&Value) -> String| {
        list.as_array().into_iter().flatten().map(name).collect::<Vec<_>>().join(",")
    };
    let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
    let name = match metadata["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{}", text(&metadata["name"])),
        None => text(&metadata["name"]),
    };
    let (of, apis) = if kind == CONNECTION {
        (text(&status["activeSchemaSource"]), names(&status["exportedAPIs"], &|api| text(&api["name"])))
    } else if kind == API_SERVICE_BINDING {
        let api = |it: &Value| format!("{}.{}", text(&it["resource"]), text(&it["group"]));
        (text(&status["providerPrettyName"]), names(&status["boundSchemas"], &api))
    } else {
        (text(&spec["connectionRef"]["name"]), names(&spec["apis"], &|api| text(&api["name"])))
    };
    let ready = condition(object, "Ready");
    let mut says = match ready {
        None => "no konnector has said anything".to_owned(),
        Some(ready) if ready["status"] == "True" => String::new(),
        Some(ready) => format!("{}: {}", text(&ready["reason"]), text(&ready["message"])),
    };
    for type_ in ["Conflicts", "PermissionDenied"] {
        if let Some(bad) = condition(object, type_).filter(|it| it["status"] == "True" && says.is_empty()) {
            says = text(&bad["message"]);
        }
    }
    let ready = ready.map_or_else(|| "Unknown".to_owned(), |it| text(&it["status"]));
    [kind.kind.to_owned(), name, of, ready, apis, says]
}

fn table(rows: &[[String; 6]]) -> String {
    if rows.is_empty() {
        return "There are no Connections and no bindings.\n".to_owned();
    }
    let head = ["KIND", "NAME", "OF", "READY", "APIS", "SAYS"].map(str::to_owned);
    let all: Vec<&[String; 6]> = std::iter::once(&head).chain(rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; 5] = std::array::from_fn(width);
    let mut text = String::new();
    for row in all {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths.into_iter().chain([0])) {
            // Writing to a String cannot fail.
            let _ = write!(line, "{:width$}   ", if cell.is_empty() { "-" } else { cell });
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_says_what_is_wrong_and_nothing_else() {
        let ready = |status: &str, message: &str| json!({"type": "Ready", "status": status, "reason": "Pending", "message": message});
        let connection = json!({"metadata": {"name": "west"}, "status": {"activeSchemaSource": "CRD",
            "exportedAPIs": [{"name": "a.x"}, {"name": "b.x"}], "conditions": [ready("True", "connection ready")]}});
        let mut binding = json!({"metadata": {"name": "w", "namespace": "team"}, "spec": {"connectionRef": {"name": "west"}, "apis": [{"name": "a.x"}]},
            "status": {"conditions": [ready("True", "binding ready"), {"type": "Conflicts", "status": "True", "message": "1 object(s)\nskipped"}]}});
        let rows = [row(CONNECTION, &connection), row(BINDING, &binding)];
        assert_eq!(rows[0], ["Connection", "west", "CRD", "True", "a.x,b.x", ""]);
        assert_eq!(rows[1][..4], ["Binding", "team/w", "west", "True"]);
        assert!(rows[1][5].starts_with("1 object(s)") && !rows[1][5].contains('\n'));
        binding["status"]["conditions"] = json!([ready("False", "not yet")]);
        assert_eq!(row(BINDING, &binding)[3..], ["False", "a.x", "Pending: not yet"]);
        let text = table(&rows);
        assert!(text.starts_with("KIND         NAME     OF     READY   APIS      SAYS\n"), "{text}");
        assert!(table(&[]).starts_with("There are no"));
    }
}
