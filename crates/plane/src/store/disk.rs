//! The store's file: one JSON line per commit, compacted when it is opened.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Inner, Key, Kind, Stored, place, revision_of};

const FILE: &str = "commits.jsonl";

#[derive(Serialize, Deserialize)]
struct Line<T> {
    revision: u64,
    group: String,
    resource: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    identity: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    cluster: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
    /// Absent for a deletion.
    object: Option<T>,
}

impl<T> Line<T> {
    fn new(revision: u64, key: &Key, object: Option<T>) -> Self {
        Self {
            revision,
            group: key.kind.group.to_string(),
            resource: key.kind.resource.to_string(),
            identity: key.kind.identity.to_string(),
            cluster: key.cluster.to_string(),
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
            object,
        }
    }

    fn key(&self) -> Key {
        let kind = Kind {
            group: self.group.as_str().into(),
            resource: self.resource.as_str().into(),
            identity: self.identity.as_str().into(),
        };
        Key::new(&kind, &self.cluster, &self.namespace, &self.name)
    }
}

#[derive(Debug)]
pub(super) struct Disk {
    file: File,
}

impl Disk {
    /// Replays the file in `folder` into `inner` and rewrites it without history.
    pub(super) fn open(folder: &Path, inner: &mut Inner) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join(FILE);
        if path.exists() {
            replay(&path, inner)?;
        }
        let fresh = folder.join(format!("{FILE}.new"));
        compact(&fresh, inner)?;
        fs::rename(&fresh, &path)?;
        Ok(Self { file: OpenOptions::new().append(true).open(&path)? })
    }

    /// Writes one commit and hands it to the operating system before returning.
    pub(super) fn append(&mut self, revision: u64, key: &Key, object: Option<&Value>) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Line::new(revision, key, object))?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.flush()
    }
}

fn replay(path: &Path, inner: &mut Inner) -> io::Result<()> {
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
        let line: Line<Value> = serde_json::from_slice(&text).map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("line {number} of {FILE} is damaged: {error}"))
        })?;
        inner.revision = inner.revision.max(line.revision);
        let key = line.key();
        if key.name.is_empty() {
            continue;
        }
        let objects = inner.objects.entry(key.kind.clone()).or_default();
        match line.object {
            Some(object) => {
                let stored = Stored { revision: revision_of(&object), object: Arc::new(object) };
                objects.insert(place(&key), stored);
            }
            None => {
                objects.remove(&place(&key));
            }
        }
        inner.touched.insert((key.kind, key.cluster), line.revision);
    }
}

fn compact(path: &Path, inner: &Inner) -> io::Result<()> {
    let mut writer = BufWriter::new(File::create(path)?);
    // A line without a name carries only the counter, which must not go back when the newest write was a deletion.
    let counter = Key::new(&Kind::new("", ""), "", "", "");
    write_line(&mut writer, &Line::<&Value>::new(inner.revision, &counter, None))?;
    for (kind, objects) in &inner.objects {
        for ((cluster, namespace, name), stored) in objects {
            let key = Key::new(kind, cluster, namespace, name);
            write_line(&mut writer, &Line::new(stored.revision, &key, Some(&*stored.object)))?;
        }
    }
    writer.flush()?;
    writer.get_ref().sync_all()
}

fn write_line(writer: &mut impl Write, line: &Line<&Value>) -> io::Result<()> {
    serde_json::to_writer(&mut *writer, line)?;
    writer.write_all(b"\n")
}
