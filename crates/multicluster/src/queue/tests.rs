use super::*;
use crate::request::Key;
use futures::FutureExt;

type Queue = super::Queue<Key>;

fn key(cluster: &str, name: &str) -> Key {
    Key::new(cluster.parse().unwrap(), "", name)
}

/// The next key if there is one without waiting.
fn now(queue: &Queue) -> Option<Lease<Key>> {
    queue.next().now_or_never().flatten()
}

fn name(lease: &Lease<Key>) -> String {
    format!("{}/{}", lease.key().cluster, lease.key().name)
}

/// All keys that are due, in order.
fn drain(queue: &Queue) -> Vec<String> {
    std::iter::from_fn(|| now(queue).map(|lease| name(&lease))).collect()
}

async fn pass(duration: Duration) {
    tokio::time::advance(duration).await;
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn ten_thousand_keys_of_one_cluster_do_not_delay_another_cluster() {
    let queue = Queue::default();
    for number in 0..10_000 {
        queue.add(key("busy", &number.to_string()));
    }
    queue.add(key("calm", "only"));
    let first: Vec<String> = (0..3).filter_map(|_| now(&queue).map(|lease| name(&lease))).collect();
    assert_eq!(first, ["busy/0", "calm/only", "busy/1"]);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_idle_does_not_wait_for_a_hundred_busy_ones() {
    let queue = Queue::default();
    for number in 0..1_000 {
        queue.add(key(&format!("busy-{}", number % 100), &number.to_string()));
    }
    let _running: Vec<_> = (0..200).filter_map(|_| now(&queue)).collect();
    for number in 0..20 {
        queue.add(key(&format!("calm-{number}"), "only"));
    }
    let next: Vec<String> = (0..30).filter_map(|_| now(&queue).map(|lease| name(&lease))).collect();
    let calm = |names: &[String]| names.iter().filter(|name| name.starts_with("calm")).count();
    assert_eq!(calm(&next[..9]), 8, "a busy one has its turn in between: {next:?}");
    assert_eq!(calm(&next), 20, "{next:?}");
}

#[tokio::test(start_paused = true)]
async fn clusters_take_turns_and_keep_their_own_order() {
    let queue = Queue::default();
    for (cluster, name) in [("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("b", "2"), ("c", "1")] {
        queue.add(key(cluster, name));
    }
    assert_eq!(drain(&queue), ["a/1", "b/1", "c/1", "a/2", "b/2", "a/3"]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_key_is_queued_once() {
    let queue = Queue::default();
    queue.add(key("a", "1"));
    queue.add(key("a", "1"));
    assert_eq!(queue.stats(), QueueStats { queued: 1, running: 0, delayed: 0 });
    assert_eq!(drain(&queue), ["a/1"]);
}

#[tokio::test(start_paused = true)]
async fn a_running_key_runs_again_only_after_its_lease_and_only_once() {
    let queue = Queue::default();
    queue.add(key("a", "1"));
    let lease = now(&queue).unwrap();
    queue.add(key("a", "1"));
    queue.add(key("a", "1"));
    assert!(now(&queue).is_none());
    assert_eq!(queue.stats(), QueueStats { queued: 0, running: 1, delayed: 0 });
    lease.done();
    assert_eq!(drain(&queue), ["a/1"]);
}

#[tokio::test(start_paused = true)]
async fn a_timer_fires_at_its_time_and_wakes_whoever_waits() {
    let queue = Queue::default();
    queue.add_after(key("a", "1"), SECOND);
    assert!(now(&queue).is_none());
    let start = Instant::now();
    let lease = queue.next().await.unwrap();
    assert_eq!(name(&lease), "a/1");
    assert_eq!(start.elapsed().as_millis() / 10, 100);
}

#[tokio::test(start_paused = true)]
async fn an_earlier_trigger_runs_at_once_and_leaves_the_timer() {
    let queue = Queue::default();
    queue.add_after(key("a", "1"), SECOND);
    queue.add(key("a", "1"));
    drop(now(&queue).unwrap());
    assert!(now(&queue).is_none());
    pass(SECOND).await;
    assert_eq!(drain(&queue), ["a/1"]);
}

#[tokio::test(start_paused = true)]
async fn success_drops_older_timers_and_keeps_those_set_by_the_run() {
    let queue = Queue::default();
    queue.add_after(key("a", "1"), SECOND);
    queue.add(key("a", "1"));
    let lease = now(&queue).unwrap();
    queue.add_after(key("a", "1"), 5 * SECOND);
    lease.done();
    pass(SECOND).await;
    assert!(now(&queue).is_none());
    pass(4 * SECOND).await;
    assert_eq!(drain(&queue), ["a/1"]);
}

#[tokio::test(start_paused = true)]
async fn retries_come_slower_and_slower_until_success() {
    let queue = Queue::new(QueueConfig { longest_retry: Duration::from_millis(30), ..QueueConfig::default() });
    queue.add(key("a", "1"));
    let mut pauses = Vec::new();
    for attempt in 0..5 {
        let lease = queue.next().await.unwrap();
        assert_eq!(lease.attempt(), attempt);
        pauses.push(lease.retry().as_millis());
    }
    assert_eq!(pauses, [5, 10, 20, 30, 30]);
    queue.next().await.unwrap().done();
    queue.add(key("a", "1"));
    assert_eq!(now(&queue).unwrap().retry().as_millis(), 5);
    queue.forget(&key("a", "1"));
    assert_eq!(queue.retry(key("a", "1")).as_millis(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_purged_cluster_leaves_nothing_behind() {
    let queue = Queue::default();
    queue.add(key("gone", "running"));
    let lease = now(&queue).unwrap();
    queue.add(key("gone", "running"));
    queue.add(key("gone", "waiting"));
    queue.add_after(key("gone", "timed"), SECOND);
    queue.retry(key("gone", "failed"));
    queue.add(key("stays", "1"));
    queue.purge("gone");
    assert_eq!(queue.stats(), QueueStats { queued: 1, running: 1, delayed: 0 });
    lease.done();
    pass(SECOND).await;
    assert_eq!(drain(&queue), ["stays/1"]);
    assert_eq!(queue.shared.state.lock().remembered(), 0);
}

#[tokio::test(start_paused = true)]
async fn finished_keys_are_forgotten() {
    let queue = Queue::default();
    for number in 0..100 {
        queue.add(key("a", &number.to_string()));
    }
    drain(&queue);
    assert_eq!(queue.shared.state.lock().remembered(), 0);
}

#[tokio::test(start_paused = true)]
async fn closing_releases_all_who_wait() {
    let queue = Queue::default();
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.next().await.is_none() })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.add_after(key("a", "1"), SECOND);
    queue.close();
    for waiter in waiters {
        assert!(waiter.await.unwrap());
    }
    assert!(queue.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_leaves_takes_no_timer_along() {
    let queue = Queue::default();
    queue.add_after(key("a", "late"), 100 * SECOND);
    let stays = tokio::spawn({
        let queue = queue.clone();
        async move { name(&queue.next().await.unwrap()) }
    });
    tokio::task::yield_now().await;
    let leaves = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await.is_some() }
    });
    tokio::task::yield_now().await;
    queue.add_after(key("a", "early"), SECOND);
    tokio::task::yield_now().await;
    leaves.abort();
    let start = Instant::now();
    assert_eq!(stays.await.unwrap(), "a/early");
    assert!(start.elapsed() < 2 * SECOND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_workers_finish_many_keys_and_never_share_one() {
    use std::collections::HashSet;
    let queue = Queue::default();
    let running = Arc::new(Mutex::new(HashSet::new()));
    let finished = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let (queue, running, finished) = (queue.clone(), running.clone(), finished.clone());
            tokio::spawn(async move {
                while let Some(lease) = queue.next().await {
                    assert!(running.lock().insert(lease.key().clone()));
                    tokio::task::yield_now().await;
                    assert!(running.lock().remove(lease.key()));
                    if lease.attempt() == 0 {
                        lease.retry();
                    } else {
                        lease.done();
                        finished.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    for number in 0..500 {
        queue.add(key(&format!("c{}", number % 7), &number.to_string()));
    }
    while finished.load(std::sync::atomic::Ordering::Relaxed) < 500 {
        tokio::task::yield_now().await;
    }
    queue.close();
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!(queue.shared.state.lock().remembered(), 0);
}

fn queue_with(per_cluster: usize) -> Queue {
    Queue::new(QueueConfig { per_cluster, ..QueueConfig::default() })
}

#[tokio::test(start_paused = true)]
async fn urgent_keys_go_first_but_starve_nobody() {
    let queue = Queue::default();
    for (priority, letter) in [(Priority::Low, "l"), (Priority::Normal, "n"), (Priority::High, "h")] {
        for number in 0..20 {
            queue.add_with(key("a", &format!("{letter}{number}")), priority, Reason::Changed);
        }
    }
    let round: String = drain(&queue)[..22].iter().map(|name| &name[2..3]).collect();
    assert_eq!(round, "hhhhhhhhnnlhhhhhhhhnnl");
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_for_urgent_keys_gets_no_others() {
    let queue = Queue::default();
    queue.add_with(key("a", "listed"), Priority::Low, Reason::Listed);
    assert!(queue.next_above(Priority::Normal).now_or_never().is_none());
    queue.add_with(key("b", "created"), Priority::High, Reason::Changed);
    let lease = queue.next_above(Priority::Normal).await.unwrap();
    assert_eq!((name(&lease).as_str(), lease.priority()), ("b/created", Priority::High));
    assert_eq!(drain(&queue), ["a/listed"]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_key_that_becomes_urgent_moves_up_and_runs_once() {
    let queue = Queue::default();
    for name in ["1", "2", "3"] {
        queue.add_with(key("a", name), Priority::Low, Reason::Listed);
    }
    queue.add_with(key("a", "3"), Priority::High, Reason::Deleted);
    queue.add_with(key("a", "3"), Priority::Low, Reason::Listed);
    let lease = now(&queue).unwrap();
    assert_eq!((name(&lease).as_str(), lease.reason()), ("a/3", Reason::Deleted));
    drop(lease);
    assert_eq!(drain(&queue), ["a/1", "a/2"]);
    assert_eq!(queue.stats(), QueueStats::default());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_at_its_limit_is_passed_over_until_one_of_its_keys_ends() {
    let queue = queue_with(2);
    for name in ["1", "2", "3", "4"] {
        queue.add(key("a", name));
    }
    let (first, _second) = (now(&queue).unwrap(), now(&queue).unwrap());
    assert!(now(&queue).is_none());
    assert_eq!(queue.running("a"), 2);
    queue.add(key("b", "1"));
    assert_eq!(drain(&queue), ["b/1"]);
    drop(first);
    let third = now(&queue).unwrap();
    assert_eq!(name(&third), "a/3");
    assert!(now(&queue).is_none());
    assert_eq!(queue.longest(5), [("a".parse().unwrap(), 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_purged_cluster_that_comes_back_still_counts_what_runs() {
    let queue = queue_with(1);
    queue.add(key("a", "1"));
    let old = now(&queue).unwrap();
    queue.add(key("a", "2"));
    queue.purge("a");
    assert_eq!(queue.stats(), QueueStats { queued: 0, running: 1, delayed: 0 });
    queue.add(key("a", "3"));
    assert!(now(&queue).is_none(), "the old run has not ended");
    drop(old);
    assert_eq!(drain(&queue), ["a/3"]);
}

#[tokio::test(start_paused = true)]
async fn the_longest_wait_and_the_number_of_additions_are_known() {
    let queue = Queue::default();
    assert_eq!((queue.added(), queue.oldest()), (0, Duration::ZERO));
    queue.add(key("a", "1"));
    tokio::time::advance(Duration::from_secs(3)).await;
    queue.add(key("b", "1"));
    queue.add(key("b", "1"));
    assert_eq!((queue.added(), queue.oldest()), (2, Duration::from_secs(3)));
    let lease = queue.next().await.unwrap();
    assert_eq!(queue.oldest(), Duration::ZERO, "only the second one waits");
    queue.add(lease.key().clone());
    drop(lease);
    assert_eq!(queue.added(), 3);
}

/// Takes a key that is due and has it fail for a cause.
fn fail(queue: &Queue, cause: &str) -> Option<String> {
    let lease = now(queue)?;
    let name = name(&lease);
    lease.wait_for(cause);
    Some(name)
}

/// Has keys fail until they wait together.
async fn gather(queue: &Queue, keys: usize, cause: &str) {
    for number in 0..keys {
        queue.add(key("a", &number.to_string()));
    }
    for _ in 0..5 {
        while fail(queue, cause).is_some() {}
        pass(Duration::from_millis(40)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_retried_at_once_before_it_is_taken_for_one_of_many() {
    let queue = Queue::default();
    queue.add(key("a", "1"));
    for pause in [5, 10, 20, 40, 100, 200, 400, 800, 1600, 2000, 2000] {
        assert_eq!(fail(&queue, "away").as_deref(), Some("a/1"), "{pause}");
        assert_eq!(queue.stats().delayed, 1);
        pass(Duration::from_millis(pause - 1)).await;
        assert!(now(&queue).is_none(), "{pause}");
        pass(Duration::from_millis(1)).await;
    }
    now(&queue).unwrap().done();
    assert_eq!(queue.shared.state.lock().remembered(), 0);
    assert_eq!(queue.stats(), QueueStats::default());
}

#[tokio::test(start_paused = true)]
async fn many_keys_of_one_cause_cost_no_more_than_a_few_tries() {
    let queue = Queue::default();
    gather(&queue, 1_000, "away").await;
    assert_eq!(queue.stats().delayed, 1_000);
    let mut tried = 0;
    for _ in 0..600 {
        pass(Duration::from_millis(100)).await;
        while fail(&queue, "away").is_some() {
            tried += 1;
        }
    }
    assert!((200..=320).contains(&tried), "{tried} tries in a minute");
    assert_eq!(queue.stats().delayed, 1_000);
}

#[tokio::test(start_paused = true)]
async fn the_first_key_that_does_not_fail_any_more_has_the_others_follow() {
    let queue = Queue::default();
    gather(&queue, 1_000, "away").await;
    gather(&queue, 1, "another cause").await;
    pass(2 * SECOND).await;
    let mut done = 0;
    while let Some(lease) = now(&queue) {
        if lease.key().name.as_ref() == "0" {
            lease.wait_for("another cause");
        } else {
            lease.done();
            done += 1;
        }
    }
    assert!(done >= 998, "{done} without any time passing");
    assert!(queue.stats().delayed <= 2, "{:?}", queue.stats());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_changed_while_it_waits_runs_at_once_and_keeps_its_place_if_it_fails() {
    let queue = Queue::default();
    gather(&queue, 2, "away").await;
    queue.add(key("a", "1"));
    assert_eq!(fail(&queue, "away").as_deref(), Some("a/1"));
    assert_eq!(queue.stats().delayed, 2);
    queue.add(key("a", "1"));
    now(&queue).unwrap().done();
    assert_eq!(drain(&queue), ["a/0"], "it follows");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_leaves_takes_its_keys_out_of_their_group() {
    let queue = Queue::default();
    gather(&queue, 3, "away").await;
    pass(Duration::from_millis(200)).await;
    let running = now(&queue).unwrap();
    queue.purge("a");
    assert_eq!(queue.stats(), QueueStats { queued: 0, running: 1, delayed: 0 });
    drop(running);
    assert_eq!(queue.shared.state.lock().remembered(), 0);
    pass(10 * SECOND).await;
    assert!(now(&queue).is_none());
}

#[tokio::test(start_paused = true)]
async fn every_event_of_a_failing_key_replaces_its_retry() {
    for fail in [
        |lease: Lease<Key>| _ = lease.retry(),
        |lease: Lease<Key>| lease.retry_after(SECOND),
        |lease: Lease<Key>| lease.wait_for("server away"),
    ] {
        let queue = Queue::default();
        for _ in 0..10 {
            queue.add(key("a", "1"));
            fail(now(&queue).unwrap());
            // Less than any pause, so that every failure comes at another time.
            pass(Duration::from_micros(10)).await;
        }
        assert_eq!(queue.stats().delayed, 1, "one retry, whatever the number of events");
    }
    let queue = Queue::default();
    for _ in 0..10 {
        queue.retry(key("a", "1"));
        pass(Duration::from_micros(10)).await;
    }
    assert_eq!(queue.stats().delayed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_delay_without_end_never_comes() {
    let config = QueueConfig { first_retry: Duration::MAX, longest_retry: Duration::MAX, per_cluster: 0 };
    let queue = Queue::new(config);
    queue.add_after(key("a", "1"), Duration::MAX);
    queue.retry(key("a", "2"));
    for name in ["3", "4", "5"] {
        queue.add(key("a", name));
    }
    now(&queue).unwrap().retry_after(Duration::MAX);
    let _ = now(&queue).unwrap().retry();
    now(&queue).unwrap().wait_for("cause");
    assert_eq!(queue.stats(), QueueStats { queued: 0, running: 0, delayed: 5 });
    pass(Duration::from_hours(24 * 365)).await;
    assert!(now(&queue).is_none());
}

#[tokio::test(start_paused = true)]
async fn steady_urgent_work_leaves_a_share_to_the_rest() {
    for lowest in [Priority::Low, Priority::Normal] {
        let queue = Queue::default();
        queue.add_with(key("calm", "low"), Priority::Low, Reason::Listed);
        queue.add_with(key("calm", "normal"), Priority::Normal, Reason::Changed);
        let mut served = Vec::new();
        for number in 0..20 {
            // There is never more than one urgent key, and never none.
            queue.add_with(key("busy", &number.to_string()), Priority::High, Reason::Changed);
            let lease = queue.next_above(lowest).now_or_never().flatten().unwrap();
            served.push(name(&lease));
        }
        assert!(served.contains(&"calm/normal".to_owned()), "{served:?}");
        assert_eq!(served.contains(&"calm/low".to_owned()), lowest == Priority::Low, "{served:?}");
    }
}
