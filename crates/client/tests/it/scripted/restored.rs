//! Servers that go back in time: restored from a backup, they accept watches of the future and stay silent.

use std::time::Duration;

use super::server::{
    Answer, TestServer, Then, bookmark, end_of_list, event, events, list, object, page, refused, secrets,
};
use carrick_client::watch::{WatchOptions, watch};

fn quiet() -> Answer {
    Answer::Watch(vec![], Then::Hold)
}

fn paged() -> WatchOptions {
    WatchOptions { streaming_lists: false, ..WatchOptions::default() }
}

/// What a watch reports, what it asks for, and how often the server is said to have gone back.
async fn run(options: WatchOptions, count: usize, script: Vec<Answer>) -> (Vec<String>, Vec<String>, u64) {
    let server = TestServer::start(script).await;
    let opened = server.server();
    let mut stream = std::pin::pin!(watch(opened.client(), secrets(), options));
    let reported = events(&mut stream, count).await;
    let rewinds = opened.rewinds().values().map(|rewind| rewind.count).sum();
    (reported, server.lines(), rewinds)
}

#[tokio::test]
async fn a_broken_watch_of_a_server_that_went_back_is_listed_again() {
    for then in [Then::End, Then::Break] {
        let script = vec![
            list(50, &[object("a", 9)]),
            Answer::Watch(vec![event("MODIFIED", &object("a", 60))], then),
            page(40, "more", &[object("a", 9)]),
            list(41, &[object("a", 9), object("b", 41)]),
            Answer::Watch(vec![event("MODIFIED", &object("a", 42))], Then::Hold),
        ];
        let (reported, asked, rewinds) = run(paged(), 10, script).await;
        let wanted = [
            ["begin", "listed a@9", "synced", "applied a@60", "begin"],
            ["went back 60->41", "listed a@9", "listed b@41", "synced", "applied a@42"],
        ];
        assert_eq!(reported, wanted.as_flattened());
        assert!(asked[2].ends_with("/secrets?limit=1"), "{asked:?}");
        assert!(asked[4].contains("resourceVersion=41"), "{asked:?}");
        assert_eq!(rewinds, 1);
    }
}

#[tokio::test]
async fn a_watch_that_ends_in_time_asks_for_nothing_more() {
    let options = WatchOptions { timeout: Duration::from_millis(50), ..paged() };
    let lines = vec![bookmark(6)];
    let server = TestServer::start(vec![list(5, &[]), Answer::Watch(lines, Then::EndAfter(80)), quiet()]).await;
    let mut stream = std::pin::pin!(watch(server.server().client(), secrets(), options));
    events(&mut stream, 2).await;
    let asked_again = async {
        while server.lines().len() < 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // And nothing comes of it.
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    tokio::select! {
        reported = events(&mut stream, 1) => panic!("nothing happened: {reported:?}"),
        () = asked_again => {}
    }
    let asked = server.lines();
    assert!(asked[2].contains("resourceVersion=6"), "{asked:?}");
}

#[tokio::test]
async fn a_watch_that_never_said_a_word_is_doubted_even_if_it_ends_in_time() {
    let options = WatchOptions { timeout: Duration::from_millis(50), ..paged() };
    let script = vec![
        list(50, &[]),
        Answer::Watch(vec![], Then::EndAfter(80)),
        list(30, &[]),
        list(31, &[object("a", 30)]),
        quiet(),
    ];
    let (reported, _, _) = run(options, 6, script).await;
    assert_eq!(reported, ["begin", "synced", "begin", "went back 50->31", "listed a@30", "synced"]);
}

#[tokio::test]
async fn a_server_that_was_away_is_listed_because_it_may_have_passed_the_version_since_its_restore() {
    let script = vec![
        list(50, &[object("a", 49)]),
        Answer::Watch(vec![bookmark(51)], Then::Break),
        refused(503, "ServiceUnavailable"),
        list(70, &[object("b", 48)]),
        quiet(),
    ];
    let (reported, asked, rewinds) = run(paged(), 7, script).await;
    let wanted = ["begin", "listed a@49", "synced", "failing Some(503)", "begin", "listed b@48", "synced"];
    assert_eq!(reported, wanted);
    assert!(asked[3].contains("limit=500"), "{asked:?}");
    assert_eq!(rewinds, 0, "nobody can know");
}

#[tokio::test]
async fn one_old_answer_is_not_believed() {
    let gone = || refused(410, "Expired");
    let script = vec![list(50, &[object("a", 9)]), gone(), list(40, &[]), list(52, &[object("a", 9)]), quiet()];
    let (reported, _, rewinds) = run(paged(), 7, script).await;
    assert_eq!(reported, ["begin", "listed a@9", "synced", "begin", "begin", "listed a@9", "synced"]);
    assert_eq!(rewinds, 0);
}

#[tokio::test]
async fn a_streaming_list_of_the_past_is_not_called_complete() {
    let script = vec![
        Answer::Watch(vec![event("ADDED", &object("a", 9)), end_of_list(50)], Then::End),
        // The small list is refused, so everything is listed.
        refused(403, "Forbidden"),
        Answer::Watch(vec![event("ADDED", &object("b", 7)), end_of_list(40)], Then::Hold),
        list(41, &[object("b", 7)]),
        quiet(),
    ];
    let (reported, _, rewinds) = run(WatchOptions::labels("x=y"), 9, script).await;
    let wanted = [
        ["begin", "listed a@9", "synced"],
        ["begin", "listed b@7", "begin"],
        ["went back 50->41", "listed b@7", "synced"],
    ];
    assert_eq!(reported, wanted.as_flattened());
    assert_eq!(rewinds, 1);
}

#[tokio::test]
async fn events_and_bookmarks_below_the_known_version_are_a_reason_to_ask() {
    for behind in [bookmark(30), event("MODIFIED", &object("a", 30))] {
        let script = vec![
            list(50, &[]),
            Answer::Watch(vec![behind, event("MODIFIED", &object("late", 51))], Then::Hold),
            list(31, &[]),
            list(31, &[object("a", 30)]),
            quiet(),
        ];
        let server = TestServer::start(script).await;
        let mut stream = std::pin::pin!(watch(server.server().client(), secrets(), paged()));
        let mut reported = events(&mut stream, 2).await;
        while reported.iter().filter(|reported| *reported == "synced").count() < 2 {
            reported.extend(events(&mut stream, 1).await);
        }
        assert!(reported.contains(&"went back 50->31".to_owned()), "{reported:?}");
    }
}

#[tokio::test]
async fn a_server_that_mixes_up_its_events_loses_none() {
    let script = vec![
        list(50, &[]),
        Answer::Watch(vec![event("ADDED", &object("b", 52)), event("ADDED", &object("a", 51))], Then::Hold),
        page(52, "more", &[object("a", 51)]),
        Answer::Watch(vec![event("ADDED", &object("d", 54)), event("ADDED", &object("c", 53))], Then::Hold),
    ];
    let (reported, asked, rewinds) = run(paged(), 6, script).await;
    assert_eq!(reported, ["begin", "synced", "applied b@52", "applied a@51", "applied d@54", "applied c@53"]);
    assert_eq!((asked.len(), rewinds), (4, 0), "asked once: {asked:?}");
}

#[tokio::test]
async fn versions_that_are_no_numbers_are_never_compared() {
    let mut odd = object("a", 1);
    odd["metadata"]["resourceVersion"] = "x9".into();
    let lists = |version: &str| {
        let metadata = serde_json::json!({"resourceVersion": version});
        Answer::Json(200, serde_json::json!({"metadata": metadata, "items": [odd]}))
    };
    let script = vec![lists("z"), Answer::Watch(vec![event("MODIFIED", &odd)], Then::End), quiet()];
    let (reported, asked, rewinds) = run(paged(), 4, script).await;
    assert_eq!((reported.len(), rewinds), (4, 0));
    assert!(asked.iter().all(|line| !line.ends_with("limit=1")), "{asked:?}");
}

#[tokio::test]
async fn a_restore_is_counted_once_however_many_watches_notice_it() {
    let script = (0..3).flat_map(|_| {
        let broken = Answer::Watch(vec![bookmark(51)], Then::Break);
        [Answer::For("limit=500", Box::new(list(50, &[]))), Answer::For("watch=", Box::new(broken))]
    });
    let server = TestServer::start(script.collect()).await;
    let opened = server.server();
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = Box::pin(watch(opened.client(), secrets(), paged()));
        assert_eq!(events(&mut stream, 2).await, ["begin", "synced"]);
        streams.push(stream);
    }
    for _ in 0..3 {
        server.then(Answer::For("limit=1", Box::new(list(40, &[]))));
        server.then(Answer::For("limit=500", Box::new(list(41, &[]))));
        server.then(Answer::For("watch=", Box::new(quiet())));
    }
    for stream in &mut streams {
        assert_eq!(events(stream, 3).await, ["begin", "went back 51->41", "synced"]);
    }
    let rewind = opened.rewinds().into_values().next().unwrap();
    assert_eq!((rewind.known, rewind.found, rewind.count), (51, 41, 1));
}
