//! Something to apply, and what to type.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::ui::Ui;

const FILES: [(&str, &str); 6] = [
    ("workspace.yaml", include_str!("examples/workspace.yaml")),
    ("crd.yaml", include_str!("examples/crd.yaml")),
    ("note.yaml", include_str!("examples/note.yaml")),
    ("export.yaml", include_str!("examples/export.yaml")),
    ("binding.yaml", include_str!("examples/binding.yaml")),
    ("gadget.yaml", include_str!("examples/gadget.yaml")),
];

/// Writes the examples, with the provider's workspace filled in.
pub fn write(folder: &Path, provider_workspace: &str) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    for (name, text) in FILES {
        let path = folder.join(name);
        fs::write(&path, text.replace("PROVIDER_WORKSPACE", provider_workspace))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Commands that use them, ready to paste.
pub fn print(ui: &Ui, folder: &Path, kcp: &str) {
    let team = format!("--server {kcp}/clusters/root:team");
    ui.heading("Type in another terminal");
    ui.command(&format!("cd {}", folder.display()));
    ui.command("export KUBECONFIG=$PWD/kcp-admin.kubeconfig");
    ui.heading("Workspaces");
    ui.command("kubectl get ws");
    ui.command("kubectl apply -f examples/workspace.yaml");
    ui.command("kubectl wait ws/team --for=jsonpath='{.status.phase}'=Ready");
    ui.command(&format!("kubectl {team} api-resources"));
    ui.heading("A CRD of one workspace");
    ui.command(&format!("kubectl {team} apply -f examples/crd.yaml"));
    ui.command(&format!("kubectl {team} wait crd/notes.example.io --for=condition=Established"));
    ui.command(&format!("kubectl {team} apply -f examples/note.yaml"));
    ui.command(&format!("kubectl {team} get notes"));
    ui.heading("An API that one workspace exports and another binds");
    ui.command("kubectl --kubeconfig provider.kubeconfig apply -f examples/export.yaml");
    ui.command(&format!("kubectl {team} apply -f examples/binding.yaml"));
    ui.command(&format!("kubectl {team} wait apibinding/example.io --for=condition=Ready"));
    ui.command(&format!("kubectl {team} apply -f examples/gadget.yaml"));
    ui.command(&format!("kubectl {team} get gadgets"));
    ui.heading("The service cluster");
    ui.command("kubectl --kubeconfig service.kubeconfig get namespaces");
}
