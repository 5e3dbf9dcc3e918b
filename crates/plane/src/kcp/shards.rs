//! Shards: where logical clusters live. All share one store; each has an endpoint that serves only its own clusters.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use carrick_kcp::hash::b36s224;
use carrick_kcp::names::SHARD_ANNOTATION;
use parking_lot::RwLock;
use serde_json::Value;

use super::object::annotation;
use super::stored::{CLUSTERS, ROOT, SELF};
use crate::store::{Key, Store};

/// The shard before, and the first revision after.
type Move = (usize, u64);

/// All shards of a kcp; there is always one, named `root`.
#[derive(Debug)]
pub struct Shards {
    urls: Vec<Arc<str>>,
    virtual_workspaces: Option<Arc<str>>,
    up: Vec<AtomicBool>,
    /// Watchers ask about clusters that have been deleted.
    homes: RwLock<HashMap<Arc<str>, usize>>,
    /// Moves of clusters, in order.
    moves: RwLock<HashMap<Arc<str>, Vec<Move>>>,
}

impl Shards {
    /// Shards with these addresses; virtual workspaces may be reached at another one.
    pub fn new(urls: &[String], virtual_workspaces: Option<&str>) -> Self {
        let plain = |url: &str| Arc::from(url.trim_end_matches('/'));
        let urls: Vec<Arc<str>> = urls.iter().map(|url| plain(url)).collect();
        let up = urls.iter().map(|_| AtomicBool::new(true)).collect();
        Self {
            urls,
            virtual_workspaces: virtual_workspaces.map(plain),
            up,
            homes: RwLock::default(),
            moves: RwLock::default(),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.urls.len()
    }

    /// The address of a shard.
    pub fn url(&self, shard: usize) -> &str {
        self.urls.get(shard).map_or("", |url| url)
    }

    /// The address of a shard's virtual workspaces.
    pub fn virtual_url(&self, shard: usize) -> &str {
        self.virtual_workspaces.as_deref().unwrap_or_else(|| self.url(shard))
    }

    /// The name of a shard: `root`, `shard-1`, `shard-2` and so on.
    pub fn name(shard: usize) -> String {
        if shard == 0 { ROOT.to_owned() } else { format!("shard-{shard}") }
    }

    /// The short form of a name in annotations.
    pub fn hash(name: &str) -> String {
        b36s224(name).chars().take(8).collect()
    }

    /// The shard of a logical cluster; those kcp keeps for itself are on the first one.
    pub fn of(&self, store: &Store, cluster: &str) -> usize {
        if self.count() == 1 || cluster == ROOT || cluster.starts_with("system:") {
            return 0;
        }
        if let Some(shard) = self.homes.read().get(cluster) {
            return *shard;
        }
        let found = store.get(&Key::new(&CLUSTERS, cluster, "", SELF));
        let name = found.as_ref().and_then(|found| annotation(&found.object, SHARD_ANNOTATION));
        let Some(shard) = name.and_then(|name| self.named(name)) else { return 0 };
        self.homes.write().insert(cluster.into(), shard);
        shard
    }

    /// The shard that a cluster was on at a revision.
    pub fn at(&self, store: &Store, cluster: &str, revision: u64) -> usize {
        let moves = self.moves.read();
        let before = moves.get(cluster).and_then(|moves| moves.iter().find(|(_, until)| revision < *until));
        before.map_or_else(|| self.of(store, cluster), |(shard, _)| *shard)
    }

    /// Moves a cluster to another shard, as kcp does: its objects are deleted on one and made on the other, where they keep their UIDs.
    /// False if there is no such cluster, or if it is there already.
    pub fn relocate(&self, store: &Store, cluster: &str, shard: usize) -> bool {
        let (home, name) = (self.of(store, cluster), Self::name(shard));
        let own = Key::new(&CLUSTERS, cluster, "", SELF);
        if shard >= self.count() || home == shard || !store.has(&own) {
            return false;
        }
        let arrive = |key: &Key, object: &mut Value| {
            if *key == own {
                object["metadata"]["annotations"][SHARD_ANNOTATION] = name.as_str().into();
            }
        };
        let depart = |revision: u64| {
            self.moves.write().entry(cluster.into()).or_default().push((home, revision));
            self.homes.write().insert(cluster.into(), shard);
        };
        store.relocate(cluster, depart, arrive);
        true
    }

    /// A shard by name.
    pub fn named(&self, name: &str) -> Option<usize> {
        (0..self.count()).find(|shard| Self::name(*shard) == name)
    }

    /// The shard for a new cluster: the requested one, or the one with the fewest clusters.
    pub fn choose(&self, store: &Store, wanted: Option<&str>) -> usize {
        if let Some(shard) = wanted.and_then(|name| self.named(name)) {
            return shard;
        }
        if self.count() == 1 {
            return 0;
        }
        let mut clusters = vec![0_usize; self.count()];
        for (key, _) in store.list(&CLUSTERS, None, None).1 {
            clusters[self.of(store, &key.cluster)] += 1;
        }
        clusters.iter().enumerate().min_by_key(|(_, count)| **count).map_or(0, |(shard, _)| shard)
    }

    /// Whether a shard answers.
    pub fn is_up(&self, shard: usize) -> bool {
        self.up.get(shard).is_none_or(|up| up.load(Ordering::Acquire))
    }

    /// Records whether a shard answers.
    pub fn set_up(&self, shard: usize, up: bool) {
        if let Some(flag) = self.up.get(shard) {
            flag.store(up, Ordering::Release);
        }
    }
}
