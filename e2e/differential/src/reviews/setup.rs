//! Roles and bindings of a seed.

use serde_json::{Value, json};

use super::questions::Question;
use crate::Pair;
use crate::dice::Dice;

const GROUP: &str = "rbac.authorization.k8s.io";
const API: &str = "/apis/rbac.authorization.k8s.io/v1";
/// The namespaces with roles of their own.
pub const NAMESPACES: [&str; 2] = ["n1-{token}", "n2-{token}"];
/// Whom bindings are for.
pub const USERS: [&str; 4] = ["u1-{token}", "u2-{token}", "u3-{token}", "u4-{token}"];
pub const GROUPS: [&str; 3] = ["g1-{token}", "g2-{token}", "g3-{token}"];
/// Groups that everybody, or nobody, is in.
pub const SYSTEM_GROUPS: [&str; 5] = [
    "system:authenticated",
    "system:unauthenticated",
    "system:serviceaccounts",
    "system:serviceaccounts:n1-{token}",
    "system:cluster:{there}",
];
pub const ACCOUNTS: [&str; 2] = ["bot", "agent"];

pub const VERBS: [&str; 9] =
    ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate"];
/// API groups, each with some of its resources.
pub const RESOURCES: [(&str, &[&str]); 6] = [
    ("", &["configmaps", "secrets", "namespaces", "serviceaccounts", "events"]),
    ("apps", &["deployments", "statefulsets"]),
    ("rbac.authorization.k8s.io", &["roles", "clusterroles"]),
    ("apis.kcp.io", &["apibindings", "apiexports"]),
    ("tenancy.kcp.io", &["workspaces", "workspacetypes"]),
    ("example.com", &["widgets"]),
];
pub const SUBRESOURCES: [&str; 4] = ["status", "scale", "token", "content"];
pub const NAMES: [&str; 3] = ["a", "b", "c"];
pub const PATHS: [&str; 10] =
    ["/", "/api", "/apis", "/apis/apps", "/healthz", "/livez", "/metrics", "/x", "/x/y", "/version"];

/// What is stored before anything is asked.
pub struct Setup {
    objects: Vec<(String, Value)>,
    aggregated: Vec<String>,
    kcp: bool,
}

impl Setup {
    /// The set-up of a seed. Names hold `{token}`, which makes them new ones each time.
    pub fn of(seed: u64, pair: Pair) -> Self {
        let mut dice = Dice::new(seed);
        let kcp = pair == Pair::KcpReviews;
        let mut setup = Self { objects: Vec::new(), aggregated: Vec::new(), kcp };
        for name in NAMESPACES {
            setup.add(
                "/api/v1/namespaces",
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
            );
        }
        for number in 0..4 {
            let mut role = role("ClusterRole", &format!("c{number}-{{token}}"), &mut dice);
            if dice.chance(50) {
                role["metadata"]["labels"] = json!({"into-{token}": "all"});
            }
            setup.add(&format!("{API}/clusterroles"), role);
        }
        // A role of the workspace is merged with the one of the same name that exists everywhere.
        if kcp && dice.chance(50) {
            setup.add(&format!("{API}/clusterroles"), role("ClusterRole", "view", &mut dice));
        }
        if kcp {
            setup.aggregate(&mut dice);
        }
        for namespace in NAMESPACES {
            for number in 0..2 {
                let role = role("Role", &format!("r{number}"), &mut dice);
                setup.add(&format!("{API}/namespaces/{namespace}/roles"), role);
            }
            for number in 0..3 {
                let binding = binding("RoleBinding", &format!("b{number}"), namespace, kcp, &mut dice);
                setup.add(&format!("{API}/namespaces/{namespace}/rolebindings"), binding);
            }
        }
        for number in 0..6 {
            let binding = binding("ClusterRoleBinding", &format!("d{number}-{{token}}"), "", kcp, &mut dice);
            setup.add(&format!("{API}/clusterrolebindings"), binding);
        }
        setup.enter(&mut dice);
        setup.mark();
        setup
    }

    /// What is stored, in this order.
    pub fn objects(&self) -> impl Iterator<Item = (String, Value)> {
        self.objects.iter().cloned()
    }

    /// The paths of the aggregated roles.
    pub fn aggregated(&self) -> impl Iterator<Item = String> {
        self.aggregated.iter().cloned()
    }

    /// Questions that are answered with yes as soon as everything is known.
    pub fn markers(&self) -> Vec<Question> {
        let ask = |verb: &str| {
            let attributes = json!({"verb": verb, "group": "marker.example.com", "resource": "markers",
                "namespace": NAMESPACES[0]});
            Question::about(json!({"user": "marker-{token}", "resourceAttributes": attributes}))
        };
        let enter = json!({"user": "marker-{token}", "nonResourceAttributes": {"verb": "access", "path": "/"}});
        let mut all = vec![ask("mark"), Question::about(enter)];
        if self.kcp {
            all.push(ask("collect"));
        }
        all
    }

    fn add(&mut self, path: &str, object: Value) {
        self.objects.push((path.to_owned(), object));
    }

    /// A role that collects others, and one that collects that one.
    fn aggregate(&mut self, dice: &mut Dice) {
        let selectors = [
            json!([{"matchLabels": {"into-{token}": "all"}}]),
            json!([{"matchExpressions": [{"key": "into-{token}", "operator": "Exists"}]}]),
            json!([{"matchLabels": {"into-{token}": "none"}}, {"matchLabels": {"into-{token}": "all"}}]),
        ];
        let role = |name: &str, label: &str, selectors: &Value| {
            json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole",
                "metadata": {"name": name, "labels": {"outer-{token}": label}},
                "aggregationRule": {"clusterRoleSelectors": selectors}})
        };
        let all = role("all-{token}", "yes", dice.pick(&selectors));
        let outer = role("outer-{token}", "no", &json!([{"matchLabels": {"outer-{token}": "yes"}}]));
        for object in [all, outer] {
            let path = format!("{API}/clusterroles");
            self.aggregated.push(format!("{path}/{}", object["metadata"]["name"].as_str().unwrap_or_default()));
            self.add(&path, object);
        }
    }

    /// Lets some of the subjects into the workspace: in kcp, nobody can do anything without this.
    fn enter(&mut self, dice: &mut Dice) {
        let mut subjects: Vec<Value> =
            USERS.iter().filter(|_| dice.chance(70)).map(|name| subject("User", name)).collect();
        subjects.extend(GROUPS.iter().filter(|_| dice.chance(40)).map(|name| subject("Group", name)));
        if dice.chance(30) {
            subjects.push(subject("Group", "system:authenticated"));
        }
        if self.kcp && dice.chance(60) {
            subjects.push(subject("User", "system:kcp:serviceaccount:{there}:n1-{token}:bot"));
        }
        let role = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole", "metadata": {"name": "enter-{token}"},
            "rules": [{"nonResourceURLs": ["/"], "verbs": ["access"]}]});
        self.add(&format!("{API}/clusterroles"), role);
        let binding = bound("ClusterRoleBinding", "enter-{token}", "ClusterRole", "enter-{token}", &subjects);
        self.add(&format!("{API}/clusterrolebindings"), binding);
    }

    /// Adds what the markers are about, of each kind, as the last things.
    fn mark(&mut self) {
        let rule = |verb: &str| json!({"apiGroups": ["marker.example.com"], "resources": ["markers"], "verbs": [verb]});
        let who = || vec![subject("User", "marker-{token}")];
        let version = format!("{GROUP}/v1");
        let inside = format!("{API}/namespaces/{}", NAMESPACES[0]);
        self.add(
            &format!("{API}/clusterroles"),
            json!({"apiVersion": version, "kind": "ClusterRole",
                "metadata": {"name": "marker-{token}", "labels": {"into-{token}": "all"}},
                "rules": [rule("collect"), {"nonResourceURLs": ["/"], "verbs": ["access"]}]}),
        );
        if self.kcp {
            let collected = bound("ClusterRoleBinding", "collected-{token}", "ClusterRole", "outer-{token}", &who());
            self.add(&format!("{API}/clusterrolebindings"), collected);
        }
        self.add(
            &format!("{API}/clusterrolebindings"),
            bound("ClusterRoleBinding", "marker-{token}", "ClusterRole", "enter-{token}", &who()),
        );
        let role =
            json!({"apiVersion": version, "kind": "Role", "metadata": {"name": "marker"}, "rules": [rule("mark")]});
        self.add(&format!("{inside}/roles"), role);
        self.add(&format!("{inside}/rolebindings"), bound("RoleBinding", "marker", "Role", "marker", &who()));
    }
}

fn subject(kind: &str, name: &str) -> Value {
    json!({"apiGroup": GROUP, "kind": kind, "name": name})
}

fn bound(kind: &str, name: &str, role_kind: &str, role: &str, subjects: &[Value]) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": role}, "subjects": subjects})
}

fn role(kind: &str, name: &str, dice: &mut Dice) -> Value {
    let count = 1 + dice.below(3);
    let rules: Vec<Value> = (0..count).map(|_| rule(kind == "ClusterRole", dice)).collect();
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": {"name": name}, "rules": rules})
}

fn some(dice: &mut Dice, of: &[&str], star: usize) -> Vec<String> {
    if dice.chance(star) {
        return vec!["*".to_owned()];
    }
    let mut all: Vec<String> = of.iter().filter(|_| dice.chance(40)).map(|text| (*text).to_owned()).collect();
    if all.is_empty() {
        all.push((*dice.pick(of)).to_owned());
    }
    all
}

fn rule(urls: bool, dice: &mut Dice) -> Value {
    if urls && dice.chance(20) {
        let patterns = ["/", "/x", "/x/*", "/api*", "/apis/*", "*", "/metrics", "/healthz"];
        return json!({"nonResourceURLs": [dice.word(&patterns)], "verbs": some(dice, &["get", "access", "post"], 20)});
    }
    let (group, resources) = *dice.pick(&RESOURCES);
    let mut resources = some(dice, resources, 15);
    if dice.chance(30) {
        let sub = dice.word(&SUBRESOURCES);
        let first = resources[0].clone();
        resources.push(if dice.chance(50) { format!("*/{sub}") } else { format!("{first}/{sub}") });
    }
    let groups = if dice.chance(15) { vec!["*"] } else { vec![group] };
    let mut rule = json!({"apiGroups": groups, "resources": resources, "verbs": some(dice, &VERBS, 15)});
    if dice.chance(20) {
        rule["resourceNames"] = json!(some(dice, &NAMES, 0));
    }
    rule
}

fn binding(kind: &str, name: &str, namespace: &str, kcp: bool, dice: &mut Dice) -> Value {
    let mut roles = vec![
        ("ClusterRole", "c0-{token}"),
        ("ClusterRole", "c1-{token}"),
        ("ClusterRole", "c2-{token}"),
        ("ClusterRole", "c3-{token}"),
        ("ClusterRole", "missing-{token}"),
        ("ClusterRole", "system:basic-user"),
        ("ClusterRole", "system:discovery"),
    ];
    // Aggregated roles are empty where no controller runs.
    if kcp {
        roles.extend([
            ("ClusterRole", "all-{token}"),
            ("ClusterRole", "outer-{token}"),
            ("ClusterRole", "view"),
            ("ClusterRole", "edit"),
            ("ClusterRole", "admin"),
        ]);
    }
    if !namespace.is_empty() {
        roles.extend([("Role", "r0"), ("Role", "r1"), ("Role", "r0"), ("Role", "missing")]);
    }
    let (role_kind, role) = *dice.pick(&roles);
    let count = 1 + dice.below(3);
    let subjects: Vec<Value> = (0..count).map(|_| any_subject(kcp, dice)).collect();
    bound(kind, name, role_kind, role, &subjects)
}

fn any_subject(kcp: bool, dice: &mut Dice) -> Value {
    match dice.below(8) {
        0..=2 => subject("User", dice.word(&USERS)),
        3 | 4 => subject("Group", dice.word(&GROUPS)),
        5 => subject("Group", dice.word(if kcp { &SYSTEM_GROUPS[..] } else { &SYSTEM_GROUPS[..4] })),
        6 if kcp => subject("User", "system:kcp:serviceaccount:{there}:n1-{token}:bot"),
        _ => json!({"kind": "ServiceAccount", "name": dice.pick(&ACCOUNTS), "namespace": dice.pick(&NAMESPACES)}),
    }
}
