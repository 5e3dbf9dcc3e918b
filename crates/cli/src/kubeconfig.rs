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

/// Writes a file that only its owner may read, whoever could read what had its name before. Nothing is written through a link.
pub fn write_bytes(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let before = fs::symlink_metadata(path).ok();
    if before.as_ref().is_some_and(fs::Metadata::is_symlink) {
        anyhow::bail!("{}: it is a link, and somebody else may have made it; remove it", cannot());
    }
    // Devices and pipes cannot be replaced.
    if before.is_some_and(|before| !before.is_file()) {
        return OpenOptions::new().write(true).open(path).and_then(|mut it| it.write_all(content)).with_context(cannot);
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", uuid::Uuid::new_v4().simple()));
    let temporary = Path::new(&name);
    let placed = create(temporary, content).and_then(|()| fs::rename(temporary, path));
    if placed.is_err() {
        // Only its owner can read it, should it stay.
        let _ = fs::remove_file(temporary);
    }
    placed.with_context(cannot)
}

fn create(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(content)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn what_holds_tokens_is_private_whatever_was_there_before_and_goes_through_no_link() {
        let folder = std::env::temp_dir().join(format!("carrick-{}", uuid::Uuid::new_v4().simple()));
        fs::create_dir_all(&folder).unwrap();
        let (file, link) = (folder.join("open"), folder.join("link"));
        fs::write(&file, "before").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        symlink(&file, &link).unwrap();
        assert!(write(&link, "token").unwrap_err().to_string().contains("it is a link"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "before");
        let reader = fs::File::open(&file).unwrap();
        write(&file, "token").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::io::read_to_string(reader).unwrap(), "before", "whoever has opened it before sees nothing");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing else is left");
        fs::remove_dir_all(folder).unwrap();
    }
}
