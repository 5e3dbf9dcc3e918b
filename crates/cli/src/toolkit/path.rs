//! `carrick toolkit path`.

use carrick_json::path::{self, Found, Kind, PathError, text};
use clap::Subcommand;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::batch::{self, Answer};
use super::complaint::Complaint;
use super::source;
use super::text::Text;

/// Read, write or delete the value at a path, as mutations and references do.
///
/// Reading uses gjson paths, writing uses sjson paths.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    operation: Option<Operation>,
    /// Answer questions from standard input, one JSON object with op (gjson, sjsonset, sjsondel), path, input and value per line.
    #[arg(long)]
    batch: bool,
}

const EXAMPLES: &str = "\
Examples:
  carrick toolkit path get --data obj.yaml spec.image
  carrick toolkit path get --data obj.yaml \\
    'spec.containers.#(name==\"web\").image'
  carrick toolkit path get --data obj.yaml \\
    'metadata.annotations.example\\.com/owner'
      a dot that belongs to the key
  carrick toolkit path set --data obj.yaml spec.replicas --value 3
  carrick toolkit path delete --data obj.yaml spec.containers.0
  echo '{\"op\":\"sjsonset\",\"path\":\"a.b\",\"input\":\"{}\",\"value\":1}' |
    carrick toolkit path --batch
      many questions at once: {\"output\":\"{\\\"a\\\":{\\\"b\\\":1}}\"}";

#[derive(Debug, Subcommand)]
enum Operation {
    /// Print what is at a path: text as it is, everything else as JSON.
    Get(PathInData),
    /// Print the data with a value at a path.
    Set {
        #[command(flatten)]
        place: PathInData,
        /// The value, in JSON or YAML: 3, true, text, '"3"', '{"a": 1}'.
        #[arg(long, value_name = "VALUE")]
        value: String,
    },
    /// Print the data without what is at a path.
    Delete(PathInData),
}

/// A path in data.
#[derive(Debug, clap::Args)]
struct PathInData {
    /// The path.
    #[arg(value_name = "PATH", required_unless_present = "file")]
    path: Option<String>,
    /// Read the path from a file; - is standard input.
    #[arg(short, long, value_name = "FILE", conflicts_with = "path")]
    file: Option<String>,
    /// The data in YAML or JSON: a file, - for standard input, or inline.
    #[arg(short, long, value_name = "DATA")]
    data: String,
}

/// Answers one question or a batch.
pub fn run(args: Args) -> Result<(), Complaint> {
    match args.operation {
        Some(Operation::Get(place)) => {
            let (path, document) = place.read()?;
            let found = text::try_get(&document.json, &path.content).map_err(|error| refused(&path, &error))?;
            super::print(&show(&found).ok_or_else(|| nothing(&path, &document.json))?)
        }
        Some(Operation::Set { place, value }) => {
            let value = Document::new(&Text { name: "value".to_owned(), content: value })?;
            place.change(|json, path| text::set(json, path, &value.json))
        }
        Some(Operation::Delete(place)) => place.change(text::delete),
        None => batch::serve(answer),
    }
}

/// Data as JSON text, which keeps the order of keys and all digits if the input was JSON.
struct Document {
    json: String,
    yaml: bool,
}

impl Document {
    fn new(text: &Text) -> Result<Self, Complaint> {
        let value = source::parse(text)?;
        Ok(match serde_json::from_str::<&RawValue>(&text.content) {
            Ok(json) => Self { json: json.get().to_owned(), yaml: false },
            Err(_) => Self { json: value.to_string(), yaml: true },
        })
    }
}

impl PathInData {
    fn read(self) -> Result<(Text, Document), Complaint> {
        source::at_most_one_from_stdin(&[self.file.as_ref(), Some(&self.data)]);
        let mut path = source::expression("path", self.path, self.file.as_deref())?;
        path.content.truncate(path.content.trim_end_matches(['\r', '\n']).len());
        Ok((path, Document::new(&source::data_text(&self.data)?)?))
    }

    /// Prints the changed data in the format of the input.
    fn change(self, change: impl FnOnce(&str, &str) -> Result<String, PathError>) -> Result<(), Complaint> {
        let (path, document) = self.read()?;
        let changed = change(&document.json, &path.content).map_err(|error| refused(&path, &error))?;
        if !document.yaml {
            return super::print(&changed);
        }
        let value: Value = serde_json::from_str(&changed).unwrap_or_default();
        let yaml = serde_saphyr::to_string(&value);
        super::print(&yaml.map_err(|error| Complaint::new(format!("cannot write this as YAML: {error}")))?)
    }
}

/// The value as text, if it exists.
fn show(found: &Found) -> Option<String> {
    match found.kind() {
        _ if !found.exists() => None,
        Kind::String => Some(found.text()),
        Kind::Json => Some(found.get("@pretty").raw().to_owned()),
        _ => Some(found.raw().to_owned()),
    }
}

fn refused(path: &Text, error: &PathError) -> Complaint {
    let complaint = Complaint::new(error.to_string());
    match error.position {
        Some(offset) => {
            let part = path.content.get(offset..).unwrap_or_default();
            complaint.at(path, offset, part.find('.').unwrap_or(part.len()))
        }
        None => complaint,
    }
}

/// Points at the first part of a path that does not exist, and lists what exists there instead.
fn nothing(path: &Text, json: &str) -> Complaint {
    let complaint = Complaint::new("nothing is at this path");
    let mut start = 0;
    for (part, end) in parts(&path.content) {
        if text::get(json, &path.content[..end]).exists() {
            start = end + 1;
            continue;
        }
        let above = if start == 0 { "@this" } else { &path.content[..start - 1] };
        let name = if start == 0 { "the data" } else { above };
        let hint = match text::get(json, above).value() {
            Some(Value::Object(map)) if !map.is_empty() => {
                let keys: Vec<&str> = map.keys().map(String::as_str).take(20).collect();
                format!("{name} has {}", keys.join(", "))
            }
            Some(Value::Array(list)) => format!("{name} is a list of {}", list.len()),
            _ => format!("there is nothing below {name}"),
        };
        return complaint.at(path, start, part.len()).hint(hint);
    }
    complaint.at(path, 0, path.content.len())
}

/// The parts of a path between its dots, each with its end. Dots that are escaped or inside queries do not separate parts.
fn parts(path: &str) -> Vec<(&str, usize)> {
    let (mut parts, mut start, mut depth, mut escaped) = (Vec::new(), 0, 0_usize, false);
    for (at, c) in path.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            '.' | '|' if depth == 0 => {
                parts.push((&path[start..at], at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push((&path[start..], path.len()));
    parts
}

/// A question of a batch. The value keeps its digits.
#[derive(Debug, Deserialize)]
struct PathQuestion {
    op: String,
    path: String,
    input: String,
    value: Option<Box<RawValue>>,
}

fn answer(question: PathQuestion) -> Answer {
    let PathQuestion { op, path, input, value } = question;
    path::answer(&op, &path, &input, value.as_deref().map(RawValue::get)).map_or_else(Answer::error, Answer::Output)
}
