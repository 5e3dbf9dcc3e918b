//! Named formats: `format.dns1123Label().validate(text)` gives what is wrong with the text.

use crate::error::EvalError;
use crate::signature::Row;
use crate::value::format::FORMATS;
use crate::value::{Outcome, Value, overload};

pub(crate) const ROWS: &[Row] = &[
    ("format.named(string): optional(Format)", |arguments, _| match arguments {
        [Value::String(name)] => {
            Ok(Value::optional(FORMATS.iter().find(|known| known.name == &**name).map(Value::Format)))
        }
        _ => Err(overload("format.named", arguments)),
    }),
    ("Format.validate(string): optional(list(string))", |arguments, budget| match arguments {
        [Value::Format(format), Value::String(text)] => {
            budget.bytes(text.len())?;
            let faults: Vec<Value> = (format.check)(text).into_iter().map(Value::string).collect();
            Ok(Value::optional((!faults.is_empty()).then(|| Value::list(faults))))
        }
        _ => Err(overload("validate", arguments)),
    }),
    ("format.dns1123Label(): Format", |_, _| named("dns1123Label")),
    ("format.dns1123Subdomain(): Format", |_, _| named("dns1123Subdomain")),
    ("format.dns1035Label(): Format", |_, _| named("dns1035Label")),
    ("format.qualifiedName(): Format", |_, _| named("qualifiedName")),
    ("format.dns1123LabelPrefix(): Format", |_, _| named("dns1123LabelPrefix")),
    ("format.dns1123SubdomainPrefix(): Format", |_, _| named("dns1123SubdomainPrefix")),
    ("format.dns1035LabelPrefix(): Format", |_, _| named("dns1035LabelPrefix")),
    ("format.labelValue(): Format", |_, _| named("labelValue")),
    ("format.uri(): Format", |_, _| named("uri")),
    ("format.uuid(): Format", |_, _| named("uuid")),
    ("format.byte(): Format", |_, _| named("byte")),
    ("format.date(): Format", |_, _| named("date")),
    ("format.datetime(): Format", |_, _| named("datetime")),
];

fn named(name: &str) -> Outcome {
    let found = FORMATS.iter().find(|known| known.name == name);
    found.map(Value::Format).ok_or(EvalError::Other("no such format"))
}
