//! kcp, with the etcd that is part of it.

use std::path::Path;

use carrick_client::{ListOptions, Server};
use carrick_kcp::kinds::WORKSPACE;

use crate::kinds;
use crate::ports;
use crate::scratch::Scratch;
use crate::world::kubeconfig::{Access, credentials};
use crate::world::servers::{Process, Started, new_token, until_ready};
use crate::world::{AGENT, User};

/// Where its etcd keeps everything, below its root directory.
pub(super) const DATA: &str = "etcd-server";

/// Starts kcp on a port and waits until it serves workspaces. It tells others that its virtual workspaces are at `address`.
pub async fn start(binaries: &Path, folder: &Scratch, port: u16, address: &str) -> anyhow::Result<Started> {
    let (admin, agent) = (new_token(), new_token());
    let args = arguments(folder, [&admin, &agent], port, address)?;
    let mut processes = vec![Process::start("kcp", &binaries.join("kcp"), folder.path(), &args)?];
    let url = format!("https://127.0.0.1:{port}/clusters/root");
    let file = folder.path().join("admin.kubeconfig");
    let access = until_ready(&mut processes, "kcp", async || {
        // The token in there is another one after each start.
        let (authority, _) = credentials(&std::fs::read_to_string(&file)?)?;
        let access = Access { authority, admin: admin.clone(), agent: agent.clone() };
        let server = Server::from_kubeconfig_yaml(&access.kubeconfig(&url, User::Admin))?;
        server.client().list(&kinds::kcp(&WORKSPACE), None, &ListOptions::default()).await?;
        Ok(access)
    })
    .await?;
    Ok(Started { url, access, processes })
}

fn arguments(folder: &Scratch, tokens: [&str; 2], port: u16, address: &str) -> anyhow::Result<Vec<String>> {
    let [etcd_client, etcd_peer] = ports::free()?;
    let [admin, agent] = tokens;
    let tokens = format!("{admin},kcp-admin,kcp-admin,\"system:kcp:admin\"\n{agent},{AGENT},{AGENT}\n");
    let tokens = folder.write("kcp-tokens.csv", &tokens)?;
    Ok(vec![
        "start".to_owned(),
        format!("--root-directory={}", folder.path().display()),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--shard-virtual-workspace-url={address}"),
        format!("--token-auth-file={}", tokens.display()),
        format!("--embedded-etcd-client-port={etcd_client}"),
        format!("--embedded-etcd-peer-port={etcd_peer}"),
    ])
}
