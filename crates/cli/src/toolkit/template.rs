//! `carrick toolkit template`.

use carrick_syncagent::rules::suggest;
use carrick_template::{CompileError, RenderError, Template};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::batch::{self, Answer};
use super::complaint::Complaint;
use super::source;
use super::text::Text;

/// Render a Go template with the functions of sprig.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The template.
    #[arg(value_name = "TEMPLATE", required_unless_present_any = ["file", "batch"])]
    template: Option<String>,
    /// Read the template from a file; - is standard input.
    #[arg(short, long, value_name = "FILE", conflicts_with = "template")]
    file: Option<String>,
    /// The data in YAML or JSON: a file, - for standard input, or inline. A Kubernetes object appears in the field where templates of --for
    /// expect it; any other data is used as it is.
    #[arg(short, long, value_name = "DATA")]
    data: Option<String>,
    /// What the template is for, which decides in which field a Kubernetes object appears.
    #[arg(long = "for", value_name = "RULE", value_enum, default_value_t = TemplateUse::Naming)]
    rule: TemplateUse,
    /// A second Kubernetes object: .RemoteObject of mutations, selectors and rewrites.
    #[arg(long, value_name = "DATA")]
    remote: Option<String>,
    /// The path of a mutation, which implies --for mutation: .Value is the value there in .LocalObject.
    #[arg(long, value_name = "PATH", required_if_eq("rule", "mutation"))]
    path: Option<String>,
    /// The field .ClusterName: the logical cluster of the consumer's workspace.
    #[arg(long, value_name = "NAME", default_value = "1a2b3c4d5e6f7g8h")]
    cluster_name: String,
    /// The field .ClusterPath: the path of the consumer's workspace.
    #[arg(long, value_name = "PATH", default_value = "root:orgs:example")]
    cluster_path: String,
    /// Answer questions from standard input, one JSON object with template, data and path per line. Questions without data use that
    /// of --data; if that is a list, data may also be the number of an element.
    #[arg(long, conflicts_with_all = ["template", "file", "path", "remote"])]
    batch: bool,
}

const EXAMPLES: &str = "\
Examples:
  carrick toolkit template --data obj.yaml \\
    '{{ .Object.metadata.name | sha3short }}'
      a name on the service cluster; obj.yaml is a Kubernetes object
  carrick toolkit template --data obj.yaml --path spec.image \\
    '{{ .Value.String | lower }}'
      the template of a mutation: .Value is what is at the path
  carrick toolkit template --data '{\"Object\": {\"n\": 1}}' '{{ .Object.n }}'
      data without a file
  kubectl get deploy web -o yaml | carrick toolkit template --data - -f rule.tpl
      from a cluster, with the template in a file
  echo '{\"template\":\"{{ .a }}\",\"data\":{\"a\":1}}' |
    carrick toolkit template --batch
      many questions at once: {\"output\":\"1\"}

The agent cuts white space off both ends of what a template renders; here it is
shown.";

/// What a template is for.
#[derive(Debug, Clone, Copy, PartialEq, clap::ValueEnum)]
enum TemplateUse {
    /// `naming`: .Object, .ClusterName, .ClusterPath, .ConsumerCluster.
    Naming,
    /// `related[].object.template`: .Side (kcp or service), .Object, .ClusterName, .ClusterPath.
    Related,
    /// Labels of selectors: .LocalObject, .RemoteObject, .ClusterName, .ClusterPath.
    Selector,
    /// `rewrite.template`: the same, .RelatedObject and its name as .Value.
    Rewrite,
    /// `mutation[].template`: .Value, .LocalObject, .RemoteObject; what is missing prints nothing.
    Mutation,
}

/// Renders one template, or answers a batch.
pub fn run(args: Args) -> Result<(), Complaint> {
    source::at_most_one_from_stdin(&[args.file.as_ref(), args.data.as_ref(), args.remote.as_ref()]);
    let data = args.data.as_deref().map(source::data).transpose()?;
    if args.batch {
        return batch::serve(|question| answer(question, data.as_ref()));
    }
    let rule = if args.path.is_some() { TemplateUse::Mutation } else { args.rule };
    let text = source::expression("template", args.template, args.file.as_deref())?;
    let template = match rule {
        TemplateUse::Naming | TemplateUse::Mutation => Template::compile(&text.content),
        TemplateUse::Related | TemplateUse::Selector | TemplateUse::Rewrite => Template::compile_steady(&text.content),
    };
    let template = template.map_err(|error| refused(&text, &error))?;
    let template = if rule == TemplateUse::Mutation { template.silent_about_missing() } else { template };
    let remote = args.remote.as_deref().map(source::data).transpose()?.unwrap_or_default();
    let data = match data.unwrap_or_else(|| json!({})) {
        Value::Object(fields) if is_object(&fields) => {
            fields_of(rule, fields, &remote, &args.cluster_name, &args.cluster_path)
        }
        other => other,
    };
    super::print(&render(&template, args.path.as_deref(), &data).map_err(|error| failed(&text, &data, &error))?)
}

/// Whether data is a Kubernetes object rather than the fields of a template, which are in upper case.
fn is_object(data: &Map<String, Value>) -> bool {
    ["apiVersion", "kind", "metadata"].iter().any(|field| data.contains_key(*field))
}

/// The fields that templates of this kind see.
fn fields_of(
    rule: TemplateUse,
    object: Map<String, Value>,
    remote: &Value,
    cluster_name: &str,
    cluster_path: &str,
) -> Value {
    let object = Value::Object(object);
    let mut fields = match rule {
        TemplateUse::Naming => json!({"Object": object, "ConsumerCluster": cluster_name}),
        TemplateUse::Related => json!({"Object": object, "Side": "kcp"}),
        TemplateUse::Selector => json!({"LocalObject": object, "RemoteObject": remote}),
        TemplateUse::Rewrite => json!({
            "Value": object["metadata"]["name"], "RelatedObject": object, "LocalObject": remote, "RemoteObject": remote,
        }),
        TemplateUse::Mutation => return json!({"LocalObject": object, "RemoteObject": remote}),
    };
    fields["ClusterName"] = cluster_name.into();
    fields["ClusterPath"] = cluster_path.into();
    fields
}

/// Renders as the agent does: the data is a struct, so using a field that does not exist is an error.
fn render(template: &Template, path: Option<&str>, data: &Value) -> Result<String, RenderError> {
    match (data, path) {
        (Value::Object(fields), Some(path)) => template.render_mutation(local(fields, path).as_ref(), get, fields),
        (Value::Object(fields), None) => template.render(fields),
        (other, _) => template.render_value(other),
    }
}

/// What is at a path in `LocalObject`.
fn local(fields: &Map<String, Value>, path: &str) -> Option<Value> {
    get(fields.get("LocalObject")?, path)
}

fn get(value: &Value, path: &str) -> Option<Value> {
    let found = carrick_json::path::get(value, path);
    found.exists().then(|| found.into_value())
}

fn refused(text: &Text, error: &CompileError) -> Complaint {
    let complaint = Complaint::new(error.message());
    let complaint = match error.position() {
        Some(at) => complaint.at(text, at.offset, at.length),
        None => complaint,
    };
    let meant = match error {
        CompileError::UnknownFunction { name, .. } => {
            suggest::nearest(name, carrick_template::reference::entries().into_iter().map(|entry| entry.name))
        }
        _ => None,
    };
    match meant {
        Some(name) => complaint.hint(format!("there is a function {name}")),
        None => complaint,
    }
}

fn failed(text: &Text, data: &Value, error: &RenderError) -> Complaint {
    let message = error.message();
    let complaint = Complaint::new(&message);
    let complaint = match error.position() {
        Some(at) => complaint.at(text, at.offset, at.length),
        None => complaint,
    };
    if data.as_object().is_some_and(Map::is_empty) {
        complaint.hint("there is no data: give some with --data")
    } else if message.starts_with("invalid value") {
        complaint.hint("its input is missing from the data; put default \"…\" before it")
    } else {
        complaint
    }
}

/// A question of a batch.
#[derive(Debug, Deserialize)]
struct TemplateQuestion {
    template: String,
    data: Option<Value>,
    path: Option<String>,
}

/// Answers as Go does with a map at the root, where a missing key is no error.
fn answer(question: TemplateQuestion, shared: Option<&Value>) -> Answer {
    let template = match Template::compile(&question.template) {
        Ok(template) => template,
        Err(error) => return Answer::error(error),
    };
    let data = source::shared(question.data, shared);
    let rendered = match (&question.path, data.as_ref()) {
        (Some(path), Value::Object(fields)) => {
            template.render_mutation_value(local(fields, path).as_ref(), get, fields)
        }
        (Some(_), _) => return Answer::error("with a path, data must be an object with LocalObject"),
        (None, data) => template.render_value(data),
    };
    rendered.map_or_else(Answer::error, Answer::Output)
}
