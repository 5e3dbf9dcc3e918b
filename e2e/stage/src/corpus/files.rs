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

/// Reads the CRDs below a folder whose names are wanted, and objects of their kinds. What else is there is not even read as YAML, which takes
/// long.
pub fn read(folder: &Path, is_wanted: &dyn Fn(&str) -> bool) -> anyhow::Result<Corpus> {
    let mut paths = Vec::new();
    collect(folder, &mut paths)?;
    paths.sort();
    let (mut crds, mut others, mut broken) = (BTreeMap::new(), Vec::new(), 0);
    for path in paths {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let file = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        for content in documents(&text) {
            if !says(&content, "kind", "CustomResourceDefinition") {
                others.push((file.clone(), content));
            } else if names(&content).any(is_wanted) {
                let Ok(value) = yaml::value(&content) else {
                    broken += 1;
                    continue;
                };
                let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                // Patches of generators have the name and little else.
                let whole = value["apiVersion"] == "apiextensions.k8s.io/v1" && value["spec"]["versions"].is_array();
                if whole && is_wanted(&name) {
                    crds.entry(name).or_insert(Text { file: file.clone(), content, value });
                }
            }
        }
    }
    let kinds: BTreeSet<(&str, &str)> = crds
        .values()
        .filter_map(|crd: &Text| {
            Some((crd.value["spec"]["group"].as_str()?, crd.value["spec"]["names"]["kind"].as_str()?))
        })
        .collect();
    // Two samples of one name would meet on the servers.
    let (mut samples, mut seen) = (Vec::new(), BTreeSet::new());
    for (file, content) in others {
        if !kinds.iter().any(|(group, kind)| content.contains(group) && says(&content, "kind", kind)) {
            continue;
        }
        let Ok(value) = yaml::value(&content) else {
            broken += 1;
            continue;
        };
        let group = value["apiVersion"].as_str().and_then(|version| version.split_once('/')).map(|(group, _)| group);
        let metadata = &value["metadata"];
        let id =
            format!("{} {} {} {}", group.unwrap_or_default(), value["kind"], metadata["namespace"], metadata["name"]);
        let named = metadata["name"].as_str().is_some_and(|name| !name.is_empty());
        let known = kinds.iter().any(|(known, kind)| group == Some(*known) && value["kind"] == *kind);
        if named && known && seen.insert(id) {
            samples.push(Text { file, content, value });
        }
    }
    if broken > 0 {
        println!("corpus: {broken} documents are not YAML");
    }
    drop(kinds);
    Ok(Corpus { crds, samples })
}

/// Whether a line of a document says that a field is something, without reading it as YAML.
fn says(document: &str, field: &str, value: &str) -> bool {
    values(document, field).any(|said| said == value)
}

/// Whatever could be the name of the object in a document.
fn names(document: &str) -> impl Iterator<Item = &str> {
    values(document, "name")
}

fn values<'a>(document: &'a str, field: &'a str) -> impl Iterator<Item = &'a str> {
    let value = move |line: &'a str| line.trim().strip_prefix(field)?.trim_start().strip_prefix(':');
    document.lines().filter_map(value).map(|value| {
        let bare = value.split_once(" #").map_or(value, |(value, _)| value);
        bare.trim().trim_matches(['"', '\''])
    })
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
