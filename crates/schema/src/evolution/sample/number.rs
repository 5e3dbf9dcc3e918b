//! Numbers at the borders of ranges.

use serde_json::{Value, json};

use crate::evolution::node::Kind;

/// Numbers that a node may allow, with those at the borders of another.
pub(super) fn candidates(schema: &Value, other: &Value) -> Vec<Value> {
    let whole = matches!(Kind::of(schema), Kind::Integer | Kind::IntOrString);
    let mut numbers: Vec<f64> = vec![1.0, 0.0];
    for node in [schema, other] {
        for key in ["minimum", "maximum"] {
            if let Some(end) = node[key].as_f64() {
                numbers.extend([end, end + 1.0, end - 1.0, end + 0.5, end - 0.5]);
            }
        }
        if let Some(step) = node["multipleOf"].as_f64() {
            numbers.extend([step, step * 2.0, step * 3.0, step * 5.0, step * 7.0, -step]);
        }
    }
    numbers.extend([2.0, 3.0, 5.0, 7.0, -1.0, 10.0, 100.0, 1000.0, -1000.0, 3_000_000_000.0]);
    if !whole {
        numbers.extend([0.5, 1.5, 2.25, -0.25]);
    }
    #[allow(clippy::cast_possible_truncation, reason = "only those that fit are cast")]
    let value = |number: f64| {
        let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
        if is_whole { json!(number as i64) } else { json!(number) }
    };
    numbers.into_iter().filter(|number| !whole || number.fract() == 0.0).map(value).collect()
}
