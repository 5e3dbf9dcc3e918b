//! The contexts of kubeconfig files, and how they change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::config::Kubeconfig;

/// The kubeconfigs of all contexts of a file, each with that context as its current and only one.
pub(super) type File = BTreeMap<String, Arc<str>>;

/// All files, with their contexts or what is wrong with them.
pub(super) type Found = BTreeMap<PathBuf, Result<File, String>>;

/// What to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A context appeared, or leads somewhere else now.
    Engage { path: PathBuf, context: String, kubeconfig: Arc<str> },
    /// A context is gone.
    Disengage { path: PathBuf, context: String },
    /// A file cannot be used.
    Broken { path: PathBuf, problem: String },
    /// A file can be used again, or is gone.
    Mended { path: PathBuf },
    /// All files of the start have been read.
    Synced,
}

/// What was found last.
#[derive(Default)]
pub(super) struct Contexts {
    files: BTreeMap<PathBuf, State>,
    told_synced: bool,
}

#[derive(Default)]
struct State {
    file: File,
    broken: Option<String>,
}

impl Contexts {
    /// Compares with what was found before.
    pub(super) fn on_found(&mut self, found: Found) -> Vec<Step> {
        let mut steps = Vec::new();
        let gone: Vec<PathBuf> = self.files.keys().filter(|path| !found.contains_key(*path)).cloned().collect();
        for path in gone {
            steps.extend(self.on_file(&path, Ok(File::new())));
            self.files.remove(&path);
        }
        for (path, file) in found {
            steps.extend(self.on_file(&path, file));
        }
        if !std::mem::replace(&mut self.told_synced, true) {
            steps.push(Step::Synced);
        }
        steps
    }

    fn on_file(&mut self, path: &Path, found: Result<File, String>) -> Vec<Step> {
        let path = path.to_owned();
        let state = self.files.entry(path.clone()).or_default();
        let file = match found {
            Ok(file) => file,
            Err(problem) => {
                // It may be half written: what it held before stays.
                let known = state.broken.replace(problem.clone());
                return if known.as_ref() == Some(&problem) {
                    Vec::new()
                } else {
                    vec![Step::Broken { path, problem }]
                };
            }
        };
        let mut steps = Vec::new();
        if state.broken.take().is_some() {
            steps.push(Step::Mended { path: path.clone() });
        }
        for context in state.file.keys().filter(|context| !file.contains_key(*context)) {
            steps.push(Step::Disengage { path: path.clone(), context: context.clone() });
        }
        for (context, kubeconfig) in &file {
            if state.file.get(context) != Some(kubeconfig) {
                let (context, kubeconfig) = (context.clone(), kubeconfig.clone());
                steps.push(Step::Engage { path: path.clone(), context, kubeconfig });
            }
        }
        state.file = file;
        steps
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
    // Parse errors quote the lines around the mistake, and those may hold a token: only their first line is told.
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
        let mut told = Vec::new();
        for found in script {
            let found = found.into_iter().map(|(path, file)| (path.into(), file)).collect();
            told.extend(contexts.on_found(found).into_iter().map(|step| match step {
                Step::Engage { path, context, kubeconfig } => format!("+{}+{context}={kubeconfig}", path.display()),
                Step::Disengage { path, context } => format!("-{}+{context}", path.display()),
                Step::Broken { path, problem } => format!("broken {} {problem}", path.display()),
                Step::Mended { path } => format!("mended {}", path.display()),
                Step::Synced => "synced".to_owned(),
            }));
        }
        told
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
    fn a_broken_file_keeps_what_it_had_until_it_is_mended_or_gone() {
        let broken = || Err("bad".to_owned());
        let script = vec![
            vec![("a", Ok(file(&[("x", "1")]))), ("b", broken())],
            vec![("a", broken()), ("b", broken())],
            vec![("a", Ok(file(&[("x", "2")])))],
            vec![("a", broken())],
            vec![],
        ];
        let wanted = [
            "+a+x=1",
            "broken b bad",
            "synced",
            "broken a bad",
            "mended b",
            "mended a",
            "+a+x=2",
            "broken a bad",
            "mended a",
            "-a+x",
        ];
        let told = run(script);
        assert_eq!(told, wanted, "{told:#?}");
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
