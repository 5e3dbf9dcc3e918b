//! What the targets for templates share.

use std::sync::LazyLock;

use carrick_template::{CompileError, Position, RenderError, Template, limits};
use serde_json::{Map, Value, json};

static DATA: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let data = json!({
        "Object": {
            "metadata": {"name": "objname", "namespace": "ns", "labels": {"app": "web", "tier": "db"}},
            "spec": {
                "foo": "bar", "replicas": 3, "big": 9_007_199_254_740_993_i64, "ratio": 1.5, "enabled": true, "nothing": null,
                "list": ["a", "b", "c"], "mixed": [1, "a", null, 1.5, {"k": "v"}, [1]], "html": "<b>&\"'</b>", "uni": "héllo 日本",
            },
        },
        "LocalObject": {"spec": {"username": "alice", "n": 42, "o": {"k": "v"}, "arr": [1, 2]}},
        "RemoteObject": null,
        "ClusterName": "c1",
    });
    data.as_object().cloned().unwrap_or_default()
});

/// A function that takes milliseconds by design, and is bounded by its cost, keeps the fuzzer from getting anywhere.
pub fn is_slow(text: &str) -> bool {
    text.contains("derivePassword")
}

/// Whether two renderings may differ.
pub fn is_random(text: &str) -> bool {
    ["rand", "shuffle", "uuid", "now", "date", "Date", "ago", "duration"].iter().any(|name| text.contains(name))
}

/// Looks at the error, if there is one.
pub fn checked(text: &str, compiled: Result<Template, CompileError>) -> Option<Template> {
    match compiled {
        Ok(template) => Some(template),
        Err(error) => {
            inside(text, error.position(), &error);
            None
        }
    }
}

/// Renders with a struct, with a map and as a mutation at the root; returns the output for the map.
pub fn render(text: &str, template: &Template) -> Result<String, RenderError> {
    let get = |json: &Value, path: &str| json.get(path).cloned();
    let value = DATA["LocalObject"].pointer("/spec/o");
    let outcome = template.render_value(&Value::Object(DATA.clone()));
    for outcome in [template.render(&DATA), template.render_mutation(value, get, &DATA), outcome.clone()] {
        match outcome {
            // A byte that is not UTF-8 becomes a character of three.
            Ok(output) => assert!(output.len() <= 3 * limits::MAX_OUTPUT),
            Err(error) => inside(text, error.position(), &error),
        }
    }
    outcome
}

fn inside(text: &str, position: Option<Position>, error: &dyn std::fmt::Display) {
    if let Some(Position { offset, length, .. }) = position {
        assert!(text.get(offset..offset + length).is_some(), "{error} is not inside {text:?}");
    }
}
