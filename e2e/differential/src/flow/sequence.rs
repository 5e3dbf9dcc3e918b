//! The sequence of a seed: the stage is set, then anything may be asked, then it may end.

use serde_json::{Value, json};

use super::apis::{self, Claims};
use super::things::{GROUP, OTHER_GROUP, WIDGETS};
use super::{EXPORT, OTHER, Step, Until, get, inside, objects, post, rights, view};
use crate::dice::Dice;
use crate::request::Body;

/// How many times something is asked once the stage is set.
const LENGTH: usize = 22;

/// Requests, and the set of rights that the agent has in the provider's workspace.
#[derive(Debug)]
pub struct Sequence {
    /// Which set of rights.
    pub rights: usize,
    /// The requests.
    pub steps: Vec<Step>,
}

impl Sequence {
    /// Whether it must not share workspaces: kcp writes to all bindings of a workspace for a claim on them, and is refused again and again
    /// while others are busy with theirs.
    pub fn is_alone(&self) -> bool {
        self.steps.iter().any(|Step { request, .. }| {
            let Body::Json(body) = &request.body else { return false };
            let claims = body.pointer("/spec/permissionClaims").and_then(Value::as_array);
            body["kind"] == "APIExport"
                && claims.is_some_and(|claims| claims.iter().any(|claim| claim["resource"] == "apibindings"))
        })
    }
}

/// The sequence of a seed.
pub fn sequence(seed: u64) -> Sequence {
    let mut dice = Dice::new(seed ^ 0xf10_0000);
    let dice = &mut dice;
    // Half of all agents have the rights that the reference agent asks for.
    let set = if dice.chance(50) { rights::SETS - 1 } else { dice.below(rights::SETS) };
    let mut steps = rights::grant(set);
    for consumer in ["{A}", "{B}"] {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "{ns}" } });
        steps.push(Step::admin(post(inside(consumer, "/api/v1/namespaces"), namespace)));
    }
    let mut schemas = vec![format!("v1.widgets.{GROUP}")];
    steps.push(apis::create_schema(apis::widgets("v1")));
    if dice.chance(50) {
        steps.push(apis::create_schema(apis::widgets("v2")));
    }
    if dice.chance(50) {
        schemas.push(format!("v1.plans.{GROUP}"));
        steps.push(apis::create_schema(apis::simple(GROUP, "plan", "Plan", false)));
    }
    let other = dice.chance(40);
    let none = Claims(Vec::new(), false);
    if other {
        steps.push(apis::create_schema(apis::simple(OTHER_GROUP, "part", "Part", true)));
        steps.extend(apis::export(dice, OTHER, &[format!("v1.parts.{OTHER_GROUP}")], &none));
        steps.extend(apis::bind(dice, "{A}", OTHER, &none));
    }
    let claims = Claims::roll(dice, other);
    steps.extend(apis::export(dice, EXPORT, &schemas, &claims));
    let slice = inside("{P}", "/apis/apis.kcp.io/v1alpha1/apiexportendpointslices/{ns}");
    if dice.chance(30) {
        steps.push(Step::admin(get(&slice)).until(Until::Still));
        // The virtual workspace hears of the export a moment later.
        steps.push(Step::admin(get(view("*", &format!("/apis/{GROUP}/v1")))).until(Until::Found));
        steps.push(objects::discovery(dice));
    }
    steps.extend(apis::bind(dice, "{A}", EXPORT, &claims));
    if dice.chance(60) {
        steps.extend(apis::bind(dice, "{B}", EXPORT, &claims));
    }
    steps.push(Step::admin(get(slice)).until(Until::Endpoint));
    steps.push(Step::admin(get(view("*", &WIDGETS.collection(None)))).until(Until::Found));
    let claimed = claims.things();
    for _ in 0..LENGTH {
        match dice.below(100) {
            0..70 => steps.push(objects::request(dice, &claimed)),
            70..76 => steps.push(objects::discovery(dice)),
            76..82 => steps.extend(objects::start(dice)),
            82..87 => steps.extend(apis::schemas(dice)),
            87..91 => steps.extend(apis::exports(dice, &claims)),
            91..96 => steps.extend(apis::bindings(dice, &claims)),
            _ => steps.extend(apis::slices(dice)),
        }
    }
    steps.extend(apis::ends(dice));
    Sequence { rights: set, steps }
}
