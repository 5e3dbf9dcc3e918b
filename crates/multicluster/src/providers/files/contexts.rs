//! The contexts of kubeconfig files, and how they change.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::config::Kubeconfig;

use crate::name::ClusterName;

/// The kubeconfigs of all contexts of a file, each with that context as its current and only one.
pub(super) type File = BTreeMap<String, Arc<str>>;

/// All files, with their contexts or what is wrong with them.
pub(super) type Found = BTreeMap<PathBuf, Result<File, String>>;

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ContextChange {
    /// A context appeared, or leads somewhere else now.
    Engage { path: PathBuf, context: String, kubeconfig: Arc<str> },
    /// A context is gone.
    Disengage { path: PathBuf, context: String },
    /// A file cannot be used.
    Failing { path: PathBuf, problem: String },
    /// A file can be used again, or is gone.
    Recovered { path: PathBuf },
    /// All files of the start have been read.
    Synced,
}

/// What was found last.
#[derive(Default)]
pub(super) struct Contexts {
    files: BTreeMap<PathBuf, KnownFile>,
    reported_synced: bool,
}

/// What is known of a file.
#[derive(Default)]
struct KnownFile {
    contexts: File,
    /// Why it cannot be used.
    problem: Option<String>,
}

impl Contexts {
    /// Compares with what was found before. Contexts go before others come: one that has moved to another file is not lost.
    pub(super) fn on_found(&mut self, found: Found) -> Vec<ContextChange> {
        let gone: Vec<PathBuf> = self.files.keys().filter(|path| !found.contains_key(*path)).cloned().collect();
        let mut changes = Vec::new();
        let mut engaged = Vec::new();
        for (path, file) in gone.iter().map(|path| (path.clone(), Ok(File::new()))).chain(found) {
            self.on_file(&path, file, &mut changes, &mut engaged);
        }
        for path in gone {
            self.files.remove(&path);
        }
        changes.append(&mut engaged);
        if !std::mem::replace(&mut self.reported_synced, true) {
            changes.push(ContextChange::Synced);
        }
        changes
    }

    fn on_file(
        &mut self,
        path: &Path,
        found: Result<File, String>,
        changes: &mut Vec<ContextChange>,
        engaged: &mut Vec<ContextChange>,
    ) {
        let path = path.to_owned();
        let known = self.files.entry(path.clone()).or_default();
        let file = match found {
            Ok(file) => file,
            Err(problem) => {
                // It may be half written: what it held before stays.
                let before = known.problem.replace(problem.clone());
                if before.as_ref() != Some(&problem) {
                    changes.push(ContextChange::Failing { path, problem });
                }
                return;
            }
        };
        if known.problem.take().is_some() {
            changes.push(ContextChange::Recovered { path: path.clone() });
        }
        for context in known.contexts.keys().filter(|context| !file.contains_key(*context)) {
            changes.push(ContextChange::Disengage { path: path.clone(), context: context.clone() });
        }
        for (context, kubeconfig) in &file {
            if known.contexts.get(context) != Some(kubeconfig) {
                let (context, kubeconfig) = (context.clone(), kubeconfig.clone());
                engaged.push(ContextChange::Engage { path: path.clone(), context, kubeconfig });
            }
        }
        known.contexts = file;
    }
}

/// Leaves out contexts that have no cluster name, and all but the first context of each name.
pub(super) fn keep_named(found: &mut Found, name: impl Fn(&Path, &str) -> Option<ClusterName>) {
    let mut taken = HashSet::new();
    for (path, file) in found.iter_mut() {
        if let Ok(file) = file {
            file.retain(|context, _| name(path, context).is_some_and(|name| taken.insert(name)));
        }
    }
}

/// Reads all kubeconfigs at these paths.
pub(super) fn read(paths: &[PathBuf]) -> Found {
    let mut found = Found::new();
    for path in paths {
        if path.is_dir() {
            match std::fs::read_dir(path) {
                Ok(entries) => {
                    let files = entries.flatten().map(|entry| entry.path()).filter(|path| is_kubeconfig(path));
                    found.extend(files.map(|file| (file.clone(), read_file(&file))));
                }
                Err(error) => drop(found.insert(path.clone(), Err(error.to_string()))),
            }
        } else if path.exists() {
            found.insert(path.clone(), read_file(path));
        }
    }
    found
}

/// Whether a file of a folder looks like a kubeconfig by its name.
fn is_kubeconfig(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml")).unwrap_or(name);
    (name == "kubeconfig" || name.ends_with(".kubeconfig")) && path.is_file()
}

fn read_file(path: &Path) -> Result<File, String> {
    // Parse errors quote the lines around the mistake, and those may hold a token: only their first line is reported.
    let first_line = |error: &dyn std::error::Error| {
        error.to_string().lines().next().unwrap_or_default().trim_end_matches(':').to_owned()
    };
    let all = Kubeconfig::read_from(path).map_err(|error| first_line(&error))?;
    let mut file = File::new();
    for context in &all.contexts {
        let mut one = all.clone();
        one.current_context = Some(context.name.clone());
        one.contexts.retain(|other| other.name == context.name);
        let used = context.context.as_ref();
        one.clusters.retain(|cluster| used.is_some_and(|used| used.cluster == cluster.name));
        one.auth_infos.retain(|user| used.is_some_and(|used| used.user.as_deref() == Some(user.name.as_str())));
        let text = serde_json::to_string(&one).map_err(|error| first_line(&error))?;
        file.insert(context.name.clone(), text.into());
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(contexts: &[(&str, &str)]) -> File {
        contexts.iter().map(|(name, text)| ((*name).to_owned(), Arc::from(*text))).collect()
    }

    fn run(script: Vec<Vec<(&str, Result<File, String>)>>) -> Vec<String> {
        let mut contexts = Contexts::default();
        let mut changes = Vec::new();
        for found in script {
            let found = found.into_iter().map(|(path, file)| (path.into(), file)).collect();
            changes.extend(contexts.on_found(found).into_iter().map(|change| match change {
                ContextChange::Engage { path, context, kubeconfig } => {
                    format!("+{}+{context}={kubeconfig}", path.display())
                }
                ContextChange::Disengage { path, context } => format!("-{}+{context}", path.display()),
                ContextChange::Failing { path, problem } => format!("failing {} {problem}", path.display()),
                ContextChange::Recovered { path } => format!("recovered {}", path.display()),
                ContextChange::Synced => "synced".to_owned(),
            }));
        }
        changes
    }

    #[test]
    fn contexts_come_change_and_go() {
        let script = vec![
            vec![("a", Ok(file(&[("x", "1"), ("y", "1")]))), ("b", Ok(file(&[("x", "1")])))],
            vec![("a", Ok(file(&[("x", "1"), ("y", "2")]))), ("b", Ok(file(&[("x", "1")])))],
            vec![("a", Ok(file(&[("x", "1")]))), ("c", Ok(file(&[("z", "1")])))],
        ];
        let wanted = ["+a+x=1", "+a+y=1", "+b+x=1", "synced", "+a+y=2", "-b+x", "-a+y", "+c+z=1"];
        assert_eq!(run(script), wanted);
    }

    #[test]
    fn a_broken_file_keeps_what_it_had_until_it_can_be_read_or_is_gone() {
        let broken = || Err("bad".to_owned());
        let script = vec![
            vec![("a", Ok(file(&[("x", "1")]))), ("b", broken())],
            vec![("a", broken()), ("b", broken())],
            vec![("a", Ok(file(&[("x", "2")])))],
            vec![("a", broken())],
            vec![],
        ];
        let wanted = [
            "failing b bad",
            "+a+x=1",
            "synced",
            "failing a bad",
            "recovered b",
            "recovered a",
            "+a+x=2",
            "failing a bad",
            "recovered a",
            "-a+x",
        ];
        assert_eq!(run(script), wanted);
    }

    #[test]
    fn a_context_that_moves_to_an_earlier_file_is_not_lost() {
        let script =
            vec![vec![("b", Ok(file(&[("x", "1")])))], vec![("a", Ok(file(&[("x", "1")]))), ("b", Ok(file(&[])))]];
        assert_eq!(run(script), ["+b+x=1", "synced", "-b+x", "+a+x=1"]);
    }

    #[test]
    fn of_contexts_with_one_name_the_first_counts() {
        let mut found: Found = [("a", vec!["kind-x", "prod"]), ("b", vec!["kind-x", "kind-y"])]
            .into_iter()
            .map(|(path, contexts)| {
                (path.into(), Ok(contexts.into_iter().map(|it| (it.to_owned(), "".into())).collect()))
            })
            .collect();
        keep_named(&mut found, |_, context| context.strip_prefix("kind-").and_then(|name| ClusterName::new(name).ok()));
        let kept = found.iter().flat_map(|(path, file)| {
            let contexts = file.as_ref().unwrap().keys();
            contexts.map(|context| format!("{}+{context}", path.display())).collect::<Vec<_>>()
        });
        assert_eq!(kept.collect::<Vec<_>>(), ["a+kind-x", "b+kind-y"]);
    }

    #[test]
    fn names_tell_kubeconfigs_from_other_files() {
        let folder = std::env::temp_dir().join(format!("kubeconfigs-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(folder.join("folder.kubeconfig")).unwrap();
        for (name, wanted) in [
            ("kubeconfig", true),
            ("kubeconfig.yaml", true),
            ("kubeconfig.yml", true),
            ("a.kubeconfig", true),
            ("a.kubeconfig.yaml", true),
            ("config", false),
            ("a.yaml", false),
        ] {
            std::fs::write(folder.join(name), "").unwrap();
            assert_eq!(is_kubeconfig(&folder.join(name)), wanted, "{name}");
        }
        assert!(!is_kubeconfig(&folder.join("folder.kubeconfig")));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
