//! Numbers.

use super::{
    cast::{float, int},
    decimal::Decimal,
};
use crate::{
    fmt,
    functions::{
        Args, Function,
        Type::{Any, Float, Int, Str},
    },
    heap::{Heap, Outcome},
    value::{Elem, Value},
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("atoi", &[Str], |_, args| Ok(Value::Int(args.str(0)?.text().parse().unwrap_or(0)))),
    Function::new("int", &[Any], |_, args| Ok(Value::Int(int(args.any(0)?)))),
    Function::new("int64", &[Any], |_, args| Ok(Value::Int64(int(args.any(0)?)))),
    Function::new("float64", &[Any], |_, args| Ok(Value::Float(float(args.any(0)?)))),
    Function::new("toDecimal", &[Any], to_decimal),
    Function::variadic("add", &[], Any, |_, args| Ok(fold(args, 0, i64::wrapping_add))),
    Function::new("add1", &[Any], |_, args| Ok(Value::Int64(int(args.any(0)?).wrapping_add(1)))),
    Function::new("sub", &[Any, Any], |_, args| Ok(Value::Int64(int(args.any(0)?).wrapping_sub(int(args.any(1)?))))),
    Function::variadic("mul", &[Any], Any, |_, args| Ok(fold(args, 1, i64::wrapping_mul))),
    Function::new("div", &[Any, Any], |_, args| divide(args, i64::wrapping_div)),
    Function::new("mod", &[Any, Any], |_, args| divide(args, i64::wrapping_rem)),
    Function::variadic("max", &[Any], Any, |_, args| Ok(fold(args, i64::MIN, i64::max))),
    Function::variadic("biggest", &[Any], Any, |_, args| Ok(fold(args, i64::MIN, i64::max))),
    Function::variadic("min", &[Any], Any, |_, args| Ok(fold(args, i64::MAX, i64::min))),
    Function::variadic("maxf", &[Any], Any, |_, args| Ok(fold_float(args, f64::NEG_INFINITY, f64::max))),
    Function::variadic("minf", &[Any], Any, |_, args| Ok(fold_float(args, f64::INFINITY, f64::min))),
    Function::new("add1f", &[Any], |heap, args| decimals(heap, &[args.any(0)?.clone(), Value::Int(1)], add)),
    Function::variadic("addf", &[], Any, |heap, args| {
        let zero = [Value::Float(0.0)];
        decimals(heap, &[&zero, args.all()].concat(), add)
    }),
    Function::variadic("subf", &[Any], Any, |heap, args| decimals(heap, args.all(), |a, b| Some(a.sub(b)))),
    Function::variadic("mulf", &[Any], Any, |heap, args| decimals(heap, args.all(), |a, b| Some(a.mul(b)))),
    Function::variadic("divf", &[Any], Any, |heap, args| decimals(heap, args.all(), Decimal::div)),
    Function::new("floor", &[Any], |_, args| Ok(Value::Float(float(args.any(0)?).floor()))),
    Function::new("ceil", &[Any], |_, args| Ok(Value::Float(float(args.any(0)?).ceil()))),
    Function::variadic("round", &[Any, Int], Float, round),
    Function::new("until", &[Int], |heap, args| {
        let count = args.int(0)?;
        let numbers = steps(heap, 0, count, if count < 0 { -1 } else { 1 })?;
        int_list(heap, numbers)
    }),
    Function::new("untilStep", &[Int, Int, Int], |heap, args| {
        let numbers = steps(heap, args.int(0)?, args.int(1)?, args.int(2)?)?;
        int_list(heap, numbers)
    }),
    Function::variadic("seq", &[], Int, seq),
];

fn fold(args: Args<'_>, start: i64, operation: impl Fn(i64, i64) -> i64) -> Value {
    Value::Int64(args.all().iter().map(int).fold(start, operation))
}

/// In Go, NaN wins.
fn fold_float(args: Args<'_>, start: f64, operation: impl Fn(f64, f64) -> f64) -> Value {
    let numbers = args.all().iter().map(float);
    Value::Float(numbers.fold(start, |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { operation(a, b) }))
}

fn divide(args: Args<'_>, operation: impl Fn(i64, i64) -> i64) -> Outcome<Value> {
    match int(args.any(1)?) {
        0 => Err("integer divide by zero".into()),
        divisor => Ok(Value::Int64(operation(int(args.any(0)?), divisor))),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "one shape for all operations")]
fn add(a: &Decimal, b: &Decimal) -> Option<Decimal> {
    Some(a.add(b))
}

fn decimals(
    heap: &Heap,
    values: &[Value],
    operation: impl Fn(&Decimal, &Decimal) -> Option<Decimal>,
) -> Outcome<Value> {
    let mut numbers = values.iter().map(|value| {
        Decimal::from_float(float(value)).ok_or_else(|| "infinities and NaN have no decimal form".to_owned())
    });
    let Some(first) = numbers.next() else { return Ok(Value::Float(0.0)) };
    let mut result = first?;
    for number in numbers {
        let number = number?;
        heap.step(1 + (result.size() + number.size()) / 8)?;
        result = operation(&result, &number).ok_or("decimal division by 0")?;
    }
    Ok(Value::Float(result.to_float()))
}

fn round(_: &Heap, args: Args<'_>) -> Outcome<Value> {
    let threshold = if args.all().len() > 2 { args.float(2)? } else { 0.5 };
    let places = i32::try_from(args.int(1)?).map_err(|_| "too many places".to_owned())?;
    let power = 10f64.powi(places);
    let scaled = float(args.any(0)?) * power;
    let rounded = if scaled.fract() >= threshold { scaled.ceil() } else { scaled.floor() };
    Ok(Value::Float(rounded / power))
}

/// Reads octal digits.
fn to_decimal(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let text = fmt::to_str(heap, args.any(0)?)?;
    Ok(Value::Int64(i64::from_str_radix(&text.text(), 8).unwrap_or(0)))
}

/// The numbers from one on, before another one.
fn steps(heap: &Heap, start: i64, end: i64, step: i64) -> Outcome<Vec<i64>> {
    let mut numbers = Vec::new();
    if end < start && step >= 0 || end >= start && step <= 0 {
        return Ok(numbers);
    }
    let mut number = start;
    while if step > 0 { number < end } else { number > end } {
        heap.step(1)?;
        numbers.push(number);
        match number.checked_add(step) {
            Some(next) => number = next,
            None => break,
        }
    }
    Ok(numbers)
}

fn int_list(heap: &Heap, numbers: Vec<i64>) -> Outcome<Value> {
    heap.list(Elem::Int, numbers.into_iter().map(Value::Int).collect())
}

fn seq(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let (start, end, step) = match args.all().len() {
        1 => (1, args.int(0)?, None),
        2 => (args.int(0)?, args.int(1)?, None),
        3 => (args.int(0)?, args.int(2)?, Some(args.int(1)?)),
        _ => return Ok("".into()),
    };
    let direction = if end < start { -1 } else { 1 };
    if direction < 0 && step.is_some_and(|step| step > 0) {
        return Ok("".into());
    }
    let numbers = steps(heap, start, end.saturating_add(direction), step.unwrap_or(direction))?;
    let text: Vec<String> = numbers.iter().map(i64::to_string).collect();
    heap.str(text.join(" "))
}
