//! Files.

use std::path::Path;
use std::{fs, io};

/// Writes a file only its owner can read.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    use std::io::Write;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(content)
}
