use carrick_bind_api::v1alpha2::{InformerScope, Isolation, PermissionClaim, Selector};
use serde_json::json;

use super::*;

fn crd_of_provider() -> Value {
    json!({"spec": {"group": "wild.io", "scope": "Namespaced", "names": {"plural": "sheriffs", "kind": "Sheriff"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
}

fn schemas() -> BTreeMap<String, BoundSchema> {
    let schema = schema::from_crd(&crd_of_provider(), InformerScope::Cluster, &Isolation::Prefixed).unwrap();
    BTreeMap::from([(schema.metadata.name.clone(), schema)])
}

fn export() -> ApiServiceExport {
    let mut export = ApiServiceExport::new("b");
    export.spec.resources = vec![ExportedResource::new("wild.io", "sheriffs", &["v1"])];
    export.spec.isolation = Isolation::Prefixed;
    export
}

fn binding() -> ApiServiceBinding {
    let mut binding = ApiServiceBinding::new("b");
    "u".clone_into(&mut binding.metadata.uid);
    binding
}

/// All that a binding is decided on, and what becomes of it when plans are carried out.
struct World {
    binding: ApiServiceBinding,
    export: Seen<ApiServiceExport>,
    request: Option<ApiServiceExportRequest>,
    schemas: Seen<BTreeMap<String, BoundSchema>>,
    crds: BTreeMap<String, Value>,
    changed: Option<ContractError>,
    refused: BTreeMap<String, BindingProblem>,
    released: bool,
    second: i64,
}

impl World {
    fn new() -> Self {
        Self {
            binding: binding(),
            export: Seen::Present(export()),
            request: None,
            schemas: Seen::Present(schemas()),
            crds: BTreeMap::new(),
            changed: None,
            refused: BTreeMap::new(),
            released: false,
            second: 0,
        }
    }

    fn plan(&self) -> BindingPlan {
        decide(&BindingView {
            binding: &self.binding,
            contract: Ok("c-1"),
            provider: Some("Provider"),
            changed: self.changed.as_ref(),
            heartbeat: None,
            existing: &Ok(Existing::Leave),
            accepted: &Accepted::All,
            objects: None,
            released: self.released,
            refused: &self.refused,
            export: self.export.as_ref(),
            request: self.request.as_ref(),
            schemas: self.schemas.as_ref(),
            crds: &self.crds,
            now: Timestamp::from_second(self.second).unwrap(),
        })
    }

    /// Carries out plans until there is nothing left to do, and returns the last one.
    fn settle(&mut self) -> BindingPlan {
        for _ in 0..5 {
            let plan = self.plan();
            let mut quiet = plan.clone();
            (quiet.sync, quiet.withdrawal) = (None, Withdrawal::None);
            if quiet == BindingPlan::default() {
                return plan;
            }
            self.second += 1;
            for mut crd in plan.create.into_iter().chain(plan.replace) {
                crd["status"] = json!({"storedVersions": ["v1"], "conditions": [
                    {"type": "Established", "status": "True", "reason": "InitialNamesAccepted"}]});
                self.crds.insert(crd["metadata"]["name"].as_str().unwrap().to_owned(), crd);
            }
            if let Some(status) = plan.status {
                self.binding.status = status;
            }
            if let (Seen::Present(export), Some(status)) = (&mut self.export, plan.export_status) {
                export.status = status;
            }
            if let Seen::Present(schemas) = &mut self.schemas {
                for (name, status) in plan.schema_statuses {
                    schemas.get_mut(&name).unwrap().status = status;
                }
            }
        }
        panic!("it never comes to rest")
    }

    fn condition(&self, type_: &str) -> (String, String) {
        let found = conditions::find(&self.binding.status.conditions, type_).cloned().unwrap();
        (found.status.to_string(), found.reason)
    }
}

fn failed(reason: &str) -> (String, String) {
    ("False".to_owned(), reason.to_owned())
}

#[test]
fn an_export_becomes_a_crd_and_is_synced_as_soon_as_that_is_there() {
    let mut world = World::new();
    let first = world.plan();
    assert_eq!((first.create.len(), first.sync.unwrap().apis.len()), (1, 0));
    let sync = world.settle().sync.unwrap();
    let [bound] = &sync.apis[..] else { panic!("{sync:?}") };
    assert_eq!(
        (bound.api.resource.as_str(), bound.api.version.as_str(), bound.api.has_status),
        ("sheriffs", "v1", true)
    );
    for type_ in ["Ready", CONNECTED, SCHEMA_IN_SYNC, SECRET_VALID] {
        assert_eq!(world.condition(type_).0, "True", "{type_}");
    }
    assert_eq!(world.binding.status.provider_pretty_name, "Provider");
    assert_eq!(world.binding.status.bound_schemas, [BoundSchemaReference::new("wild.io", "sheriffs")]);
    let told = &world.export.present().unwrap().status.conditions;
    assert!(conditions::is_true(told, "ConsumerInSync") && conditions::is_true(told, CONNECTED));
    let schema = &world.schemas.present().unwrap()["sheriffs.wild.io"];
    assert!(conditions::is_true(&schema.status.conditions, "Established"));
}

#[test]
fn a_change_of_the_schema_is_followed() {
    let mut world = World::new();
    world.settle();
    let mut changed = crd_of_provider();
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("new");
    let schema = schema::from_crd(&changed, InformerScope::Cluster, &Isolation::Prefixed).unwrap();
    world.schemas = Seen::Present(BTreeMap::from([(schema.metadata.name.clone(), schema)]));
    assert_eq!(world.plan().replace.len(), 1);
    world.settle();
    assert_eq!(
        world.crds["sheriffs.wild.io"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"],
        "new"
    );
}

#[test]
fn a_schema_that_cannot_be_followed_is_told_to_both_sides() {
    let mut world = World::new();
    world.settle();
    let mut changed = crd_of_provider();
    changed["spec"]["scope"] = json!("Cluster");
    let schema = schema::from_crd(&changed, InformerScope::Cluster, &Isolation::Prefixed).unwrap();
    world.schemas = Seen::Present(BTreeMap::from([(schema.metadata.name.clone(), schema)]));
    world.settle();
    assert_eq!(world.condition(SCHEMA_IN_SYNC), failed("CustomResourceDefinitionUpdateFailed"));
    assert!(!conditions::is_true(&world.export.present().unwrap().status.conditions, "ConsumerInSync"));
    assert_eq!(world.crds["sheriffs.wild.io"]["spec"]["scope"], "Namespaced");
}

#[test]
fn crds_of_others_are_left_alone_and_the_rest_goes_on() {
    let mut world = World::new();
    let mut foreign = crd_of_provider();
    foreign["metadata"] = json!({"name": "sheriffs.wild.io"});
    world.crds.insert("sheriffs.wild.io".to_owned(), foreign.clone());
    let mut other = crd_of_provider();
    other["spec"]["names"] = json!({"plural": "cowboys", "kind": "Cowboy"});
    let schema = schema::from_crd(&other, InformerScope::Cluster, &Isolation::Prefixed).unwrap();
    let (Seen::Present(schemas), Seen::Present(export)) = (&mut world.schemas, &mut world.export) else { panic!() };
    schemas.insert(schema.metadata.name.clone(), schema);
    export.spec.resources.push(ExportedResource::new("wild.io", "cowboys", &["v1"]));
    let sync = world.settle().sync.unwrap();
    assert_eq!(world.condition(CONNECTED), failed("ForeignCustomResourceDefinition"));
    assert_eq!(world.crds["sheriffs.wild.io"], foreign);
    assert_eq!(sync.apis.iter().map(|bound| bound.api.resource.as_str()).collect::<Vec<_>>(), ["cowboys"]);
}

#[test]
fn what_is_not_known_changes_nothing() {
    let mut world = World::new();
    world.settle();
    for unknown in 0..3 {
        let mut changed =
            World { crds: world.crds.clone(), binding: world.binding.clone(), second: 99, ..World::new() };
        match unknown {
            0 => changed.export = Seen::Unknown("403 Forbidden".to_owned()),
            1 => changed.schemas = Seen::Unknown("timeout".to_owned()),
            _ => changed.schemas = Seen::Absent,
        }
        assert_eq!(changed.plan(), BindingPlan::default(), "case {unknown}");
    }
}

#[test]
fn an_export_that_is_gone_stops_the_sync_and_deletes_nothing() {
    let mut world = World::new();
    world.settle();
    world.export = Seen::Absent;
    assert_eq!(world.settle().sync, Some(Sync::default()));
    assert_eq!(world.condition(CONNECTED), failed("APIServiceExportNotFound"));
    assert_eq!(world.crds.len(), 1);
    let mut request = ApiServiceExportRequest::new("b");
    request.status.phase = Phase::Failed;
    "no such template".clone_into(&mut request.status.terminal_message);
    world.request = Some(request);
    world.settle();
    assert_eq!(world.condition(CONNECTED), failed("APIServiceExportFailed"));
}

#[test]
fn a_withdrawn_export_is_told_here_first_and_the_provider_last() {
    let mut world = World::new();
    world.settle();
    let Seen::Present(leaving) = &mut world.export else { panic!() };
    "2026-01-01T00:00:00Z".clone_into(&mut leaving.metadata.deletion_timestamp);
    let plan = world.plan();
    assert_eq!((plan.withdrawal, plan.export_status), (Withdrawal::Tell, None), "here first");
    let last = world.settle();
    assert_eq!(world.condition(CONNECTED), failed("APIServiceExportWithdrawn"));
    assert_eq!((last.withdrawal, last.export_status), (Withdrawal::Release, None), "objects are still held");
    assert_eq!(last.sync.unwrap().apis.len(), 1, "what is let go has to be known");
    world.released = true;
    let told = world.plan().export_status.unwrap();
    assert!(conditions::is_true(&told.conditions, conditions::CONSUMER_TOLD));
    world.settle();
    assert_eq!(world.crds.len(), 1);
    // It is gone, and nobody forgets why.
    world.export = Seen::Absent;
    assert_eq!(world.settle().sync, Some(Sync::default()));
    assert_eq!(world.condition(CONNECTED), failed("APIServiceExportWithdrawn"));
    // It is offered again.
    world.export = Seen::Present(export());
    world.settle();
    assert_eq!(world.condition(CONNECTED).0, "True");
}

#[test]
fn schemas_and_claims_that_make_no_sense_are_told() {
    let mut world = World::new();
    world.schemas = Seen::Present(BTreeMap::new());
    world.settle();
    assert_eq!(world.condition(CONNECTED), failed("BoundSchemaFetchFailed"));

    let mut world = World::new();
    let Seen::Present(export) = &mut world.export else { panic!() };
    export.spec.isolation = Isolation::Other("Sharded".to_owned());
    world.settle();
    assert_eq!(world.condition(CONNECTED), failed("BoundSchemaFetchFailed"));
    assert!(world.crds.is_empty(), "no CRD for objects that cannot be synced");

    let mut world = World::new();
    let Seen::Present(export) = &mut world.export else { panic!() };
    export.spec.permission_claims = vec![PermissionClaim::new("", "pods", Selector::default())];
    world.settle();
    assert_eq!(world.condition(PERMISSION_CLAIM), failed("InvalidPermissionClaim"));
    assert_eq!(world.condition(CONNECTED).0, "True", "the API itself works");
    let Seen::Present(export) = &mut world.export else { panic!() };
    export.spec.permission_claims.clear();
    world.settle();
    assert_eq!(conditions::find(&world.binding.status.conditions, PERMISSION_CLAIM), None);
}

#[test]
fn a_secret_that_cannot_be_used_stops_nothing_that_runs() {
    let mut world = World::new();
    world.settle();
    let view = BindingView {
        binding: &world.binding,
        contract: Err(SecretError::NotFound("kube-bind/provider".to_owned())),
        provider: None,
        changed: None,
        heartbeat: None,
        existing: &Ok(Existing::Leave),
        accepted: &Accepted::All,
        objects: None,
        released: false,
        refused: &BTreeMap::new(),
        export: Seen::Absent,
        request: None,
        schemas: Seen::Absent,
        crds: &world.crds,
        now: Timestamp::from_second(50).unwrap(),
    };
    let plan = decide(&view);
    assert_eq!((plan.sync, plan.create.len(), plan.replace.len()), (None, 0, 0));
    let status = plan.status.unwrap();
    assert_eq!(status.conditions[0].reason, "KubeconfigSecretNotFound");
    assert!(conditions::is_true(&status.conditions, CONNECTED));
}

#[test]
fn another_contract_is_not_followed_and_nothing_is_deleted() {
    let mut world = World::new();
    world.settle();
    world.changed = Some(ContractError::OtherProvider { namespace: "c-1".to_owned() });
    assert_eq!(world.settle().sync, Some(Sync::default()));
    assert_eq!(world.condition(CONNECTED), failed("ContractChanged"));
    assert_eq!(world.crds.len(), 1);
    world.changed = None;
    assert_eq!(world.settle().sync.unwrap().apis.len(), 1);
    assert_eq!(world.condition(CONNECTED).0, "True");
}

#[test]
fn what_the_server_says_to_a_crd_is_told_and_what_is_there_is_synced_on() {
    let mut world = World::new();
    let refusal = |crd: &str| BindingProblem::CrdCreateFailed { crd: crd.to_owned(), problem: "no".to_owned() };
    world.refused = BTreeMap::from([("sheriffs.wild.io".to_owned(), refusal("sheriffs.wild.io"))]);
    let plan = world.plan();
    let status = plan.status.unwrap();
    let connected = conditions::find(&status.conditions, CONNECTED).unwrap();
    assert_eq!((connected.reason.as_str(), plan.create.len()), ("CustomResourceDefinitionCreateFailed", 1));
    assert!(status.bound_schemas.is_empty());

    let mut world = World::new();
    world.settle();
    let mut changed = crd_of_provider();
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("new");
    let schema = schema::from_crd(&changed, InformerScope::Cluster, &Isolation::Prefixed).unwrap();
    world.schemas = Seen::Present(BTreeMap::from([(schema.metadata.name.clone(), schema)]));
    let refusal = BindingProblem::CrdUpdateFailed { crd: "sheriffs.wild.io".to_owned(), problem: "no".to_owned() };
    world.refused = BTreeMap::from([("sheriffs.wild.io".to_owned(), refusal)]);
    let plan = world.plan();
    assert_eq!((plan.replace.len(), plan.sync.unwrap().apis.len()), (1, 1));
    let told = plan.status.unwrap().conditions;
    assert!(!conditions::is_true(&told, SCHEMA_IN_SYNC) && !conditions::is_true(&told, "Ready"));
    assert!(conditions::is_true(&told, CONNECTED), "what is there is served on");
}

#[test]
fn what_becomes_of_objects_is_told_once_and_one_bad_object_spoils_nothing() {
    let mut world = World::new();
    world.settle();
    let told = |binding: &ApiServiceBinding, conflicts: &[String], failing: &[String], second| {
        decide(&BindingView {
            binding,
            contract: Ok("c-1"),
            provider: Some("Provider"),
            changed: None,
            heartbeat: Some(&Ok(())),
            existing: &Ok(Existing::Leave),
            accepted: &Accepted::All,
            objects: Some(ObjectsView { read: Some(Ok(())), conflicts, failing }),
            released: false,
            refused: &BTreeMap::new(),
            export: world.export.as_ref(),
            request: None,
            schemas: world.schemas.as_ref(),
            crds: &world.crds,
            now: Timestamp::from_second(second).unwrap(),
        })
        .status
    };
    let mut binding = world.binding.clone();
    let (none, some) = (vec![], vec!["a/b: too long".to_owned()]);
    binding.status = told(&binding, &none, &some, 10).unwrap();
    assert!(conditions::is_true(&binding.status.conditions, "Ready"), "{:?}", binding.status.conditions);
    assert!(!conditions::is_true(&binding.status.conditions, OBJECTS_SYNCED));
    assert!(conditions::is_true(&binding.status.conditions, HEARTBEATING));
    assert_eq!(told(&binding, &none, &some, 11), None);
    binding.status = told(&binding, &some, &none, 12).unwrap();
    assert_eq!(conditions::find(&binding.status.conditions, OBJECTS_SYNCED), None);
    assert!(!conditions::is_true(&binding.status.conditions, "Ready"));
    assert_eq!(told(&binding, &some, &none, 13), None, "told once");
    binding.status = told(&binding, &none, &none, 14).unwrap();
    assert!(conditions::is_true(&binding.status.conditions, "Ready"));
}

#[test]
fn a_word_that_nobody_knows_is_told_with_those_that_there_are_and_stops_nothing() {
    let mut world = World::new();
    world.settle();
    let told = |binding: &ApiServiceBinding, existing: &Result<Existing, ExistingError>| {
        let plan = decide(&BindingView {
            binding,
            contract: Ok("c-1"),
            provider: Some("Provider"),
            changed: None,
            heartbeat: None,
            existing,
            accepted: &Accepted::All,
            objects: None,
            released: false,
            refused: &BTreeMap::new(),
            export: world.export.as_ref(),
            request: None,
            schemas: world.schemas.as_ref(),
            crds: &world.crds,
            now: Timestamp::from_second(70).unwrap(),
        });
        assert!(plan.sync.is_some_and(|sync| !sync.apis.is_empty()));
        plan.status
    };
    let mut binding = world.binding.clone();
    binding.status = told(&binding, &Existing::of_annotation(Some("Mirror"))).unwrap();
    let condition = conditions::find(&binding.status.conditions, EXISTING_OBJECTS).unwrap();
    assert!(condition.message.contains("\"Mirror\"") && condition.message.contains("Show or Adopt"));
    assert_eq!(condition.reason, "UnknownExistingObjects");
    binding.status = told(&binding, &Ok(Existing::Show)).unwrap();
    assert_eq!(conditions::find(&binding.status.conditions, EXISTING_OBJECTS), None);
}
