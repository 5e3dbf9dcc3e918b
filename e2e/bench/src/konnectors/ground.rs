//! The ground that a konnector works on: a world, a contract in it, and doors that count.

use std::path::Path;
use std::sync::Arc;

use carrick_client::{Client, Server};
use carrick_e2e_stage::contract::{CONTRACT, Contract, with_contract};
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::stage::Stage;
use carrick_e2e_stage::world::{EmbeddedWorld, RealWorld, User, World};
use serde_json::json;

use super::api::Api;
use super::{Process, Requests, Servers};
use crate::door::Door;
use crate::field::servers_folder;

/// The ground of one konnector.
pub struct Ground {
    stage: Stage,
    /// The door to the provider.
    provider: Door,
    /// The door to the consumer.
    consumer: Door,
    folder: Scratch,
    api: Api,
}

impl Ground {
    /// Starts fresh servers.
    pub async fn prepare(servers: Servers, api: Api) -> anyhow::Result<Self> {
        let world: Arc<dyn World> = match servers {
            Servers::Embedded => Arc::new(EmbeddedWorld::start().await?),
            Servers::Real => Arc::new(RealWorld::start(Path::new(&servers_folder()?)).await?),
        };
        let stage = Stage::bare(world).await?;
        let world = &stage.world;
        let to_provider = world.kcp_kubeconfig(User::Admin, &stage.provider.path);
        let to_consumer = world.service_kubeconfig(User::Admin);
        world.kcp_cable().cut().await?;
        world.service_cable().cut().await?;
        let provider = Door::open(world.kcp_cable().near(), world.kcp().url(), &to_provider).await?;
        let consumer = Door::open(world.service_cable().near(), world.service().url(), &to_consumer).await?;
        let folder = Scratch::new()?;
        folder.write("consumer.kubeconfig", &consumer.kubeconfig(&to_consumer)?)?;
        Ok(Self { stage, provider, consumer, folder, api })
    }

    /// The contract between the two clusters.
    pub fn contract(&self) -> anyhow::Result<Contract<'_>> {
        let world = &*self.stage.world;
        let to_provider = self.provider.kubeconfig(&world.kcp_kubeconfig(User::Admin, &self.stage.provider.path))?;
        Ok(Contract {
            world,
            consumer: self.stage.service.clone(),
            provider: self.stage.provider.client.clone(),
            kubeconfig: if self.api == Api::V2 { to_provider } else { with_contract(&to_provider)? },
            group: self.stage.group.clone(),
        })
    }

    /// Sets the contract up, and lets a konnector bring its API to the consumer.
    pub async fn bind(&self, contract: &Contract<'_>, program: &Path) -> anyhow::Result<()> {
        self.api.offer(contract).await?;
        let mut konnector = self.start(program)?;
        let bound = self.api.bind(contract).await;
        konnector.check()?;
        bound?;
        konnector.stop().await
    }

    /// Starts a konnector.
    pub fn start(&self, program: &Path) -> anyhow::Result<Process> {
        let file = |name: &str| self.folder.path().join(name);
        let log = file(&format!("{}.log", uuid::Uuid::new_v4().simple()));
        let arguments = [
            format!("--kubeconfig={}", file("consumer.kubeconfig").display()),
            "--lease-namespace=default".to_owned(),
            "--server-address=127.0.0.1:0".to_owned(),
        ];
        Process::start(program, &arguments, log)
    }

    /// Both doors.
    pub fn doors(&self) -> [&Door; 2] {
        [&self.provider, &self.consumer]
    }

    /// What was asked since this was asked last.
    pub fn requests(&self) -> Requests {
        Requests { kcp: self.provider.take(), service: self.consumer.take() }
    }

    /// Whoever places objects without deciding anything.
    pub fn hands<'a>(&self, contract: &'a Contract<'a>) -> anyhow::Result<Hands<'a>> {
        let to_consumer = self.consumer.kubeconfig(&self.stage.world.service_kubeconfig(User::Admin))?;
        Ok(Hands {
            api: self.api,
            contract,
            consumer: Server::from_kubeconfig_yaml(&to_consumer)?.client(),
            provider: Server::from_kubeconfig_yaml(&contract.kubeconfig)?.client(),
        })
    }
}

/// Places objects without deciding anything, by the ways that konnectors go.
pub struct Hands<'a> {
    api: Api,
    contract: &'a Contract<'a>,
    consumer: Client,
    provider: Client,
}

impl Hands<'_> {
    /// The finalizer, the copy and the trace, as a konnector writes them.
    pub async fn place(&self, number: usize) -> anyhow::Result<()> {
        if self.api == Api::V2 {
            return self.place_v2(number).await;
        }
        let (kind, name) = (self.contract.sheriffs(), format!("order-{number}"));
        let finalizers = json!({ "metadata": { "finalizers": ["kubebind.io/syncer"] } });
        let source = self.consumer.merge_patch(&kind, None, &name, &finalizers).await?;
        let annotations = json!({
            "kube-bind.io/cluster-namespace": CONTRACT,
            "kube-bind.io/consumer-namespace": "",
            "kube-bind.io/consumer-uid": source["metadata"]["uid"],
        });
        let copy = json!({
            "apiVersion": kind.api_version(), "kind": &*kind.kind,
            "metadata": { "name": Contract::copy_name(&name), "annotations": annotations },
            "spec": source["spec"],
        });
        let copy = self.provider.apply_as(&kind, None, &copy, "kube-bind.io").await?;
        let annotations = json!({
            "kube-bind.io/provider-namespace": "", "kube-bind.io/provider-uid": copy["metadata"]["uid"],
        });
        self.consumer.merge_patch(&kind, None, &name, &json!({ "metadata": { "annotations": annotations } })).await?;
        Ok(())
    }

    /// The finalizer and the copy, as a konnector of v2 writes them: there is no trace.
    async fn place_v2(&self, number: usize) -> anyhow::Result<()> {
        let (kind, name) = (self.contract.sheriffs(), format!("order-{number}"));
        let finalizers = json!({ "metadata": { "finalizers": ["core.kbind.io/syncer"] } });
        let source = self.consumer.merge_patch(&kind, None, &name, &finalizers).await?;
        let annotations = json!({
            "core.kbind.io/consumer-cluster-uid": "consumer", "core.kbind.io/consumer-object-uid": source["metadata"]["uid"],
        });
        let copy = json!({
            "apiVersion": kind.api_version(), "kind": &*kind.kind,
            "metadata": { "name": name, "labels": { "core.kbind.io/managed": "true" }, "annotations": annotations },
            "spec": source["spec"],
        });
        self.provider.apply_as(&kind, None, &copy, "kbind-konnector").await?;
        Ok(())
    }
}
