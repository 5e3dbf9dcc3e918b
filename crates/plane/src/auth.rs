//! Who a caller is (tokens, certificates, service accounts) and what RBAC allows.

pub mod accounts;
pub mod aggregation;
pub mod certificate;
pub mod decision;
pub mod escalation;
pub mod policy;
pub mod rbac;

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::config::{Mode, User};

/// The administrator of a service cluster.
pub const KUBE_ADMIN: &str = "admin";
/// The administrator of kcp's workspaces.
pub const KCP_ADMIN: &str = "kcp-admin";
/// The administrator of the whole kcp, who passes every check.
pub const SHARD_ADMIN: &str = "shard-admin";

const FILE: &str = "tokens.json";

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Admin {
    name: String,
    token: String,
}

/// All bearer tokens.
#[derive(Debug)]
pub struct Tokens {
    users: Vec<User>,
}

impl Tokens {
    /// The given users and the built-in administrators; their tokens are kept in the data folder.
    pub fn load_or_make(folder: Option<&Path>, mode: Mode, users: &[User]) -> io::Result<Self> {
        let built_in: &[(&str, &str)] = match mode {
            Mode::Kube => &[(KUBE_ADMIN, "system:masters")],
            Mode::Kcp => &[(KCP_ADMIN, "system:kcp:admin"), (SHARD_ADMIN, "system:masters")],
        };
        let path = folder.map(|folder| folder.join(FILE));
        let kept: Vec<Admin> = match &path {
            Some(path) if path.exists() => serde_json::from_slice(&fs::read(path)?)?,
            _ => Vec::new(),
        };
        let mut all = users.to_vec();
        let mut admins = Vec::new();
        for (name, group) in built_in {
            let token = match kept.iter().find(|admin| admin.name == *name) {
                Some(admin) => admin.token.clone(),
                None => uuid::Uuid::new_v4().simple().to_string(),
            };
            admins.push(Admin { name: (*name).to_owned(), token: token.clone() });
            // A given user of the same name replaces the built-in one.
            if !all.iter().any(|user| user.name == *name) {
                all.push(User::new(&token, name, &[group]));
            }
        }
        if let Some(path) = path {
            crate::files::write_private(&path, &serde_json::to_vec(&admins)?)?;
        }
        Ok(Self { users: all })
    }

    /// The names of all users with a token.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.users.iter().map(|user| user.name.as_str())
    }

    /// The token of a user.
    pub fn token(&self, user: &str) -> Option<String> {
        self.users.iter().find(|found| found.name == user).map(|found| found.token.clone())
    }

    /// Who a token belongs to.
    pub fn caller(&self, token: &str) -> Option<Caller> {
        let user = self.users.iter().find(|found| found.token == token)?;
        let mut groups = user.groups.clone();
        groups.push("system:authenticated".into());
        Some(Caller { user: user.name.clone(), uid: user.uid.clone(), groups, ..Caller::default() })
    }
}

/// A caller without credentials.
pub fn anonymous() -> Caller {
    Caller { user: "system:anonymous".into(), groups: vec!["system:unauthenticated".into()], ..Caller::default() }
}
