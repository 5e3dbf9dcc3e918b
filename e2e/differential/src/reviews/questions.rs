//! Questions about who may do what.

use serde_json::{Value, json};

use super::setup::{ACCOUNTS, GROUPS, NAMES, NAMESPACES, PATHS, RESOURCES, SUBRESOURCES, SYSTEM_GROUPS, USERS, VERBS};
use crate::Pair;
use crate::dice::Dice;

const API: &str = "/apis/authorization.k8s.io/v1";
const CLUSTER: &str = "authentication.kcp.io/cluster-name";
const SCOPES: &str = "authentication.kcp.io/scopes";
const WARRANT: &str = "authorization.kcp.io/warrant";

/// One review.
pub struct Question {
    /// Where it is sent.
    pub path: String,
    /// Its spec.
    pub spec: Value,
    /// Whom the administrator impersonates.
    pub headers: Vec<(&'static str, String)>,
}

impl Question {
    /// A question about somebody else.
    pub fn about(spec: Value) -> Self {
        Self { path: format!("{API}/subjectaccessreviews"), spec, headers: Vec::new() }
    }

    /// The kind of the review.
    pub fn kind(&self) -> &'static str {
        match self.path.rsplit('/').next() {
            Some("selfsubjectaccessreviews") => "SelfSubjectAccessReview",
            Some("selfsubjectrulesreviews") => "SelfSubjectRulesReview",
            Some("localsubjectaccessreviews") => "LocalSubjectAccessReview",
            _ => "SubjectAccessReview",
        }
    }
}

/// The questions of a seed.
pub fn questions(seed: u64, pair: Pair, count: usize) -> Vec<Question> {
    // Other choices than those of the set-up.
    let mut dice = Dice::new(seed ^ 0x5eed);
    let kcp = pair == Pair::KcpReviews;
    (0..count).map(|_| question(kcp, &mut dice)).collect()
}

fn question(kcp: bool, dice: &mut Dice) -> Question {
    match dice.below(20) {
        0..=10 => {
            let mut spec = subject(kcp, dice);
            ask(&mut spec, dice);
            Question::about(spec)
        }
        11 | 12 => {
            let mut spec = subject(kcp, dice);
            let namespace = *dice.pick(&NAMESPACES);
            spec["resourceAttributes"] = resource(dice);
            // Most of the time both name the same namespace.
            if dice.chance(90) {
                spec["resourceAttributes"]["namespace"] = namespace.into();
            }
            Question {
                path: format!("{API}/namespaces/{namespace}/localsubjectaccessreviews"),
                spec,
                headers: Vec::new(),
            }
        }
        13..=16 => {
            let mut spec = json!({});
            ask(&mut spec, dice);
            Question { path: format!("{API}/selfsubjectaccessreviews"), spec, headers: acting(dice) }
        }
        _ => {
            let spec = if dice.chance(95) { json!({"namespace": dice.pick(&NAMESPACES)}) } else { json!({}) };
            Question { path: format!("{API}/selfsubjectrulesreviews"), spec, headers: acting(dice) }
        }
    }
}

/// Whom the administrator impersonates.
fn acting(dice: &mut Dice) -> Vec<(&'static str, String)> {
    let mut headers = Vec::new();
    if dice.chance(25) {
        let user = format!("system:serviceaccount:{}:{}", dice.pick(&NAMESPACES), dice.pick(&ACCOUNTS));
        headers.push(("impersonate-user", user));
    } else {
        headers.push(("impersonate-user", (*dice.pick(&USERS)).to_owned()));
    }
    if dice.chance(50) {
        headers.push(("impersonate-group", (*dice.pick(&GROUPS)).to_owned()));
    }
    // A group that only the administrator of everything may take on.
    if dice.chance(5) {
        headers.push(("impersonate-group", "system:masters".to_owned()));
    }
    headers
}

/// The subject of a review: user, groups and extra attributes.
fn subject(kcp: bool, dice: &mut Dice) -> Value {
    let mut groups: Vec<&str> = GROUPS.iter().copied().filter(|_| dice.chance(25)).collect();
    if dice.chance(40) {
        groups.push("system:authenticated");
    }
    if dice.chance(15) {
        groups.push(dice.word(if kcp { &SYSTEM_GROUPS[..] } else { &SYSTEM_GROUPS[..4] }));
    }
    if dice.chance(4) {
        groups.push(dice.word(&["system:masters", "system:kcp:admin", "system:kcp:logical-cluster-admin"]));
    }
    let account = format!("system:serviceaccount:{}:{}", dice.pick(&NAMESPACES), dice.pick(&ACCOUNTS));
    let (user, mut extra) = match dice.below(10) {
        0 | 1 => (account, json!({})),
        2 if kcp => (account, json!({CLUSTER: ["{here}"], SCOPES: ["cluster:{here}"]})),
        3 if kcp => (account, json!({CLUSTER: ["{there}"], SCOPES: ["cluster:{there}"]})),
        4 if kcp => ((*dice.pick(&USERS)).to_owned(), scopes(dice)),
        5 if kcp => ("system:kcp:serviceaccount:{there}:n1-{token}:bot".to_owned(), json!({})),
        6 if dice.chance(20) => (String::new(), json!({})),
        _ => ((*dice.pick(&USERS)).to_owned(), json!({})),
    };
    if kcp && dice.chance(10) {
        extra[WARRANT] = json!([warrant(dice).to_string()]);
    }
    let mut spec = json!({"user": user, "groups": groups});
    if extra.as_object().is_some_and(|extra| !extra.is_empty()) {
        spec["extra"] = extra;
    }
    spec
}

fn scopes(dice: &mut Dice) -> Value {
    let here = ["cluster:{here}", "cluster:{there}", "cluster:{there},cluster:{here}", "odd"];
    let count = 1 + dice.below(2);
    let scopes: Vec<&str> = (0..count).map(|_| dice.word(&here)).collect();
    json!({SCOPES: scopes})
}

fn warrant(dice: &mut Dice) -> Value {
    let account = format!("system:serviceaccount:{}:{}", dice.pick(&NAMESPACES), dice.pick(&ACCOUNTS));
    match dice.below(3) {
        0 => json!({"user": dice.pick(&USERS), "groups": [dice.pick(&GROUPS)]}),
        1 => json!({"user": account, "extra": {CLUSTER: ["{here}"]}}),
        _ => json!({"user": account, "groups": ["system:authenticated"]}),
    }
}

fn ask(spec: &mut Value, dice: &mut Dice) {
    if dice.chance(20) {
        let verb = dice.word(&["get", "access", "post"]);
        spec["nonResourceAttributes"] = json!({"verb": verb, "path": dice.pick(&PATHS)});
    } else {
        spec["resourceAttributes"] = resource(dice);
    }
    // Both, or neither, is an error.
    if dice.chance(2) {
        spec["resourceAttributes"] = resource(dice);
        spec["nonResourceAttributes"] = json!({"verb": "get", "path": "/x"});
    } else if dice.chance(2)
        && let Some(map) = spec.as_object_mut()
    {
        map.remove("resourceAttributes");
        map.remove("nonResourceAttributes");
    }
}

fn resource(dice: &mut Dice) -> Value {
    let (group, resources) = *dice.pick(&RESOURCES);
    let mut attributes = json!({"verb": dice.pick(&VERBS), "group": group, "resource": dice.pick(resources)});
    if dice.chance(60) {
        attributes["namespace"] = (*dice.pick(&NAMESPACES)).into();
    }
    if dice.chance(30) {
        attributes["name"] = (*dice.pick(&NAMES)).into();
    }
    if dice.chance(25) {
        attributes["subresource"] = dice.word(&SUBRESOURCES).into();
    }
    if dice.chance(10) {
        attributes["version"] = dice.word(&["v1", "*"]).into();
    }
    if dice.chance(3) {
        attributes["verb"] = "*".into();
    }
    if dice.chance(5) {
        let selectors = ["metadata.name=a", "metadata.name", "a=b,c", "spec.x!=y"];
        attributes["fieldSelector"] = json!({"rawSelector": dice.word(&selectors)});
    }
    if dice.chance(5) {
        let selectors = ["a=b", "a in (b", "!a", "a b"];
        attributes["labelSelector"] = json!({"rawSelector": dice.word(&selectors)});
    }
    attributes
}
