//! What earlier runs found out: how long each test takes and which bugs it reaches, and which test noticed a bug the last time. It only saves
//! time; without it everything is found out again.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

/// Kept in one file beside the copy of the workspace.
pub struct Memory {
    file: PathBuf,
    all: Value,
}

/// What an earlier run found out about a bug.
#[derive(Debug, PartialEq, Eq)]
pub enum Remembered {
    /// The program that noticed it, and what it said.
    Caught(String, String),
    /// Nothing did.
    Survived,
}

impl Memory {
    /// Reads the file; nothing is known if there is none.
    pub fn read(file: PathBuf) -> Self {
        let all = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        Self { file, all }
    }

    /// Time and reached bugs of a test, if it was run without a bug in just this program.
    pub fn test(&self, program: &str, test: &str) -> Option<(Duration, BTreeSet<usize>)> {
        let known = &self.all["programs"][program][test];
        let reached = known["reaches"].as_array()?.iter().filter_map(|bug| usize::try_from(bug.as_u64()?).ok());
        Some((Duration::from_millis(known["millis"].as_u64()?), reached.collect()))
    }

    /// Notes time and reached bugs of a test.
    pub fn note_test(&mut self, program: &str, test: &str, took: Duration, reached: &BTreeSet<usize>) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.all["programs"][program][test] = json!({"millis": millis, "reaches": reached});
        self.save();
    }

    /// The test that noticed a bug the last time.
    pub fn caught(&self, bug: &str) -> Option<&str> {
        self.all["caught"][bug].as_str()
    }

    /// Notes which test noticed a bug.
    pub fn note_caught(&mut self, bug: &str, test: &str) {
        self.all["caught"][bug] = test.into();
        self.save();
    }

    /// What became of a bug in just these programs.
    pub fn verdict(&self, programs: &str, bug: &str) -> Option<Remembered> {
        let known = &self.all["verdicts"][bug];
        let caught =
            || Some(Remembered::Caught(known["program"].as_str()?.to_owned(), known["words"].as_str()?.to_owned()));
        (known["programs"] == programs).then(|| caught().unwrap_or(Remembered::Survived))
    }

    /// Notes what became of a bug, so that a run that is broken off goes on where it was.
    pub fn note_verdict(&mut self, programs: &str, bug: &str, caught: Option<(&str, &str)>) {
        let (program, words) = caught.unzip();
        self.all["verdicts"][bug] = json!({"programs": programs, "program": program, "words": words});
        self.save();
    }

    fn save(&self) {
        // Renamed, so that a run that is broken off here loses nothing. Without the file the next run takes longer, that is all.
        let new = self.file.with_extension("new");
        let _ = fs::write(&new, self.all.to_string()).and_then(|()| fs::rename(&new, &self.file));
    }
}

/// Tells a test program from one that was built from other code.
pub fn stamp(program: &Path) -> anyhow::Result<String> {
    let mut hasher = DefaultHasher::new();
    fs::read(program)?.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_out_is_found_again() {
        let file = std::env::temp_dir().join(format!("carrick-planted-memory-{}", std::process::id()));
        let mut memory = Memory::read(file.clone());
        assert!(memory.test("p", "a::b").is_none() && memory.caught("bug").is_none());
        memory.note_test("p", "a::b", Duration::from_millis(7), &BTreeSet::from([3, 5]));
        memory.note_caught("bug", "a::b");
        memory.note_verdict("p", "bug", Some(("unit", "failed")));
        memory.note_verdict("p", "other", None);
        let again = Memory::read(file.clone());
        fs::remove_file(file).unwrap();
        assert_eq!(again.test("p", "a::b"), Some((Duration::from_millis(7), BTreeSet::from([3, 5]))));
        assert!(again.test("q", "a::b").is_none(), "another program");
        assert_eq!(again.caught("bug"), Some("a::b"));
        assert_eq!(again.verdict("p", "bug"), Some(Remembered::Caught("unit".to_owned(), "failed".to_owned())));
        assert_eq!(again.verdict("p", "other"), Some(Remembered::Survived));
        assert_eq!(again.verdict("q", "bug"), None, "other programs");
    }
}
