//! Rules: which requests, how often, and what happens to them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One request as rules and recordings see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestInfo {
    /// The number of the endpoint it came to; zero without shards.
    pub endpoint: usize,
    /// HTTP method.
    pub method: String,
    /// The whole URL path.
    pub path: String,
    /// The query as sent.
    pub query: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`; the method in lower case for
    /// requests that are not about a resource.
    pub verb: String,
    /// The segment after `/clusters/`: a path, a name or `*`; empty on a service cluster.
    pub cluster: String,
    /// The logical cluster that it resolves to, if there is one.
    pub cluster_name: String,
    /// Whether it goes through a virtual workspace.
    pub is_virtual: bool,
    /// API group, empty for core.
    pub group: String,
    /// Plural; empty for requests that are not about a resource.
    pub resource: String,
    /// Subresource or empty.
    pub subresource: String,
    /// Namespace or empty.
    pub namespace: String,
    /// Object name or empty; also from a `metadata.name=` field selector, and that of a new object from its JSON.
    pub name: String,
    /// The `User-Agent` as sent.
    pub agent: String,
    /// Name of the user who logged in; empty for a login that is refused.
    pub user: String,
}

impl RequestInfo {
    /// Whether this request may change something.
    pub fn is_write(&self) -> bool {
        // Access reviews are queries, although they are sent by POST.
        let is_question = ["authentication.k8s.io", "authorization.k8s.io"].contains(&self.group.as_str());
        !is_question && matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }
}

/// A condition on a request, in code.
pub type Predicate = Arc<dyn Fn(&RequestInfo) -> bool + Send + Sync>;

/// Which requests a rule applies to; fields that are not set match everything.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Match {
    /// One of these verbs.
    pub verbs: Vec<String>,
    /// This API group.
    pub group: Option<String>,
    /// This plural.
    pub resource: Option<String>,
    /// This subresource; the empty text means the object itself.
    pub subresource: Option<String>,
    /// This logical cluster, by path or name.
    pub cluster: Option<String>,
    /// This namespace.
    pub namespace: Option<String>,
    /// This object.
    pub name: Option<String>,
    /// The user agent starts with this.
    pub agent: Option<String>,
    /// This user.
    pub user: Option<String>,
    /// The URL path contains this.
    pub path: Option<String>,
    /// The request came to this endpoint.
    pub endpoint: Option<usize>,
    /// Through a virtual workspace, or not.
    pub is_virtual: Option<bool>,
    /// Anything else, in code.
    #[serde(skip)]
    pub predicate: Option<Predicate>,
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).unwrap_or_default())
    }
}

impl Match {
    /// Every request.
    pub fn any() -> Self {
        Self::default()
    }

    /// Requests that may change something.
    pub fn writes() -> Self {
        Self::any().verbs(&["create", "update", "patch", "delete", "deletecollection"])
    }

    /// Only these verbs.
    #[must_use]
    pub fn verbs(mut self, verbs: &[&str]) -> Self {
        self.verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
        self
    }

    /// Only this kind.
    #[must_use]
    pub fn resource(mut self, group: &str, plural: &str) -> Self {
        self.group = Some(group.to_owned());
        self.resource = Some(plural.to_owned());
        self
    }

    /// Only this subresource; the empty text means the object itself.
    #[must_use]
    pub fn subresource(mut self, name: &str) -> Self {
        self.subresource = Some(name.to_owned());
        self
    }

    /// Only this logical cluster, by path or name.
    #[must_use]
    pub fn cluster(mut self, cluster: &str) -> Self {
        self.cluster = Some(cluster.to_owned());
        self
    }

    /// Only this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only this object.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only clients whose user agent starts with this.
    #[must_use]
    pub fn agent(mut self, prefix: &str) -> Self {
        self.agent = Some(prefix.to_owned());
        self
    }

    /// Only this user.
    #[must_use]
    pub fn user(mut self, name: &str) -> Self {
        self.user = Some(name.to_owned());
        self
    }

    /// Only URL paths that contain this.
    #[must_use]
    pub fn path(mut self, part: &str) -> Self {
        self.path = Some(part.to_owned());
        self
    }

    /// Only requests for which a function returns true.
    #[must_use]
    pub fn filter(mut self, predicate: impl Fn(&RequestInfo) -> bool + Send + Sync + 'static) -> Self {
        self.predicate = Some(Arc::new(predicate));
        self
    }

    /// Whether a request matches.
    pub fn fits(&self, ask: &RequestInfo) -> bool {
        let same = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        let cluster =
            |wanted: &String| (!ask.cluster.is_empty() && *wanted == ask.cluster) || *wanted == ask.cluster_name;
        (self.verbs.is_empty() || self.verbs.contains(&ask.verb))
            && same(&self.group, &ask.group)
            && same(&self.resource, &ask.resource)
            && same(&self.subresource, &ask.subresource)
            && self.cluster.as_ref().is_none_or(cluster)
            && same(&self.namespace, &ask.namespace)
            && same(&self.name, &ask.name)
            && self.agent.as_ref().is_none_or(|prefix| ask.agent.starts_with(prefix.as_str()))
            && same(&self.user, &ask.user)
            && self.path.as_ref().is_none_or(|part| ask.path.contains(part.as_str()))
            && self.endpoint.is_none_or(|endpoint| endpoint == ask.endpoint)
            && self.is_virtual.is_none_or(|wanted| wanted == ask.is_virtual)
            && self.predicate.as_ref().is_none_or(|predicate| predicate(ask))
    }
}

/// Which of the matching requests are affected, counted from one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Turn {
    /// All of them.
    #[default]
    Always,
    /// Only this one.
    Nth(u64),
    /// The first n.
    First(u64),
    /// All after the first n.
    After(u64),
    /// Every nth.
    Every(u64),
    /// At random, but reproducible: it depends only on the seed, the request's verb and resource, and how many requests of that verb and
    /// resource came before.
    Chance {
        /// Another seed affects other requests.
        seed: u64,
        /// How many of a thousand are affected.
        per_mille: u16,
    },
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// It is not executed; the response is this error.
    #[serde(rename_all = "camelCase")]
    Refuse {
        /// HTTP code.
        code: u16,
        /// Seconds for the `Retry-After` header; 429 and 503 have one second if none is given.
        #[serde(default)]
        retry_after: Option<u64>,
    },
    /// It is executed after this many milliseconds.
    Delay(u64),
    /// It is not executed; the stream is reset (HTTP/2) or the connection closed (HTTP/1.1).
    Cut,
    /// It is executed, but the response is an error.
    #[serde(rename_all = "camelCase")]
    ApplyThenRefuse {
        /// HTTP code.
        code: u16,
        /// Seconds for the `Retry-After` header.
        #[serde(default)]
        retry_after: Option<u64>,
    },
    /// It is executed, and the response is lost.
    ApplyThenCut,
    /// Only writes: the client is sent away at once, and the request is executed later, as if it had arrived then, with all its
    /// preconditions.
    #[serde(rename_all = "camelCase")]
    ApplyLate {
        /// After this many milliseconds; if not set, when [`Faults::release`](super::Faults::release) is called.
        #[serde(default)]
        millis: Option<u64>,
        /// HTTP status code of the response; if not set, there is no response.
        #[serde(default)]
        code: Option<u16>,
    },
    /// A watch breaks off after this many events.
    CutWatch(u64),
    /// A watch ends with an ERROR event 410 after this many events.
    ExpireWatch(u64),
    /// A watch stays open but sends nothing more after this many events.
    StallWatch(u64),
    /// Gets, lists and the first events of a watch show the state this many revisions ago, but never an older one than the client asked
    /// for.
    Stale(u64),
}

impl Effect {
    /// Refuses with a status code, without executing the request.
    pub fn refuse(code: u16) -> Self {
        Self::Refuse { code, retry_after: None }
    }

    /// 429 with `Retry-After`.
    pub fn throttle(seconds: u64) -> Self {
        Self::Refuse { code: 429, retry_after: Some(seconds) }
    }

    /// A delay.
    pub fn delay(duration: Duration) -> Self {
        Self::Delay(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    /// Executes the request, and answers with an error code.
    pub fn apply_then_refuse(code: u16) -> Self {
        Self::ApplyThenRefuse { code, retry_after: None }
    }

    /// Cuts the client off, and executes the request when it is released.
    pub fn late() -> Self {
        Self::ApplyLate { millis: None, code: None }
    }

    /// Whether it applies only to writes.
    pub(super) fn is_for_writes(self) -> bool {
        matches!(self, Self::ApplyLate { .. })
    }

    /// Whether it applies only to watches.
    pub(super) fn is_for_watches(self) -> bool {
        matches!(self, Self::CutWatch(_) | Self::ExpireWatch(_) | Self::StallWatch(_))
    }

    /// Whether it applies only to reads.
    pub(super) fn is_for_reads(self) -> bool {
        matches!(self, Self::Stale(_))
    }
}

/// Requests, turn and effect together.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// Which requests.
    #[serde(default, rename = "match")]
    pub requests: Match,
    /// Which of them.
    #[serde(default)]
    pub turn: Turn,
    /// What happens.
    pub effect: Effect,
}

impl Rule {
    /// Applies the effect to every matching request.
    pub fn new(requests: Match, effect: Effect) -> Self {
        Self { requests, turn: Turn::Always, effect }
    }

    /// Only to some of them.
    #[must_use]
    pub fn on(mut self, turn: Turn) -> Self {
        self.turn = turn;
        self
    }
}

/// The counters of a rule.
#[derive(Debug, Default)]
pub(super) struct RuleCounters {
    fitting: u64,
    /// For random rules: requests per verb and resource.
    seen: HashMap<String, u64>,
    pub(super) hits: u64,
}

impl RuleCounters {
    /// Counts a request and returns whether it is affected.
    pub(super) fn hit(&mut self, rule: &Rule, ask: &RequestInfo) -> bool {
        if (rule.effect.is_for_watches() && ask.verb != "watch")
            || (rule.effect.is_for_writes() && !ask.is_write())
            || (rule.effect.is_for_reads() && !matches!(ask.verb.as_str(), "get" | "list" | "watch"))
            || !rule.requests.fits(ask)
        {
            return false;
        }
        self.fitting += 1;
        let hit = match rule.turn {
            Turn::Always => true,
            Turn::Nth(nth) => self.fitting == nth,
            Turn::First(count) => self.fitting <= count,
            Turn::After(count) => self.fitting > count,
            Turn::Every(step) => step > 0 && self.fitting.is_multiple_of(step),
            Turn::Chance { seed, per_mille } => {
                let what = format!("{} {}/{}/{}", ask.verb, ask.group, ask.resource, ask.subresource);
                let before = self.seen.entry(what.clone()).or_default();
                *before += 1;
                draw(seed, &what, *before) < u64::from(per_mille)
            }
        };
        self.hits += u64::from(hit);
        hit
    }
}

/// A number below a thousand that looks random.
fn draw(seed: u64, what: &str, count: u64) -> u64 {
    let mut state = seed ^ 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(count);
    for byte in what.bytes() {
        state = mix(state ^ u64::from(byte));
    }
    mix(state) % 1000
}

/// The finalizer of splitmix64.
fn mix(mut state: u64) -> u64 {
    state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(verb: &str, name: &str) -> RequestInfo {
        RequestInfo {
            verb: verb.into(),
            resource: "secrets".into(),
            cluster: "root:a".into(),
            cluster_name: "abc".into(),
            name: name.into(),
            agent: "agent/1.0 (x)".into(),
            user: "someone".into(),
            path: format!("/clusters/root:a/api/v1/namespaces/n/secrets/{name}"),
            ..RequestInfo::default()
        }
    }

    #[test]
    fn every_condition_of_a_match_must_hold() {
        let ask = ask("get", "one");
        for (wanted, fits) in [
            (Match::any(), true),
            (Match::any().verbs(&["get", "list"]), true),
            (Match::writes(), false),
            (Match::any().resource("", "secrets"), true),
            (Match::any().resource("apps", "secrets"), false),
            (Match::any().cluster("root:a").name("one"), true),
            (Match::any().cluster("abc"), true),
            (Match::any().cluster("root"), false),
            (Match::any().name("two"), false),
            (Match::any().agent("agent/"), true),
            (Match::any().agent("kubectl"), false),
            (Match::any().user("someone"), true),
            (Match::any().user("some"), false),
            (Match::any().path("/namespaces/n/"), true),
            (Match::any().subresource("status"), false),
            (Match::any().filter(|ask| ask.name.len() == 3), true),
            (Match::any().filter(RequestInfo::is_write), false),
        ] {
            assert_eq!(wanted.fits(&ask), fits, "{wanted:?}");
        }
    }

    #[test]
    fn turns_choose_among_fitting_requests_only() {
        let hits = |turn: Turn| -> Vec<u64> {
            let rule = Rule::new(Match::any().verbs(&["create"]), Effect::refuse(500)).on(turn);
            let mut progress = RuleCounters::default();
            let mut hits = Vec::new();
            for number in 1..=6 {
                assert!(!progress.hit(&rule, &ask("get", "x")));
                if progress.hit(&rule, &ask("create", "x")) {
                    hits.push(number);
                }
            }
            hits
        };
        assert_eq!(hits(Turn::Always), [1, 2, 3, 4, 5, 6]);
        assert_eq!(hits(Turn::Nth(2)), [2]);
        assert_eq!(hits(Turn::First(2)), [1, 2]);
        assert_eq!(hits(Turn::After(4)), [5, 6]);
        assert_eq!(hits(Turn::Every(3)), [3, 6]);
    }

    #[test]
    fn chance_is_replayable_and_about_as_frequent_as_asked() {
        let run = |seed: u64, noise: bool| -> Vec<bool> {
            let rule = Rule::new(Match::any(), Effect::Cut).on(Turn::Chance { seed, per_mille: 200 });
            let mut progress = RuleCounters::default();
            (0..1000)
                .map(|_| {
                    if noise {
                        progress.hit(&rule, &ask("list", "y"));
                    }
                    progress.hit(&rule, &ask("create", "x"))
                })
                .collect()
        };
        assert_eq!(run(7, false), run(7, true), "other requests in between must not matter");
        assert_ne!(run(7, false), run(8, false));
        let hits = run(7, false).into_iter().filter(|hit| *hit).count();
        assert!((150..250).contains(&hits), "{hits}");
    }

    #[test]
    fn rules_have_a_json_form() {
        let text =
            r#"{"match":{"verbs":["create"],"resource":"secrets"},"turn":{"nth":2},"effect":{"refuse":{"code":503}}}"#;
        let rule: Rule = serde_json::from_str(text).unwrap();
        assert_eq!((rule.turn, rule.effect), (Turn::Nth(2), Effect::refuse(503)));
        assert_eq!(rule.requests.resource.as_deref(), Some("secrets"));
        let rule: Rule = serde_json::from_str(r#"{"effect":"applyThenCut"}"#).unwrap();
        assert_eq!((rule.turn, rule.effect), (Turn::Always, Effect::ApplyThenCut));
        assert!(serde_json::from_str::<Rule>(r#"{"effect":"cut","match":{"verb":"x"}}"#).is_err());
    }
}
