//! What `carrick demo --keep`, `dev` and `plane` run on this machine: a note for each, so that other commands find it without flags.
//!
//! ```text
//!  demo, dev, plane ─▶ Note    a file in the user's state folder, locked as long as the process lives
//!  doctor, top, …   ─▶ all()   reads those that are locked, and removes the others
//! ```

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::AgentFlags;

/// A platform that runs on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Running {
    /// The command that runs it.
    pub command: String,
    /// Kubeconfig of the service cluster.
    pub kubeconfig: PathBuf,
    /// Kubeconfig of the provider's workspace.
    pub kcp_kubeconfig: PathBuf,
    /// The slice that its agent serves; empty if the agent is somebody else's.
    pub slice: String,
    /// Namespace of the agent.
    pub namespace: String,
    /// Name of the agent.
    pub agent: String,
    /// Which PublishedResources the agent serves.
    pub selector: String,
    /// Address of the agent's dashboard.
    pub dashboard: String,
}

impl Running {
    /// The flags that name its agent.
    pub fn flags(&self) -> AgentFlags {
        AgentFlags {
            kubeconfig: self.kubeconfig.display().to_string(),
            kcp_kubeconfig: self.kcp_kubeconfig.display().to_string(),
            apiexportendpointslice_ref: self.slice.clone(),
            namespace: self.namespace.clone(),
            agent_name: self.agent.clone(),
            published_resource_selector: self.selector.clone(),
            ..AgentFlags::default()
        }
    }
}

/// Dropping it takes the note away. So does the end of the process, as far as readers are concerned.
#[derive(Debug)]
pub struct Note {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl Note {
    /// Notes what runs. Where that is impossible, others have to name it by flags.
    pub fn leave(running: &Running) -> Option<Self> {
        Self::leave_in(&folder()?, running)
    }

    fn leave_in(folder: &Path, running: &Running) -> Option<Self> {
        private(folder)?;
        let path = folder.join(format!("{}.json", uuid::Uuid::new_v4().simple()));
        let beside = path.with_extension("new");
        // Locked before it has its name: nobody may take it for one that was left behind.
        let mut file = File::create_new(&beside).ok()?;
        file.try_lock().ok()?;
        file.write_all(&serde_json::to_vec(running).ok()?).ok()?;
        fs::rename(&beside, &path).ok()?;
        Some(Self { path, _file: file })
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // A file that stays is not locked any more, and the next reader removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Everything that runs, by command and kubeconfig.
pub fn all() -> Vec<Running> {
    folder().map(|folder| all_in(&folder)).unwrap_or_default()
}

fn all_in(folder: &Path) -> Vec<Running> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let notes = entries.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let mut found: Vec<Running> = notes.filter_map(|path| read(&path)).collect();
    found.sort_by(|one, other| (&one.command, &one.kubeconfig).cmp(&(&other.command, &other.kubeconfig)));
    found
}

/// A note whose writer is alive.
fn read(path: &Path) -> Option<Running> {
    let mut file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) => {
            // Its writer has ended without taking it away.
            let _ = fs::remove_file(path);
            return None;
        }
        Err(TryLockError::Error(_)) => return None,
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Where notes are, which is nowhere for users without a home.
fn folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    Some(state.join("carrick/running"))
}

/// Makes a folder that nobody else can write to: what is noted there names kubeconfigs that are used.
fn private(folder: &Path) -> Option<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_is_found_until_it_ends_however_it_ends() {
        let folder = std::env::temp_dir().join(format!("carrick-{}", uuid::Uuid::new_v4().simple()));
        assert_eq!(all_in(&folder), []);
        let of = |command: &str| Running { command: command.to_owned(), ..Running::default() };
        let dev = Note::leave_in(&folder, &of("dev")).unwrap();
        let demo = Note::leave_in(&folder, &of("demo")).unwrap();
        assert_eq!(all_in(&folder), [of("demo"), of("dev")]);
        drop(demo);
        assert_eq!(all_in(&folder), [of("dev")]);
        // A process that was killed leaves its note without a lock.
        let left = folder.join("left.json");
        fs::write(&left, r#"{"command":"plane"}"#).unwrap();
        fs::write(folder.join("else.txt"), "").unwrap();
        assert_eq!(all_in(&folder), [of("dev")]);
        assert!(!left.exists());
        drop(dev);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
