//! Which CEL rules a schema may have, refused with Kubernetes' messages.

use carrick_cel::{CompileError, Rule};
use serde_json::{Value, json};

use super::SchemaError;

/// Where in a schema rules are.
pub(super) struct Place<'a> {
    pub path: &'a str,
    pub root: bool,
    /// The list around whose items cannot be told apart, so that they have no old values.
    pub uncorrelated: Option<&'a str>,
}

/// Compiles the rules of a node for the values it describes.
pub(super) fn rules(schema: &Value, place: &Place<'_>) -> Result<Vec<Rule>, SchemaError> {
    let list = schema["x-kubernetes-validations"].as_array().map(Vec::as_slice).unwrap_or_default();
    if list.is_empty() {
        return Ok(Vec::new());
    }
    let typed = if place.root { carrick_cel::Schema::root(schema) } else { carrick_cel::Schema::node(schema) };
    list.iter()
        .enumerate()
        .map(|(index, entry)| {
            let entry = Entry { entry, field: format!("{}.x-kubernetes-validations[{index}]", place.path) };
            entry.check_texts(&typed)?;
            entry.compile(&typed, place)
        })
        .collect()
}

/// The refusal of rules where a schema has none.
pub(super) fn none(schema: &Value, path: &str) -> Result<(), SchemaError> {
    match schema["x-kubernetes-validations"].as_array() {
        Some(list) if !list.is_empty() => Err(SchemaError {
            field: format!("{path}.x-kubernetes-validations"),
            message: "Forbidden: must be empty to be structural".to_owned(),
            reason: "FieldValueForbidden",
        }),
        _ => Ok(()),
    }
}

struct Entry<'a> {
    entry: &'a Value,
    /// Its place in the schema.
    field: String,
}

impl Entry<'_> {
    fn text(&self, name: &str) -> &str {
        self.entry[name].as_str().unwrap_or_default()
    }

    fn required(&self, name: &str, detail: &str) -> SchemaError {
        let message = format!("Required value: {detail}");
        SchemaError { field: format!("{}.{name}", self.field), message, reason: "FieldValueRequired" }
    }

    fn invalid(&self, name: &str, value: &str, detail: &str) -> SchemaError {
        let message = format!("Invalid value: {value}: {detail}");
        SchemaError { field: format!("{}.{name}", self.field), message, reason: "FieldValueInvalid" }
    }

    fn check_texts(&self, typed: &carrick_cel::Schema) -> Result<(), SchemaError> {
        let quoted = |name: &str| self.entry[name].to_string();
        let (rule, message) = (self.text("rule").trim(), self.text("message"));
        if rule.is_empty() {
            return Err(self.required("rule", "rule is not specified"));
        }
        if !message.is_empty() && message.trim().is_empty() {
            return Err(self.invalid("message", &quoted("message"), "must be non-empty if specified"));
        }
        if has_lines(message.trim()) {
            return Err(self.invalid("message", &quoted("message"), "must not contain line breaks"));
        }
        if has_lines(rule) && message.trim().is_empty() {
            return Err(self.required("message", "message must be specified if rule contains line breaks"));
        }
        let expression = self.text("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            return Err(self.required("messageExpression", "messageExpression must be non-empty if specified"));
        }
        let reason = self.text("reason");
        if !reason.is_empty() && !REASONS.contains(&reason) {
            let known: Vec<String> = REASONS.iter().map(|known| format!("{known:?}")).collect();
            return Err(SchemaError {
                field: format!("{}.reason", self.field),
                message: format!("Unsupported value: {reason:?}: supported values: {}", known.join(", ")),
                reason: "FieldValueNotSupported",
            });
        }
        let path = self.text("fieldPath");
        let fault = match path {
            "" => None,
            path if path.trim().is_empty() => Some("must be non-empty if specified"),
            path if has_lines(path) => Some("must not contain line breaks"),
            path if !typed.has_field(path) => Some("must be a valid path"),
            _ => None,
        };
        fault.map_or(Ok(()), |detail| Err(self.invalid("fieldPath", &quoted("fieldPath"), detail)))
    }

    fn compile(&self, typed: &carrick_cel::Schema, place: &Place<'_>) -> Result<Rule, SchemaError> {
        let rule = Rule::compile_typed(self.entry, typed).map_err(|error| self.refusal(&error))?;
        if rule.uses_old_self() {
            if let Some(list) = place.uncorrelated {
                let detail =
                    format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
                return Err(self.invalid("rule", &self.entry["rule"].to_string(), &detail));
            }
        } else if let Some(set @ Value::Bool(_)) = self.entry.get("optionalOldSelf") {
            let detail = "may not be set if oldSelf is not used in rule";
            return Err(self.invalid("optionalOldSelf", &set.to_string(), detail));
        }
        Ok(rule)
    }

    fn refusal(&self, error: &CompileError) -> SchemaError {
        let (name, detail) = match error {
            CompileError::WrongResult { field: "rule", wanted } => {
                ("rule", format!("cel expression must evaluate to a {wanted}"))
            }
            CompileError::WrongResult { field, .. } => (*field, error.to_string()),
            CompileError::MessageExpression(error) => {
                let listing = error.listing(self.text("messageExpression"));
                ("messageExpression", format!("messageExpression compilation failed: {listing}"))
            }
            CompileError::InvalidRule(_) => {
                let message = "Internal error: internal error: failed to construct type information for \
                               x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
                let field = self.field.rsplit_once('[').map_or(self.field.as_str(), |(list, _)| list);
                let reason = "InternalError";
                return SchemaError { field: field.to_owned(), message: message.to_owned(), reason };
            }
            error => ("rule", format!("compilation failed: {}", error.listing(self.text("rule")))),
        };
        self.invalid(name, &self.shown(), &detail)
    }

    /// The entry as the API server prints it.
    fn shown(&self) -> String {
        let text = |name: &str| json!(self.text(name)).to_string();
        let optional = |name: &str| self.entry.get(name).unwrap_or(&Value::Null).to_string();
        let all = format!(
            r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
            text("rule"),
            text("message"),
            text("messageExpression"),
            optional("reason"),
            text("fieldPath"),
            optional("optionalOldSelf"),
        );
        all.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
    }
}

/// The reasons that a rule may give.
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

fn has_lines(text: &str) -> bool {
    text.contains(['\n', '\r'])
}
