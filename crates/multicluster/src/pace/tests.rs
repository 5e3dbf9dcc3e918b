use super::*;
use crate::queue::Reason;
use crate::request::Key;
use futures::FutureExt;

/// A server that answers a request in `at_rest` seconds and can do so many at once; the rest wait in line.
fn settle(course: &mut Course, at_rest: f64, at_once: f64) -> usize {
    for _ in 0..2_000 {
        course.running = course.limit();
        let waiting = (course.limit / at_once).max(1.0);
        course.answered(0, at_rest * waiting);
    }
    course.limit()
}

#[test]
fn it_finds_what_a_server_bears() {
    let limit = settle(&mut Course::between(4, 128), 0.01, 4.0);
    assert!((18..=32).contains(&limit), "a server that does 4 at once: {limit}");
    let limit = settle(&mut Course::between(4, 128), 0.05, 1000.0);
    assert_eq!(limit, 128, "a server that is far away but strong");
    let mut course = Course::between(4, 128);
    course.running = 1;
    course.answered(0, 0.01);
    assert_eq!(settle(&mut course, 0.01, 0.1), 4, "never fewer than asked for");
}

#[test]
fn it_follows_a_server_that_becomes_weaker_and_stronger() {
    let mut course = Course::between(4, 128);
    let strong = settle(&mut course, 0.01, 16.0);
    let weak = settle(&mut course, 0.01, 4.0);
    assert!(weak < strong / 2, "{strong} then {weak}");
    let again = settle(&mut course, 0.01, 16.0);
    assert!(again > strong / 2, "{strong} then {weak} then {again}");
}

#[test]
fn an_unused_limit_does_not_grow() {
    let mut course = Course::between(4, 128);
    for _ in 0..1_000 {
        course.running = 1;
        course.answered(0, 0.01);
    }
    assert_eq!(course.limit(), 4);
}

#[test]
fn refusals_halve_it_once_for_all_that_were_under_way() {
    let mut course = Course::between(4, 128);
    let before = settle(&mut course, 0.01, 16.0);
    course.answered(0, 0.01);
    for _ in 0..before {
        course.refused();
    }
    assert_eq!(course.limit(), before / 2);
}

#[test]
fn what_nobody_waits_for_makes_room() {
    let now = Instant::now();
    let mut course = Course::between(4, 128);
    course.limit = 32.0;
    let mut low: Vec<u64> = (0..31).map(|_| course.begin(&"c".parse().unwrap(), Priority::Low, now)).collect();
    let lowest = |course: &Course, at| course.admission(at).lowest;
    assert_eq!(lowest(&course, now), Some(Priority::Low), "the limit is not reached");
    low.push(course.begin(&"c".parse().unwrap(), Priority::Low, now));
    assert_eq!(lowest(&course, now), Some(Priority::Normal), "there is always room for what is urgent");
    let high: Vec<u64> = (0..32 / URGENT).map(|_| course.begin(&"c".parse().unwrap(), Priority::High, now)).collect();
    assert_eq!(lowest(&course, now), None, "but not for any number");
    high.into_iter().chain(low).for_each(|number| course.end(number));
    let all = Admission { lowest: Some(Priority::Low), idle: false, until: Some(now + EXPECTED) };
    assert_eq!(course.admission(now), all);
    course.begin(&"c".parse().unwrap(), Priority::Low, now);
    assert_eq!(lowest(&course, now), Some(Priority::Normal), "one is enough while somebody waits for others");
    assert_eq!(lowest(&course, now + EXPECTED), Some(Priority::Low), "nobody does any more");
}

#[tokio::test(start_paused = true)]
async fn steady_urgent_work_leaves_a_little_to_the_rest() {
    let (pace, queue) = (Pace::between(4, 128), Queue::default());
    let key = |cluster: &str, name: usize| Key::new(cluster.parse().unwrap(), "", name.to_string());
    for number in 0..20 {
        queue.add_with(key("calm", number), Priority::Low, Reason::Listed);
    }
    // Some urgent key always runs, and another one always waits.
    let (mut running, mut low) = (std::collections::VecDeque::new(), 0);
    for number in 0..200 {
        queue.add_with(key("busy", number), Priority::High, Reason::Changed);
        let Some(Some(lease)) = pace.next(&queue).now_or_never() else {
            running.pop_front();
            continue;
        };
        let turn = pace.begin(lease.key().cluster(), lease.priority());
        if lease.priority() == Priority::Low {
            low += 1;
        } else {
            running.push_back((turn, lease));
        }
    }
    assert!(low > 5, "{low} of 20 were served");
    assert!(!running.is_empty());
}

#[tokio::test(start_paused = true)]
async fn slow_ones_leave_room_for_the_first_of_others_and_for_no_more_of_their_own() {
    let (pace, queue) = (Pace::between(4, 16), Queue::default());
    let key = |cluster: &str, name: usize| Key::new(cluster.parse().unwrap(), "", name.to_string());
    (0..10).for_each(|number| queue.add_with(key("slow", number), Priority::High, Reason::Changed));
    let mut running = Vec::new();
    while let Some(Some(lease)) = pace.next(&queue).now_or_never() {
        running.push((pace.begin(lease.key().cluster(), lease.priority()), lease));
    }
    assert_eq!(running.len(), 4);
    for name in ["calm", "still"] {
        queue.add_with(key(name, 0), Priority::High, Reason::Changed);
        queue.add_with(key(name, 1), Priority::High, Reason::Changed);
        let next = tokio::time::timeout(Duration::from_mins(1), pace.next(&queue)).await;
        let lease = next.expect("it does not wait for slow ones of others").unwrap();
        assert_eq!(&**lease.key().cluster(), name);
        running.push((pace.begin(lease.key().cluster(), lease.priority()), lease));
    }
    let next = tokio::time::timeout(Duration::from_mins(1), pace.next(&queue)).await;
    assert!(next.is_err(), "whoever has some under way waits for them");
    running.remove(0);
    assert!(pace.next(&queue).now_or_never().is_none(), "one of six has ended, and four may run");
    running.drain(..3);
    assert!(pace.next(&queue).now_or_never().flatten().is_some());
}

#[tokio::test(start_paused = true)]
async fn one_cluster_cannot_take_all_places() {
    // Two controllers with one pace: what a cluster has under way counts in both.
    let (pace, queues) = (Pace::between(8, 8).per_cluster(3), [Queue::default(), Queue::default()]);
    let key = |cluster: &str, name: usize| Key::new(cluster.parse().unwrap(), "", name.to_string());
    for queue in &queues {
        (0..10).for_each(|number| queue.add_with(key("greedy", number), Priority::Low, Reason::Listed));
    }
    let mut running = Vec::new();
    for queue in queues.iter().cycle().take(8) {
        if let Some(Some(lease)) = pace.next(queue).now_or_never() {
            running.push((pace.begin(lease.key().cluster(), lease.priority()), lease));
        }
    }
    assert_eq!(running.len(), 3, "that is its share");
    for queue in &queues {
        queue.add_with(key("modest", 0), Priority::Low, Reason::Listed);
        let lease = pace.next(queue).now_or_never().flatten().expect("others have places left");
        assert_eq!(&**lease.key().cluster(), "modest");
        running.push((pace.begin(lease.key().cluster(), lease.priority()), lease));
    }
    assert!(pace.next(&queues[0]).now_or_never().is_none());
    running.remove(0);
    for queue in &queues {
        let next = pace.next(queue).now_or_never().flatten();
        let lease = next.expect("its keys have kept their turn in both queues");
        assert_eq!(&**lease.key().cluster(), "greedy");
    }
}

/// Reconciles that take a while, on servers that bear many.
struct Play {
    pace: Pace,
    queue: Queue<Key>,
    running: Vec<(Instant, PaceGuard, Lease<Key>)>,
}

impl Play {
    fn new() -> Self {
        let pace = Pace::between(4, 128);
        pace.inner.course.lock().limit = 128.0;
        Self { pace, queue: Queue::default(), running: Vec::new() }
    }

    fn change(&self, cluster: &str, name: usize) {
        let key = Key::new(cluster.parse().unwrap(), "", name.to_string());
        self.queue.add_with(key, Priority::High, Reason::Changed);
    }

    /// A millisecond goes by: what has taken long enough ends, and whatever may begins. Returns how many of each cluster have begun.
    async fn pass(&mut self, takes: impl Fn(&str) -> Duration) -> HashMap<String, usize> {
        tokio::time::advance(Duration::from_millis(1)).await;
        self.running.retain(|(until, ..)| *until > Instant::now());
        let mut begun = HashMap::new();
        while let Some(Some(lease)) = self.pace.next(&self.queue).now_or_never() {
            let cluster = lease.key().cluster().clone();
            let guard = self.pace.begin(&cluster, lease.priority());
            *begun.entry(cluster.to_string()).or_default() += 1;
            self.running.push((Instant::now() + takes(&cluster), guard, lease));
        }
        begun
    }

    fn under_way(&self, cluster: &str) -> usize {
        self.running.iter().filter(|(.., lease)| **lease.key().cluster() == *cluster).count()
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_floods_has_little_under_way_while_others_change_something() {
    let mut play = Play::new();
    (0..100_000).for_each(|number| play.change("greedy", number));
    let takes = |_: &str| Duration::from_millis(5);
    let (mut crowded, mut flood) = (0, 0);
    for tick in 0..10_000 {
        if tick % 100 == 0 {
            play.change("calm", tick);
        }
        let begun = play.pass(takes).await;
        flood += begun.get("greedy").copied().unwrap_or_default();
        if begun.contains_key("calm") && play.under_way("greedy") > 2 {
            crowded += 1;
        }
    }
    assert!(crowded <= 1, "{crowded} of 100 had to share servers with more than two others");
    assert!(flood >= 1_000, "but it goes on: {flood}");
    // Nobody else changes anything any more.
    for _ in 0..11_000 {
        play.pass(takes).await;
    }
    assert!(play.under_way("greedy") > 16, "{}", play.under_way("greedy"));
}

#[tokio::test(start_paused = true)]
async fn whoever_floods_goes_on_steadily_also_on_servers_that_are_far_away() {
    let mut play = Play::new();
    (0..10_000).for_each(|number| play.change("greedy", number));
    let mut flood = 0;
    for tick in 0..10_000 {
        if tick % 100 == 0 {
            play.change("calm", tick);
        }
        let begun = play.pass(|_| Duration::from_millis(300)).await;
        flood += begun.get("greedy").copied().unwrap_or_default();
    }
    assert!(flood >= 500, "{flood}");
}

#[tokio::test(start_paused = true)]
async fn whoever_has_made_room_goes_on_by_itself_when_nothing_else_happens() {
    let (pace, queue) = (Pace::between(128, 128), Queue::default());
    let key = |cluster: &str, name: usize| Key::new(cluster.parse().unwrap(), "", name.to_string());
    (0..100).for_each(|number| queue.add_with(key("greedy", number), Priority::High, Reason::Changed));
    queue.add_with(key("calm", 0), Priority::High, Reason::Changed);
    // Not one of them ends.
    let mut running = Vec::new();
    while running.len() < 101 {
        let next = tokio::time::timeout(Duration::from_secs(1), pace.next(&queue)).await;
        let lease = next.unwrap_or_else(|_| panic!("{} run", running.len())).unwrap();
        running.push((pace.begin(lease.key().cluster(), lease.priority()), lease));
    }
}

#[tokio::test]
async fn whoever_waits_is_let_in_when_another_one_ends() {
    let pace = Pace::between(1, 1);
    let queue = Queue::default();
    queue.add(Key::new("one".parse().unwrap(), "", "first"));
    let turn = pace.begin(&"other".parse().unwrap(), Priority::Normal);
    let waiting = tokio::spawn({
        let (pace, queue) = (pace.clone(), queue.clone());
        async move { pace.next(&queue).await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    drop(turn);
    assert!(waiting.await.unwrap().is_some());
}
