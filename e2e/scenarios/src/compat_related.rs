//! What the reference agent's own tests demand of related objects.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::{Client, DeleteOptions, Resource};
use carrick_e2e_stage::stage::{NAMESPACE, condition, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_kcp::kinds::{API_BINDING, API_EXPORT};
use carrick_syncagent::api;
use serde_json::{Value, json};

use super::compat::{Suite, crontab, ensure_namespace, unmarked};
use super::related::encoded;

/// One way to find a Secret, where it is, and where its copy shall be. `synced` stands for the namespace of copies.
struct Way {
    kind: &'static str,
    origin: &'static str,
    object: Value,
    from: (&'static str, &'static str),
    to: (&'static str, &'static str),
    labels: Value,
}

/// A way of a Secret that is called the same on both sides.
fn way(kind: &'static str, origin: &'static str, namespace: Option<&str>, from: &'static str, to: &'static str) -> Way {
    let mut object = json!({ "template": { "template": format!("{}-secret", kind.to_lowercase()) } });
    if let Some(namespace) = namespace {
        object["namespace"] = json!({ "template": { "template": namespace } });
    }
    Way { kind, origin, object, from: (from, ""), to: (to, ""), labels: json!({}) }
}

/// A way of a Secret of the service that is found by a label.
fn selected(kind: &'static str, key: &str, value: &str, labels: Value) -> Way {
    let rewrite = json!({ "template": { "template": format!("{}-secret", kind.to_lowercase()) } });
    let object = json!({ "selector": { "matchLabels": { key: value }, "rewrite": rewrite } });
    Way { kind, origin: "service", object, from: ("synced", "unknown-"), to: (NAMESPACE, ""), labels }
}

pub(super) async fn a_secret_is_found_in_each_way(world: Arc<dyn World>) -> anyhow::Result<()> {
    let ways = [
        way("Up", "service", None, "synced", NAMESPACE),
        way("Down", "kcp", None, NAMESPACE, "synced"),
        way(
            "NewUp",
            "service",
            Some(r#"{{ if eq .Side "kcp" }}new{{ else }}{{ .Object.metadata.namespace }}{{ end }}"#),
            "synced",
            "new",
        ),
        way(
            "NewDown",
            "kcp",
            Some(r#"{{ if eq .Side "kcp" }}{{ .Object.metadata.namespace }}{{ else }}{{ .ClusterName }}{{ end }}"#),
            NAMESPACE,
            "cluster",
        ),
        way(
            "Foreign",
            "service",
            Some(r#"{{ if eq .Side "kcp" }}{{ .Object.metadata.namespace }}{{ else }}{{ .ClusterName }}{{ end }}"#),
            "cluster",
            NAMESPACE,
        ),
        selected("Label", "find", "label", json!({ "find": "label" })),
        selected("Length", "find", "foo-{{ .ClusterName | len }}", json!({ "find": "foo-16" })),
        selected(
            "Space",
            "  {{ list \"fi\" \"nd\" | join \"-\" }} ",
            "\n{{ lower \"ME\" }}\n ",
            json!({ "fi-nd": "me" }),
        ),
    ];
    let suite = Suite::set(world, &[]).await?;
    let stage = &suite.stage;
    for way in &ways {
        stage.install_crd(&fixtures::crd(&stage.group, way.kind)).await?;
        let related =
            json!({ "identifier": "credentials", "origin": way.origin, "kind": "Secret", "object": way.object });
        suite.publish(way.kind, suite.usual_with(&related)).await?;
    }
    let _agent = suite.start().await?;

    let (team, secrets) = (&stage.team_a, kinds::secrets());
    let synced = suite.synced();
    let namespace = |short: &'static str| match short {
        "synced" => synced.clone(),
        "cluster" => team.cluster.clone(),
        other => other.to_owned(),
    };
    for way in &ways {
        let kind = suite.remote(way.kind);
        suite.bound(team, &kind).await?;
        stage.order_kind(&kind, team, "order", json!({ "size": 1 })).await?;
        let (origin, destination) = sides(&stage.service, &team.client, way.origin);
        let (name, from, to) =
            (format!("{}-secret", way.kind.to_lowercase()), namespace(way.from.0), namespace(way.to.0));
        ensure_namespace(origin, &from).await?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": { "name": format!("{}{name}", way.from.1), "labels": way.labels },
            "data": { "password": encoded("hunter2") },
        });
        origin.create(&secrets, Some(&from), &secret).await.with_context(|| format!("the Secret of {}", way.kind))?;
        let at = (destination, &secrets, Some(to.as_str()), name.as_str());
        let copy = stage.object(&format!("the Secret of {} is copied", way.kind), at, |_| true).await?;
        ensure!(copy["data"] == secret["data"] && copy["type"] == "Opaque", "{}", shown(&copy));
        unmarked(&copy, &way.labels)?;
    }
    Ok(())
}

pub(super) async fn an_array_of_names_leads_to_several_secrets(world: Arc<dyn World>) -> anyhow::Result<()> {
    for (theirs, ours, copied) in [
        (["one", "two", "three"], ["1", "2", "3"], vec![("one", "1"), ("two", "2"), ("three", "3")]),
        (["one", "", "three"], ["1", "2", ""], vec![("one", "1")]),
    ] {
        let suite = Suite::set(Arc::clone(&world), &[fixtures::backup]).await?;
        let stage = &suite.stage;
        let related = json!({
            "identifier": "credentials", "origin": "service", "kind": "Secret",
            "object": { "reference": { "path": "spec.items.#.name" } },
        });
        suite.publish("Backup", suite.usual_with(&related)).await?;

        // The copy is there before the order, and is taken over as it is.
        let (local, namespace, secrets) = (suite.local("Backup"), suite.synced(), kinds::secrets());
        ensure_namespace(&stage.service, &namespace).await?;
        let items = |names: [&str; 3]| json!({ "items": names.map(|name| json!({ "name": name })) });
        let place = json!({ "name": "order", "namespace": namespace });
        let before =
            json!({ "apiVersion": local.api_version(), "kind": "Backup", "metadata": place, "spec": items(ours) });
        stage.service.create(&local, Some(&namespace), &before).await?;
        for name in ours.into_iter().filter(|name| !name.is_empty()) {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "data": { "password": encoded(name) },
            });
            stage.service.create(&secrets, Some(&namespace), &secret).await?;
        }
        let _agent = suite.start_linking().await?;
        suite.bound(&stage.team_a, &suite.remote("Backup")).await?;
        stage.order_kind(&suite.remote("Backup"), &stage.team_a, "order", items(theirs)).await?;
        for (name, from) in copied {
            let at = (&stage.team_a.client, &secrets, Some(NAMESPACE), name);
            let copy = stage.object(&format!("{name} is copied"), at, |_| true).await?;
            ensure!(copy["data"]["password"] == encoded(from), "{}", shown(&copy));
            unmarked(&copy, &json!({}))?;
        }
        let after = suite.arrives(&local, "order").await?;
        ensure!(after["spec"] == before["spec"], "{}", shown(&after));
    }
    Ok(())
}

pub(super) async fn a_config_map_may_become_a_secret(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let stage = &suite.stage;
    let related = json!({
        "identifier": "credentials", "origin": "service", "version": "v1", "resource": "configmaps",
        "projection": { "resource": "secrets" },
        "object": { "template": { "template": "my-credentials" } },
    });
    suite.publish("CronTab", suite.usual_with(&related)).await?;
    let _agent = suite.start().await?;
    order(&suite).await?;
    let namespace = suite.synced();
    ensure_namespace(&stage.service, &namespace).await?;
    let data = json!({ "password": encoded("hunter2") });
    let original =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "my-credentials" }, "data": data });
    stage.service.create(&kinds::config_maps(), Some(&namespace), &original).await?;
    let at = (&stage.team_a.client, &kinds::secrets(), Some(NAMESPACE), "my-credentials");
    let copy = stage.object("the Secret is there", at, |_| true).await?;
    ensure!(copy["data"] == data && copy["type"] == "Opaque", "{}", shown(&copy));
    unmarked(&copy, &json!({}))
}

pub(super) async fn a_kind_of_the_same_export_may_be_related(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab, fixtures::backup]).await?;
    let stage = &suite.stage;
    let related = backup_of(&suite, &suite.kcp_group());
    suite.publish("CronTab", suite.usual_with(&related)).await?;
    suite.publish("Backup", not_synchronized(&suite.kcp_group())).await?;
    let _agent = suite.start().await?;
    // Nobody waits for the second kind: both have to become available at nearly the same time.
    order(&suite).await?;
    let at = (&stage.team_a.client, &suite.remote("Backup"), Some(NAMESPACE), "my-backup");
    place_backup(&suite).await?;
    let copy = stage.object("the Backup is there", at, |_| true).await?;
    ensure!(copy["spec"] == json!({}), "{}", shown(&copy));
    unmarked(&copy, &json!({}))?;
    let claims = stage.export().await?["spec"]["permissionClaims"].clone();
    ensure!(
        claims.as_array().is_some_and(|claims| claims.iter().all(|claim| claim["resource"] != "backups")),
        "{claims}"
    );
    Ok(())
}

pub(super) async fn a_kind_of_another_export_may_be_related(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(Arc::clone(&world), &[fixtures::crontab, fixtures::backup]).await?;
    let other = Suite::set(world, &[]).await?;
    let (stage, exports) = (&suite.stage, kinds::kcp(&API_EXPORT));
    let at = (&other.stage.provider.client, &exports, None, other.stage.export_name());
    let identified = |export: &Value| export["status"]["identityHash"].is_string();
    let export = stage.object("the other export has an identity", at, identified).await?;

    // The teams of one are bound to the export of the other too.
    let bindings = kinds::kcp(&API_BINDING);
    let reference = json!({ "export": { "path": other.stage.provider.path, "name": other.stage.export_name() } });
    for team in [&stage.team_a, &stage.team_b] {
        let binding = json!({
            "apiVersion": API_BINDING.api_version(), "kind": API_BINDING.kind,
            "metadata": { "name": other.stage.export_name() }, "spec": { "reference": reference },
        });
        team.client.create(&bindings, None, &binding).await?;
        let at = (&team.client, &bindings, None, other.stage.export_name());
        stage.object("the second binding is ready", at, |b| condition(b, "Ready")["status"] == "True").await?;
    }

    let mut related = backup_of(&suite, &other.kcp_group());
    related["identityHash"] = export["status"]["identityHash"].clone();
    suite.publish("CronTab", suite.usual_with(&related)).await?;
    let mut spec = not_synchronized(&other.kcp_group());
    spec["resource"] = json!({ "apiGroup": stage.group, "version": "v1", "kind": "Backup" });
    other.publish("Backup", spec).await?;
    let _agent = suite.start().await?;
    let _other_agent = other.start().await?;
    suite.bound(&stage.team_a, &suite.remote("CronTab")).await?;
    other.bound(&other.stage.team_a, &other.remote("Backup")).await?;

    // What the export claims is accepted.
    let at = (&stage.provider.client, &exports, None, stage.export_name());
    let claimed = |export: &Value| {
        let mut claims = export["spec"]["permissionClaims"].as_array().into_iter().flatten();
        claims.any(|claim| claim["resource"] == "backups")
    };
    let export = stage.object("backups are claimed", at, claimed).await?;
    let claims = export["spec"]["permissionClaims"].clone();
    let accepted: Vec<Value> = claims
        .as_array()
        .into_iter()
        .flatten()
        .cloned()
        .map(|mut claim| {
            claim["state"] = json!("Accepted");
            claim
        })
        .collect();
    for team in [&stage.team_a, &stage.team_b] {
        let patch = json!({ "spec": { "permissionClaims": accepted } });
        team.client.merge_patch(&bindings, None, stage.export_name(), &patch).await?;
    }
    order(&suite).await?;
    place_backup(&suite).await?;
    let at = (&stage.team_a.client, &other.remote("Backup"), Some(NAMESPACE), "my-backup");
    let copy = stage.object("the Backup is there", at, |_| true).await?;
    unmarked(&copy, &json!({}))
}

pub(super) async fn a_secret_of_the_service_goes_only_if_asked_to(world: Arc<dyn World>) -> anyhow::Result<()> {
    for cleanup in [false, true] {
        let suite = Suite::set(Arc::clone(&world), &[fixtures::crontab]).await?;
        let (stage, secrets, namespace) = (&suite.stage, kinds::secrets(), suite.synced());
        let mut related = json!({
            "identifier": "credentials", "origin": "service", "kind": "Secret",
            "object": { "template": { "template": "my-credentials" } },
            "watch": { "bySelector": { "matchLabels": { "find": "me" } } },
        });
        if cleanup {
            related["cleanup"] = json!(true);
        }
        suite.publish("CronTab", suite.usual_with(&related)).await?;
        let _agent = suite.start().await?;
        let (kind, client) = (suite.remote("CronTab"), &stage.team_a.client);
        suite.bound(&stage.team_a, &kind).await?;
        let metadata = json!({ "name": "my-crontab", "namespace": NAMESPACE, "labels": { "find": "me" } });
        let object =
            json!({ "apiVersion": kind.api_version(), "kind": "CronTab", "metadata": metadata, "spec": crontab() });
        stage
            .eventually("it can be ordered", async || Ok(client.create(&kind, Some(NAMESPACE), &object).await?))
            .await?;
        suite.arrives(&suite.local("CronTab"), "my-crontab").await?;
        stage.service.create(&secrets, Some(&namespace), &secret("my-credentials")).await?;
        let at = (client, &secrets, Some(NAMESPACE), "my-credentials");
        stage.object("the Secret is copied", at, |_| true).await?;

        // As soon as the order is gone, what shall go is gone.
        client.delete(&kind, Some(NAMESPACE), "my-crontab", &DeleteOptions::default()).await?;
        stage.gone("the order is gone", (client, &kind, Some(NAMESPACE), "my-crontab")).await?;
        let copy = client.get(&secrets, Some(NAMESPACE), "my-credentials").await?;
        ensure!(copy.is_none() == cleanup, "with cleanup {cleanup} the copy is {copy:?}");
        let original = stage.service.get(&secrets, Some(&namespace), "my-credentials").await?;
        ensure!(original.is_some(), "the original is gone");
    }
    Ok(())
}

pub(super) async fn a_secret_of_the_consumer_is_held_while_it_is_copied(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let (stage, secrets, namespace) = (&suite.stage, kinds::secrets(), suite.synced());
    let related = json!({
        "identifier": "credentials", "origin": "kcp", "kind": "Secret",
        "object": { "template": { "template": "my-credentials" } },
    });
    suite.publish("CronTab", suite.usual_with(&related)).await?;
    let _agent = suite.start().await?;
    order(&suite).await?;
    let client = &stage.team_a.client;
    client.create(&secrets, Some(NAMESPACE), &secret("my-credentials")).await?;
    let at = (client, &secrets, Some(NAMESPACE), "my-credentials");
    let copy_at = (&stage.service, &secrets, Some(namespace.as_str()), "my-credentials");
    stage.object("the Secret is copied", copy_at, |_| true).await?;
    let held = |secret: &Value| secret["metadata"]["finalizers"] == json!([api::FINALIZER]);
    stage.object("the original is held", at, held).await?;
    client.delete(&suite.remote("CronTab"), Some(NAMESPACE), "my-crontab", &DeleteOptions::default()).await?;
    stage.object("the original is free", at, |secret| secret["metadata"]["finalizers"].is_null()).await?;
    stage.gone("the copy is gone", copy_at).await
}

pub(super) async fn the_status_of_a_related_object_travels_if_asked_to(world: Arc<dyn World>) -> anyhow::Result<()> {
    for (origin, travels) in [("kcp", true), ("service", true), ("kcp", false)] {
        let suite = Suite::set(Arc::clone(&world), &[fixtures::crontab, fixtures::subnet]).await?;
        let (stage, namespace) = (&suite.stage, suite.synced());
        let (from, to) = if origin == "kcp" { ("kcp", "service") } else { ("service", "kcp") };
        let group = |side: &str| if side == "kcp" { suite.kcp_group() } else { stage.group.clone() };
        let mut related = json!({
            "identifier": "subnet", "origin": origin, "group": group(from), "version": "v1", "resource": "subnets",
            "projection": { "group": group(to) },
            "object": { "template": { "template": "my-subnet" } },
        });
        if travels {
            related["syncStatus"] = json!(true);
        }
        if origin == "service" {
            related["watch"] = json!({ "bySelector": {} });
        }
        suite.publish("Subnet", not_synchronized(&suite.kcp_group())).await?;
        suite.publish("CronTab", suite.usual_with(&related)).await?;
        let _agent = suite.start().await?;
        let (remote, local, client) = (suite.remote("Subnet"), suite.local("Subnet"), &stage.team_a.client);
        suite.bound(&stage.team_a, &remote).await?;
        let ours = (&stage.service, &local, Some(namespace.as_str()), "my-subnet");
        let theirs = (client, &remote, Some(NAMESPACE), "my-subnet");
        if origin == "service" {
            order(&suite).await?;
            ensure_namespace(&stage.service, &namespace).await?;
        }
        let (source, copy) = if origin == "kcp" { (theirs, ours) } else { (ours, theirs) };
        create_with_status(&suite, source, "first").await?;
        if origin == "kcp" {
            order(&suite).await?;
        }
        if !travels {
            stage.object("the Subnet is copied", copy, |_| true).await?;
            source.0.merge_patch(source.1, source.2, source.3, &json!({ "spec": { "size": 2 } })).await?;
            let copied = stage.object("its spec follows", copy, |copy| copy["spec"]["size"] == 2).await?;
            ensure!(copied["status"].is_null(), "{}", shown(&copied));
            continue;
        }
        let mut copied = stage.object("the status arrives", copy, |copy| copy["status"]["id"] == "first").await?;

        // It never goes the other way.
        copied["status"]["id"] = json!("changed");
        copy.0.replace_status(copy.1, copy.2, &copied).await?;
        let original = stage.object("the original is there", source, |_| true).await?;
        ensure!(original["status"]["id"] == "first", "{}", shown(&original));
        source.0.merge_patch_status(source.1, source.2, source.3, &json!({ "status": { "id": "second" } })).await?;
        stage.object("the next status arrives", copy, |copy| copy["status"]["id"] == "second").await?;
        let original = stage.object("the original is there", source, |_| true).await?;
        ensure!(original["status"]["id"] == "second", "{}", shown(&original));
    }
    Ok(())
}

/// Secrets that are found by a label, and whose copies go with them.
fn matching(origin: &str) -> Value {
    json!({
        "identifier": "credentials", "origin": origin, "kind": "Secret", "cleanupPolicy": "MatchOrigin",
        "object": { "selector": {
            "matchLabels": { "find": "me" },
            "rewrite": { "template": { "template": "{{ .Value }}" } },
        } },
        "watch": { "bySelector": { "matchLabels": { "find": "me" } } },
    })
}

/// Orders a CronTab that carries a label and whatever annotations, and waits for its copy.
async fn order_labelled(suite: &Suite, annotations: Value) -> anyhow::Result<()> {
    let (kind, client) = (suite.remote("CronTab"), &suite.stage.team_a.client);
    suite.bound(&suite.stage.team_a, &kind).await?;
    let metadata = json!({
        "name": "my-crontab", "namespace": NAMESPACE, "labels": { "find": "me" }, "annotations": annotations,
    });
    let object =
        json!({ "apiVersion": kind.api_version(), "kind": "CronTab", "metadata": metadata, "spec": crontab() });
    let create = async || Ok(client.create(&kind, Some(NAMESPACE), &object).await?);
    suite.stage.eventually("it can be ordered", create).await?;
    suite.arrives(&suite.local("CronTab"), "my-crontab").await.map(drop)
}

fn labelled(name: &str) -> Value {
    let mut secret = secret(name);
    secret["metadata"]["labels"] = json!({ "find": "me" });
    secret
}

pub(super) async fn a_copy_goes_as_soon_as_its_original_of_the_service_goes(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let (stage, secrets, namespace) = (&suite.stage, kinds::secrets(), suite.synced());
    suite.publish("CronTab", suite.usual_with(&matching("service"))).await?;
    let _agent = suite.start().await?;
    order_labelled(&suite, Value::Null).await?;
    let client = &stage.team_a.client;
    let at = |name| (client, &secrets, Some(NAMESPACE), name);
    for name in ["cred-1", "cred-2"] {
        stage.service.create(&secrets, Some(&namespace), &labelled(name)).await?;
        stage.object(&format!("{name} is copied"), at(name), |_| true).await?;
    }
    stage.service.delete(&secrets, Some(&namespace), "cred-1", &DeleteOptions::default()).await?;
    stage.gone("the copy of cred-1 goes with it", at("cred-1")).await?;
    stage.object("that of cred-2 stays", at("cred-2"), |_| true).await?;
    let original = (&stage.service, &secrets, Some(namespace.as_str()), "cred-2");
    stage.object("cred-2 stays", original, |_| true).await?;

    client.delete(&suite.remote("CronTab"), Some(NAMESPACE), "my-crontab", &DeleteOptions::default()).await?;
    stage.gone("the copy of cred-2 goes with the order", at("cred-2")).await?;
    stage.object("cred-2 itself stays", original, |_| true).await.map(drop)
}

pub(super) async fn a_copy_goes_also_if_order_and_original_go_at_once(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let (stage, secrets, namespace) = (&suite.stage, kinds::secrets(), suite.synced());
    suite.publish("CronTab", suite.usual_with(&matching("service"))).await?;
    let _agent = suite.start().await?;
    order_labelled(&suite, Value::Null).await?;
    let client = &stage.team_a.client;
    stage.service.create(&secrets, Some(&namespace), &labelled("cred-1")).await?;
    let at = (client, &secrets, Some(NAMESPACE), "cred-1");
    stage.object("cred-1 is copied", at, |_| true).await?;
    stage.service.delete(&secrets, Some(&namespace), "cred-1", &DeleteOptions::default()).await?;
    client.delete(&suite.remote("CronTab"), Some(NAMESPACE), "my-crontab", &DeleteOptions::default()).await?;
    stage.gone("the copy is gone", at).await?;
    stage.gone("the order is gone", (client, &suite.remote("CronTab"), Some(NAMESPACE), "my-crontab")).await
}

pub(super) async fn a_copy_goes_when_its_original_in_kcp_does_not_match_any_more(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let (stage, secrets, namespace) = (&suite.stage, kinds::secrets(), suite.synced());
    suite.publish("CronTab", suite.usual_with(&matching("kcp"))).await?;
    let _agent = suite.start().await?;
    order_labelled(&suite, Value::Null).await?;
    let client = &stage.team_a.client;
    let copied = |name| (&stage.service, &secrets, Some(namespace.as_str()), name);
    for name in ["cred-1", "cred-2"] {
        client.create(&secrets, Some(NAMESPACE), &labelled(name)).await?;
        stage.object(&format!("{name} is copied"), copied(name), |_| true).await?;
    }
    let other = json!({ "metadata": { "labels": { "find": "nobody" } } });
    client.merge_patch(&secrets, Some(NAMESPACE), "cred-1", &other).await?;
    stage.gone("the copy of cred-1 goes", copied("cred-1")).await?;
    stage.object("that of cred-2 stays", copied("cred-2"), |_| true).await?;
    // Its owner may delete it whenever he likes.
    let at = (client, &secrets, Some(NAMESPACE), "cred-1");
    stage.object("cred-1 stays and is free", at, |secret| secret["metadata"]["finalizers"].is_null()).await.map(drop)
}

pub(super) async fn a_copy_goes_as_its_order_says(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let stage = &suite.stage;
    suite.publish("CronTab", suite.usual()).await?;
    let _agent = suite.start().await?;
    order_labelled(&suite, Value::Null).await?;
    let (kind, client) = (suite.remote("CronTab"), &stage.team_a.client);
    keep_in_deletion(&suite, &suite.local("CronTab"), "my-crontab").await?;
    let wish = json!({ "metadata": { "annotations": { api::DELETION_PROPAGATION: "foreground" } } });
    client.merge_patch(&kind, Some(NAMESPACE), "my-crontab", &wish).await?;
    client.delete(&kind, Some(NAMESPACE), "my-crontab", &DeleteOptions::default()).await?;
    goes_in_the_foreground(&suite, &suite.local("CronTab"), "my-crontab").await
}

pub(super) async fn a_related_copy_goes_as_its_own_original_says(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let (stage, secrets) = (&suite.stage, kinds::secrets());
    let related = json!({
        "identifier": "credentials", "origin": "kcp", "kind": "Secret", "cleanupPolicy": "OnPrimaryDeletion",
        "object": { "template": { "template": "my-credentials" } },
    });
    suite.publish("CronTab", suite.usual_with(&related)).await?;
    let _agent = suite.start().await?;
    let client = &stage.team_a.client;
    let mut original = secret("my-credentials");
    original["metadata"]["annotations"] = json!({ api::DELETION_PROPAGATION: "foreground" });
    client.create(&secrets, Some(NAMESPACE), &original).await?;
    order_labelled(&suite, json!({ api::DELETION_PROPAGATION: "orphan" })).await?;
    let copy = suite.arrives(&secrets, "my-credentials").await?;
    ensure!(copy["metadata"]["annotations"][api::DELETION_PROPAGATION].is_null(), "{}", shown(&copy));
    keep_in_deletion(&suite, &secrets, "my-credentials").await?;
    client.delete(&suite.remote("CronTab"), Some(NAMESPACE), "my-crontab", &DeleteOptions::default()).await?;
    goes_in_the_foreground(&suite, &secrets, "my-credentials").await
}

/// Lets something depend on a copy, so that a deletion in the foreground can be seen.
async fn keep_in_deletion(suite: &Suite, kind: &Resource, name: &str) -> anyhow::Result<()> {
    let namespace = suite.synced();
    let copy = suite.arrives(kind, name).await?;
    let owner = json!({
        "apiVersion": copy["apiVersion"], "kind": copy["kind"], "name": name, "uid": copy["metadata"]["uid"],
        "blockOwnerDeletion": true,
    });
    let metadata = json!({ "name": "dependent", "ownerReferences": [owner], "finalizers": ["example.com/hold"] });
    let dependent = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
    suite.stage.service.create(&kinds::config_maps(), Some(&namespace), &dependent).await?;
    Ok(())
}

/// Waits until a copy waits for what depends on it.
async fn goes_in_the_foreground(suite: &Suite, kind: &Resource, name: &str) -> anyhow::Result<()> {
    let namespace = suite.synced();
    let at = (&suite.stage.service, kind, Some(namespace.as_str()), name);
    let goes = |copy: &Value| {
        !copy["metadata"]["deletionTimestamp"].is_null()
            && copy["metadata"]["finalizers"] == json!(["foregroundDeletion"])
    };
    suite.stage.object(&format!("{name} is deleted in the foreground"), at, goes).await.map(drop)
}

/// Where originals and copies are.
fn sides<'a>(service: &'a Client, kcp: &'a Client, origin: &str) -> (&'a Client, &'a Client) {
    if origin == "kcp" { (kcp, service) } else { (service, kcp) }
}

/// Orders a CronTab as soon as the kind is bound.
async fn order(suite: &Suite) -> anyhow::Result<()> {
    let kind = suite.remote("CronTab");
    suite.bound(&suite.stage.team_a, &kind).await?;
    suite.stage.order_kind(&kind, &suite.stage.team_a, "my-crontab", crontab()).await?;
    Ok(())
}

/// Backups of the service as a related resource, in some group of kcp.
fn backup_of(suite: &Suite, group: &str) -> Value {
    json!({
        "identifier": "the-backup", "origin": "service",
        "group": suite.stage.group, "version": "v1", "resource": "backups", "projection": { "group": group },
        "object": { "template": { "template": "my-backup" } },
    })
}

/// Only the schema is published.
fn not_synchronized(group: &str) -> Value {
    json!({ "projection": { "group": group }, "synchronization": { "enabled": false } })
}

/// What an operator does for an order.
async fn place_backup(suite: &Suite) -> anyhow::Result<()> {
    let (local, namespace) = (suite.local("Backup"), suite.synced());
    ensure_namespace(&suite.stage.service, &namespace).await?;
    let metadata = json!({ "name": "my-backup", "namespace": namespace });
    let backup = json!({ "apiVersion": local.api_version(), "kind": "Backup", "metadata": metadata, "spec": {} });
    suite.stage.service.create(&local, Some(&namespace), &backup).await?;
    Ok(())
}

fn secret(name: &str) -> Value {
    let data = json!({ "password": encoded("hunter2") });
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "data": data })
}

/// Creates a Subnet and at once replaces its status: nobody else may have written to it in between.
async fn create_with_status(
    suite: &Suite,
    (client, kind, namespace, name): (&Client, &Resource, Option<&str>, &str),
    id: &str,
) -> anyhow::Result<()> {
    let metadata = json!({ "name": name, "namespace": namespace });
    let subnet = json!({ "apiVersion": kind.api_version(), "kind": "Subnet", "metadata": metadata });
    let mut created = suite
        .stage
        .eventually("a Subnet can be created", async || Ok(client.create(kind, namespace, &subnet).await?))
        .await?;
    created["status"] = json!({ "id": id });
    client.replace_status(kind, namespace, &created).await?;
    Ok(())
}
