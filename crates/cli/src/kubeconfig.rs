//! Kubeconfig files on disk.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A folder that kubeconfigs and data can be written to; it is created if missing.
pub fn folder(path: &Path) -> anyhow::Result<PathBuf> {
    if path.exists() && !path.is_dir() {
        anyhow::bail!("{} is a file; give --data-dir a folder", path.display());
    }
    fs::create_dir_all(path).with_context(|| {
        format!("cannot create the folder {}; give --data-dir one you may write to", path.display())
    })?;
    // Checking permissions is not reliable; trying is.
    let probe = path.join(".carrick-write-test");
    fs::write(&probe, b"")
        .and_then(|()| fs::remove_file(&probe))
        .with_context(|| format!("cannot write to {}; give --data-dir a folder you may write to", path.display()))?;
    // kubectl is often called from other folders.
    fs::canonicalize(path).with_context(|| format!("cannot find {}", path.display()))
}

/// A file that only its owner may read, for programs that want one; dropping it removes it.
#[derive(Debug)]
pub struct Temporary(PathBuf);

impl Temporary {
    /// With that content.
    pub fn new(content: &[u8]) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("carrick-{}.kubeconfig", uuid::Uuid::new_v4().simple()));
        write_bytes(&path, content)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Only its owner can read it, should it stay.
        let _ = fs::remove_file(&self.0);
    }
}

/// Writes a file that only its owner may read: kubeconfigs hold tokens.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    write_bytes(path, text.as_bytes())
}

/// Writes a file that only its owner may read.
pub fn write_bytes(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
        .open(path)
        .and_then(|mut file| file.write_all(content))
        .with_context(|| format!("cannot write {}", path.display()))
}
