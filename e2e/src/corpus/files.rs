//! The files of the corpus: what in them is a CRD, and what an object of one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use carrick_json::yaml;
use serde_json::Value;

/// One document of a file, as its authors wrote it.
pub struct Text {
    /// Where it comes from, for reports.
    pub file: String,
    /// The document itself.
    pub content: String,
    /// What it says.
    pub value: Value,
}

impl Text {
    /// The namespace that it names.
    pub fn namespace(&self) -> Option<&str> {
        self.value["metadata"]["namespace"].as_str().filter(|name| !name.is_empty())
    }
}

/// All that was collected.
pub struct Corpus {
    /// CRDs by their names; of several with one name the first.
    pub crds: BTreeMap<String, Text>,
    /// Objects of these CRDs.
    pub samples: Vec<Text>,
}

/// Reads all files below a folder.
pub fn read(folder: &Path) -> anyhow::Result<Corpus> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    let (mut crds, mut others) = (BTreeMap::new(), Vec::new());
    for path in files {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let file = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        for content in documents(&text) {
            let Ok(value) = yaml::value(&content) else {
                println!("corpus: {file} has a document that is not YAML");
                continue;
            };
            let text = Text { file: file.clone(), content, value };
            let name = text.value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            if name.is_empty() || !text.value["kind"].is_string() {
                continue;
            }
            if text.value["kind"] == "CustomResourceDefinition" {
                // Patches of generators have the name and little else.
                if text.value["apiVersion"] == "apiextensions.k8s.io/v1" && text.value["spec"]["versions"].is_array() {
                    crds.entry(name).or_insert(text);
                }
            } else {
                others.push(text);
            }
        }
    }
    let groups: BTreeSet<String> =
        crds.values().filter_map(|crd: &Text| crd.value["spec"]["group"].as_str()).map(str::to_owned).collect();
    // Two samples of one name would meet on the servers.
    let mut seen = BTreeSet::new();
    others.retain(|text: &Text| {
        let group =
            text.value["apiVersion"].as_str().and_then(|version| version.split_once('/')).map(|(group, _)| group);
        let id = format!(
            "{} {} {}",
            text.value["kind"], text.value["metadata"]["namespace"], text.value["metadata"]["name"]
        );
        group.is_some_and(|group| groups.contains(group) && seen.insert(format!("{group} {id}")))
    });
    Ok(Corpus { crds, samples: others })
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
            files.push(path);
        }
    }
    Ok(())
}

/// The documents of a file. Templates of other programs are not YAML yet.
fn documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        if line.trim_end() == "---" || line.starts_with("--- ") {
            documents.push(String::new());
        } else if let Some(last) = documents.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    let templated = |document: &String| {
        let place = |line: &str| ["{{", "- {{", "${"].iter().any(|start| line.trim_start().starts_with(start));
        document.lines().any(place) || document.contains(": {{") || document.contains(": ${")
    };
    documents.retain(|document| document.contains("kind:") && !templated(document));
    documents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_taken_apart_and_templates_left_out() {
        let text = "# a\n---\nkind: A\nb: |\n  x\n---\nkind: {{ .Values.kind }}\n--- # next\nkind: C\n";
        assert_eq!(documents(text), ["kind: A\nb: |\n  x\n", "kind: C\n"]);
    }
}
