//! Any data of a state Secret, entries separated by 0xff and keys by a line end: what is read can be written, and is read as the same again.
#![no_main]

use std::collections::BTreeMap;

use carrick_sync::memory::PrimaryState;
use carrick_sync::{Side, Vocabulary};
use libfuzzer_sys::fuzz_target;

static WORDS: Vocabulary = Vocabulary {
    consumer: Side::consumer("kcp"),
    provider: Side::provider("service"),
    finalizer: "x/finalizer",
    held_by: "x/held-by",
    agent_name: "x/agent",
    applied_state: "x/applied-state",
    adoption: "x/adoption",
    acquired: "x/acquired",
    on_delete: "x/on-delete",
    manager: "agent",
    of_copies: &["x/agent"],
    deletion_propagation: "x/deletion",
    source_resource: "x/resource",
    source_uid: "x/uid",
    prefix: "x/",
    source_of: |_| None,
    label_crosses: |_| true,
    annotation_crosses: |_| true,
};

fn read(data: &BTreeMap<String, Vec<u8>>) -> PrimaryState {
    PrimaryState::from_data(&WORDS, data.iter().map(|(key, bytes)| (key.as_str(), bytes.as_slice())))
}

fuzz_target!(|input: &[u8]| {
    let mut data = BTreeMap::new();
    for part in input.split(|byte| *byte == 0xff) {
        let Some(at) = part.iter().position(|byte| *byte == b'\n') else { continue };
        let Ok(key) = std::str::from_utf8(&part[..at]) else { continue };
        data.insert(key.to_owned(), part[at + 1..].to_vec());
    }
    let written = read(&data).to_data();
    assert_eq!(read(&written).to_data(), written);
});
