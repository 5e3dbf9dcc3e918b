//! `carrick toolkit cel`.

use carrick_cel::{CompileError, Mutation};
use carrick_syncagent::rules::suggest;
use serde::Deserialize;
use serde_json::Value;

use super::batch::{self, Answer};
use super::complaint::Complaint;
use super::source;
use super::text::Text;

/// Evaluate the CEL expression of a mutation.
///
/// Data is YAML or JSON: a file, - for standard input, or inline. Variables that are not given are null.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The expression.
    #[arg(value_name = "EXPRESSION", required_unless_present_any = ["file", "batch"])]
    expression: Option<String>,
    /// Read the expression from a file; - is standard input.
    #[arg(short, long, value_name = "FILE", conflicts_with = "expression")]
    file: Option<String>,
    /// The variable self: the object that is mutated.
    #[arg(long = "self", value_name = "DATA")]
    this: Option<String>,
    /// The variable other: the object on the other side.
    #[arg(long, value_name = "DATA")]
    other: Option<String>,
    /// The variable value: what is at the path of the mutation.
    #[arg(long, value_name = "DATA")]
    value: Option<String>,
    /// Take value from this path in self, as a mutation does.
    #[arg(long, value_name = "PATH", conflicts_with = "value")]
    path: Option<String>,
    /// Answer questions from standard input, one JSON object with expression, self, other and value per line. Questions without self use
    /// that of --self; if that is a list, self may also be the number of an element.
    #[arg(long, conflicts_with_all = ["expression", "file", "other", "value", "path"])]
    batch: bool,
}

const EXAMPLES: &str = "\
Examples:
  carrick toolkit cel --self obj.yaml 'self.spec.replicas + 1'
  carrick toolkit cel --self obj.yaml --path spec.image 'value.split(\":\")[0]'
      as a mutation of spec.image does it
  carrick toolkit cel --value '[3, 1, 2]' 'value.map(x, x * 2.0)'
      data without a file; numbers of value are doubles
  carrick toolkit cel --self kcp.yaml --other service.yaml \\
    'has(other.status) ? other.status.phase : \"Pending\"'
  echo '{\"expression\":\"self.n + 1\",\"self\":{\"n\":1}}' |
    carrick toolkit cel --batch
      many questions at once: {\"result\":2}

The result is printed as JSON, as the agent would write it to the path.";

/// Evaluates one expression, or answers a batch.
pub fn run(args: Args) -> Result<(), Complaint> {
    let inputs = [args.file.as_ref(), args.this.as_ref(), args.other.as_ref(), args.value.as_ref()];
    source::at_most_one_from_stdin(&inputs);
    let given = |argument: &Option<String>| argument.as_deref().map(source::data).transpose();
    let this = given(&args.this)?;
    if args.batch {
        return batch::serve(|question| answer(question, this.as_ref()));
    }
    let text = source::expression("expression", args.expression, args.file.as_deref())?;
    let mutation = Mutation::compile(&text.content).map_err(|error| refused(&text, &error))?;
    let this = this.unwrap_or_default();
    let other = given(&args.other)?.unwrap_or_default();
    let value = match &args.path {
        Some(path) => carrick_json::path::get(&this, path).into_value(),
        None => given(&args.value)?.unwrap_or_default(),
    };
    let result = mutation.eval(&value, &this, &other).map_err(|error| Complaint::new(error.to_string()))?;
    super::print(&if result.is_array() || result.is_object() { format!("{result:#}") } else { result.to_string() })
}

fn refused(text: &Text, error: &CompileError) -> Complaint {
    let complaint = Complaint::new(error.message());
    let Some(at) = error.position() else { return complaint };
    let offset = text.offset(at.line, at.column);
    let CompileError::Undeclared { name, .. } = error else { return complaint.at(text, offset, 1) };
    // The position of a call is its parenthesis; the name is before it.
    let start = if text.content[..offset].ends_with(name) { offset - name.len() } else { offset };
    let functions = carrick_cel::reference::entries().into_iter().map(|entry| entry.name);
    match suggest::nearest(name, functions.chain(["self", "other", "value"])) {
        Some(meant) => complaint.at(text, start, name.len()).hint(format!("there is {meant}")),
        None => complaint.at(text, start, name.len()),
    }
}

/// A question of a batch.
#[derive(Debug, Deserialize)]
struct CelQuestion {
    expression: String,
    #[serde(rename = "self")]
    this: Option<Value>,
    #[serde(default)]
    other: Value,
    #[serde(default)]
    value: Value,
}

fn answer(question: CelQuestion, shared: Option<&Value>) -> Answer {
    let mutation = match Mutation::compile(&question.expression) {
        Ok(mutation) => mutation,
        Err(error) => return Answer::error(error),
    };
    let this = source::shared(question.this, shared);
    mutation.eval(&question.value, &this, &question.other).map_or_else(Answer::error, Answer::Result)
}
