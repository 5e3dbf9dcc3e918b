//! What holds for any path, document and number.

use carrick_json::go;
use carrick_json::path::{self, text};
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::Value;

const DOCUMENT: &str = r#"{"a": {"b": {"c": 1.50}}, "b": "text", "c": [[1], {"a": 12345678901234567890}], "d" : null}"#;

/// Numbers in every way of writing them.
fn number() -> impl Strategy<Value = String> {
    "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?"
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        number(),
        any::<String>().prop_map(|text| serde_json::to_string(&text).expect("text encodes")),
        Just("true".to_owned()),
        Just("null".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(" ,"))),
            prop::collection::vec(("[a-d]", inner), 0..4).prop_map(|members| {
                let members: Vec<String> = members.iter().map(|(key, value)| format!("\"{key}\" : {value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// Objects without null and without duplicate keys.
fn object() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![number(), Just("true".to_owned()), "[ab]?".prop_map(|text| format!("\"{text}\""))];
    let value = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(","))),
            members(inner),
        ]
    });
    members(value)
}

fn members(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::collection::btree_map("[a-d]", value, 0..5).prop_map(|members| {
        let members: Vec<String> = members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_set_is_read_back_as_it_is_written(parts in prop::collection::vec("[a-c]{1,2}|[0-3]", 1..5), new in json()) {
        let wanted = parts.join(".");
        if let Ok(changed) = text::set(DOCUMENT, &wanted, &new) {
            let found = text::get(&changed, &wanted);
            prop_assert_eq!(found.raw(), new.trim());
        }
    }

    #[test]
    fn what_was_deleted_is_gone(parts in prop::collection::vec("[a-c]|[0-1]", 1..4)) {
        let wanted = parts.join(".");
        let deleted = text::delete(DOCUMENT, &wanted).expect("plain paths delete");
        let (before, after) = (text::get(DOCUMENT, &wanted), text::get(&deleted, &wanted));
        prop_assert!(!after.exists() || after.raw() != before.raw());
        prop_assert!(serde_json::from_str::<Value>(&deleted).is_ok());
        prop_assert_eq!(before.exists(), deleted != DOCUMENT);
    }

    #[test]
    fn setting_a_new_key_and_deleting_it_changes_nothing(document in object(), new in json()) {
        let changed = text::set(&document, "new", &new).expect("objects take any key");
        prop_assert_eq!(text::delete(&changed, "new").expect("plain paths delete"), document);
    }

    #[test]
    fn numbers_survive_any_write(literal in number(), wanted in "[a-c](\\.[a-c0-2*#]){0,3}") {
        let document = format!(r#"{{"keep":[{literal}],"a":{{"b":[1,2]}}}}"#);
        let changed = text::set(&document, &wanted, "\"x\"").unwrap_or_else(|_| document.clone());
        let kept = text::get(&changed, "keep.0");
        prop_assert_eq!(kept.raw(), &literal);
    }

    #[test]
    fn documents_stay_json_whatever_is_written(wanted in r"[abc.|#@*?0-2:\\-]{1,12}", document in json()) {
        if let Ok(changed) = text::set(&document, &wanted, "[0]") {
            prop_assert!(serde_json::from_str::<IgnoredAny>(&changed).is_ok(), "{wanted} makes {changed}");
        }
        if let Ok(changed) = text::delete(&document, &wanted) {
            prop_assert!(serde_json::from_str::<IgnoredAny>(&changed).is_ok(), "{wanted} makes {changed}");
        }
    }

    #[test]
    fn no_path_and_no_text_panics(
        wanted in r#"[ab.|#()\[\]{}@:!*?\\"'=<>%~,0-9é-]{0,24}|(@(keys|pretty|flatten|join|dig:|group|tostr|fromstr)[.|]){1,4}"#,
        document in prop_oneof![Just(DOCUMENT.to_owned()), json(), any::<String>(), r#"[{}\[\]":,a1n\\ ]{0,24}"#],
    ) {
        text::get(&document, &wanted);
        let _ = text::set(&document, &wanted, "1");
        let _ = text::delete(&document, &wanted);
        if let Ok(mut value) = serde_json::from_str::<Value>(&document) {
            path::get(&value, &wanted);
            let _ = path::set(&mut value, &wanted, Value::Null);
            let _ = path::delete(&mut value, &wanted);
        }
    }

    #[test]
    fn encoded_values_read_back(document in json()) {
        if let Ok(value) = serde_json::from_str::<Value>(&document) {
            let encoded = go::to_string(&value).expect("values encode");
            prop_assert_eq!(go::to_string(&serde_json::from_str::<Value>(&encoded).expect("it is JSON")).expect("values encode"), encoded);
        }
    }
}
