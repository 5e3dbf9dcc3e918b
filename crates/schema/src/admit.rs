//! Which CEL rules a schema may have, refused with Kubernetes' messages.

use carrick_cel::{CompileError, Rule};
use serde_json::{Value, json};

use crate::error::SchemaError;

/// Where in a schema rules are.
pub struct RuleContext<'a> {
    /// The node.
    pub path: &'a str,
    /// Whether it is the root of a resource.
    pub root: bool,
    /// The surrounding list whose items have no identity, and therefore no old values.
    pub uncorrelated: Option<&'a str>,
}

fn entries<'a>(schema: &'a Value, path: &str) -> Vec<RuleEntry<'a>> {
    let list = schema["x-kubernetes-validations"].as_array().map(Vec::as_slice).unwrap_or_default();
    let entry = |(index, entry)| RuleEntry { entry, field: format!("{path}.x-kubernetes-validations[{index}]") };
    list.iter().enumerate().map(entry).collect()
}

fn typed(schema: &Value, place: &RuleContext<'_>) -> carrick_cel::Schema {
    if place.root { carrick_cel::Schema::root(schema) } else { carrick_cel::Schema::node(schema) }
}

/// Compiles the rules of a node for the values it describes.
pub(super) fn rules(schema: &Value, place: &RuleContext<'_>) -> Result<Vec<Rule>, SchemaError> {
    let entries = entries(schema, place.path);
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let typed = typed(schema, place);
    let compile = |entry: RuleEntry<'_>| {
        if let Some(fault) = entry.faults(&|path| typed.has_field(path)).into_iter().next() {
            return Err(fault);
        }
        let (rule, fault) = entry.compile(&typed, place)?;
        fault.map_or(Ok(rule), Err)
    };
    entries.into_iter().map(compile).collect()
}

/// Everything that is wrong with the entries of a node, apart from their expressions.
pub fn entry_faults(schema: &Value, path: &str, has_field: &dyn Fn(&str) -> bool) -> Vec<SchemaError> {
    entries(schema, path).iter().flat_map(|entry| entry.faults(has_field)).collect()
}

/// Everything that is wrong with the expressions of a node.
pub fn rule_faults(schema: &Value, place: &RuleContext<'_>) -> Vec<SchemaError> {
    let entries = entries(schema, place.path);
    if entries.is_empty() {
        return Vec::new();
    }
    let typed = typed(schema, place);
    let mut faults: Vec<SchemaError> = entries
        .iter()
        .filter(|entry| !entry.text("rule").trim().is_empty())
        .flat_map(|entry| match entry.compile(&typed, place) {
            Ok((_, fault)) => fault.into_iter().collect(),
            Err(fault) => entry.also(fault, &typed, place),
        })
        .collect();
    // A node without a type is an error of the node, not of every rule.
    faults.dedup_by(|one, other| one.reason == "InternalError" && one == other);
    faults
}

struct RuleEntry<'a> {
    entry: &'a Value,
    /// Its place in the schema.
    field: String,
}

impl RuleEntry<'_> {
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

    fn faults(&self, has_field: &dyn Fn(&str) -> bool) -> Vec<SchemaError> {
        let quoted = |name: &str| format!("{:?}", self.text(name));
        let (rule, message) = (self.text("rule").trim(), self.text("message"));
        let mut faults = Vec::new();
        if rule.is_empty() {
            faults.push(self.required("rule", "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            faults.push(self.invalid("message", &quoted("message"), "must be non-empty if specified"));
        } else if has_lines(message.trim()) {
            faults.push(self.invalid("message", &quoted("message"), "must not contain line breaks"));
        } else if has_lines(rule) && message.trim().is_empty() {
            faults.push(self.required("message", "message must be specified if rule contains line breaks"));
        }
        let expression = self.text("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            faults.push(self.required("messageExpression", "messageExpression must be non-empty if specified"));
        }
        if let Some(reason) = self.entry["reason"].as_str().filter(|reason| !REASONS.contains(reason)) {
            let known: Vec<String> = REASONS.iter().map(|known| format!("{known:?}")).collect();
            faults.push(SchemaError {
                field: format!("{}.reason", self.field),
                message: format!("Unsupported value: {reason:?}: supported values: {}", known.join(", ")),
                reason: "FieldValueNotSupported",
            });
        }
        let path = self.text("fieldPath");
        for (wrong, detail) in [
            (!path.is_empty() && path.trim().is_empty(), "must be non-empty if specified"),
            (has_lines(path), "must not contain line breaks"),
            (!path.is_empty() && !has_field(path), "must be a valid path"),
        ] {
            if wrong {
                faults.push(self.invalid("fieldPath", &quoted("fieldPath"), detail));
            }
        }
        faults
    }

    /// The compiled rule, or what is wrong with it at this place.
    fn compile(
        &self,
        typed: &carrick_cel::Schema,
        place: &RuleContext<'_>,
    ) -> Result<(Rule, Option<SchemaError>), SchemaError> {
        let rule = Rule::compile_typed(self.entry, typed).map_err(|error| self.refusal(&error))?;
        let fault = if rule.uses_old_self() {
            place.uncorrelated.map(|list| {
                let detail =
                    format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
                self.invalid("rule", &format!("{:?}", self.text("rule")), &detail)
            })
        } else {
            self.useless_option()
        };
        Ok((rule, fault))
    }

    /// An error, plus any misuse of `oldSelf`: a rule that cannot be parsed does not use it.
    fn also(&self, fault: SchemaError, typed: &carrick_cel::Schema, place: &RuleContext<'_>) -> Vec<SchemaError> {
        let second = if fault.field.ends_with(".messageExpression") {
            let mut entry = self.entry.clone();
            entry["messageExpression"] = Value::Null;
            let entry = RuleEntry { entry: &entry, field: self.field.clone() };
            entry.compile(typed, place).ok().and_then(|(_, fault)| fault)
        } else if fault.reason == "InternalError" {
            None
        } else {
            self.useless_option()
        };
        std::iter::once(fault).chain(second).collect()
    }

    fn useless_option(&self) -> Option<SchemaError> {
        let set = self.entry.get("optionalOldSelf").filter(|set| set.is_boolean())?;
        let detail = "may not be set if oldSelf is not used in rule";
        Some(self.invalid("optionalOldSelf", &set.to_string(), detail))
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

/// The reasons that a rule may specify.
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

fn has_lines(text: &str) -> bool {
    text.contains(['\n', '\r'])
}
