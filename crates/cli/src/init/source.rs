//! Where CRDs come from: files, folders, standard input, or the service cluster.

use std::fs;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use carrick_client::{Overrides, Server};
use carrick_json::manifest;
use carrick_syncagent::api::PublishedResource;
use carrick_syncagent::toolkit::{self, ToolkitError};
use serde_json::{Value, json};

/// The CRDs in a file, in the manifests of a folder, or, for `-`, on standard input.
pub fn read(path: &Path) -> anyhow::Result<Vec<Value>> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
        return crds(&manifest::text(&bytes), "standard input");
    }
    let place = path.display().to_string();
    if !path.is_dir() {
        let bytes = fs::read(path).with_context(|| format!("cannot read {place}"))?;
        return crds(&manifest::text(&bytes), &place);
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot read the folder {place}"))?;
    let mut files: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    files
        .retain(|file| file.is_file() && file.extension().is_some_and(|end| ENDINGS.iter().any(|known| end == *known)));
    files.sort();
    ensure!(!files.is_empty(), "the folder {place} holds no file that ends in .{}", ENDINGS.join(", ."));
    let mut all = Vec::new();
    for file in files {
        let place = file.display().to_string();
        let bytes = fs::read(&file).with_context(|| format!("cannot read {place}"))?;
        all.extend(documents(&manifest::text(&bytes), &place)?.into_iter().filter(is_crd));
    }
    ensure!(!all.is_empty(), "no file of the folder {place} contains a CustomResourceDefinition");
    Ok(all)
}

const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

fn is_crd(object: &Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
}

fn crds(text: &str, place: &str) -> anyhow::Result<Vec<Value>> {
    let all = documents(text, place)?;
    let kinds: Vec<&str> = all.iter().filter_map(|object| object["kind"].as_str()).collect();
    if !all.iter().any(is_crd) {
        let found = if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") };
        bail!("{place} contains no CustomResourceDefinition but {found}; give --crd the file with the CRD of the kind");
    }
    Ok(all.into_iter().filter(is_crd).collect())
}

fn documents(text: &str, place: &str) -> anyhow::Result<Vec<Value>> {
    manifest::objects(text).with_context(|| place.to_owned())
}

/// The CRD of a kind on the service cluster, or one built from the API server's description of the kind.
pub async fn ask(name: &str, kubeconfig: Option<&Path>) -> anyhow::Result<Value> {
    let (group, kind) = name.split_once('/').unwrap_or(("", name));
    if kind.is_empty() || kind.contains('/') || !kind.starts_with(char::is_uppercase) {
        bail!(
            "--from-cluster {name:?}: say <group>/<Kind>, such as example.com/Bucket, without a version; \
             kubectl api-resources shows groups and kinds"
        );
    }
    let server = Server::infer(kubeconfig, &Overrides::default())
        .context("the service cluster cannot be found; name its kubeconfig with --kubeconfig")?;
    let pr = json!({ "spec": { "resource": { "apiGroup": group, "kind": kind } } });
    let pr: PublishedResource = serde_json::from_value(pr)?;
    let way_out = |error: ToolkitError| match error {
        ToolkitError::Missing { .. } => {
            let shown = if group.is_empty() { "the core group".to_owned() } else { format!("group {group}") };
            anyhow::anyhow!(
                "{} serves no kind {kind} in {shown}; see kubectl api-resources --api-group={group:?}, install the \
                 kind's CRD there, or name another cluster with --kubeconfig",
                server.url()
            )
        }
        ToolkitError::Request { source, .. } => anyhow::Error::from(source).context(format!(
            "cannot ask {} for {name}; your user there needs to read customresourcedefinitions; name another \
             kubeconfig with --kubeconfig, or give the CRD itself with --crd",
            server.url()
        )),
        other => anyhow::Error::from(other).context(format!("{name} cannot be offered")),
    };
    toolkit::crd(&server.client(), &pr, false).await.map_err(way_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crds_are_found_among_other_objects_and_in_lists() {
        let crd = "kind: CustomResourceDefinition\nmetadata: {name: a}\n";
        let mixed = format!("kind: Namespace\n---\n{crd}---\n---\n{crd}");
        assert_eq!(crds(&mixed, "x").unwrap().len(), 2);
        let list = "kind: List\nitems:\n- {kind: CustomResourceDefinition}\n- {kind: Secret}\n";
        assert_eq!(crds(list, "x").unwrap().len(), 1);
        for (text, wanted) in
            [("kind: Bucket\n", "x contains no CustomResourceDefinition but Bucket"), ("", "but nothing")]
        {
            let error = crds(text, "x").unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
        assert!(format!("{:#}", crds("a: [", "x").unwrap_err()).contains("x: this is not valid YAML"));
    }
}
