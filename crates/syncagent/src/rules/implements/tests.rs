use serde_json::{Value, json};

use super::force::{MappingTrial, Steps, held_for};
use super::{Mapping, proof};
use crate::api::{APPROVED_MAPPING, PublishedResource};
use crate::rules::crd::Crd;
use crate::rules::projection::project;
use crate::rules::tests::published;
use crate::rules::{Rules, mapping_of, schema};

/// What a provider runs: certificates with an issuer.
pub(crate) fn local() -> Crd {
    let text = json!({ "type": "string", "minLength": 1 });
    let spec = json!({ "type": "object", "required": ["commonName", "issuer"], "properties": {
        "commonName": text, "issuer": text, "secretName": text, "days": { "type": "integer", "maximum": 90 } } });
    let condition = json!({ "type": "object", "properties": { "type": text, "status": text } });
    let status = json!({ "type": "object", "properties": {
        "serial": text, "conditions": { "type": "array", "items": condition } } });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec, "status": status } } });
    Crd::from_json(&json!({
        "metadata": { "name": "certs.ca.example", "generation": 1 },
        "spec": {
            "group": "ca.example", "scope": "Namespaced",
            "names": { "plural": "certs", "singular": "cert", "kind": "Cert", "listKind": "CertList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} }, "schema": schema }],
        },
    }))
    .unwrap()
}

/// What a platform offers: a name, and for how long.
fn version() -> Value {
    let spec = json!({ "type": "object", "required": ["fqdn"], "properties": {
        "fqdn": { "type": "string", "minLength": 1 }, "days": { "type": "integer" },
        "contact": { "type": "object", "properties": { "mail": { "type": "string" } } } } });
    let status =
        json!({ "type": "object", "properties": { "status": { "type": "string" }, "serial": { "type": "string" } } });
    json!({ "name": "v1alpha1", "schema": { "openAPIV3Schema": {
        "type": "object", "properties": { "spec": spec, "status": status } } } })
}

fn steps() -> Value {
    json!([
        { "move": { "from": "spec.fqdn", "to": "spec.commonName" } },
        { "cel": { "path": "spec.issuer", "expression": "'internal'" } },
        { "cel": { "path": "spec.secretName", "expression": "copy.name" } },
        { "when": "has(other.spec.days)", "cel": { "path": "spec.days", "expression": "other.spec.days > 90 ? 90 : other.spec.days" } },
    ])
}

fn implements() -> Value {
    json!({ "resource": "certificates.platform.example", "kind": "Certificate", "versions": [version()], "spec": steps(),
        "status": [{ "when": "has(other.status.serial)", "move": { "from": "status.serial", "to": "status.serial" } }] })
}

pub(crate) fn offering(implements: Value) -> PublishedResource {
    published(json!({ "resource": { "apiGroup": "ca.example", "kind": "Cert" }, "implements": implements }))
}

pub(crate) fn changed(path: &str, value: Value) -> Value {
    let mut changed = implements();
    *changed.pointer_mut(path).unwrap() = value;
    changed
}

fn mapping(implements: Value) -> Mapping {
    let pr = offering(implements);
    mapping_of(&pr, &local(), &Steps::of(pr.spec.implements.as_ref().unwrap())).unwrap()
}

fn order(spec: Value) -> Value {
    json!({ "apiVersion": "platform.example/v1alpha1", "kind": "Certificate",
        "metadata": { "name": "web", "namespace": "shop", "labels": { "a": "b" } }, "spec": spec, "status": { "status": "x" } })
}

#[test]
fn the_definition_in_kcp_is_that_of_the_apis_owner() {
    let projected = project(&offering(implements()), &local()).unwrap();
    assert_eq!(projected.name, "certificates.platform.example");
    let names = &projected.spec.names;
    assert_eq!(
        (names.kind.as_str(), names.singular.as_str(), names.list_kind.as_str()),
        ("Certificate", "certificate", "CertificateList")
    );
    let [only] = projected.spec.versions.as_slice() else { panic!("{:?}", projected.spec.versions) };
    assert!(only.name == "v1alpha1" && only.served && only.storage && only.has_status());
    let built = schema::build(&projected, "agent").unwrap();
    assert_eq!(built["spec"]["versions"][0]["schema"], version()["schema"]["openAPIV3Schema"], "verbatim");
}

#[test]
fn rules_for_admission_are_the_agents_and_leave_the_schema_alone() {
    let mut pr = offering(implements());
    pr.spec.admission = serde_json::from_value(json!([{ "expression": "self.spec.fqdn.endsWith('.corp')" }])).unwrap();
    let projected = project(&pr, &local()).unwrap();
    assert_eq!(projected, project(&offering(implements()), &local()).unwrap());
    let rules = Rules::compile(&pr, &local(), "agent").unwrap().admitting(&pr, &projected).unwrap();
    assert!(rules.admission.refuses(&order(json!({ "fqdn": "a.org" }))).is_some());
    assert!(rules.admission.refuses(&order(json!({ "fqdn": "a.corp" }))).is_none());
    pr.spec.admission =
        serde_json::from_value(json!([{ "expression": "self.spec.fqdn == oldSelf.spec.fqdn" }])).unwrap();
    let error = Rules::compile(&pr, &local(), "agent").unwrap().admitting(&pr, &projected).unwrap_err().to_string();
    assert!(error.contains("stays as its owner has written it"), "{error}");
}

#[test]
fn a_copy_is_made_by_the_steps_alone() {
    let rules = Rules::compile(&offering(implements()), &local(), "agent").unwrap();
    assert_eq!((rules.local.kind.as_str(), rules.remote.kind.as_str()), ("Cert", "Certificate"));
    let draft = json!({ "metadata": { "name": "c1", "namespace": "n1" } });
    let copy =
        rules.mutation.spec(&order(json!({ "fqdn": "a.corp", "days": 400, "contact": {} })), Some(&draft)).unwrap();
    assert_eq!(
        copy,
        json!({ "apiVersion": "ca.example/v1", "kind": "Cert",
        "metadata": { "name": "web", "namespace": "shop", "labels": { "a": "b" } },
        "spec": { "commonName": "a.corp", "issuer": "internal", "secretName": "c1", "days": 90 } })
    );
    assert!(!rules.mutation.keeps_spec() && rules.mutation.is_mapped());
}

#[test]
fn a_status_is_made_by_the_steps_alone() {
    let mapping = mapping(implements());
    let copy = |status: Value| json!({ "metadata": { "name": "c1" }, "status": status });
    let made = mapping.status(&copy(json!({ "serial": "7", "other": 1 })), &order(json!({}))).unwrap();
    assert_eq!(made["status"], json!({ "serial": "7" }));
    assert_eq!(mapping.status(&copy(json!({})), &order(json!({}))).unwrap().get("status"), None);
}

#[test]
fn kinds_without_a_spec_get_none() {
    let steps =
        json!([{ "template": { "path": "data.host", "template": "{{ .RemoteObject.spec.fqdn }} {{ .Copy.name }}" } }]);
    let made = mapping(changed("/spec", steps))
        .spec(&order(json!({ "fqdn": "a" })), Some(&json!({ "metadata": { "name": "c" } })));
    let made = made.unwrap();
    assert_eq!((made.get("spec"), &made["data"]), (None, &json!({ "host": "a c" })));
}

#[test]
fn mistakes_name_the_field_and_the_way_out() {
    let with = |field: &str, value: Value| {
        let mut spec = json!({ "resource": { "apiGroup": "ca.example", "kind": "Cert" }, "implements": implements() });
        spec[field] = value;
        published(spec)
    };
    let step = |step: Value| offering(changed("/spec", json!([step])));
    for (pr, wanted) in vec![
        (with("projection", json!({ "group": "a.b" })), "spec.projection cannot be used together with spec.implements"),
        (with("conversion", json!({})), "spec.conversion cannot be used together with spec.implements"),
        (
            offering(changed("/resource", json!("certificates"))),
            "spec.implements.resource: \"certificates\" is no resource; write",
        ),
        (
            offering(changed("/kind", json!(""))),
            "spec.implements.kind: the kind of certificates.platform.example is missing",
        ),
        (offering(changed("/versions", json!([]))), "spec.implements.versions: there are none; add those"),
        (
            offering(changed("/versions", json!([{ "name": "v1" }]))),
            "spec.implements.versions: v1: schema.openAPIV3Schema is missing; add it",
        ),
        (
            offering(changed("/versions", json!([version(), version()]))),
            "spec.implements.versions: v1alpha1: it is there twice",
        ),
        (step(json!({})), "spec.implements.spec[0]: nothing to do; set one of"),
        (step(json!({ "cel": { "path": "spec.a", "expression": "objects" } })), "spec.implements.spec[0]: "),
        (
            step(json!({ "cel": { "path": "status.a", "expression": "1" } })),
            "spec.implements.spec[0]: status.a cannot be written here",
        ),
        (
            step(json!({ "cel": { "path": "metadata.name", "expression": "'a'" } })),
            "spec.implements.spec[0]: metadata.name cannot be",
        ),
        (
            offering(changed("/status", json!([{ "delete": { "path": "spec" } }]))),
            "spec.implements.status[0]: spec cannot be written here",
        ),
    ] {
        let error = Rules::compile(&pr, &local(), "agent").unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn steps_that_fit_are_beyond_doubt_and_what_they_ignore_is_named_once() {
    let pr = offering(implements());
    assert_eq!(proof::doubts(&pr, &local()), Vec::<String>::new());
    let ignored = proof::ignored(&pr, &local()).unwrap();
    assert_eq!(ignored, "spec.implements.spec: no step reads spec.contact: what consumers write there is ignored");
    let below = changed("/spec/1/cel/expression", json!("has(other.spec.contact.mail) ? 'a' : 'b'"));
    assert_eq!(proof::ignored(&offering(below), &local()), None);
    let whole =
        changed("/spec", json!([{ "cel": { "path": "spec.commonName", "expression": "string(other.spec.size())" } }]));
    assert_eq!(proof::ignored(&offering(whole), &local()), None);
}

#[test]
fn what_does_not_work_for_every_order_is_told() {
    let doubts = |path: &str, steps: Value| proof::doubts(&offering(changed(path, steps)), &local());
    let cel = |path: &str, expression: &str| json!({ "cel": { "path": path, "expression": expression } });
    let with = |step: Value| {
        let mut all = steps();
        all[3] = step;
        all
    };
    for (path, steps, wanted) in [
        (
            "/spec",
            with(cel("spec.days", "other.spec.days")),
            "spec.implements.spec: an order cannot be placed: spec.implements.spec[3] failed at path",
        ),
        (
            "/spec",
            with(json!({ "move": { "from": "spec.days", "to": "spec.days" } })),
            "spec.implements.spec: spec.days: Cert refuses what comes out: ",
        ),
        (
            "/spec",
            with(cel("spec.nope", "1")),
            "spec.implements.spec: spec.nope: Cert has no such field, and what is written there is dropped, as in ",
        ),
        ("/spec", json!([steps()[0]]), "spec.implements.spec: spec.issuer: Cert refuses what comes out: "),
        (
            "/status",
            json!([cel("status.serial", "other.status.serial")]),
            "spec.implements.status: a status cannot be made: ",
        ),
        (
            "/status",
            json!([cel("status.nope", "1")]),
            "spec.implements.status: status.nope: Certificate has no such field",
        ),
        (
            "/status",
            json!([cel("status.serial", "1")]),
            "spec.implements.status: status.serial: Certificate refuses what comes out: ",
        ),
    ] {
        let told = doubts(path, steps);
        assert!(told.len() == 1 || path == "/spec" && told.len() == 2, "{told:?}");
        assert!(told[0].starts_with(wanted), "{wanted}\n{told:?}");
    }
}

#[test]
fn changed_steps_wait_behind_a_gate() {
    let old = offering(implements());
    let noted = |pr: &PublishedResource| {
        let implements = pr.spec.implements.as_ref().unwrap();
        Steps::of(implements).noted(&implements.resource)
    };
    let mut new = offering(changed("/spec/1/cel/expression", json!("'external'")));
    assert_ne!(noted(&old).digest, noted(&new).digest);
    assert_eq!(held_for(&new), None, "nothing is at work yet");
    new.status.mapping = Some(noted(&old));
    assert_eq!(held_for(&new), None, "there is no gate");
    let issuer = |pr: &PublishedResource| {
        let rules = Rules::compile(pr, &local(), "agent").unwrap();
        rules.mutation.spec(&order(json!({ "fqdn": "a" })), None).unwrap()["spec"]["issuer"].take()
    };
    assert_eq!(issuer(&new), "external");
    new.spec.schema_updates = "Manual".to_owned();
    assert_eq!(held_for(&new), Some(Steps::of(old.spec.implements.as_ref().unwrap())));
    assert_eq!(issuer(&new), "internal");
    new.metadata.annotations.insert(APPROVED_MAPPING.to_owned(), noted(&old).digest);
    assert_eq!(issuer(&new), "internal", "that is another one");
    new.metadata.annotations.insert(APPROVED_MAPPING.to_owned(), noted(&new).digest);
    assert_eq!(issuer(&new), "external");
    new.metadata.annotations.clear();
    new.spec.implements.as_mut().unwrap().resource = "certs.platform.example".to_owned();
    assert_eq!(held_for(&new), None, "nobody has orders of it");
}

#[test]
fn what_new_steps_do_to_orders_is_told() {
    let all = || {
        let orders = [order(json!({ "fqdn": "a" })), order(json!({ "fqdn": "b", "days": 3 }))];
        orders.into_iter().map(|order| ("c1".to_owned(), order))
    };
    let old = mapping(implements());
    assert_eq!(MappingTrial::of(&old, &old, all()).sentence(), "it changes none of 2 orders");
    let trial = MappingTrial::of(&old, &mapping(changed("/spec/3/cel/expression", json!("7"))), all());
    assert_eq!(trial.sentence(), "it changes 1 of 2 orders; c1 shop/web: spec.days");
    let failing =
        mapping(changed("/spec/3", json!({ "cel": { "path": "spec.days", "expression": "other.spec.days" } })));
    let told = MappingTrial::of(&old, &failing, all()).sentence();
    assert!(
        told.contains("1 of 2 orders; c1 shop/web: cannot be placed any more: spec.implements.spec[3] failed"),
        "{told}"
    );
    assert_eq!(
        MappingTrial::of(&old, &failing, std::iter::empty()).sentence(),
        "there are no orders that it would change"
    );
}
