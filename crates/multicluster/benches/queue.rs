//! The fair queue alone: `cargo bench -p carrick-multicluster --bench queue`.
//!
//! The same number of keys in one cluster and in a thousand: a key must cost the same.

#![allow(clippy::unwrap_used)] // a measurement that fails may panic

use std::hint::black_box;
use std::time::Duration;

use carrick_multicluster::{ClusterName, Key, Queue};
use divan::Bencher;
use divan::counter::ItemsCount;

const KEYS: usize = 10_000;
const CLUSTERS: [usize; 3] = [1, 100, 1000];

fn main() {
    divan::main();
}

fn keys(clusters: usize) -> Vec<Key> {
    let names: Vec<ClusterName> = (0..clusters).map(|number| format!("cluster{number}").parse().unwrap()).collect();
    (0..KEYS).map(|number| Key::new(names[number % clusters].clone(), "default", format!("object-{number}"))).collect()
}

/// Every key is queued, handed out and done.
#[divan::bench(args = CLUSTERS)]
fn add_and_work_off(bencher: Bencher, clusters: usize) {
    let keys = keys(clusters);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    bencher.counter(ItemsCount::new(KEYS)).bench_local(|| {
        runtime.block_on(async {
            let queue = Queue::default();
            for key in &keys {
                queue.add(key.clone());
            }
            for _ in 0..KEYS {
                queue.next().await.unwrap().done();
            }
        });
    });
}

/// Every key is queued ten times before it is handed out.
#[divan::bench(args = CLUSTERS)]
fn add_again_while_waiting(bencher: Bencher, clusters: usize) {
    let keys = keys(clusters);
    let queue = Queue::default();
    bencher.counter(ItemsCount::new(10 * KEYS)).bench_local(|| {
        for _ in 0..10 {
            for key in &keys {
                queue.add(key.clone());
            }
        }
    });
    assert_eq!(queue.stats().queued, KEYS);
}

/// Every key fails once, and waits for its retry.
#[divan::bench(args = CLUSTERS)]
fn retry(bencher: Bencher, clusters: usize) {
    let keys = keys(clusters);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    bencher.counter(ItemsCount::new(KEYS)).bench_local(|| {
        runtime.block_on(async {
            let queue = Queue::default();
            for key in &keys {
                queue.add(key.clone());
                queue.next().await.unwrap().retry_after(Duration::from_mins(1));
            }
            black_box(queue.stats())
        })
    });
}

/// A cluster leaves while all its keys wait; the others stay.
#[divan::bench(args = CLUSTERS)]
fn purge_one_cluster(bencher: Bencher, clusters: usize) {
    let keys = keys(clusters);
    let filled = || {
        let queue = Queue::default();
        for key in &keys {
            queue.add(key.clone());
        }
        queue
    };
    bencher.with_inputs(filled).bench_local_values(|queue| {
        queue.purge("cluster0");
        queue
    });
}
