//! Shards: where logical clusters live. All share one store; each has an endpoint that serves only its own clusters.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use carrick_kcp::hash::b36s224;
use carrick_kcp::names::SHARD_ANNOTATION;
use parking_lot::RwLock;

use super::object::annotation;
use super::stored::{CLUSTERS, ROOT, SELF};
use crate::store::{Key, Store};

/// All shards of a kcp; there is always one, named `root`.
#[derive(Debug)]
pub struct Shards {
    urls: Vec<Arc<str>>,
    virtual_workspaces: Option<Arc<str>>,
    up: Vec<AtomicBool>,
    /// A cluster never moves, and watchers ask about clusters that have been deleted.
    homes: RwLock<HashMap<Arc<str>, usize>>,
}

impl Shards {
    /// Shards with these addresses; virtual workspaces may be reached at another one.
    pub fn new(urls: &[String], virtual_workspaces: Option<&str>) -> Self {
        let plain = |url: &str| Arc::from(url.trim_end_matches('/'));
        let urls: Vec<Arc<str>> = urls.iter().map(|url| plain(url)).collect();
        let up = urls.iter().map(|_| AtomicBool::new(true)).collect();
        Self { urls, virtual_workspaces: virtual_workspaces.map(plain), up, homes: RwLock::default() }
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
