//! What a provider offers, as a table or as whole objects.

use std::fmt::Write as _;

use carrick_bind_api::clock;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::backend::{Backend, BackendError, Place, shown};
use crate::config::{ConfigError, ConfigFile};
use crate::options::{self, Output};

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// The backend does not tell.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The file with logins cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Objects cannot be printed.
    #[error("cannot print the list: {0}")]
    Print(String),
}

/// What is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Templates.
    Templates,
    /// Collections of templates.
    Collections,
}

/// Lists; returns what to print.
pub async fn run(kind: Kind, request: &options::Catalogue, flags: &options::Backend) -> Result<String, CatalogueError> {
    let config = ConfigFile::at(flags.config_file.as_deref())?.read()?;
    let place = Place::choose(request.server_url.as_deref(), flags, &config)?;
    let login = place.login(&config, Timestamp::now())?;
    let backend = Backend::new(place.clone(), Some(&login.access_token), flags)?;
    let items = backend.list(if kind == Kind::Templates { "templates" } else { "collections" }).await?;
    match request.output {
        None | Some(Output::Wide) => Ok(table(kind, &items, Timestamp::now())),
        Some(Output::Name) => Ok(names(kind, &items)),
        Some(output) => {
            print(&json!({"apiVersion": "v1", "kind": "List", "items": items}), output).map_err(CatalogueError::Print)
        }
    }
}

/// Kinds and names of an object, or of the objects in a list.
fn named(object: &Value) -> String {
    let all = object["items"].as_array().map_or_else(|| std::slice::from_ref(object), Vec::as_slice);
    let name = |object: &Value| {
        let (kind, metadata) = (object["kind"].as_str().unwrap_or_default().to_lowercase(), &object["metadata"]);
        let name = metadata["name"].as_str().or(metadata["generateName"].as_str()).unwrap_or_default();
        format!("{kind}/{}\n", shown(name))
    };
    all.iter().map(name).collect()
}

/// Names of what is in the catalogue, whose elements say no kind.
fn names(kind: Kind, items: &[Value]) -> String {
    let kind = if kind == Kind::Templates { "apiserviceexporttemplate" } else { "collection" };
    let name = |item: &Value| format!("{kind}/{}\n", shown(item["metadata"]["name"].as_str().unwrap_or_default()));
    items.iter().map(name).collect()
}

/// An object in a format.
pub(crate) fn print(object: &Value, output: Output) -> Result<String, String> {
    match output {
        Output::Json => serde_json::to_string_pretty(object).map(|text| text + "\n").map_err(|error| error.to_string()),
        Output::Name => Ok(named(object)),
        Output::Yaml | Output::Wide => serde_saphyr::to_string(object)
            .map(|text| format!("{}\n", text.trim_end()))
            .map_err(|error| error.to_string()),
    }
}

fn table(kind: Kind, items: &[Value], now: Timestamp) -> String {
    if items.is_empty() {
        return "There are none.\n".to_owned();
    }
    let joined = |list: &Value, name: &dyn Fn(&Value) -> String| {
        let names: Vec<String> = list.as_array().into_iter().flatten().map(name).collect();
        if names.is_empty() { "-".to_owned() } else { names.join(",") }
    };
    let resource = |value: &Value| {
        let (resource, group) =
            (value["resource"].as_str().unwrap_or_default(), value["group"].as_str().unwrap_or_default());
        if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
    };
    let plain = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut rows = vec![match kind {
        Kind::Templates => ["NAME", "RESOURCES", "PERMISSIONCLAIMS", "AGE"].map(str::to_owned),
        Kind::Collections => ["NAME", "DESCRIPTION", "TEMPLATES", "AGE"].map(str::to_owned),
    }];
    for item in items {
        let spec = &item["spec"];
        let (second, third) = match kind {
            Kind::Templates => (joined(&spec["resources"], &resource), joined(&spec["permissionClaims"], &resource)),
            Kind::Collections => {
                (plain(&spec["description"]), joined(&spec["templates"], &|template| plain(&template["name"])))
            }
        };
        let age = age(item["metadata"]["creationTimestamp"].as_str(), now);
        rows.push([plain(&item["metadata"]["name"]), second, third, age].map(|cell| shown(&cell)));
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths = [width(0), width(1), width(2)];
    let mut text = String::new();
    for [first, second, third, last] in &rows {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{first:0$}   {second:1$}   {third:2$}   {last}", widths[0], widths[1], widths[2]);
    }
    text
}

/// How old something is, as kubectl writes it.
fn age(created: Option<&str>, now: Timestamp) -> String {
    let Some(created) = created.and_then(clock::read) else { return "<unknown>".to_owned() };
    let seconds = (now.as_second() - created.as_second()).max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_columns_and_nothing_moves_the_cursor() {
        let now = clock::read("2026-11-03T00:00:00Z").unwrap();
        let items = [json!({"metadata": {"name": "a\u{1b}[2J", "creationTimestamp": "2026-11-01T00:00:00Z"}, "spec": {
            "resources": [{"group": "x.io", "resource": "things"}, {"resource": "secrets"}]}})];
        let expected = "NAME         RESOURCES             PERMISSIONCLAIMS   AGE\na\\u{1b}[2J   things.x.io,secrets   -                  2d\n";
        assert_eq!(table(Kind::Templates, &items, now), expected);
        assert_eq!(table(Kind::Collections, &[], now), "There are none.\n");
        for (seconds, expected) in [(0, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (172_800, "2d")] {
            let then = Timestamp::from_second(now.as_second() - seconds).unwrap();
            assert_eq!(age(Some(&clock::show(then)), now), expected);
        }
        assert_eq!(age(None, now), "<unknown>");
    }
}
