//! The archive of a release: everything that is shipped for one processor in one file, the same bytes wherever it is packed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::tools;

/// Packs files of a folder, and the licence, into `<name>.tar.gz` there; below a folder of that name, dated by seconds since 1970.
pub fn pack(folder: &Path, name: &str, files: &[PathBuf], date: &str) -> anyhow::Result<PathBuf> {
    let archive = folder.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--create", "--gzip", "--sort=name", "--format=gnu", "--owner=0", "--group=0", "--numeric-owner"])
        .args([format!("--mtime=@{date}"), "--mode=u+rw,go+r,go-w".to_owned(), format!("--transform=s,^,{name}/,")])
        .arg("--file")
        .arg(&archive)
        .arg("--directory")
        .arg(folder)
        .args(files.iter().filter_map(|file| file.file_name()))
        .arg("--directory")
        .arg(tools::root())
        .arg("LICENSE");
    tools::run(&mut tar).with_context(|| format!("cannot pack {}; is GNU tar installed?", archive.display()))?;
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_archive_has_the_same_bytes_whenever_it_is_packed() {
        let folder = std::env::temp_dir().join(format!("carrick-archive-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("program");
        let mut seen = Vec::new();
        for day in [1, 2] {
            fs::write(&file, "program").unwrap();
            let date = std::time::UNIX_EPOCH + std::time::Duration::from_hours(24 * day);
            fs::File::options().write(true).open(&file).unwrap().set_modified(date).unwrap();
            let archive = pack(&folder, "carrick-1", std::slice::from_ref(&file), "0").unwrap();
            seen.push(fs::read(archive).unwrap());
            fs::remove_file(&file).unwrap();
        }
        let listed = Command::new("tar").arg("-tzf").arg(folder.join("carrick-1.tar.gz")).output().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(seen[0], seen[1]);
        assert_eq!(String::from_utf8_lossy(&listed.stdout), "carrick-1/program\ncarrick-1/LICENSE\n");
    }
}
