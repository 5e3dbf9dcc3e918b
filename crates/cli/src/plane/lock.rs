//! Two processes must not write the same data.

use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::Context;

/// Takes the lock of a folder, which is held as long as the file is open; the flag is where to give another folder.
pub fn take(folder: &Path, flag: &str) -> anyhow::Result<File> {
    let path = folder.join(".lock");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            anyhow::bail!("another carrick plane runs with {}; stop it or give {flag} another folder", folder.display())
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("cannot lock {}", path.display())),
    }
}
