//! An API that a platform exports: read from there, with first steps that lead from it to a kind of the service cluster.

use std::str::FromStr;

use anyhow::{Context, bail, ensure};
use carrick_client::{Resource, Server};
use carrick_kcp::apis::v1alpha2::ApiExport;
use carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use carrick_syncagent::api::Implements;
use carrick_syncagent::rules::implements::origin;
use serde_json::{Value, json};

use super::sample::sample;

/// An API of a platform: `<path>:<export>`, and `/<plural>.<group>` if the export has several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiReference {
    /// Workspace of the export.
    path: String,
    /// Its name.
    export: String,
    /// The resource; the only one if none.
    resource: Option<String>,
}

impl FromStr for ApiReference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (place, resource) = match text.split_once('/') {
            Some((place, resource)) => (place, Some(resource)),
            None => (text, None),
        };
        let named = place
            .rsplit_once(':')
            .filter(|(path, export)| carrick_kcp::path::check(path).is_ok() && *path != "*" && !export.is_empty());
        match named {
            Some((path, export)) if resource.is_none_or(|name| name.contains('.')) => {
                Ok(Self { path: path.to_owned(), export: export.to_owned(), resource: resource.map(str::to_owned) })
            }
            _ => Err("write it as <path>:<export>, such as root:platform:certificates, and add /<plural>.<group> if \
                      the export has several kinds"
                .to_owned()),
        }
    }
}

impl ApiReference {
    /// As it was written.
    fn shown(&self) -> String {
        format!("APIExport {} in workspace {}", self.export, self.path)
    }

    /// What the export says now.
    pub async fn read(&self, kcp: &Server) -> anyhow::Result<ExportedApis> {
        let client = kcp.at_path(&format!("/clusters/{}", self.path));
        let hint = "your login there needs the verb get for apiexports and apiresourceschemas";
        let export: Option<ApiExport> =
            client.get_newest(&self.export).await.with_context(|| format!("cannot read {}; {hint}", self.shown()))?;
        let export = export.with_context(|| format!("there is no {}", self.shown()))?;
        let schemas = Resource::from(API_RESOURCE_SCHEMA);
        let mut found = Vec::new();
        for name in export.schemas() {
            let schema = client.get(&schemas, None, name).await;
            let schema =
                schema.with_context(|| format!("cannot read APIResourceSchema {name} of {}; {hint}", self.shown()))?;
            found
                .extend(schema.as_ref().and_then(origin::read).map(|api| origin::noted(api, &self.path, &self.export)));
        }
        Ok(ExportedApis { reference: self.clone(), found })
    }
}

/// The APIs of an export.
pub struct ExportedApis {
    reference: ApiReference,
    found: Vec<Implements>,
}

impl ExportedApis {
    /// The API that is meant: by its name, or because it is the only one.
    pub fn one(&self, name: Option<&str>) -> anyhow::Result<&Implements> {
        let place = self.reference.shown();
        let names: Vec<&str> = self.found.iter().map(|api| api.resource.as_str()).collect();
        ensure!(!names.is_empty(), "{place} exports nothing yet");
        let wanted = name.or(self.reference.resource.as_deref());
        match (wanted, self.found.as_slice()) {
            (None, [one]) => Ok(one),
            (None, _) => bail!("{place} has several kinds; add one of them to --implements: /{}", names.join(", /")),
            (Some(wanted), all) => {
                let found = all.iter().find(|api| api.resource == wanted);
                found.with_context(|| format!("{place} has no {wanted} but {}", names.join(", ")))
            }
        }
    }

    /// Writes what the export says into PublishedResources that implement it; their steps stay.
    pub fn fill(&self, published: &mut [Value]) -> anyhow::Result<()> {
        let mut filled = 0;
        for object in published.iter_mut().filter(|object| object["spec"]["implements"].is_object()) {
            let implements = &mut object["spec"]["implements"];
            let name = implements["resource"].as_str().map(str::to_owned);
            let Some(fields) = implements.as_object_mut() else { continue };
            let definition = written(self.one(name.as_deref())?)?;
            for field in ["resource", "kind", "singular", "shortNames", "categories", "scope", "versions", "from"] {
                match definition.get(field) {
                    Some(value) => fields.insert(field.to_owned(), value.clone()),
                    None => fields.remove(field),
                };
            }
            filled += 1;
        }
        ensure!(
            filled > 0,
            "no PublishedResource says how to implement {}; write the steps into spec.implements.spec of one, or have \
             carrick init --implements write a first one",
            self.reference.shown()
        );
        Ok(())
    }
}

/// An API as it is written down: without fields that say nothing.
pub fn written(api: &Implements) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(api)?;
    if let Some(fields) = value.as_object_mut() {
        let says_nothing =
            |value: &Value| value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty);
        fields.retain(|_, value| !says_nothing(value));
    }
    Ok(value)
}

/// First steps that lead from an API to a kind: what has the same name and type is taken over.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    /// Steps for the copy, each with what a reader should know about it.
    pub spec: Vec<(Value, Option<String>)>,
    /// Steps for the status.
    pub status: Vec<Value>,
    /// Fields of orders that no step reads.
    pub unread: Vec<String>,
}

impl Draft {
    /// Of the schema of an API, and of that of a kind of the service cluster.
    pub fn new(api: &Value, local: &Value, kind: &str) -> Self {
        let mut draft = Self::default();
        let spec = |schema: &Value| schema["properties"]["spec"].clone();
        draft.lead(&spec(api), &spec(local), "spec", kind);
        let status =
            |schema: &Value| schema["properties"]["status"]["properties"].as_object().cloned().unwrap_or_default();
        let (wanted, given) = (status(api), status(local));
        // The report writes these.
        let reported = ["status", "conditions", "relatedResources"];
        for (name, schema) in wanted.iter().filter(|(name, _)| !reported.contains(&name.as_str())) {
            if given.get(name).is_some_and(|local| is_alike(schema, local)) {
                let path = format!("status.{name}");
                draft.status.push(json!({ "move": { "from": path, "to": path } }));
            }
        }
        draft
    }

    /// An API with these steps.
    pub fn completed(&self, api: &Implements) -> Result<Implements, serde_json::Error> {
        let spec = self.spec.iter().map(|(step, _)| step.clone()).collect();
        let steps = |steps: Vec<Value>| serde_json::from_value(Value::Array(steps));
        Ok(Implements { spec: steps(spec)?, status: steps(self.status.clone())?, ..api.clone() })
    }

    /// Fields that a step sets to a value that nobody has chosen.
    pub fn guessed(&self) -> impl Iterator<Item = &str> {
        let guesses = self.spec.iter().filter(|(_, comment)| comment.is_some());
        guesses.filter_map(|(step, _)| step["cel"]["path"].as_str())
    }

    /// Leads fields of one object to those of another.
    fn lead(&mut self, api: &Value, local: &Value, path: &str, kind: &str) {
        let fields = |schema: &Value| schema["properties"].as_object().cloned().unwrap_or_default();
        let (wanted, given) = (fields(local), fields(api));
        for (name, schema) in &given {
            let path = format!("{path}.{name}");
            match wanted.get(name) {
                Some(local) if has_fields(schema) && has_fields(local) => self.lead(schema, local, &path, kind),
                Some(local) if is_alike(schema, local) => {
                    self.spec.push((json!({ "move": { "from": path, "to": path } }), None));
                }
                _ => self.unread.push(path),
            }
        }
        for name in local["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            // Servers accept required fields of which a schema says nothing else.
            let (schema, known) = (wanted.get(name).unwrap_or(&Value::Null), given.get(name));
            let leads = known.is_some_and(|api| (has_fields(api) && has_fields(schema)) || is_alike(api, schema));
            if !leads {
                let expression = sample(schema).to_string();
                let step = json!({ "cel": { "path": format!("{path}.{name}"), "expression": expression } });
                self.spec.push((step, Some(format!("{kind} requires it"))));
            }
        }
    }
}

fn has_fields(schema: &Value) -> bool {
    schema["properties"].as_object().is_some_and(|fields| !fields.is_empty())
}

/// Whether values of one are at least of the type of the other; the proof says whether all of them fit.
fn is_alike(one: &Value, other: &Value) -> bool {
    let of =
        |schema: &Value| (schema["type"].clone(), schema["x-kubernetes-int-or-string"] == true, has_fields(schema));
    of(one) == of(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(text: &str) -> Result<ApiReference, String> {
        text.parse()
    }

    #[test]
    fn a_reference_is_a_path_an_export_and_perhaps_a_resource() {
        let one = reference("root:platform:certificates").unwrap();
        assert_eq!((one.path.as_str(), one.export.as_str(), one.resource), ("root:platform", "certificates", None));
        let named = reference("root:platform:example.com/certificates.example.com").unwrap();
        assert_eq!(
            (named.export.as_str(), named.resource.as_deref()),
            ("example.com", Some("certificates.example.com"))
        );
        for bad in ["certificates", "root:platform:", ":x", "root:p:x/certificates", "Root:p:x", "*:x"] {
            assert!(reference(bad).unwrap_err().contains("<path>:<export>"), "{bad}");
        }
    }

    fn api(resource: &str) -> Implements {
        let version = json!({ "name": "v1", "schema": { "openAPIV3Schema": { "type": "object" } } });
        let api = json!({ "resource": resource, "kind": "Certificate", "versions": [version] });
        origin::noted(serde_json::from_value(api).unwrap(), "root:p", "e")
    }

    fn exported(names: &[&str]) -> ExportedApis {
        ExportedApis { reference: reference("root:p:e").unwrap(), found: names.iter().map(|name| api(name)).collect() }
    }

    #[test]
    fn an_api_is_chosen_by_its_name_unless_it_is_the_only_one() {
        assert_eq!(exported(&["a.x"]).one(None).unwrap().resource, "a.x");
        let two = exported(&["a.x", "b.x"]);
        assert_eq!(two.one(Some("b.x")).unwrap().resource, "b.x");
        let told = |answer: anyhow::Result<&Implements>| answer.unwrap_err().to_string();
        assert!(told(two.one(None)).ends_with("--implements: /a.x, /b.x"));
        assert!(told(two.one(Some("c.x"))).ends_with("has no c.x but a.x, b.x"));
        assert!(told(exported(&[]).one(None)).contains("APIExport e in workspace root:p exports nothing"));
    }

    #[test]
    fn what_the_export_says_takes_the_place_of_what_was_written_and_steps_stay() {
        let steps = json!([{ "delete": { "path": "spec.a" } }]);
        let mut published = vec![
            json!({ "spec": { "implements": { "spec": steps, "scope": "Cluster" } } }),
            json!({ "spec": { "resource": {} } }),
        ];
        exported(&["a.x"]).fill(&mut published).unwrap();
        let implements = &published[0]["spec"]["implements"];
        assert_eq!((&implements["resource"], &implements["spec"]), (&json!("a.x"), &steps));
        assert_eq!(implements.get("scope"), None, "it is namespaced");
        assert_eq!(implements["from"]["path"], "root:p");
        assert_eq!(published[1], json!({ "spec": { "resource": {} } }));
        let told = exported(&["a.x"]).fill(&mut published[1..]).unwrap_err().to_string();
        assert!(told.contains("spec.implements.spec") && told.contains("carrick init --implements"), "{told}");
    }

    #[test]
    fn first_steps_take_over_what_has_the_same_name_and_type() {
        let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer" }));
        let schema =
            |spec: Value, status: Value| json!({ "properties": { "spec": spec, "status": { "properties": status } } });
        let api = schema(
            json!({ "properties": { "fqdn": text, "days": number, "size": text,
                "owner": { "type": "object", "properties": { "name": text } } } }),
            json!({ "status": text, "url": text, "serial": number }),
        );
        let local = schema(
            json!({ "required": ["commonName", "days", "size"], "properties": { "commonName": text, "days": number, "size": number,
                "owner": { "type": "object", "required": ["mail"], "properties": { "name": text, "mail": text } } } }),
            json!({ "url": text, "serial": text, "status": text }),
        );
        let draft = Draft::new(&api, &local, "Cert");
        let moved = |path: &str| (json!({ "move": { "from": path, "to": path } }), None);
        let set = |path: &str, expression: &str| {
            (json!({ "cel": { "path": path, "expression": expression } }), Some("Cert requires it".to_owned()))
        };
        let steps = [
            moved("spec.days"),
            moved("spec.owner.name"),
            set("spec.owner.mail", "\"changeme\""),
            set("spec.commonName", "\"changeme\""),
            set("spec.size", "1"),
        ];
        assert_eq!(draft.spec, steps);
        assert_eq!(draft.guessed().collect::<Vec<_>>(), ["spec.owner.mail", "spec.commonName", "spec.size"]);
        assert_eq!(draft.status, [json!({ "move": { "from": "status.url", "to": "status.url" } })]);
        assert_eq!(draft.unread, ["spec.fqdn", "spec.size"]);
    }

    #[test]
    fn a_required_field_of_which_a_schema_says_nothing_else_is_asked_for() {
        let schema = |spec: Value| json!({ "properties": { "spec": spec } });
        let api = schema(json!({ "properties": { "size": { "type": "string" } } }));
        let local = schema(json!({ "required": ["size"], "x-kubernetes-preserve-unknown-fields": true }));
        let draft = Draft::new(&api, &local, "Cert");
        assert_eq!(
            (draft.guessed().collect::<Vec<_>>(), draft.unread.as_slice()),
            (vec!["spec.size"], &["spec.size".to_owned()][..])
        );
    }
}
