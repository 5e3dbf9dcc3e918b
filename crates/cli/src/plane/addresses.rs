//! Where the servers are, for people and for programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use carrick_plane::Plane;
use serde::Serialize;

use crate::ui::Ui;

/// Where the servers are.
#[derive(Debug, Serialize)]
pub struct Addresses {
    kcp: Address,
    service: Address,
    provider: Address,
    /// Shards by their numbers.
    shards: BTreeMap<usize, String>,
    /// Where faults are injected, if anywhere.
    faults: BTreeMap<&'static str, String>,
}

/// A server, and the kubeconfig that leads to it.
#[derive(Debug, Serialize)]
struct Address {
    url: String,
    kubeconfig: PathBuf,
}

impl Addresses {
    /// Those of two servers whose kubeconfigs are in a folder.
    pub fn new(kcp: &Plane, service: &Plane, provider_workspace: &str, folder: &Path) -> Self {
        let address = |url: &str, file: &str| Address { url: url.to_owned(), kubeconfig: folder.join(file) };
        let shards = kcp.endpoints();
        let shards = shards.iter().filter_map(|one| Some((one.shard()?, one.url().to_owned())));
        let faults = [("kcp", kcp), ("service", service)];
        let faults = faults.into_iter().filter_map(|(name, plane)| Some((name, plane.control_url()?)));
        let workspace = format!("{}/clusters/{provider_workspace}", kcp.url());
        Self {
            kcp: address(kcp.url(), "kcp-admin.kubeconfig"),
            service: address(service.url(), "service.kubeconfig"),
            provider: address(&workspace, "provider.kubeconfig"),
            shards: shards.collect(),
            faults: faults.collect(),
        }
    }

    /// Prints them as a table.
    pub fn show(&self, ui: &Ui) {
        let table = [("kcp", &self.kcp), ("service cluster", &self.service), ("provider's workspace", &self.provider)];
        let width = table.iter().map(|(_, address)| address.url.len()).max().unwrap_or_default();
        for (what, Address { url, kubeconfig }) in table {
            ui.line(format_args!("{what:<22}{url:<width$}  {}", kubeconfig.display()));
        }
        for (shard, url) in &self.shards {
            ui.line(format_args!("{:<22}{url}", format!("shard {shard}")));
        }
        for (server, url) in &self.faults {
            ui.line(format_args!(
                "{:<22}{url}",
                if *server == "kcp" { "faults of kcp" } else { "faults of the service" }
            ));
        }
    }
}
