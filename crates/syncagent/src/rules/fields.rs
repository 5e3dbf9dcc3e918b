//! Fields that rules refer to but objects cannot have: otherwise nobody would notice before the first order. Pure.
//!
//! Only closed schemas can tell, and a rule may have a reason to refer to such a field (`{{ .Object.spec.old | default "x" }}`). So this is
//! only a warning.

mod lookup;

use carrick_template::Template;

use super::crd::Crd;
use super::projection::exchanged;
use crate::api::{self, Mutation, PublishedResource, ResourceMutation, Selection};
use lookup::{FieldScope, Lookup};

/// Doubts about the fields that rules refer to, each with the field of the PublishedResource. Invalid rules are reported elsewhere.
pub fn doubts(pr: &PublishedResource, crd: &Crd) -> Vec<String> {
    let Ok(version) = exchanged(pr, crd) else { return Vec::new() };
    let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_deref());
    let in_kcp = is_namespaced_in_kcp(pr, crd.is_namespaced());
    let mut check = FieldCheck {
        lookup: Lookup::new(schema),
        kcp: FieldScope { namespaced: in_kcp },
        service: FieldScope { namespaced: crd.is_namespaced() },
        paths: pr.spec.enable_workspace_paths,
        added: added(pr.spec.mutation.as_ref()),
        found: Vec::new(),
    };
    check.naming(pr.spec.naming.as_ref());
    check.mutation(pr.spec.mutation.as_ref());
    for (at, related) in pr.spec.related.iter().enumerate() {
        let at = format!("spec.related[{at}].object");
        check.selection(&at, &related.object);
        if let Some(namespace) = &related.object.namespace {
            check.selection(&format!("{at}.namespace"), namespace);
        }
    }
    for (at, read) in pr.spec.reads.iter().enumerate() {
        let (at, object) = (format!("spec.reads[{at}].object"), read.object.as_related());
        check.selection(&at, &object);
        if let Some(namespace) = &object.namespace {
            check.selection(&format!("{at}.namespace"), namespace);
        }
    }
    check.found
}

/// Whether orders are in namespaces, given whether copies are.
pub fn is_namespaced_in_kcp(pr: &PublishedResource, local: bool) -> bool {
    if let Some(implements) = &pr.spec.implements {
        return implements.scope != "Cluster";
    }
    let projected = pr.spec.projection.as_ref().map(|projection| projection.scope.as_str()).unwrap_or_default();
    if projected.is_empty() { local } else { projected != "Cluster" }
}

/// Paths that mutations write, so that templates of names may read them.
fn added(mutation: Option<&Mutation>) -> Vec<String> {
    let steps = mutation.map(|mutation| mutation.spec.as_slice()).unwrap_or_default();
    steps.iter().filter(|step| step.delete.is_none()).map(|step| path_of(step).to_owned()).collect()
}

fn path_of(step: &ResourceMutation) -> &str {
    let paths = [
        step.delete.as_ref().map(|it| &it.path),
        step.regex.as_ref().map(|it| &it.path),
        step.template.as_ref().map(|it| &it.path),
        step.cel.as_ref().map(|it| &it.path),
    ];
    paths.into_iter().flatten().next().map(String::as_str).unwrap_or_default()
}

struct FieldCheck<'a> {
    lookup: Lookup<'a>,
    kcp: FieldScope,
    service: FieldScope,
    paths: bool,
    added: Vec<String>,
    found: Vec<String>,
}

/// What a top-level field of a template's data holds.
#[derive(Clone, Copy)]
enum TemplateRoot {
    /// An object on one side.
    Kcp,
    /// An object on the other side.
    Service,
    /// One on either side.
    Either,
    /// The path of a workspace.
    Path,
    /// Anything.
    Any,
}

impl FieldCheck<'_> {
    fn naming(&mut self, naming: Option<&api::Naming>) {
        let Some(naming) = naming else { return };
        let roots = [
            ("Object", TemplateRoot::Kcp),
            ("ClusterName", TemplateRoot::Any),
            ("ClusterPath", TemplateRoot::Path),
            ("ConsumerCluster", TemplateRoot::Any),
        ];
        for (field, text) in [("name", &naming.name), ("namespace", &naming.namespace)] {
            // Copies are named after mutation, so fields that mutations add exist.
            let added = std::mem::take(&mut self.added);
            self.template(&format!("spec.naming.{field}"), text, &roots, &added);
            self.added = added;
        }
    }

    fn mutation(&mut self, mutation: Option<&Mutation>) {
        let Some(mutation) = mutation else { return };
        for (direction, steps) in [("spec", &mutation.spec), ("status", &mutation.status)] {
            let added = std::mem::take(&mut self.added);
            for (at, step) in steps.iter().enumerate() {
                let at = format!("spec.mutation.{direction}[{at}]");
                let path = path_of(step);
                if let Some(missing) = lookup::simple(path).and_then(|path| self.lookup.missing(&path, self.kcp)) {
                    let told =
                        if step.delete.is_some() { "nothing is deleted" } else { "what is written there is dropped" };
                    self.found.push(format!("{at}: {path} cannot exist, because {missing}: {told}"));
                }
                if let Some(template) = &step.template {
                    // Which side is local depends on the direction, and both have the same fields.
                    let roots = [
                        ("Value", TemplateRoot::Any),
                        ("LocalObject", TemplateRoot::Either),
                        ("RemoteObject", TemplateRoot::Either),
                    ];
                    self.template(&at, &template.template, &roots, &added);
                }
            }
            self.added = added;
        }
    }

    fn selection(&mut self, at: &str, selection: &Selection) {
        let cluster = [("ClusterName", TemplateRoot::Any), ("ClusterPath", TemplateRoot::Path)];
        let both = [("LocalObject", TemplateRoot::Service), ("RemoteObject", TemplateRoot::Kcp)];
        if let Some(reference) = &selection.reference {
            let path = reference.path.as_str();
            if let Some(missing) =
                lookup::simple(path).and_then(|path| self.lookup.missing(&path, FieldScope::either()))
            {
                self.found
                    .push(format!("{at}.reference.path: {path} cannot exist, because {missing}: nothing is found"));
            }
        } else if let Some(selector) = &selection.selector {
            let roots = [both, cluster].concat();
            for (key, value) in &selector.match_labels {
                for text in [key, value] {
                    self.template(&format!("{at}.selector.matchLabels"), text, &roots, &[]);
                }
            }
            if let Some(template) = selector.rewrite.template.as_ref().filter(|_| selector.rewrite.regex.is_none()) {
                let roots =
                    [&roots[..], &[("Value", TemplateRoot::Any), ("RelatedObject", TemplateRoot::Any)]].concat();
                self.template(&format!("{at}.selector.rewrite.template"), &template.template, &roots, &[]);
            }
        } else if let Some(expression) = &selection.template {
            let roots = [&[("Side", TemplateRoot::Any), ("Object", TemplateRoot::Either)], &cluster[..]].concat();
            self.template(&format!("{at}.template"), &expression.template, &roots, &[]);
        }
    }

    /// Checks the fields that a template refers to.
    fn template(&mut self, at: &str, text: &str, roots: &[(&str, TemplateRoot)], added: &[String]) {
        // Invalid templates are reported elsewhere.
        let Some(template) = text.contains("{{").then(|| Template::compile(text).ok()).flatten() else { return };
        for field in template.fields() {
            let Some((first, rest)) = field.split_first() else { continue };
            let name = format!(".{}", field.join("."));
            let Some((_, root)) = roots.iter().find(|(root, _)| root == first) else {
                let known: Vec<String> = roots.iter().map(|(root, _)| format!(".{root}")).collect();
                self.found.push(format!("{at}: there is no {name} here; there are {}", known.join(", ")));
                continue;
            };
            let scope = match root {
                TemplateRoot::Any => continue,
                TemplateRoot::Path if self.paths => continue,
                TemplateRoot::Path => {
                    self.found.push(format!("{at}: .ClusterPath is empty; set spec.enableWorkspacePaths"));
                    continue;
                }
                TemplateRoot::Kcp => self.kcp,
                TemplateRoot::Service => self.service,
                TemplateRoot::Either => FieldScope::either(),
            };
            let path = rest.join(".");
            let is_added = |written: &String| path.starts_with(written.as_str()) || written.starts_with(&path);
            if added.iter().any(is_added) {
                continue;
            }
            if let Some(missing) = self.lookup.missing(rest, scope) {
                self.found.push(format!("{at}: {name} cannot exist, because {missing}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::rules::tests::{crontab, published};

    fn told(spec: Value) -> Vec<String> {
        doubts(&published(spec), &crontab())
    }

    #[test]
    fn fields_that_objects_have_raise_no_doubts() {
        assert_eq!(told(json!({})), Vec::<String>::new());
        let fine = json!({
            "enableWorkspacePaths": true,
            "naming": {
                "name": "{{ .Object.spec.image }}-{{ .Object.metadata.labels.tier }}-{{ .ClusterPath }}",
                "namespace": "{{ .Object.metadata.namespace }}-{{ .Object.spec.added.here }}",
            },
            "mutation": {
                "spec": [
                    {"regex": {"path": "spec.image", "replacement": "x"}},
                    {"template": {"path": "metadata.annotations.a", "template": "{{ .Value.String }}{{ .LocalObject.spec.replicas }}"}},
                    {"cel": {"path": "spec.*", "expression": "1"}},
                ],
            },
            "related": [
                {"identifier": "a", "object": {"reference": {"path": "spec.image"}, "namespace": {"template": {"template": "{{ .Side }}"}}}},
                {"identifier": "b", "object": {"selector": {"matchLabels": {"{{ .LocalObject.metadata.uid }}": "b"},
                    "rewrite": {"template": {"template": "{{ .RelatedObject.data.anything }}"}}}}},
                {"identifier": "c", "object": {"reference": {"path": "spec.#(a==1).x"}}},
            ],
        });
        let mut told = told(fine);
        assert_eq!(
            told.remove(0),
            "spec.naming.namespace: .Object.spec.added.here cannot exist, because spec has no field added"
        );
        assert_eq!(told, Vec::<String>::new());
    }

    #[test]
    fn fields_that_no_object_can_have_are_reported_with_their_path() {
        for (spec, wanted) in [
            (
                json!({"naming": {"name": "{{ .Object.spec.imag }}"}}),
                "spec.naming.name: .Object.spec.imag cannot exist, because spec has no field imag",
            ),
            (
                json!({"naming": {"name": "{{ .Objekt.metadata.name }}"}}),
                "spec.naming.name: there is no .Objekt.metadata.name here; there are .Object, .ClusterName, .ClusterPath, .ConsumerCluster",
            ),
            (
                json!({"naming": {"name": "{{ .ClusterPath }}"}}),
                "spec.naming.name: .ClusterPath is empty; set spec.enableWorkspacePaths",
            ),
            (
                json!({"naming": {"name": "{{ .Object.spec.image.tag }}"}}),
                "spec.naming.name: .Object.spec.image.tag cannot exist, because spec.image is a string",
            ),
            (
                json!({"naming": {"name": "{{ .Object.metadata.nam }}"}}),
                "spec.naming.name: .Object.metadata.nam cannot exist, because metadata has no field nam",
            ),
            (
                json!({"projection": {"scope": "Cluster"}, "naming": {"name": "{{ .Object.metadata.namespace }}"}}),
                "spec.naming.name: .Object.metadata.namespace cannot exist, because objects of this kind have no namespace there",
            ),
            (
                json!({"mutation": {"spec": [{"regex": {"path": "spec.colour", "replacement": "x"}}]}}),
                "spec.mutation.spec[0]: spec.colour cannot exist, because spec has no field colour: what is written there is dropped",
            ),
            (
                json!({"mutation": {"status": [{"delete": {"path": "status.x"}}]}}),
                "spec.mutation.status[0]: status.x cannot exist, because an object has no field status: nothing is deleted",
            ),
            (
                json!({"related": [{"identifier": "a", "object": {"reference": {"path": "spec.secretName"}}}]}),
                "spec.related[0].object.reference.path: spec.secretName cannot exist, because spec has no field secretName: nothing is found",
            ),
            (
                json!({"related": [{"identifier": "a", "object": {"template": {"template": "x"}, "namespace": {"template": {"template": "{{ .Object.spec.ns }}"}}}}]}),
                "spec.related[0].object.namespace.template: .Object.spec.ns cannot exist, because spec has no field ns",
            ),
        ] {
            assert_eq!(told(spec.clone()), [wanted], "{spec}");
        }
    }

    #[test]
    fn what_mutations_add_may_be_in_names() {
        let spec = json!({
            "naming": {"name": "{{ .Object.spec.short }}"},
            "mutation": {"spec": [{"cel": {"path": "spec.short", "expression": "'x'"}}]},
        });
        let told = told(spec);
        assert!(told.len() == 1 && told[0].starts_with("spec.mutation.spec[0]"), "{told:?}");
    }
}
