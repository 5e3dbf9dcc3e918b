//! Objects packed for a cache that holds many of one kind.
//!
//! Objects of one kind have most of their text in common: keys, labels, the words of their status. One of them is the dictionary that the
//! others are compressed with, so that each keeps little more than its own values. Packing and unpacking take microseconds, which is less
//! than reading the JSON.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::object::{Body, Object, Packed};

/// Smaller objects stay as they are.
const SMALLEST: usize = 256;
/// The longest dictionary. It is looked through for every object that is packed.
const DICTIONARY: usize = 8 << 10;
/// After so many objects another dictionary is tried, in case that others came to be stored; then after twice as many, and so on.
const TRIAL: u64 = 32;

/// Packs objects of one kind.
#[derive(Default)]
pub struct Packer(Mutex<PackerState>);

struct PackerState {
    dictionary: Option<Arc<Vec<u8>>>,
    /// Another dictionary, which the next object is packed with as well.
    candidate: Option<Arc<Vec<u8>>>,
    /// How many objects were packed.
    count: u64,
    /// When the next candidate is chosen.
    trial_at: u64,
    /// Names of clusters and namespaces, each held once.
    names: HashSet<Arc<str>>,
    /// When names that nobody uses any more are dropped.
    sweep_at: usize,
}

impl Default for PackerState {
    fn default() -> Self {
        let (names, sweep_at) = (HashSet::new(), 1024);
        Self { dictionary: None, candidate: None, count: 0, trial_at: TRIAL, names, sweep_at }
    }
}

impl Packer {
    /// The same object in less room.
    pub fn pack(&self, object: &Object) -> Object {
        let (cluster, namespace) = {
            let mut state = self.0.lock();
            (state.name(&object.cluster), state.name(&object.namespace))
        };
        object.kept_as(cluster, namespace, self.body(object.body()))
    }

    fn body(&self, body: &Body) -> Body {
        let Body::Plain(plain) = body else { return body.clone() };
        if plain.len() < SMALLEST {
            return body.clone();
        }
        let (dictionary, candidate) = self.0.lock().dictionaries(plain);
        let mut packed = Packed::new(plain, dictionary);
        if let Some(candidate) = candidate {
            let other = Packed::new(plain, candidate);
            // Worth it only if it makes a difference: the old one stays in memory as long as objects need it.
            if other.len() * 5 < packed.len() * 4 {
                self.0.lock().dictionary = Some(other.dictionary());
                packed = other;
            }
        }
        if packed.len() < plain.len() { Body::Packed(packed) } else { body.clone() }
    }
}

impl PackerState {
    /// The dictionary for an object, and another one to try.
    fn dictionaries(&mut self, plain: &Bytes) -> (Arc<Vec<u8>>, Option<Arc<Vec<u8>>>) {
        let own = || Arc::new(plain[..plain.len().min(DICTIONARY)].to_vec());
        let dictionary = self.dictionary.get_or_insert_with(own).clone();
        let candidate = self.candidate.take();
        self.count += 1;
        if self.count == self.trial_at {
            self.candidate = Some(own());
            self.trial_at = self.trial_at.saturating_mul(2);
        }
        (dictionary, candidate)
    }

    /// The same name, held once.
    fn name(&mut self, name: &Arc<str>) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        if self.names.len() >= self.sweep_at {
            self.names.retain(|name| Arc::strong_count(name) > 1);
            self.sweep_at = (self.names.len() * 2).max(1024);
        }
        self.names.insert(name.clone());
        name.clone()
    }
}

impl std::fmt::Debug for Packer {
    /// Shows nothing: the dictionary may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn size(object: &Object) -> usize {
        match object.body() {
            Body::Plain(bytes) => bytes.len(),
            Body::Packed(packed) => packed.len(),
        }
    }

    fn object(number: usize) -> Value {
        let metadata = json!({
            "name": format!("object-{number}"), "namespace": "default", "uid": format!("{number:036}"),
            "annotations": { "kcp.io/cluster": format!("cluster-{}", number % 2) }, "labels": { "number": number.to_string() },
        });
        let fields: Vec<Value> =
            (0..8).map(|i| json!({ "name": format!("field-{i}"), "value": number * 31 + i })).collect();
        json!({ "apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "spec": { "fields": fields } })
    }

    #[test]
    fn a_packed_object_is_the_same_in_less_room() {
        let packer = Packer::default();
        for number in 0..100 {
            let plain = Object::from_value(&object(number)).unwrap();
            let packed = packer.pack(&plain);
            assert_eq!(packed, plain);
            assert_eq!(packed.value(), object(number));
            assert_eq!(packed.label("number"), Some(number.to_string()));
            if number > 0 {
                assert!(size(&packed) * 2 < size(&plain), "{} of {}", size(&packed), size(&plain));
            }
        }
        let [one, other] = [2, 4].map(|number| packer.pack(&Object::from_value(&object(number)).unwrap()));
        assert!(Arc::ptr_eq(&one.cluster, &other.cluster) && Arc::ptr_eq(&one.namespace, &other.namespace));
    }

    #[test]
    fn small_objects_and_what_does_not_pack_stay_as_they_are() {
        let packer = Packer::default();
        let small = Object::from_value(&json!({ "metadata": { "name": "a" } })).unwrap();
        assert_eq!(size(&packer.pack(&small)), size(&small));
        // Every text is another one, and none has anything in common with another.
        let mut seed: u64 = 7;
        let mut random = || {
            (0..100)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    char::from(33 + u8::try_from(seed >> 58).unwrap())
                })
                .filter(|c| *c != '"' && *c != '\\')
                .collect::<String>()
        };
        for number in 0..500 {
            let value = json!({ "metadata": { "name": "a" }, "data": { random(): [random(), random(), random()] }, "n": number });
            let plain = Object::from_value(&value).unwrap();
            let packed = packer.pack(&plain);
            assert_eq!(packed.value(), value);
            assert!(size(&packed) <= size(&plain));
        }
    }

    #[test]
    fn the_dictionary_is_replaced_when_other_objects_come() {
        let packer = Packer::default();
        let first = json!({ "metadata": { "name": "a" }, "data": "0123456789".repeat(100) });
        packer.pack(&Object::from_value(&first).unwrap());
        let plain: Vec<Object> = (0..200).map(|number| Object::from_value(&object(number)).unwrap()).collect();
        let packed: Vec<Object> = plain.iter().map(|plain| packer.pack(plain)).collect();
        assert!(size(&packed[199]) * 2 < size(&plain[199]), "{} of {}", size(&packed[199]), size(&plain[199]));
        assert!(plain.iter().zip(&packed).all(|(plain, packed)| plain == packed));
    }
}
