//! The store's file: one JSON line per commit, compacted when it is opened and when it has grown.
//!
//! A commit is handed to the operating system before it is acknowledged, so even a killed process loses nothing. Against a power failure
//! only `fsync` helps: then every commit waits for the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::contents::{Contents, place};
use super::key::{Key, Kind};
use super::object::{Object, pack, unpack};
use crate::files::create_private;

const FILE: &str = "commits.jsonl";

/// How a store keeps its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durability {
    /// Wait for the disk at every commit: slower, but survives power loss.
    pub fsync: bool,
    /// Rewrite the file without history when it is larger than this and four times as large as after the last time.
    pub compact_at: u64,
}

impl Default for Durability {
    fn default() -> Self {
        Self { fsync: false, compact_at: 16 * 1024 * 1024 }
    }
}

#[derive(Serialize, Deserialize)]
struct Line<'a, T> {
    revision: u64,
    #[serde(borrow)]
    group: std::borrow::Cow<'a, str>,
    resource: std::borrow::Cow<'a, str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    identity: std::borrow::Cow<'a, str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    cluster: std::borrow::Cow<'a, str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    namespace: std::borrow::Cow<'a, str>,
    name: std::borrow::Cow<'a, str>,
    /// Absent for a deletion.
    object: Option<T>,
}

impl<'a, T> Line<'a, T> {
    fn new(revision: u64, key: &'a Key, object: Option<T>) -> Self {
        Self {
            revision,
            group: (&*key.kind.group).into(),
            resource: (&*key.kind.resource).into(),
            identity: (&*key.kind.identity).into(),
            cluster: (&*key.cluster).into(),
            namespace: (&*key.namespace).into(),
            name: (&*key.name).into(),
            object,
        }
    }

    fn key(&self) -> Key {
        let kind = Kind {
            group: (&*self.group).into(),
            resource: (&*self.resource).into(),
            identity: (&*self.identity).into(),
        };
        Key::new(&kind, &self.cluster, &self.namespace, &self.name)
    }
}

#[derive(Debug)]
pub(super) struct Disk {
    folder: PathBuf,
    file: File,
    durability: Durability,
    /// Bytes of whole lines in the file.
    length: u64,
    /// Length after the last compaction.
    compacted: u64,
    /// The file of a compaction that has begun, and what was written since then.
    since: Option<(PathBuf, Vec<u8>)>,
}

impl Disk {
    /// Replays the file in `folder` into `contents` and rewrites it without history.
    pub(super) fn open(folder: &Path, durability: Durability, contents: &mut Contents) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join(FILE);
        if path.exists() {
            replay(&path, contents)?;
        }
        remove_leftovers(folder)?;
        let (file, length) = written_whole(folder, contents)?;
        Ok(Self { folder: folder.to_owned(), file, durability, length, compacted: length, since: None })
    }

    /// Replaces everything in the file; a compaction that has begun comes to nothing.
    pub(super) fn replace(&mut self, contents: &Contents) -> io::Result<()> {
        (self.file, self.length) = written_whole(&self.folder, contents)?;
        self.compacted = self.length;
        self.since = None;
        Ok(())
    }

    /// Writes one commit and hands it to the operating system, or with `fsync` to the disk, before returning.
    pub(super) fn append(&mut self, revision: u64, key: &Key, object: Option<&Object>) -> io::Result<()> {
        let line = line(revision, key, object)?;
        let written = self
            .file
            .write_all(&line)
            .and_then(|()| if self.durability.fsync { self.file.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            // A partial line would corrupt the lines after it.
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.length += line.len() as u64;
        if let Some((_, since)) = &mut self.since {
            since.extend_from_slice(&line);
        }
        Ok(())
    }

    /// Whether the file has grown enough.
    pub(super) fn wants_compaction(&self) -> bool {
        self.since.is_none()
            && self.length > self.durability.compact_at
            && self.length > self.compacted.saturating_mul(4)
    }

    /// From now on commits are kept for the new file too.
    pub(super) fn begin_compaction(&mut self) -> Snapshot {
        let snapshot = Snapshot::new(&self.folder);
        self.since = Some((snapshot.path.clone(), Vec::new()));
        snapshot
    }

    /// Replaces the old file with the new one, including what was written in the meantime.
    pub(super) fn finish_compaction(&mut self, snapshot: &Snapshot, written: io::Result<()>) -> io::Result<()> {
        if self.since.as_ref().is_none_or(|(path, _)| *path != snapshot.path) {
            // The whole file was replaced in the meantime.
            snapshot.discard();
            return Ok(());
        }
        let (_, since) = self.since.take().unwrap_or_default();
        // Whatever goes wrong, the next attempt comes only after further growth.
        self.compacted = self.length;
        written?;
        let mut file = OpenOptions::new().append(true).open(&snapshot.path)?;
        file.write_all(&since)?;
        file.sync_all()?;
        fs::rename(&snapshot.path, self.folder.join(FILE))?;
        sync_folder(&self.folder)?;
        self.length = file.metadata()?.len();
        self.compacted = self.length;
        self.file = file;
        Ok(())
    }
}

/// A file of all objects at one revision, while it is being written.
#[derive(Debug)]
pub(super) struct Snapshot {
    path: PathBuf,
}

impl Snapshot {
    fn new(folder: &Path) -> Self {
        // A name of its own: a thread of an earlier store may still be writing.
        Self { path: folder.join(format!("{FILE}.{}", uuid::Uuid::new_v4().simple())) }
    }

    /// Removes a snapshot that is no longer needed.
    pub(super) fn discard(&self) {
        // Leftovers are removed at the next start.
        let _ = fs::remove_file(&self.path);
    }

    pub(super) fn write(&self, revision: u64, objects: impl IntoIterator<Item = (Key, Object)>) -> io::Result<()> {
        // Objects hold tokens and passwords.
        let mut writer = BufWriter::new(create_private(&self.path)?);
        // A line without a name carries only the counter, which must not go back when the newest write was a deletion.
        let counter = Key::new(&Kind::new("", ""), "", "", "");
        writer.write_all(&line(revision, &counter, None)?)?;
        for (key, object) in objects {
            writer.write_all(&line(object.revision(), &key, Some(&object))?)?;
        }
        writer.flush()?;
        writer.get_ref().sync_all()
    }
}

/// Writes the file of a folder with these contents only, and opens it.
fn written_whole(folder: &Path, contents: &Contents) -> io::Result<(File, u64)> {
    let (path, snapshot) = (folder.join(FILE), Snapshot::new(folder));
    snapshot.write(contents.revision, contents.all())?;
    fs::rename(&snapshot.path, &path)?;
    sync_folder(folder)?;
    let file = OpenOptions::new().append(true).open(&path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// One line of the file. The object is put into it as it is kept in memory: as JSON text.
fn line(revision: u64, key: &Key, object: Option<&Object>) -> io::Result<Vec<u8>> {
    const NONE: &[u8] = b"null}";
    let mut line = serde_json::to_vec(&Line::<()>::new(revision, key, None))?;
    if let Some(object) = object {
        // The object is the last field.
        line.truncate(line.len() - NONE.len());
        line.reserve_exact(object.text().len() + 2);
        line.extend_from_slice(object.text().as_bytes());
        line.push(b'}');
    }
    line.push(b'\n');
    Ok(line)
}

/// Snapshots that were never finished.
fn remove_leftovers(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(&format!("{FILE}."))) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A new name in a folder is on the disk only after this.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

fn replay(path: &Path, contents: &mut Contents) -> io::Result<()> {
    let mut reader = BufReader::new(File::open(path)?);
    let mut text = Vec::new();
    let mut number = 0;
    loop {
        text.clear();
        reader.read_until(b'\n', &mut text)?;
        // A last line without its end was never acknowledged: the process died while writing it.
        if text.last() != Some(&b'\n') {
            return Ok(());
        }
        number += 1;
        let line: Line<'_, Value> = unpack(&text).map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("line {number} of {FILE} is damaged: {error}"))
        })?;
        contents.revision = contents.revision.max(line.revision);
        let key = line.key();
        if key.name.is_empty() {
            continue;
        }
        let objects = contents.objects.entry(key.kind.clone()).or_default();
        match line.object {
            Some(mut object) => {
                objects.insert(place(&key), Object::new(line.revision, pack(&mut object)));
            }
            None => {
                objects.remove(&place(&key));
            }
        }
        contents.touch(&key);
    }
}
