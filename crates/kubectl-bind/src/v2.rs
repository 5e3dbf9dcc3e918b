//! kube-bind v2: Connections to providers, bindings of their APIs, and the way there from 0.8.
//!
//! ```text
//!   connect ──▶ Secret, konnector, its rights, Connection      bind ──▶ ClusterBinding or Binding
//!   unbind  ◀── what a binding holds here                      status ◀── what all of them say
//!   upgrade     APIServiceBinding ◀──▶ ClusterBinding, with the same objects and copies
//!                   known: what there is of v2 on this cluster
//! ```

pub mod bind;
pub mod connect;
mod error;
mod known;
pub mod status;
pub mod unbind;
pub mod upgrade;

use std::fmt::Write as _;
use std::time::Duration;

use carrick_bind_api::core::{BINDING, CLUSTER_BINDING, CONNECTION};
use carrick_bind_api::kinds::Kind;
use carrick_client::{Client, Resource};
use carrick_process::printable::one_line;
use serde_json::Value;
use tokio::time::Instant;

pub use error::V2Error;

use crate::deploy;

/// How often something that takes a while is read again.
const POLL: Duration = Duration::from_millis(200);
/// What the konnector lacks if its roles are not written.
const ROLES_CURE: &str = "it waits until whoever administers this cluster runs: konnector roles | kubectl apply -f -";

/// A kind of v2.
fn resource(kind: Kind) -> Resource {
    let make = if kind == BINDING { Resource::namespaced } else { Resource::cluster_wide };
    make(kind.group, kind.version, kind.kind, kind.plural)
}

fn connections() -> Resource {
    resource(CONNECTION)
}

fn cluster_bindings() -> Resource {
    resource(CLUSTER_BINDING)
}

fn crds() -> Resource {
    Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

/// Where an object is: its kind, namespace and name.
#[derive(Clone, Copy)]
struct At<'a> {
    kind: &'a Resource,
    namespace: Option<&'a str>,
    name: &'a str,
}

impl At<'_> {
    async fn get(self, client: &Client) -> Result<Option<Value>, V2Error> {
        let found = client.get(self.kind, self.namespace, self.name).await;
        found.map_err(|source| V2Error::Server { what: self.to_string(), source })
    }
}

impl std::fmt::Display for At<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", self.kind.kind)?;
        self.namespace.map_or(Ok(()), |namespace| write!(f, "{namespace}/"))?;
        f.write_str(self.name)
    }
}

/// Reads an object until it is as wanted; `look` says what is missing.
async fn until(
    client: &Client,
    at: At<'_>,
    longest: Duration,
    look: impl Fn(Option<&Value>) -> Result<(), String>,
) -> Result<(), V2Error> {
    let deadline = Instant::now() + longest;
    loop {
        let why = match client.get(at.kind, at.namespace, at.name).await {
            Ok(found) => match look(found.as_ref()) {
                Ok(()) => return Ok(()),
                Err(why) => why,
            },
            Err(error) if error.is_transient() => error.to_string(),
            Err(source) => return Err(V2Error::Server { what: at.to_string(), source }),
        };
        if Instant::now() >= deadline {
            return Err(V2Error::Late { what: at.to_string(), seconds: longest.as_secs(), why });
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Whether an object is ready, or what it says about that.
fn is_ready(found: Option<&Value>) -> Result<(), String> {
    let Some(found) = found else { return Err("it does not exist".to_owned()) };
    let generation = found["metadata"]["generation"].as_i64();
    let current = |it: &&Value| it["observedGeneration"].as_i64().is_none_or(|seen| Some(seen) >= generation);
    match condition(found, "Ready").filter(current) {
        Some(ready) if ready["status"] == "True" => Ok(()),
        Some(ready) => Err(one_line(ready["message"].as_str().unwrap_or_default()).into_owned()),
        None => Err("no konnector has said anything; is one running?".to_owned()),
    }
}

/// A condition of an object.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|it| it["type"] == kind)
}

/// Whether a CRD is served.
fn is_established(found: Option<&Value>) -> Result<(), String> {
    let established = found.and_then(|crd| condition(crd, "Established"));
    if established.is_some_and(|it| it["status"] == "True") { Ok(()) } else { Err("it is not served yet".to_owned()) }
}

/// Writes objects one after the other; says what was written.
async fn write_all(client: &Client, objects: &[Value], said: &mut String) -> Result<(), V2Error> {
    for object in objects {
        let name = deploy::write(client, object).await?;
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(said, "{}/{name} written", object["kind"].as_str().unwrap_or_default().to_lowercase());
    }
    Ok(())
}

/// Grants the konnector what it needs; whoever may not do that is told who has to.
async fn grant(client: &Client, roles: &[Value], said: &mut String) {
    if let Err(error) = write_all(client, roles, said).await {
        let _ = writeln!(said, "the konnector has not got its rights: {error}; {ROLES_CURE}");
    }
}
