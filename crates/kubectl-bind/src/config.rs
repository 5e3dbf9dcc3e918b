//! The file with logins, `~/.kube-bind/config`. Several programs may use it at once: whoever changes it holds a lock, and replaces it in one step.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use carrick_bind_api::clock;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A token this close to its end is not used any more.
const MARGIN: i64 = 300;

/// Logins.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    /// Logins by key.
    pub servers: BTreeMap<String, ServerEntry>,
    /// The key of the last one.
    pub current: String,
    /// Whatever other versions add.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// One login.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServerEntry {
    /// URL of the backend.
    pub url: String,
    /// Cluster of the provider; empty if it has only one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// The token.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub access_token: String,
    /// `Bearer`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token_type: String,
    /// Until when, in RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub expires_at: String,
    /// Who has logged in.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// Whatever other versions add.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl std::fmt::Debug for ServerEntry {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerEntry").field("url", &self.url).field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl ServerEntry {
    /// A login.
    pub fn new(url: &str, cluster: &str, token: &str, expires: Timestamp, username: &str) -> Self {
        Self {
            url: url.to_owned(),
            cluster: cluster.to_owned(),
            access_token: token.to_owned(),
            token_type: "Bearer".to_owned(),
            expires_at: clock::show(expires),
            username: username.to_owned(),
            rest: Map::new(),
        }
    }

    /// Whether the token can be used for a while yet.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        let expires = clock::read(&self.expires_at).map(Timestamp::as_second);
        !self.access_token.is_empty() && expires.is_some_and(|expires| now.as_second() + MARGIN < expires)
    }

    /// By which key the login is found.
    pub fn key(&self) -> String {
        key(&self.url, &self.cluster)
    }
}

/// By which key a login is found.
pub fn key(url: &str, cluster: &str) -> String {
    if cluster.is_empty() { url.to_owned() } else { format!("{cluster}@{url}") }
}

/// Why the file cannot be used. No message holds a word of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is no home directory.
    #[error("there is no home directory; name the file with --config-file")]
    NoHome,
    /// The file cannot be read or written.
    #[error("cannot use {file}: {problem}")]
    File {
        /// The file.
        file: String,
        /// What the system said.
        problem: std::io::Error,
    },
    /// The file is not one with logins.
    #[error("{0} is not a file with logins; move it away and log in again")]
    Content(String),
}

/// The file with logins.
#[derive(Clone, Debug)]
pub struct ConfigFile(PathBuf);

impl ConfigFile {
    /// The file that somebody names, or the usual one.
    pub fn at(path: Option<&Path>) -> Result<Self, ConfigError> {
        if let Some(path) = path {
            return Ok(Self(path.to_owned()));
        }
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty()).ok_or(ConfigError::NoHome)?;
        Ok(Self(home.join(".kube-bind").join("config")))
    }

    /// All logins; none if there is no file.
    pub fn read(&self) -> Result<Config, ConfigError> {
        match fs::read(&self.0) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| ConfigError::Content(self.0.display().to_string())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Config::default()),
            Err(problem) => Err(self.failed(problem)),
        }
    }

    /// Changes the logins while nobody else does.
    pub fn change(&self, change: impl FnOnce(&mut Config)) -> Result<(), ConfigError> {
        let folder = self.0.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        make_folder(folder).map_err(|problem| self.failed(problem))?;
        // Not the file itself, which is replaced.
        let lock = self.beside("lock");
        let lock = private(OpenOptions::new().create(true).truncate(false)).open(lock);
        let lock = lock.map_err(|problem| self.failed(problem))?;
        lock.lock().map_err(|problem| self.failed(problem))?;
        let mut config = self.read()?;
        change(&mut config);
        "v1".clone_into(&mut config.api_version);
        "Config".clone_into(&mut config.kind);
        let text = serde_json::to_string_pretty(&config).unwrap_or_default();
        self.replace(&text).map_err(|problem| self.failed(problem))
    }

    fn replace(&self, text: &str) -> std::io::Result<()> {
        let temporary = self.beside(&format!("{}.tmp", std::process::id()));
        // What a program that was killed has left behind.
        let _ = fs::remove_file(&temporary);
        let mut file: File = private(OpenOptions::new().create_new(true)).open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &self.0)
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.0.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{ending}"));
        self.0.with_file_name(name)
    }

    fn failed(&self, problem: std::io::Error) -> ConfigError {
        ConfigError::File { file: self.0.display().to_string(), problem }
    }
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.write(true).mode(0o600)
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.write(true)
}

#[cfg(unix)]
fn make_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make_folder(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("kubectl-bind-config-{name}-{}", std::process::id())))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn twenty_programs_change_the_file_at_once_and_no_login_is_lost() {
        let folder = Folder::new("parallel");
        let file = ConfigFile::at(Some(&folder.0.join("deep").join("config"))).unwrap();
        std::thread::scope(|scope| {
            for number in 0..20 {
                let file = file.clone();
                scope.spawn(move || {
                    let entry = ServerEntry::new(&format!("https://{number}.io"), "", "t", Timestamp::MAX, "");
                    file.change(|config| drop(config.servers.insert(entry.key(), entry))).unwrap();
                });
            }
        });
        assert_eq!(file.read().unwrap().servers.len(), 20);
        let left: Vec<_> =
            fs::read_dir(folder.0.join("deep")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&file.0).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn what_other_versions_write_is_kept_and_what_is_no_config_is_left_alone() {
        let folder = Folder::new("kept");
        fs::create_dir_all(&folder.0).unwrap();
        let path = folder.0.join("config");
        let file = ConfigFile::at(Some(&path)).unwrap();
        assert!(file.read().unwrap().servers.is_empty());
        fs::write(&path, r#"{"new": 1, "servers": {"a": {"url": "a", "more": 2}}, "current": "a"}"#).unwrap();
        file.change(|config| "b".clone_into(&mut config.current)).unwrap();
        let text: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(text["new"], 1);
        assert_eq!(text["servers"]["a"], serde_json::json!({"url": "a", "more": 2}));
        assert_eq!((&text["kind"], &text["current"]), (&"Config".into(), &"b".into()));
        fs::write(&path, "very-secret").unwrap();
        let error = file.change(|_| ()).unwrap_err().to_string();
        assert!(error.contains("move it away") && !error.contains("very-secret"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "very-secret");
    }

    #[test]
    fn a_token_is_used_until_five_minutes_before_its_end() {
        let entry = ServerEntry::new("u", "c", "t", Timestamp::from_second(10_000).unwrap(), "");
        assert_eq!(entry.key(), "c@u");
        let at = |second| Timestamp::from_second(second).unwrap();
        assert!(entry.is_valid(at(9_699)) && !entry.is_valid(at(9_700)));
        assert!(!ServerEntry { access_token: String::new(), ..entry }.is_valid(at(0)));
    }
}
