//! Objects, by way of the virtual workspace or in a consumer's workspace itself.

use serde_json::{Value, json};

use super::things::{BINDINGS, CLAIMABLE, CLUSTERS, EVENTS, OTHERS, PARTS, PLANS, Thing, WIDGETS};
use super::{Step, Until, Who, delete, get, inside, merge, post, view};
use crate::dice::Dice;
use crate::request::{Body, Request};

const APPLY: &str = "application/apply-patch+yaml";
const JSON_PATCH: &str = "application/json-patch+json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

/// Who asks through the virtual workspace: mostly somebody who has to do with it.
fn provider(dice: &mut Dice) -> Who {
    match dice.below(20) {
        0..11 => Who::Agent,
        11..19 => Who::Admin,
        _ => Who::Nobody,
    }
}

fn any_thing(dice: &mut Dice, claimed: &[Thing]) -> Thing {
    match dice.below(100) {
        0..40 => WIDGETS,
        40..46 => PLANS,
        46..70 if !claimed.is_empty() => *dice.pick(claimed),
        46..80 => *dice.pick(&CLAIMABLE),
        80..86 => PARTS,
        86..90 => EVENTS,
        90..93 => CLUSTERS,
        93..96 => BINDINGS,
        _ => *dice.pick(&OTHERS),
    }
}

/// A request about an object or a collection.
pub(super) fn request(dice: &mut Dice, claimed: &[Thing]) -> Step {
    let thing = any_thing(dice, claimed);
    let consumer = dice.word(&["{A}", "{A}", "{A}", "{B}"]);
    match dice.below(100) {
        0..14 => wildcard(dice, thing),
        14..70 => {
            let who = provider(dice);
            verb(dice, who, thing, &|rest| view(consumer, rest))
        }
        70..75 => {
            // Workspaces that have nothing to do with the export.
            let who = provider(dice);
            let elsewhere = dice.word(&["{P}", "root", "nowhere"]);
            verb(dice, who, thing, &|rest| view(elsewhere, rest))
        }
        _ => {
            let who = if dice.chance(80) { Who::Admin } else { Who::Agent };
            verb(dice, who, thing, &|rest| inside(consumer, rest))
        }
    }
}

/// Over all workspaces.
fn wildcard(dice: &mut Dice, thing: Thing) -> Step {
    let who = provider(dice);
    let all = view("*", &thing.collection(None));
    let below = view("*", &thing.collection(Some("{ns}")));
    let request = match dice.below(20) {
        0..9 => {
            let accept = dice.word(&["application/json", "application/json", TABLE, PARTIAL]);
            selected(dice, get(all)).accept(accept)
        }
        9..14 => return initial(dice, who, &all),
        14 => get(below),
        15 => get(format!("{below}/a")),
        16 => post(below, thing.object(dice, "{ns}-a")),
        17 => merge(format!("{below}/a"), json!({ "metadata": { "labels": { "tier": "b" } } })),
        18 => delete(format!("{below}/a")),
        _ => delete(all),
    };
    Step::new(who, request)
}

/// A watch that begins with what there is.
fn initial(dice: &mut Dice, who: Who, collection: &str) -> Step {
    let request = get(collection)
        .with("watch", "true")
        .with("sendInitialEvents", "true")
        .with("allowWatchBookmarks", "true")
        .with("resourceVersionMatch", "NotOlderThan");
    Step::new(who, selected(dice, request)).until(Until::Initial)
}

fn selected(dice: &mut Dice, mut request: Request) -> Request {
    if dice.chance(25) {
        request = request.with("labelSelector", dice.word(&["tier=a", "tier!=a", "tier", "a b"]));
    }
    if dice.chance(20) {
        request = request.with(
            "fieldSelector",
            dice.word(&["metadata.name=a", "metadata.name!=a", "metadata.namespace={ns}", "spec.size=7"]),
        );
    }
    request
}

fn verb(dice: &mut Dice, who: Who, thing: Thing, place: &dyn Fn(&str) -> String) -> Step {
    let name = match thing.plural {
        "logicalclusters" => "cluster",
        "apibindings" | "apiexports" => dice.word(&["", "", "other", "none"]),
        _ => dice.word(&["a", "a", "b"]),
    };
    // Controllers write bindings whenever they like, and what is done to them has a file of its own; the logical cluster belongs to all sequences.
    let watched = matches!(thing.plural, "apibindings" | "apiexports" | "customresourcedefinitions" | "nothings");
    let choice = match thing.plural {
        _ if watched => dice.below(34),
        "logicalclusters" => *dice.pick(&[0, 12, 24, 30, 86]),
        _ => dice.below(100),
    };
    let namespace = dice.word(&["{ns}", "{ns}", "{ns}", "{ns}", "{ns}", "absent"]);
    let collection = place(&thing.collection(Some(namespace)));
    let name = match name {
        name if thing.namespaced || name == "cluster" => name.to_owned(),
        "" => "{ns}".to_owned(),
        name => format!("{{ns}}-{name}"),
    };
    let name = name.as_str();
    let one = format!("{collection}/{name}");
    let request = match choice {
        0..12 => get(&one).accept(dice.word(&["application/json", "application/json", TABLE, PARTIAL])),
        12..24 => {
            let list = if dice.chance(40) { place(&thing.collection(None)) } else { collection };
            selected(dice, get(list)).accept(dice.word(&["application/json", "application/json", TABLE]))
        }
        24..30 => return initial(dice, who, &place(&thing.collection(None))),
        30..34 => get(format!("{one}/status")),
        34..56 => created(dice, thing, &collection, name),
        56..66 => {
            let mut changes = thing.content(dice);
            if dice.chance(40) {
                changes["metadata"] = dice.any(&json!([
                    { "labels": { "tier": "b" } }, { "finalizers": ["syncagent.kcp.io/cleanup"] }, { "finalizers": null },
                    { "resourceVersion": null }, { "resourceVersion": "1" }, { "uid": "x" },
                ]));
            }
            let status = if dice.chance(25) { "/status" } else { "" };
            written(dice, Request::new("PUT", format!("{one}{status}"), Body::Last(one.clone(), changes)))
        }
        66..78 => patched(dice, thing, &one),
        78..86 => {
            let object = thing.object(dice, name);
            let request = Request::new("PATCH", one, Body::Json(object)).media(APPLY);
            let request = request.with("fieldManager", dice.word(&["alice", "bob"]));
            if dice.chance(50) { request.with("force", "true") } else { request }
        }
        86..96 => delete(one),
        96 | 97 => selected(dice, delete(collection)),
        _ => Request::new("PATCH", one, Body::Json(json!([{ "op": "test", "path": "/metadata/name", "value": "z" }])))
            .media(JSON_PATCH),
    };
    Step::new(who, request)
}

fn written(dice: &mut Dice, request: Request) -> Request {
    match dice.below(10) {
        0 => request.with("dryRun", "All"),
        1 => request.with("fieldValidation", "Strict"),
        2 => request.with("fieldManager", "api-syncagent"),
        _ => request,
    }
}

fn created(dice: &mut Dice, thing: Thing, collection: &str, name: &str) -> Request {
    let mut object = thing.object(dice, name);
    match dice.below(25) {
        0 => {
            object["metadata"] = json!({ "generateName": "{ns}-gen1-" });
        }
        1 => object["metadata"]["namespace"] = "elsewhere".into(),
        2 => object["metadata"]["annotations"] = json!({ "kcp.io/cluster": "elsewhere" }),
        3 => object["metadata"]["name"] = "Bad_Name".into(),
        _ => {}
    }
    written(dice, post(collection, object))
}

fn patched(dice: &mut Dice, thing: Thing, one: &str) -> Request {
    let (mut patch, mut path) = (thing.content(dice), one.to_owned());
    match dice.below(8) {
        0 | 1 => {
            patch = json!({ "metadata": { "finalizers": dice.any(&json!([null, ["syncagent.kcp.io/cleanup"]])) } });
        }
        2 => {
            patch = json!({ "metadata": { "labels": dice.any(&json!([{ "tier": "a" }, { "tier": "b" }, { "tier": null }, null])) } });
        }
        3 => patch = json!({ "metadata": { "annotations": { "kcp.io/cluster": dice.any(&json!([null, "x"])) } } }),
        4 => {
            path += "/status";
            patch = json!({ "status": { "phase": dice.word(&["Ready", "Waiting", "Odd"]) } });
        }
        _ => {}
    }
    written(dice, merge(path, patch))
}

/// What the virtual workspace serves, and addresses that lead nowhere.
pub(super) fn discovery(dice: &mut Dice) -> Step {
    let target = dice.word(&["*", "*", "{A}", "{B}", "{P}"]);
    let rest = dice.word(&[
        "/api",
        "/apis",
        "/api/v1",
        "/apis/{ns}.example.com",
        "/apis/{ns}.example.com/v1",
        "/apis/{ns}.example.com/v1",
        "/apis/apis.kcp.io/v1alpha1",
        "/apis/apis.kcp.io/v1alpha2",
        "/apis/core.kcp.io/v1alpha1",
        "/apis/coordination.k8s.io/v1",
        "/apis/events.k8s.io/v1",
        "/apis/rbac.authorization.k8s.io/v1",
        "/apis/{ns}-other.example.com/v1",
        "/apis/unknown.example.com",
        "/apis/unknown.example.com/v1",
        "/apis/{ns}.example.com/v9",
        "/readyz",
        "/",
        "/odd",
    ]);
    let path = match dice.below(12) {
        0 => format!("/services/apiexport/{{P}}/{{ns}}-absent/clusters/{target}{rest}"),
        1 => format!("/services/apiexport/{{P-path}}/{{ns}}/clusters/{target}{rest}"),
        2 => format!("/services/apiexport/{{P}}/{{ns}}/clusters/{{A-path}}{rest}"),
        3 => format!("/services/apiexport/{{P}}/{{ns}}{rest}"),
        4 => format!("/services/apiexport/{{A}}/{{ns}}/clusters/{target}{rest}"),
        5 => format!("/services/apiexport/{{P}}/{{ns}}-other/clusters/{target}{rest}"),
        6 if rest != "/apis" => inside(dice.word(&["{A}", "{B}", "{P}", "{A-path}"]), rest),
        _ => view(target, rest),
    };
    let who = provider(dice);
    Step::new(who, get(path))
}

/// What the agent reads before it starts: each is a request of its own.
pub(super) fn start(dice: &mut Dice) -> Vec<Step> {
    let who = if dice.chance(75) { Who::Agent } else { provider(dice) };
    let place = dice.word(&["{P}", "{P}", "{P}", "{P-path}", "{A}"]);
    let apis = "/apis/apis.kcp.io/v1alpha1";
    let named = |resource: &str, name: &str| {
        get(inside(place, &format!("{apis}/{resource}"))).with("fieldSelector", format!("metadata.name={name}"))
    };
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": {
            "group": "apis.kcp.io", "resource": "apiexports", "subresource": "content", "name": "{ns}",
            "verb": dice.word(&["get", "list", "create", "*"]),
        } },
    });
    let all: Vec<Request> = vec![
        get(inside(place, &format!("{apis}/apiexportendpointslices/{{ns}}"))),
        get(inside(place, "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster")),
        get(inside(place, &format!("{apis}/apiexports/{{ns}}"))),
        get(inside(place, "/apis/apis.kcp.io/v1alpha2/apiexports/{ns}")),
        named("apiexports", "{ns}"),
        named("apiexportendpointslices", "{ns}"),
        named("apiexports", "{ns}-other"),
        get(inside(place, &format!("{apis}/apiexports"))),
        get(inside(place, &format!("{apis}/apiresourceschemas"))),
        get(inside(place, "/apis/core.kcp.io/v1alpha1/logicalclusters")),
        post(inside(place, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"), review),
        post(inside(place, &EVENTS.collection(Some("default"))), export_event()),
        get(view("*", &BINDINGS.collection(None))),
        get(view("*", &CLUSTERS.collection(None))),
    ];
    let mut steps = Vec::new();
    for _ in 0..3 {
        steps.push(Step::new(who, dice.pick(&all).clone()));
    }
    steps
}

fn export_event() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": "{ns}.1" },
        "involvedObject": { "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport", "name": "{ns}" },
        "reason": "AddingPermissionClaims", "message": "Added new permission claim(s) for all events.", "type": "Normal",
    })
}
