//! Files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes a file only its owner can read. Whatever had its name before is replaced: nothing is written through a link, or into a file that
/// somebody else has open.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", uuid::Uuid::new_v4().simple()));
    let temporary = Path::new(&name);
    let written = create_private(temporary).and_then(|mut file| file.write_all(content));
    let placed = written.and_then(|()| fs::rename(temporary, path));
    if placed.is_err() {
        // Only its owner can read it, should it stay.
        let _ = fs::remove_file(temporary);
    }
    placed
}

/// A new file only its owner can read.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
