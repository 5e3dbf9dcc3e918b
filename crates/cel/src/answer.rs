//! Questions as the recorded cases ask them.

use serde_json::{Value, json};

use crate::mutation::Mutation;

/// Answers `{"expression": …, "self": …, "other": …, "value": …}`, where only the expression has to be given, with
/// `{"result": …}` or `{"error": …}`; errors of compiling have their `line` and `column` beside them.
pub fn answer(question: &Value) -> Value {
    let Some(expression) = question.get("expression").and_then(Value::as_str) else {
        return json!({"error": "the question lacks an expression"});
    };
    let given = |name: &str| question.get(name).unwrap_or(&Value::Null);
    match Mutation::compile(expression) {
        Err(error) => {
            let mut answer = json!({"error": error.to_string()});
            if let Some(position) = error.position() {
                answer["line"] = position.line.into();
                answer["column"] = position.column.into();
            }
            answer
        }
        Ok(mutation) => match mutation.eval(given("value"), given("self"), given("other")) {
            Ok(result) => json!({"result": result}),
            Err(error) => json!({"error": error.to_string()}),
        },
    }
}
