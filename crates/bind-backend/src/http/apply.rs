//! Joining a consumer whose kubeconfig somebody uploads: the konnector, the credentials and a bundle are written there.

use std::time::Duration;

use carrick_bind_api::install::HostAliases;
use carrick_bind_api::response::decode;
use carrick_client::{InlineKubeconfig, Server};
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::answer::{Answer, Fault, json_answer};
use super::asked::Asked;
use super::front::Front;
use super::join::join;
use super::networks;
use crate::provider::Provider;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApplyBody {
    consumer_kubeconfig: String,
    binding_name: String,
    /// In place of those that the backend knows.
    #[serde(default)]
    host_aliases: Vec<String>,
}

/// What is said of a cluster that was not joined, whatever the reason.
const UNREACHED: &str = "the consumer's cluster was not joined: no Kubernetes API answers there, or it does not let this kubeconfig create \
                         namespaces, CustomResourceDefinitions, roles, Secrets and Deployments; kubectl bind deploy says which";

/// How long a name may take to be looked up.
const LOOKUP: Duration = Duration::from_secs(5);

impl<P: Provider> Front<P> {
    /// The kubeconfig at an address where consumers' clusters may be. It is looked up once, and not by whoever connects.
    async fn pinned(&self, kubeconfig: &InlineKubeconfig) -> Result<InlineKubeconfig, Fault> {
        let Some(at) = kubeconfig.host_and_port() else { return Err(Fault::bad(UNREACHED)) };
        let found = tokio::time::timeout(LOOKUP, tokio::net::lookup_host(at)).await;
        let found: Vec<_> = found.ok().and_then(Result::ok).into_iter().flatten().collect();
        let networks = &self.config.consumer_networks;
        let mut allowed = found.iter().map(std::net::SocketAddr::ip).filter(|ip| networks::is_allowed(*ip, networks));
        match allowed.next() {
            Some(address) => kubeconfig.at(address).map_err(|error| Fault::bad(error.to_string())),
            None => Err(Fault::bad(
                "the consumer's cluster is not on the public Internet: the provider can allow its network with --consumer-networks, or \
                 run kubectl bind deploy there",
            )),
        }
    }

    /// Writes konnector, Secret and bundle on the cluster of an uploaded kubeconfig.
    pub(super) async fn apply_binding(&self, asked: &Asked) -> Result<Answer, Fault> {
        let claims = self.session(asked).await?.claims;
        let body: ApplyBody = serde_json::from_slice(&asked.body)
            .map_err(|_| Fault::bad("the body needs consumerKubeconfig (base64) and bindingName"))?;
        let given = body.host_aliases.iter().map(|text| text.parse()).collect::<Result<Vec<HostAliases>, _>>();
        let given = given.map_err(|error| Fault::bad(format!("hostAliases: {error}")))?;
        let aliases = if given.is_empty() { self.config.konnector_aliases.clone() } else { HostAliases::all(&given) };
        let text = decode(&body.consumer_kubeconfig).and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or_else(|| Fault::bad("consumerKubeconfig is not text in base64"))?;
        let kubeconfig = InlineKubeconfig::parse(&text).map_err(|error| Fault::bad(error.to_string()))?;
        let found = self.provider.exports(&claims.cid, &claims.author()).await?;
        let (_, exports) =
            found.ok_or_else(|| Fault::NotFound("nothing is bound yet; bind a template first".to_owned()))?;
        if !exports.contains(&body.binding_name) {
            return Err(Fault::NotFound(format!("there is no binding {:?}", body.binding_name)));
        }
        // The contract is there already: its credentials are handed out once more.
        let provider = self.provider.kubeconfig(&claims.cid, &claims.author()).await?;
        let provider = String::from_utf8(provider).map_err(|_| Fault::Internal("bad kubeconfig".to_owned()))?;
        let pinned = self.pinned(&kubeconfig).await?;
        let server = Server::from_inline(&pinned).map_err(|error| Fault::bad(error.to_string()))?;
        let written = join(&server.client(), provider, &body.binding_name, &aliases).await;
        let is_aliased = written.map_err(|error| {
            // What answered there is reported to the provider alone: whoever uploads kubeconfigs could otherwise explore with them.
            tracing::warn!(%error, server = kubeconfig.server(), "A consumer's cluster was not joined.");
            Fault::bad(UNREACHED)
        })?;
        let mut message = format!("the konnector and bundle {} are written", body.binding_name);
        if !is_aliased {
            message += "; the konnector that was there keeps its host aliases, so add them to Deployment kube-bind/konnector if it needs them";
        }
        Ok(json_answer(StatusCode::OK, &json!({"konnectorDeployed": true, "bundleCreated": true, "message": message})))
    }
}
