//! Administrators as kcp has them: tokens that change at each start, one that stays, and `admin.kubeconfig`.

use std::fs;
use std::path::Path;

use carrick_plane::User;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::kubeconfig;
use crate::plane::token_file::reason;

const KCP_ADMIN: &str = "kcp-admin";
const SHARD_ADMIN: &str = "shard-admin";
const USER: &str = "user";

/// The users of an `admin.kubeconfig`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admins {
    kcp: User,
    shard: User,
    user: Option<User>,
}

impl Admins {
    /// New tokens, except for the administrator of the shard: that one is in the kubeconfig of an earlier start, and its hash in a file.
    pub fn load_or_make(kubeconfig: &Path, hash_file: &Path, with_user: bool) -> anyhow::Result<Self> {
        let new = || uuid::Uuid::new_v4().to_string();
        let shard = match fs::read(hash_file) {
            Ok(hash) => kept(kubeconfig, hash_file, &hash)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let token = new();
                kubeconfig::write_bytes(hash_file, &Sha256::digest(&token))?;
                token
            }
            Err(error) => anyhow::bail!("open {}: {}", hash_file.display(), reason(&error)),
        };
        Ok(Self {
            kcp: User::new(&new(), KCP_ADMIN, &["system:kcp:admin"]),
            shard: User::new(&shard, SHARD_ADMIN, &["system:masters"]),
            user: with_user.then(|| User::new(&new(), USER, &[])),
        })
    }

    /// All of them.
    pub fn users(&self) -> impl Iterator<Item = &User> {
        [&self.kcp, &self.shard].into_iter().chain(&self.user)
    }

    /// The kubeconfig, with kcp's names of clusters, users and contexts in kcp's order.
    pub fn kubeconfig(&self, server: &str, authority: &str) -> String {
        use std::fmt::Write;
        let authority = data_encoding::BASE64.encode(authority.as_bytes());
        let mut text = String::from("apiVersion: v1\nclusters:\n");
        let clusters = [("base", ""), ("root", "/clusters/root"), ("system:admin", "/clusters/system:admin")];
        for (name, path) in clusters {
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "- cluster:\n    certificate-authority-data: {authority}\n    server: {server}{path}\n  name: {name}\n"
            );
        }
        text.push_str("contexts:\n");
        let contexts = [
            ("base", "base", KCP_ADMIN),
            ("root", "root", KCP_ADMIN),
            ("shard-base", "base", SHARD_ADMIN),
            ("system:admin", "system:admin", SHARD_ADMIN),
        ];
        let user = self.user.iter().map(|_| (USER, "root", USER));
        for (name, cluster, user) in contexts.into_iter().chain(user) {
            let _ = write!(text, "- context:\n    cluster: {cluster}\n    user: {user}\n  name: {name}\n");
        }
        text.push_str("current-context: root\nkind: Config\nusers:\n");
        for User { name, token, .. } in self.users() {
            let _ = write!(text, "- name: {name}\n  user:\n    token: {token}\n");
        }
        text
    }
}

/// The token of the shard's administrator in an earlier kubeconfig, if it is still the right one.
fn kept(kubeconfig: &Path, hash_file: &Path, hash: &[u8]) -> anyhow::Result<String> {
    let text = fs::read_to_string(kubeconfig).unwrap_or_default();
    let config: Value = serde_saphyr::from_str(&text).unwrap_or_default();
    let mut users = config["users"].as_array().into_iter().flatten();
    let token = users.find(|user| user["name"] == SHARD_ADMIN).and_then(|user| user["user"]["token"].as_str());
    let Some(token) = token.filter(|token| !token.is_empty()) else {
        anyhow::bail!("cannot create the 'admin.kubeconfig' file with an empty token for the {SHARD_ADMIN} user");
    };
    if Sha256::digest(token).as_slice() != hash {
        anyhow::bail!(
            "admin token in file {:?} is not valid anymore. Remove file {:?} and restart kcp",
            kubeconfig.display().to_string(),
            hash_file.display().to_string()
        );
    }
    Ok(token.to_owned())
}
