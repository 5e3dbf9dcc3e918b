//! Files and folders that are polled for changes.
//!
//! Every poll reads every file and compares it with its previous content. That costs next to nothing for a handful of manifests, and
//! works however a file is saved: by rename or truncation, on any file system, whatever its clock says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// How many polls must agree before a file counts as changed: its writer may not have finished.
const SETTLED: u8 = 2;
/// The same for a file that is gone or empty: some editors move the old file away, or empty it, before they write the new one.
const GONE: u8 = 4;

/// Where the objects of a file belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The service cluster.
    Service,
    /// The consumer's workspace.
    Consumer,
}

/// A file or folder named on the command line.
#[derive(Debug, Clone)]
pub struct WatchedPath {
    /// The path as it was given.
    pub path: PathBuf,
    /// Where its objects belong.
    pub side: Side,
}

/// What is in a file: its text, or why it cannot be read.
type FileContent = Result<String, String>;

/// A file has new content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The file.
    pub file: PathBuf,
    /// Where its objects belong.
    pub side: Side,
    /// What is in it; `None` if it is gone.
    pub content: Option<FileContent>,
}

/// All files that were named, and what was last reported about each.
#[derive(Debug)]
pub struct Sources {
    roots: Vec<WatchedPath>,
    files: BTreeMap<PathBuf, FileHistory>,
}

#[derive(Debug, Clone)]
struct FileHistory {
    side: Side,
    /// What was reported last.
    reported: Option<FileContent>,
    /// What was seen last, and how often in a row.
    last: Option<FileContent>,
    looks: u8,
}

impl Sources {
    /// Sources about which nothing has been reported yet.
    pub fn new(roots: Vec<WatchedPath>) -> anyhow::Result<Self> {
        for root in &roots {
            fs::metadata(&root.path).with_context(|| format!("cannot read {}", root.path.display()))?;
        }
        Ok(Self { roots, files: BTreeMap::new() })
    }

    /// Folders that were named and hold no manifest.
    pub fn empty(&self) -> Vec<&Path> {
        let roots = self.roots.iter().map(|root| root.path.as_path());
        roots.filter(|path| path.is_dir() && expand(path).is_empty()).collect()
    }

    /// All current files, for the start.
    pub fn first(&mut self) -> Vec<FileChange> {
        self.settle(self.read(), 1)
    }

    /// What has changed since the last report, and has settled.
    pub fn look(&mut self) -> Vec<FileChange> {
        self.settle(self.read(), SETTLED)
    }

    fn read(&self) -> BTreeMap<PathBuf, (Side, FileContent)> {
        let mut found = BTreeMap::new();
        for root in &self.roots {
            for file in expand(&root.path) {
                let content = match fs::read(&file) {
                    Ok(bytes) => Ok(carrick_json::manifest::text(&bytes)),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                    Err(error) => Err(error.to_string()),
                };
                found.entry(file).or_insert((root.side, content));
            }
        }
        found
    }

    fn settle(&mut self, mut found: BTreeMap<PathBuf, (Side, FileContent)>, settled: u8) -> Vec<FileChange> {
        for (file, (side, _)) in &found {
            let new = || FileHistory { side: *side, reported: None, last: None, looks: 0 };
            self.files.entry(file.clone()).or_insert_with(new);
        }
        let mut changes = Vec::new();
        for (file, seen) in &mut self.files {
            let now = found.remove(file).map(|(_, content)| content);
            if now == seen.last {
                seen.looks = seen.looks.saturating_add(1);
            } else {
                (seen.last, seen.looks) = (now, 1);
            }
            let empty = matches!(&seen.last, None | Some(Err(_)))
                || matches!(&seen.last, Some(Ok(text)) if text.trim().is_empty());
            let needed = if empty && settled > 1 { GONE } else { settled };
            if seen.last != seen.reported && seen.looks >= needed {
                seen.reported.clone_from(&seen.last);
                changes.push(FileChange { file: file.clone(), side: seen.side, content: seen.last.clone() });
            }
        }
        self.files.retain(|_, seen| seen.last.is_some() || seen.reported.is_some());
        changes
    }
}

/// The file itself, or the manifests in a folder, without the temporary files of editors.
fn expand(path: &Path) -> BTreeSet<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return BTreeSet::from([path.to_owned()]) };
    let manifest = |file: &PathBuf| {
        let hidden = file.file_name().is_none_or(|name| name.to_string_lossy().starts_with(['.', '#']));
        let kind = file.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
        kind && !hidden && file.is_file()
    };
    entries.filter_map(Result::ok).map(|entry| entry.path()).filter(manifest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates polls of one file and returns what is reported after each: `-` for nothing, `gone`, or the text.
    fn play(looks: &[Option<&str>]) -> Vec<String> {
        let mut sources = Sources { roots: Vec::new(), files: BTreeMap::new() };
        let mut reported = Vec::new();
        for (number, look) in looks.iter().enumerate() {
            let found = look.map(|text| (PathBuf::from("f"), (Side::Service, Ok(text.to_owned()))));
            let changes = sources.settle(found.into_iter().collect(), if number == 0 { 1 } else { SETTLED });
            reported.push(match changes.as_slice() {
                [] => "-".to_owned(),
                [FileChange { content: None, .. }] => "gone".to_owned(),
                [FileChange { content: Some(Ok(text)), .. }] => text.clone(),
                other => panic!("{other:?}"),
            });
        }
        reported
    }

    #[test]
    fn a_change_counts_when_it_stays() {
        type Case<'a> = (&'a str, &'a [Option<&'a str>], &'a [&'a str]);
        let cases: [Case; 6] = [
            ("the first poll counts at once", &[Some("a"), Some("a")], &["a", "-"]),
            ("two polls must agree", &[Some("a"), Some("b"), Some("c"), Some("c")], &["a", "-", "-", "c"]),
            (
                "changed and changed back is nothing",
                &[Some("a"), Some("b"), Some("a"), Some("a")],
                &["a", "-", "-", "-"],
            ),
            (
                "moved away and written again",
                &[Some("a"), None, None, Some("b"), Some("b")],
                &["a", "-", "-", "-", "b"],
            ),
            (
                "emptied, then written",
                &[Some("a"), Some(""), Some(" "), Some("b"), Some("b")],
                &["a", "-", "-", "-", "b"],
            ),
            ("gone for good", &[Some("a"), None, None, None, None, None], &["a", "-", "-", "-", "gone", "-"]),
        ];
        for (what, looks, wanted) in cases {
            assert_eq!(play(looks), wanted, "{what}");
        }
    }

    #[test]
    fn of_a_folder_only_manifests_count() {
        let folder = std::env::temp_dir().join(format!("carrick-sources-{}", std::process::id()));
        fs::create_dir_all(folder.join("below.yaml")).unwrap();
        for name in ["b.yaml", "a.yml", "c.json", ".b.yaml.swp", ".#b.yaml", "b.yaml~", "notes.txt"] {
            fs::write(folder.join(name), "x").unwrap();
        }
        let names: Vec<_> =
            expand(&folder).iter().map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(names, ["a.yml", "b.yaml", "c.json"]);
        assert!(Sources::new(vec![WatchedPath { path: folder.clone(), side: Side::Service }]).is_err());
        fs::create_dir_all(folder.join("below")).unwrap();
        fs::write(folder.join("notes.txt"), "x").unwrap();
        let sources = Sources::new(vec![WatchedPath { path: folder.clone(), side: Side::Service }]).unwrap();
        assert_eq!(sources.empty(), [folder.as_path()]);
        fs::remove_dir_all(&folder).unwrap();
    }
}
