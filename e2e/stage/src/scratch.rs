//! Folders that scenarios and servers write to.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A folder that is removed when dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new, empty folder.
    pub fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("carrick-e2e-{}", uuid::Uuid::new_v4().simple()));
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file that only this user can read.
    pub fn write(&self, name: &str, content: &str) -> anyhow::Result<PathBuf> {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;
        let path = self.0.join(name);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(content.as_bytes())?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A left-over folder in the system's temporary folder does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}
