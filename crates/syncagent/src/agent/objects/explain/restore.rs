//! Orders that have gone back in time, and copies without orders: found as the agent would find them, and let go on.

use std::time::Duration;

use carrick_client::Object;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::see_all;
use crate::agent::catalog::Catalog;
use crate::agent::objects::context::Context;
use crate::agent::objects::copies;
use crate::agent::objects::deletion::orphans::OrphanedCopy;
use crate::agent::objects::related::kinds;
use crate::agent::objects::shared::Shared;
use crate::agent::objects::source::source_key;
use crate::agent::restore::{Chosen, Finding, RestoredOrder};
use crate::api::{ADOPTION, AFTER_RESTORE, REMOTE_GENERATION, REMOTE_UID};
use crate::decide::compare::{Why, compare};
use crate::decide::state::entry_key;
use crate::decide::{Setback, follows, setback};
use crate::rules::metadata::{SourceKey, annotation, is_deleting};
use crate::rules::{AfterRestore, Duty, Rules, Selection};

/// How many differing fields of an order are shown.
const SHOWN: usize = 5;

/// What was found, and what was done about it.
#[derive(Debug, Default)]
pub(crate) struct FoundOrders {
    /// By PublishedResource and order.
    pub orders: Vec<RestoredOrder>,
    /// Those that were let go on, as far as that was asked for; or why not.
    pub let_go: Vec<Result<(), String>>,
    /// Why some may be missing.
    pub problem: Option<String>,
}

/// Looks at every order once, as the agent would right now, and lets those go on that were chosen.
pub(crate) async fn find(
    context: Context,
    catalog: &Catalog,
    patience: Duration,
    chosen: Option<&Chosen>,
) -> FoundOrders {
    let stop = CancellationToken::new();
    let _end = stop.clone().drop_guard();
    let (plans, manager) = see_all(context, catalog, patience, &stop).await;
    let mut found = FoundOrders { problem: plans.problem, ..FoundOrders::default() };
    let Some(manager) = manager else { return found };
    for syncer in manager.syncers().values() {
        let shared = syncer.shared();
        let rules = shared.rules();
        if rules.duty != Duty::Sync {
            continue;
        }
        for (key, object) in shared.sources.list_all() {
            let key = source_key(&key);
            let source = object.value();
            if let Some(order) = look(shared, &rules, &key, &source) {
                if chosen.is_some_and(|chosen| chosen.is_meant(&order)) && order.finding.can_be_accepted() {
                    found.let_go.push(let_go(shared, &rules, &key, &source).await);
                }
                found.orders.push(order);
            }
        }
        found.orders.extend(orphans(shared, &rules));
    }
    found.orders.sort_by(|a, b| (&a.published, &a.cluster, &a.object).cmp(&(&b.published, &b.cluster, &b.object)));
    manager.stop().await;
    found
}

/// What became of an order, if it is one that somebody has to decide about.
fn look(shared: &Shared, rules: &Rules, key: &SourceKey, source: &Value) -> Option<RestoredOrder> {
    let namespace = shared.consumer_namespaces.as_ref().and_then(|known| known.get(&key.cluster, "", &key.namespace));
    let selected = rules.selects(source, namespace.map(|namespace| namespace.value()).as_ref());
    if is_deleting(source) || selected != Selection::In {
        return None;
    }
    let copy = copies::of(&shared.copies, key, &rules.remote.resource()).first().map(|copy| copy.value());
    let uid = source["metadata"]["uid"].as_str().unwrap_or_default();
    let is_other = |copy: &Value| annotation(copy, REMOTE_UID).is_some_and(|theirs| theirs != uid);
    let state = shared.states.get(&rules.remote, key);
    let is_known = state.entry(&entry_key(&key.cluster, &key.namespace, &key.name)).is_some();
    let finding = match copy.as_ref() {
        Some(copy) if is_other(copy) => Finding::OtherOrder,
        copy => match setback(source, copy, is_known, shared.states.has_ended(uid))? {
            _ if follows(rules, source) => return None,
            Setback::Older { .. } => Finding::Older,
            Setback::Returned => Finding::Returned,
            Setback::Held => Finding::Held,
        },
    };
    let differences = copy.as_ref().map(|copy| differences(rules, source, copy)).unwrap_or_default();
    // Where nothing differs, nothing is undone: the agent goes on by itself.
    if copy.is_some() && finding != Finding::OtherOrder && differences.is_empty() {
        return None;
    }
    let workspace = workspace(shared, key);
    let object = object_name(key);
    let others = copy.as_ref().filter(|_| finding == Finding::OtherOrder);
    let command = others.map_or_else(
        || {
            let from = workspace.as_deref().unwrap_or(&key.cluster);
            format!("carrick restore accept --workspace {from} --object {object}")
        },
        |copy| format!("kubectl annotate {} {ADOPTION}=TakeOver", place(rules, copy)),
    );
    let in_kcp = format!(
        "generation {} of {}",
        source["metadata"]["generation"],
        source["metadata"]["creationTimestamp"].as_str().unwrap_or("an unknown time")
    );
    let on_service = copy.as_ref().map(|copy| {
        let done =
            annotation(copy, REMOTE_GENERATION).map_or_else(String::new, |done| format!(", of generation {done}"));
        format!("{}{done}", full_name(copy))
    });
    Some(RestoredOrder {
        published: rules.name.clone(),
        resource: rules.remote.resource(),
        cluster: key.cluster.to_string(),
        workspace,
        object,
        finding,
        in_kcp: Some(in_kcp),
        on_service,
        differences,
        command,
    })
}

/// The fields that would change on the service cluster, in words.
fn differences(rules: &Rules, source: &Value, copy: &Value) -> Vec<String> {
    let comparison = compare(rules, source, copy, &[]);
    let open = comparison.differences.iter().filter(|it| it.why == Why::Open && !it.path.starts_with("status"));
    let all: Vec<String> = open
        .map(|it| {
            let value = |value: &Option<String>| match value {
                Some(value) => value.clone(),
                None if comparison.confidential => "hidden".to_owned(),
                None => "nothing".to_owned(),
            };
            format!("{}: {} in kcp, {} on the service cluster", it.path, value(&it.source), value(&it.copy))
        })
        .collect();
    match all.len().checked_sub(SHOWN) {
        None | Some(0) => all,
        Some(more) => {
            let rest = if more == 1 { "1 more field".to_owned() } else { format!("{more} more fields") };
            all.into_iter().take(SHOWN).chain([rest]).collect()
        }
    }
}

/// Copies whose orders do not exist. They are never deleted by the agent.
fn orphans(shared: &Shared, rules: &Rules) -> Vec<RestoredOrder> {
    let resource = rules.remote.resource();
    let local = rules.local.resource();
    let orphan = |copy: &Object| {
        let key = copies::source_of(copy, &resource)?;
        let is_there = shared.sources.get(&key.cluster, &key.namespace, &key.name).is_some();
        // Copies do not name the kind of their source, but what is remembered does.
        if is_there || shared.states.get(&rules.remote, &key).is_empty() {
            return None;
        }
        let value = copy.value();
        let done = annotation(&value, REMOTE_GENERATION);
        let orphaned =
            OrphanedCopy { namespace: copy.namespace.to_string(), name: copy.name.to_string(), since: String::new() };
        Some(RestoredOrder {
            published: rules.name.clone(),
            resource: resource.clone(),
            cluster: key.cluster.to_string(),
            workspace: workspace(shared, &key),
            object: object_name(&key),
            finding: Finding::CopyWithoutOrder,
            in_kcp: None,
            on_service: Some(format!(
                "{}{}",
                full_name(&value),
                done.map_or_else(String::new, |done| format!(", of generation {done}"))
            )),
            differences: Vec::new(),
            command: orphaned.deletion(&local),
        })
    };
    shared.copies.list(copies::SERVICE).iter().filter_map(|copy| orphan(copy)).collect()
}

/// Lets an order go on as it is in kcp: exactly the one that was seen.
async fn let_go(shared: &Shared, rules: &Rules, key: &SourceKey, source: &Value) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", shared.shown(key));
    let cluster = shared.fleets.consumers.cluster(&key.cluster).map_err(|error| failed(&error))?;
    let metadata = &source["metadata"];
    let patch = json!({ "metadata": {
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
        "annotations": { AFTER_RESTORE: AfterRestore::FOLLOW },
    } });
    let (kind, namespace) = (kinds::resource(&rules.remote), Some(&*key.namespace));
    let written = cluster.json_client().merge_patch(&kind, namespace, &key.name, &patch).await;
    written.map(drop).map_err(|error| failed(&error))
}

fn workspace(shared: &Shared, key: &SourceKey) -> Option<String> {
    let cluster = shared.fleets.consumers.cluster(&key.cluster).ok()?;
    cluster.path().map(|path| path.to_string())
}

fn object_name(key: &SourceKey) -> String {
    if key.namespace.is_empty() { key.name.to_string() } else { format!("{}/{}", key.namespace, key.name) }
}

fn full_name(object: &Value) -> String {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    }
}

/// A copy as kubectl names it.
fn place(rules: &Rules, copy: &Value) -> String {
    let text = |key: &str| copy["metadata"][key].as_str().unwrap_or_default();
    let resource = rules.local.resource();
    let inside = match text("namespace") {
        "" => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    format!("{} {}{inside}", resource.trim_end_matches('.'), text("name"))
}
