//! Go's `fmt` package: printing of values.

mod directive;
mod printer;
mod verb;

use crate::{
    heap::{Heap, Outcome},
    value::{Str, Value},
};
use printer::Printer;

/// `fmt.Sprint`: a space goes between two operands when neither is a string.
pub(crate) fn sprint(heap: &Heap, values: &[Value]) -> Outcome<Str> {
    let mut printer = Printer::new(heap);
    let mut after_string = true;
    for value in values {
        let string = matches!(value, Value::Str(_));
        if !string && !after_string {
            printer.out.push(b" ")?;
        }
        printer.value(value, 'v')?;
        after_string = string;
    }
    printer.out.finish()
}

/// `fmt.Sprintln`.
pub(crate) fn sprintln(heap: &Heap, values: &[Value]) -> Outcome<Str> {
    let mut printer = Printer::new(heap);
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            printer.out.push(b" ")?;
        }
        printer.value(value, 'v')?;
    }
    printer.out.push(b"\n")?;
    printer.out.finish()
}

/// `fmt.Sprintf`.
pub(crate) fn sprintf(heap: &Heap, format: &[u8], values: &[Value]) -> Outcome<Str> {
    let mut printer = Printer::new(heap);
    directive::print(&mut printer, format, values)?;
    printer.out.finish()
}

/// How sprig turns a value into a string.
pub(crate) fn to_str(heap: &Heap, value: &Value) -> Outcome<Str> {
    match value {
        Value::Str(text) => Ok(text.clone()),
        other => sprint(heap, std::slice::from_ref(other)),
    }
}
