//! What the owner of an API has written, read from the APIResourceSchema that it exports.

use serde_json::{Value, json};
use sha1::{Digest, Sha1};

use crate::api::{ApiOrigin, Implements, PublishedVersion};
use crate::rules::hex;

/// Length of a digest.
const DIGITS: usize = 16;

/// The API that an APIResourceSchema defines, word for word, without any steps; none if it defines none.
pub fn read(schema: &Value) -> Option<Implements> {
    let (spec, text) = (&schema["spec"], |value: &Value| value.as_str().unwrap_or_default().to_owned());
    let names = &spec["names"];
    let (plural, group, kind) = (text(&names["plural"]), text(&spec["group"]), text(&names["kind"]));
    let list = |value: &Value| value.as_array().into_iter().flatten().map(text).collect();
    let versions: Vec<_> = spec["versions"].as_array().into_iter().flatten().map(version).collect();
    let whole = ![&plural, &group, &kind].iter().any(|part| part.is_empty()) && !versions.is_empty();
    whole.then(|| Implements {
        resource: format!("{plural}.{group}"),
        singular: Some(text(&names["singular"])).filter(|name| *name != kind.to_lowercase()).unwrap_or_default(),
        kind,
        short_names: list(&names["shortNames"]),
        categories: list(&names["categories"]),
        scope: Some(text(&spec["scope"])).filter(|scope| scope != "Namespaced").unwrap_or_default(),
        versions,
        ..Implements::default()
    })
}

/// A version as CRDs spell it. That it is served and has a status need not be said.
fn version(version: &Value) -> PublishedVersion {
    let mut version = version.clone();
    if let Some(fields) = version.as_object_mut() {
        let schema = fields.remove("schema").unwrap_or_default();
        fields.insert("schema".to_owned(), json!({ "openAPIV3Schema": schema }));
        fields.retain(|name, value| match name.as_str() {
            "served" => *value == false,
            "subresources" => value.get("scale").is_some(),
            _ => !value.is_null(),
        });
    }
    PublishedVersion(version)
}

/// What tells one state of an API from another. Steps do not count, nor where it was taken from.
pub fn digest(api: &Implements) -> String {
    let versions: Vec<&Value> = api.versions.iter().map(|version| &version.0).collect();
    let text = json!([api.resource, api.kind, api.singular, api.short_names, api.categories, api.scope, versions]);
    hex(&Sha1::digest(text.to_string().as_bytes()))[..DIGITS].to_owned()
}

/// The API with the note of where it was taken from.
pub fn noted(api: Implements, path: &str, export: &str) -> Implements {
    let from = ApiOrigin { path: path.to_owned(), export: export.to_owned(), digest: digest(&api) };
    Implements { from: Some(from), ..api }
}

/// The resource that an APIResourceSchema of that name is for: names are `<prefix>.<plural>.<group>`.
pub fn resource_of(schema: &str) -> &str {
    schema.split_once('.').map_or("", |(_, resource)| resource)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::implements::publish;
    use crate::rules::implements::tests::local;
    use crate::rules::schema;
    use crate::rules::tests::published;

    /// As kcp stores it.
    fn schema() -> Value {
        json!({ "metadata": { "name": "v1.certificates.platform.example" }, "spec": {
            "group": "platform.example", "scope": "Namespaced",
            "names": { "plural": "certificates", "singular": "certificate", "kind": "Certificate", "listKind": "CertificateList",
                "shortNames": ["crt"] },
            "versions": [{ "name": "v1alpha1", "served": true, "storage": true, "subresources": { "status": {} },
                "additionalPrinterColumns": [{ "name": "Name", "type": "string", "jsonPath": ".spec.fqdn" }],
                "schema": { "type": "object", "properties": { "spec": { "type": "object", "required": ["fqdn"], "properties": {
                    "fqdn": { "type": "string", "description": "A name." } } } } } }],
        } })
    }

    #[test]
    fn what_is_read_is_published_word_for_word() {
        let api = read(&schema()).unwrap();
        assert_eq!(
            (api.resource.as_str(), api.singular.as_str(), api.scope.as_str()),
            ("certificates.platform.example", "", "")
        );
        let spec = json!({ "resource": { "apiGroup": "ca.example", "kind": "Cert" }, "implements": api });
        let made = publish(&published(spec), &api, &local()).unwrap();
        let made = serde_json::to_value(schema::build(&made, "agent").unwrap()).unwrap();
        for field in ["group", "names", "scope", "versions"] {
            assert_eq!(made["spec"][field], schema()["spec"][field], "{field}");
        }
    }

    #[test]
    fn a_digest_follows_the_api_and_nothing_else() {
        let (api, same) = (read(&schema()).unwrap(), noted(read(&schema()).unwrap(), "root:platform", "certificates"));
        assert_eq!(same.from.as_ref().unwrap().digest, digest(&api));
        assert_eq!(digest(&same), digest(&api));
        let steps = serde_json::from_value(json!([{ "delete": { "path": "spec.a" } }])).unwrap();
        assert_eq!(digest(&Implements { spec: steps, ..api.clone() }), digest(&api));
        let mut other = schema();
        other["metadata"]["name"] = json!("v2.certificates.platform.example");
        assert_eq!(digest(&read(&other).unwrap()), digest(&api), "a name of a schema says nothing");
        other["spec"]["versions"][0]["schema"]["properties"]["spec"]["properties"]["san"] = json!({ "type": "string" });
        assert_ne!(digest(&read(&other).unwrap()), digest(&api));
    }

    #[test]
    fn what_defines_nothing_is_no_api() {
        assert!(read(&json!({})).is_none());
        let mut empty = schema();
        empty["spec"]["versions"] = json!([]);
        assert!(read(&empty).is_none());
        assert_eq!(resource_of("v1.certificates.platform.example"), "certificates.platform.example");
        assert_eq!(resource_of("plain"), "");
    }
}
