//! Orders that were carried to their end: deleted by their consumers, and gone with their copies.
//!
//! Nothing else is left of them, so an order that comes back with a restored kcp would look like one that waits for its first copy. The
//! UIDs of the last ones are kept in Secrets beside the states, a few hundred in each: the newest is written again with every deletion,
//! or once for many that wait, and the oldest are removed. An order is noted before its finalizer goes: nobody can take a deletion back, so
//! that is never too early.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};

use carrick_client::{Client, DeleteOptions, Error, ListOptions, Object, Resource};
use carrick_sync::executor::refusal::{Access, is_race};
use data_encoding::BASE64;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::api::ENDED_ORDERS;
use crate::rules::metadata::sha1_hex;

/// How many orders one Secret lists: what is written with a deletion stays small.
const IN_ONE: usize = 256;
/// How many Secrets there are.
const MOST: usize = 128;
/// The key of the list.
const LIST: &str = "orders";

/// Orders that were carried to their end, by UID.
pub(in crate::agent::objects) struct EndedOrders {
    client: Client,
    namespace: String,
    agent: String,
    /// Hashes of UIDs, because there are many.
    known: Mutex<HashSet<u64>>,
    /// Those that wait to be written.
    waiting: Mutex<Vec<String>>,
    written: tokio::sync::Mutex<WrittenLists>,
    /// Whether it was logged that they cannot be written.
    said: AtomicBool,
}

/// The Secrets as they were written last.
#[derive(Default)]
struct WrittenLists {
    /// Number of the newest one.
    newest: u64,
    /// Its UIDs, and its version if it exists.
    uids: Vec<String>,
    version: Option<String>,
    /// Numbers of older ones, the oldest first.
    older: Vec<u64>,
}

impl WrittenLists {
    /// Begins another list if the newest is full.
    fn turn_over(&mut self) {
        if self.uids.len() >= IN_ONE {
            self.older.push(self.newest);
            (self.newest, self.uids, self.version) = (self.newest + 1, Vec::new(), None);
        }
    }

    /// Takes out those that are too many, the oldest first.
    fn surplus(&mut self) -> Vec<u64> {
        let many = (self.older.len() + 1).saturating_sub(MOST);
        self.older.drain(..many).collect()
    }
}

impl EndedOrders {
    /// None are known yet.
    pub fn new(client: Client, namespace: &str, agent: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            agent: agent.to_owned(),
            known: Mutex::default(),
            waiting: Mutex::default(),
            written: tokio::sync::Mutex::default(),
            said: AtomicBool::new(false),
        }
    }

    /// Reads all Secrets of this and other agents: whoever served an order before may have ended it.
    pub async fn load(&self) -> Result<(), Error> {
        let mut written = self.written.lock().await;
        let lists =
            self.client.list_compact(&secrets(), Some(&self.namespace), &ListOptions::labels(ENDED_ORDERS)).await?;
        let mut known = HashSet::new();
        let mut own: Vec<(u64, Value)> = Vec::new();
        for secret in lists.iter().map(Object::value) {
            known.extend(uids(&secret).iter().map(|uid| hash(uid)));
            own.extend(self.number(&secret).map(|number| (number, secret)));
        }
        own.sort_by_key(|(number, _)| *number);
        *written = WrittenLists::default();
        if let Some((newest, secret)) = own.pop() {
            let version = secret["metadata"]["resourceVersion"].as_str().map(str::to_owned);
            let older = own.into_iter().map(|(number, _)| number).collect();
            *written = WrittenLists { newest, uids: uids(&secret), version, older };
        }
        *self.known.lock() = known;
        Ok(())
    }

    /// Whether an order was carried to its end.
    pub fn contains(&self, uid: &str) -> bool {
        self.known.lock().contains(&hash(uid))
    }

    /// Notes that an order is carried to its end. One write is enough for all that wait at the same time.
    pub async fn note(&self, uid: &str) -> Result<(), Error> {
        if self.contains(uid) {
            return Ok(());
        }
        self.waiting.lock().push(uid.to_owned());
        let mut written = self.written.lock().await;
        if self.contains(uid) {
            return Ok(());
        }
        let mut batch = std::mem::take(&mut *self.waiting.lock());
        if !batch.iter().any(|waiting| waiting == uid) {
            // It was part of a write that failed.
            batch.push(uid.to_owned());
        }
        match self.write(&mut written, &batch).await {
            Ok(()) => {}
            Err(error) if error.is_forbidden() => {
                if !self.said.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        namespace = self.namespace,
                        %error,
                        "Cannot note which orders have ended; those that come back with a restored kcp get copies at once. Grant the agent create and update on Secrets."
                    );
                }
            }
            Err(error) => return Err(error),
        }
        self.known.lock().extend(batch.iter().map(|uid| hash(uid)));
        Ok(())
    }

    async fn write(&self, written: &mut WrittenLists, batch: &[String]) -> Result<(), Error> {
        written.turn_over();
        let mut uids = written.uids.clone();
        uids.extend_from_slice(batch);
        let secret = self.secret(written, &uids);
        let access = if written.version.is_some() { Access::Change } else { Access::Create };
        let stored = match &written.version {
            Some(_) => self.client.replace(&secrets(), Some(&self.namespace), &secret).await,
            None => self.client.create(&secrets(), Some(&self.namespace), &secret).await,
        };
        let stored = match stored {
            // Somebody else wrote it, or a write whose answer was lost, or the server went back in time: what it says counts as well.
            Err(error) if is_race(&error, access) => {
                let name = self.name(written.newest);
                let current = self.client.get(&secrets(), Some(&self.namespace), &name).await?;
                written.version = current.as_ref().and_then(version);
                for uid in current.iter().flat_map(self::uids) {
                    if !uids.contains(&uid) {
                        uids.push(uid);
                    }
                }
                let secret = self.secret(written, &uids);
                match &written.version {
                    Some(_) => self.client.replace(&secrets(), Some(&self.namespace), &secret).await?,
                    None => self.client.create(&secrets(), Some(&self.namespace), &secret).await?,
                }
            }
            stored => stored?,
        };
        (written.uids, written.version) = (uids, version(&stored));
        self.remove_oldest(written).await;
        Ok(())
    }

    /// Removes the oldest lists; where that is not granted, they stay.
    async fn remove_oldest(&self, written: &mut WrittenLists) {
        for number in written.surplus() {
            let name = self.name(number);
            if let Err(error) =
                self.client.delete(&secrets(), Some(&self.namespace), &name, &DeleteOptions::default()).await
            {
                tracing::debug!(secret = name, %error, "Cannot remove an old list of ended orders.");
            }
        }
    }

    fn secret(&self, written: &WrittenLists, uids: &[String]) -> Value {
        let mut secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {
                "name": self.name(written.newest),
                "namespace": self.namespace,
                "labels": { ENDED_ORDERS: self.agent },
            },
            "data": { LIST: BASE64.encode(uids.join("\n").as_bytes()) },
        });
        if let Some(version) = &written.version {
            secret["metadata"]["resourceVersion"] = json!(version);
        }
        secret
    }

    fn prefix(&self) -> String {
        format!("ended-orders-{}-", &sha1_hex(&self.agent)[..10])
    }

    fn name(&self, number: u64) -> String {
        format!("{}{number}", self.prefix())
    }

    fn number(&self, secret: &Value) -> Option<u64> {
        secret["metadata"]["name"].as_str()?.strip_prefix(&self.prefix())?.parse().ok()
    }
}

fn secrets() -> Resource {
    Resource::namespaced("", "v1", "Secret", "secrets")
}

fn version(secret: &Value) -> Option<String> {
    secret["metadata"]["resourceVersion"].as_str().map(str::to_owned)
}

/// The UIDs that a Secret lists.
fn uids(secret: &Value) -> Vec<String> {
    let text = secret["data"][LIST].as_str().and_then(|text| BASE64.decode(text.as_bytes()).ok()).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}

fn hash(uid: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended() -> EndedOrders {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        EndedOrders::new(Client::try_from(config).unwrap(), "agents", "me")
    }

    #[test]
    fn a_full_list_is_followed_by_another_and_the_oldest_go() {
        let mut lists = WrittenLists::default();
        for uid in 0..IN_ONE * (MOST + 3) {
            lists.turn_over();
            lists.uids.push(uid.to_string());
            lists.version = Some("1".to_owned());
            assert!(lists.surplus().len() <= 1 && lists.uids.len() <= IN_ONE && lists.older.len() < MOST);
        }
        assert_eq!((lists.newest, lists.older.len(), lists.older[0]), (MOST as u64 + 2, MOST - 1, 3));
        lists.turn_over();
        assert_eq!((lists.uids.len(), lists.version), (0, None), "the next one does not exist yet");
    }

    #[test]
    fn a_list_is_read_as_it_was_written_and_belongs_to_one_agent() {
        let ended = ended();
        let lists = WrittenLists { newest: 7, version: Some("3".to_owned()), ..WrittenLists::default() };
        let secret = ended.secret(&lists, &["a".to_owned(), "b".to_owned()]);
        assert_eq!((uids(&secret), ended.number(&secret)), (vec!["a".to_owned(), "b".to_owned()], Some(7)));
        assert_eq!(secret["metadata"]["resourceVersion"], "3");
        let other = EndedOrders { agent: "other".to_owned(), ..self::ended() };
        assert_eq!(other.number(&secret), None);
        assert_eq!(uids(&json!({})), Vec::<String>::new());
    }

    #[tokio::test]
    async fn what_could_not_be_written_does_not_count_as_ended() {
        let ended = ended();
        assert!(ended.note("a").await.is_err() && !ended.contains("a"));
    }
}
