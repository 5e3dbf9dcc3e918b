//! The facts that the checks judge: gathered once, plain data.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_client::Error;
use carrick_kcp::apis::v1alpha1::{ApiExportEndpointSlice, ApiResourceSchema};
use carrick_kcp::apis::v1alpha2::{ApiBinding, ApiExport, PermissionClaim};
use carrick_kcp::token::AccountToken;
use carrick_syncagent::agent::platform_mesh::consumer::StagingRoot;
use carrick_syncagent::api::PublishedResource;
use carrick_syncagent::rules::crd::Crd;
use serde_json::Value;

use super::right::{NeededRight, RightScope};

/// Everything that is known.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// What was said on the command line.
    pub asked: AgentArguments,
    /// The service cluster.
    pub service: Access,
    /// kcp, at the workspace of the slice.
    pub kcp: Access,
    /// The CRD of PublishedResources on the service cluster.
    pub crd: Lookup,
    /// The agent's namespace on the service cluster.
    pub namespace: Lookup,
    /// The agent's lease on the service cluster.
    pub lease: Lookup,
    /// The APIExportEndpointSlice.
    pub slice: Lookup<ApiExportEndpointSlice>,
    /// Names of all slices in its workspace, if the requested one does not exist; nothing if they may not be listed.
    pub slices: Option<Vec<String>>,
    /// Deployments of agents for the same slice in other namespaces, if there is none in the given one: namespace and name.
    pub elsewhere: Vec<String>,
    /// One for each endpoint of the slice.
    pub endpoints: Vec<Endpoint>,
    /// URL of the workspace that holds the APIExport.
    pub export_url: String,
    /// The APIExport.
    pub export: Lookup<ApiExport>,
    /// APIResourceSchemas in the export's workspace; only their metadata.
    pub schemas: Vec<ApiResourceSchema>,
    /// APIBindings of consumers.
    pub bindings: Vec<ApiBinding>,
    /// PublishedResources, or why they cannot be read; `None` if they were not requested.
    pub published: Option<Result<Vec<Published>, String>>,
    /// Rights the agent needs, and which of their verbs it does not have.
    pub rights: Vec<CheckedRight>,
    /// What the local clock says, in seconds since 1970.
    pub now: i64,
    /// What tells the service cluster apart from others; empty if that is not known.
    pub cluster: String,
    /// Rights that nobody needs but whoever wants to fix something.
    pub powers: Vec<CheckedRight>,
    /// The agent's token for kcp, if it is one of a ServiceAccount that ends.
    pub token: Option<AccountToken>,
    /// Claims of the export that nothing published needs.
    pub unneeded_claims: Vec<PermissionClaim>,
    /// Copies of published kinds, as far as both sides could be listed.
    pub copies: Vec<KindCopies>,
    /// AcceptAPIs in the export's workspace, if a PublishedResource asks for one; missing if none are served there.
    pub accepting: Lookup<Vec<Value>>,
    /// What became of the APIs of platforms that are implemented, by the name of the PublishedResource, as far as the login may see it.
    pub origins: BTreeMap<String, OriginState>,
}

/// What became of the API of a platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginState {
    /// It is as it was written down.
    Same,
    /// Its owner has changed it.
    Changed,
    /// Its owner does not export it any more.
    Gone,
}

/// The copies of one published kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KindCopies {
    /// The resource on the service cluster, as kubectl wants it.
    pub resource: String,
    /// The copies.
    pub copies: Vec<KnownCopy>,
    /// Orders of that kind that have waited for a copy for a while: workspace, namespace and name.
    pub waiting: Vec<String>,
    /// The resource in kcp.
    pub ordered: String,
    /// How many orders a limit has refused.
    pub over_limit: usize,
    /// Consumers behind a broker, by the logical cluster of the staging workspace that their orders are in.
    pub behind: BTreeMap<String, String>,
}

/// One copy on the service cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownCopy {
    /// Its namespace; empty for cluster-wide kinds.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The agent that made it.
    pub agent: String,
    /// The order it was made for: workspace, namespace and name.
    pub order: String,
    /// Whether that order exists.
    pub has_order: bool,
    /// Whether the order may have been let go although the service cluster could not be reached.
    pub may_be_released: bool,
}

/// The file that fixes write the agent's kubeconfig to, if it is in a Secret.
pub const FETCHED: &str = "agent-kcp.kubeconfig";

/// How to run kubectl for a fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// The command, up to the verb.
    pub kubectl: String,
    /// Who must run it, if it is not whoever runs the doctor; or the command before it.
    pub note: Option<String>,
}

/// What was said on the command line.
#[derive(Debug, Clone, Default)]
pub struct AgentArguments {
    /// Kubeconfig of the service cluster; empty if it was found by default.
    pub kubeconfig: String,
    /// Its context; empty if it is the current one.
    pub context: String,
    /// Kubeconfig of kcp.
    pub kcp_kubeconfig: String,
    /// Name of the slice.
    pub slice: String,
    /// Namespace of the agent.
    pub namespace: String,
    /// Name of the agent.
    pub agent_name: String,
    /// How whoever reads the findings gets to kcp.
    pub login: FixLogin,
    /// The Secret whose token the agent renews, if it does.
    pub renewed: Option<String>,
    /// The Deployment that its flags were taken from.
    pub deployment: Option<String>,
    /// The selector for PublishedResources.
    pub selector: String,
    /// Where a broker makes its staging workspaces, if the agent knows.
    pub staging_root: Option<StagingRoot>,
}

/// How whoever reads the findings gets to kcp.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FixLogin {
    /// With the kubeconfig that was given, which is the agent's.
    #[default]
    Given,
    /// With the agent's kubeconfig, which was read from a Secret.
    InSecret(SecretKey),
    /// With a kubeconfig of their own, which is an administrator's; the agent's is in a Secret.
    Own {
        /// The file.
        file: String,
        /// Where the agent's kubeconfig is.
        agents: SecretKey,
    },
}

/// Where a kubeconfig is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretKey {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub name: String,
    /// The key in its data.
    pub key: String,
}

impl FixLogin {
    /// Where the agent's kubeconfig is, if that is no file.
    pub fn secret(&self) -> Option<&SecretKey> {
        match self {
            Self::Given => None,
            Self::InSecret(secret) | Self::Own { agents: secret, .. } => Some(secret),
        }
    }
}

impl SecretKey {
    /// For people.
    pub fn shown(&self) -> String {
        format!("Secret {}/{}", self.namespace, self.name)
    }
}

/// Access to one server.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Which kubeconfig.
    pub origin: String,
    /// Its current context.
    pub context: String,
    /// The cluster of that context, by its name in the kubeconfig.
    pub cluster: String,
    /// URL of the server.
    pub url: String,
    /// Why the kubeconfig cannot be used.
    pub unusable: Option<String>,
    /// How the server answered.
    pub answer: ServerAnswer,
    /// Who the server says we are.
    pub user: String,
    /// By how many seconds the server's clock is ahead of ours.
    pub ahead: Option<i64>,
}

/// How a server answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ServerAnswer {
    /// It was not asked.
    #[default]
    NotAsked,
    /// As it should.
    Works,
    /// Not at all, or with a refusal.
    Fails(FailureKind, String),
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The host name cannot be resolved.
    Name,
    /// No connection.
    Connection,
    /// TLS failed.
    Certificate,
    /// The server does not accept our credentials.
    Credentials,
    /// The server accepts our credentials but refuses the request.
    Rights,
    /// There is nothing at that path.
    Path,
    /// Something else.
    Other,
}

/// An object on a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Lookup<T = Value> {
    /// Not requested, because something before it does not work.
    #[default]
    NotAsked,
    /// It is there.
    There(T),
    /// It is not there.
    Missing,
    /// It could not be read.
    Unreadable(FailureKind, String),
}

/// One endpoint of the slice.
#[derive(Debug, Clone, Default)]
pub struct Endpoint {
    /// Its URL.
    pub url: String,
    /// How it answered.
    pub answer: ServerAnswer,
}

/// A PublishedResource.
#[derive(Debug, Clone)]
pub struct Published {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub problem: Option<String>,
    /// Fields that its rules refer to but no object can have.
    pub doubts: Vec<String>,
    /// The object, unless it cannot be read.
    pub pr: Option<Arc<PublishedResource>>,
    /// The object as the server has it, for its conditions.
    pub object: Value,
    /// The CRD behind it.
    pub crd: Option<Arc<Crd>>,
    /// Name of its schema.
    pub schema: Option<String>,
}

/// One right, and what the server said about it.
#[derive(Debug, Clone)]
pub struct CheckedRight {
    /// What is needed.
    pub need: NeededRight,
    /// Verbs that are not allowed, or why that is not known.
    pub denied: Result<Vec<&'static str>, String>,
}

impl<T> Lookup<T> {
    /// What a request led to.
    pub fn of(answer: Result<Option<T>, Error>) -> Self {
        match answer {
            Ok(Some(object)) => Self::There(object),
            Ok(None) => Self::Missing,
            Err(error) => Self::Unreadable(FailureKind::of(&error), error.to_string()),
        }
    }

    /// The object, if it is there.
    pub fn object(&self) -> Option<&T> {
        match self {
            Self::There(object) => Some(object),
            _ => None,
        }
    }
}

impl FailureKind {
    /// The kind of an error.
    pub fn of(error: &Error) -> Self {
        match error.status().map(|status| status.code) {
            Some(401) => Self::Credentials,
            Some(403) => Self::Rights,
            Some(404) => Self::Path,
            Some(_) => Self::Other,
            None => Self::in_words(&error.to_string()),
        }
    }

    /// The kind of a failure without an answer from a server. Recognised by the messages of rustls, hyper and the system.
    fn in_words(text: &str) -> Self {
        let text = text.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if says(&["certificate", "tls", "handshake", "unknownissuer"]) {
            Self::Certificate
        } else if says(&["dns", "lookup address", "name or service not known", "no such host"]) {
            Self::Name
        } else if says(&["exec", "plugin", "token"]) {
            Self::Credentials
        } else {
            Self::Connection
        }
    }
}

impl Facts {
    /// PublishedResources, as far as they could be read.
    pub fn published(&self) -> &[Published] {
        self.published.as_ref().and_then(|read| read.as_deref().ok()).unwrap_or_default()
    }

    /// kubectl to change a resource: with the given kubeconfig if that may do it, else for somebody who may.
    pub fn tool(&self, place: RightScope, resource: &str) -> Tool {
        let is_it = |right: &&CheckedRight| right.need.place == place && right.need.resource == resource;
        let may = self.powers.iter().find(is_it).is_some_and(|right| right.denied.as_ref().is_ok_and(Vec::is_empty));
        if may {
            return match place {
                RightScope::Service => Tool { kubectl: self.kubectl(), note: None },
                RightScope::Slice => self.kcp_tool(&self.kcp.url),
                RightScope::Export => self.kcp_tool(&self.export_url),
            };
        }
        self.admin_tool(place)
    }

    /// kubectl for somebody else, with a kubeconfig of their own.
    pub fn admin_tool(&self, place: RightScope) -> Tool {
        let url = match place {
            RightScope::Service => {
                let whose = if self.service.url.is_empty() { "the service cluster" } else { self.service.url.as_str() };
                let note = Some(format!("# with a kubeconfig of an administrator of {whose}:"));
                return Tool { kubectl: "kubectl".to_owned(), note };
            }
            RightScope::Slice => &self.kcp.url,
            RightScope::Export => &self.export_url,
        };
        if let FixLogin::Own { .. } = self.asked.login {
            return self.kcp_tool(url);
        }
        let workspace = carrick_kcp::url::workspace(url).unwrap_or("the workspace");
        let note = Some(format!("# with a kcp kubeconfig of an administrator of {workspace}:"));
        Tool { kubectl: format!("kubectl --server {url}"), note }
    }

    /// kubectl for the service cluster.
    pub fn kubectl(&self) -> String {
        let of = |flag: &str, value: &str| if value.is_empty() { String::new() } else { format!(" --{flag} {value}") };
        format!("kubectl{}{}", of("kubeconfig", &self.asked.kubeconfig), of("context", &self.asked.context))
    }

    /// The command of carrick for the same agent, with what must be run before it.
    pub fn carrick(&self, command: &str) -> Vec<String> {
        let asked = &self.asked;
        let flag =
            |name: &str, value: &str| if value.is_empty() { String::new() } else { format!(" --{name} {value}") };
        let kubeconfig = flag("kubeconfig", &asked.kubeconfig) + &flag("context", &asked.context);
        if let Some(deployment) = &asked.deployment {
            return vec![format!("carrick {command}{kubeconfig} --from-deployment {deployment}")];
        }
        let (file, fetch) = match &asked.login {
            FixLogin::Given => (asked.kcp_kubeconfig.as_str(), None),
            FixLogin::InSecret(secret) | FixLogin::Own { agents: secret, .. } => (FETCHED, Some(self.fetch(secret))),
        };
        let rest = [
            ("kcp-kubeconfig", file),
            ("apiexportendpointslice-ref", asked.slice.as_str()),
            ("namespace", asked.namespace.as_str()),
            ("agent-name", asked.agent_name.as_str()),
            ("published-resource-selector", asked.selector.as_str()),
        ];
        let rest: String = rest.into_iter().map(|(name, value)| flag(name, value)).collect();
        fetch.into_iter().chain([format!("carrick {command}{kubeconfig}{rest}")]).collect()
    }

    /// The command that writes the agent's kubeconfig into a file.
    pub fn fetch(&self, SecretKey { namespace, name, key }: &SecretKey) -> String {
        let (kubectl, key) = (self.kubectl(), key.replace('.', "\\."));
        format!("{kubectl} -n {namespace} get secret {name} -o jsonpath='{{.data.{key}}}' | base64 -d >{FETCHED}")
    }

    /// kubectl for a workspace of kcp.
    pub fn kcp_tool(&self, url: &str) -> Tool {
        let (file, note) = match &self.asked.login {
            FixLogin::Given => (self.asked.kcp_kubeconfig.as_str(), None),
            FixLogin::InSecret(secret) => (FETCHED, Some(self.fetch(secret))),
            // It may lead to another workspace.
            FixLogin::Own { file, .. } => {
                return Tool { kubectl: format!("kubectl --kubeconfig {file} --server {url}"), note: None };
            }
        };
        let at = if url == self.kcp.url { String::new() } else { format!(" --server {url}") };
        Tool { kubectl: format!("kubectl --kubeconfig {file}{at}"), note }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fixes_say_can_be_pasted_wherever_the_agents_kubeconfig_is() {
        let secret = SecretKey { namespace: "own".to_owned(), name: "s".to_owned(), key: "a.b".to_owned() };
        let mut facts = Facts { export_url: "https://h/clusters/root:e".to_owned(), ..Facts::default() };
        facts.kcp.url = "https://h/clusters/root:p".to_owned();
        facts.asked.kcp_kubeconfig = "given".to_owned();
        let tools = |facts: &Facts| {
            [facts.kcp_tool(&facts.kcp.url), facts.admin_tool(RightScope::Export)]
                .map(|tool| (tool.kubectl, tool.note.unwrap_or_default()))
        };
        let [own, admin] = tools(&facts);
        assert_eq!(own, ("kubectl --kubeconfig given".to_owned(), String::new()));
        assert!(admin.0 == "kubectl --server https://h/clusters/root:e" && admin.1.contains("administrator of root:e"));
        facts.asked.login = FixLogin::InSecret(secret.clone());
        let [own, again] = tools(&facts);
        let fetch = "kubectl -n own get secret s -o jsonpath='{.data.a\\.b}' | base64 -d >agent-kcp.kubeconfig";
        assert_eq!(own, ("kubectl --kubeconfig agent-kcp.kubeconfig".to_owned(), fetch.to_owned()));
        assert_eq!(again, admin);
        facts.asked.login = FixLogin::Own { file: "mine".to_owned(), agents: secret };
        let at =
            |place: &str| (format!("kubectl --kubeconfig mine --server https://h/clusters/{place}"), String::new());
        assert_eq!(tools(&facts), [at("root:p"), at("root:e")]);
    }

    #[test]
    fn commands_of_our_own_can_be_pasted_too() {
        let mut facts = Facts::default();
        let asked = &mut facts.asked;
        (asked.slice, asked.namespace, asked.kcp_kubeconfig) = ("s".to_owned(), "own".to_owned(), "given".to_owned());
        let plain = "carrick approve x --kcp-kubeconfig given --apiexportendpointslice-ref s --namespace own";
        assert_eq!(facts.carrick("approve x"), [plain]);
        let secret = SecretKey { namespace: "own".to_owned(), name: "k".to_owned(), key: "kubeconfig".to_owned() };
        facts.asked.login = FixLogin::Own { file: "mine".to_owned(), agents: secret };
        let lines = facts.carrick("approve x");
        assert!(
            lines[0].ends_with(">agent-kcp.kubeconfig") && lines[1].contains("--kcp-kubeconfig agent-kcp.kubeconfig")
        );
        facts.asked.deployment = Some("own/agent".to_owned());
        assert_eq!(facts.carrick("approve x"), ["carrick approve x --from-deployment own/agent"]);
    }

    #[test]
    fn failures_are_distinguished_by_their_messages() {
        for (text, wanted) in [
            ("client error (Connect): invalid peer certificate: UnknownIssuer", FailureKind::Certificate),
            ("dns error: failed to lookup address information: Name or service not known", FailureKind::Name),
            ("tcp connect error: Connection refused (os error 111)", FailureKind::Connection),
            ("auth exec command failed", FailureKind::Credentials),
            ("not answered within 10 s", FailureKind::Connection),
        ] {
            assert_eq!(FailureKind::in_words(text), wanted, "{text}");
        }
    }
}
