//! The watch loop against a scripted server.

use std::time::Duration;

use super::server::{
    Answer, TestServer, Then, bookmark, end_of_list, event, events, list, object, page, refused, secrets, status,
};
use carrick_client::watch::{WatchOptions, watch};

/// A watch that has nothing to say.
fn quiet() -> Answer {
    Answer::Watch(vec![], Then::Hold)
}

fn paged() -> WatchOptions {
    WatchOptions { streaming_lists: false, ..WatchOptions::default() }
}

/// The first events of a watch, and the requests that were needed for them.
async fn run(options: WatchOptions, count: usize, script: Vec<Answer>) -> (Vec<String>, Vec<String>) {
    let server = TestServer::start(script).await;
    let mut stream = std::pin::pin!(watch(server.server().client(), secrets(), options));
    let reported = events(&mut stream, count).await;
    (reported, server.lines())
}

#[tokio::test]
async fn a_streaming_list_goes_over_into_the_watch() {
    let script = vec![Answer::Watch(
        vec![
            event("ADDED", &object("a", 9)),
            event("ADDED", &object("b", 3)),
            end_of_list(10),
            event("MODIFIED", &object("a", 11)),
            event("ADDED", &object("c", 12)),
            bookmark(13),
            event("DELETED", &object("b", 14)),
        ],
        Then::Hold,
    )];
    let (reported, asked) = run(WatchOptions::labels("a=b"), 7, script).await;
    let wanted = ["begin", "listed a@9", "listed b@3", "synced", "applied a@11", "applied c@12", "deleted b@14"];
    assert_eq!(reported, wanted);
    assert_eq!(asked.len(), 1);
    for part in
        ["/base/api/v1/secrets?", "labelSelector=a%3Db", "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan"]
    {
        assert!(asked[0].contains(part), "{part} in {}", asked[0]);
    }
    assert!(asked[0].contains("allowWatchBookmarks=true") && asked[0].contains("timeoutSeconds="));
}

#[tokio::test]
async fn a_server_that_refuses_streaming_lists_is_asked_once() {
    for (code, reason) in [(422, "Invalid"), (400, "BadRequest")] {
        let script = vec![
            refused(code, reason),
            list(5, &[object("a", 1)]),
            Answer::Watch(vec![event("ERROR", &status(410, "Expired"))], Then::End),
            list(8, &[object("a", 1)]),
            quiet(),
        ];
        let (reported, asked) = run(WatchOptions::default(), 6, script).await;
        assert_eq!(reported, ["begin", "listed a@1", "synced", "begin", "listed a@1", "synced"]);
        let streaming = asked.iter().filter(|line| line.contains("sendInitialEvents")).count();
        assert_eq!(streaming, 1, "{asked:?}");
    }
}

#[tokio::test]
async fn a_server_that_ignores_the_wish_for_a_streaming_list_is_found_out_by_its_silence() {
    let script =
        vec![Answer::Watch(vec![event("ADDED", &object("a", 1))], Then::Hold), list(5, &[object("a", 1)]), quiet()];
    let options = WatchOptions { list_silence: Duration::from_millis(300), ..WatchOptions::default() };
    let (reported, _) = run(options, 5, script).await;
    assert_eq!(reported, ["begin", "listed a@1", "begin", "listed a@1", "synced"]);
}

#[tokio::test]
async fn a_list_comes_page_by_page_and_the_watch_starts_at_its_version() {
    let script = vec![
        page(5, "t/1", &[object("a", 1)]),
        page(5, "t2", &[object("b", 2)]),
        list(5, &[object("c", 3)]),
        Answer::Watch(vec![event("ADDED", &object("d", 6))], Then::Hold),
    ];
    let (reported, asked) = run(WatchOptions { page_size: 1, ..paged() }, 6, script).await;
    assert_eq!(reported, ["begin", "listed a@1", "listed b@2", "listed c@3", "synced", "applied d@6"]);
    assert!(asked[0].ends_with("?limit=1") && asked[1].ends_with("?limit=1&continue=t%2F1"), "{asked:?}");
    assert!(asked[3].contains("resourceVersion=5"), "{asked:?}");
}

#[tokio::test]
async fn a_page_of_large_objects_is_asked_for_again_with_fewer_of_them() {
    let mut large = object("large", 2);
    large["data"] = serde_json::json!({"long": "x".repeat(17 << 20)});
    let script = vec![
        page(5, "t1", &[object("a", 1)]),
        page(5, "t2", &[large]),
        page(5, "t2", &[object("large", 2)]),
        list(5, &[object("c", 3)]),
        quiet(),
    ];
    let (reported, asked) = run(paged(), 5, script).await;
    assert_eq!(reported, ["begin", "listed a@1", "listed large@2", "listed c@3", "synced"]);
    let pages = ["?limit=500", "?limit=500&continue=t1", "?limit=62&continue=t1", "?limit=124&continue=t2"];
    for (asked, page) in asked.iter().zip(pages) {
        assert!(asked.ends_with(page), "{asked} is not {page}");
    }
}

#[tokio::test]
async fn expired_pages_lead_to_a_list_in_one_piece() {
    let script = vec![
        page(5, "t1", &[object("a", 1)]),
        refused(410, "Expired"),
        list(9, &[object("a", 1), object("b", 2)]),
        quiet(),
    ];
    let (reported, asked) = run(paged(), 6, script).await;
    assert_eq!(reported, ["begin", "listed a@1", "begin", "listed a@1", "listed b@2", "synced"]);
    assert!(!asked[2].contains("limit"), "{asked:?}");
}

#[tokio::test]
async fn a_list_that_is_too_large_for_one_piece_comes_page_by_page_again() {
    let mut large = object("large", 2);
    large["data"] = serde_json::json!({"long": "x".repeat(33 << 20)});
    let script = vec![
        page(5, "t1", &[object("a", 1)]),
        refused(410, "Expired"),
        list(9, &[large]),
        page(9, "t2", &[object("a", 1)]),
        list(9, &[object("large", 2)]),
        quiet(),
    ];
    let (reported, asked) = run(paged(), 7, script).await;
    let wanted = ["begin", "listed a@1", "begin", "begin", "listed a@1", "listed large@2", "synced"];
    assert_eq!(reported, wanted);
    assert!(
        !asked[2].contains("limit") && asked[3].contains("limit=") && asked[4].contains("continue=t2"),
        "{asked:?}"
    );
}

#[tokio::test]
async fn gone_leads_to_a_new_list_whether_it_comes_as_event_or_as_status() {
    let gone = [Answer::Watch(vec![event("ERROR", &status(410, "Expired"))], Then::Hold), refused(410, "Expired")];
    for gone in gone {
        let script = vec![list(5, &[object("a", 1)]), gone, list(7, &[object("b", 6)]), quiet()];
        let (reported, asked) = run(paged(), 6, script).await;
        assert_eq!(reported, ["begin", "listed a@1", "synced", "begin", "listed b@6", "synced"]);
        assert!(asked.len() >= 3 && !asked[2].contains("watch"), "{asked:?}");
    }
}

#[tokio::test]
async fn a_version_the_server_does_not_know_yet_leads_to_a_new_list() {
    let mut too_large = status(504, "Timeout");
    too_large["details"] = serde_json::json!({"causes": [{"reason": "ResourceVersionTooLarge", "message": "m"}]});
    let script = vec![list(5, &[]), Answer::Json(504, too_large), list(2, &[]), quiet()];
    let (reported, _) = run(paged(), 5, script).await;
    assert_eq!(reported, ["begin", "synced", "begin", "went back 5->2", "synced"]);
}

#[tokio::test]
async fn an_ended_or_broken_watch_goes_on_where_it_was() {
    for then in [Then::End, Then::Break] {
        let script = vec![
            list(5, &[object("a", 1)]),
            Answer::Watch(vec![event("MODIFIED", &object("a", 6)), bookmark(8)], then),
            page(8, "more", &[object("a", 6)]),
            Answer::Watch(vec![event("MODIFIED", &object("a", 9))], then),
            page(12, "more", &[object("a", 10)]),
            Answer::Watch(vec![event("MODIFIED", &object("a", 10))], Then::Hold),
        ];
        let (reported, asked) = run(paged(), 6, script).await;
        assert_eq!(reported, ["begin", "listed a@1", "synced", "applied a@6", "applied a@9", "applied a@10"]);
        assert!(asked[3].contains("resourceVersion=8") && asked[5].contains("resourceVersion=9"), "{asked:?}");
        // One small list in between, to see that the server has not gone back.
        assert!(asked[2].ends_with("/secrets?limit=1") && asked[4].ends_with("/secrets?limit=1"), "{asked:?}");
    }
}

#[tokio::test]
async fn a_streaming_list_that_breaks_off_begins_again_and_is_never_called_complete() {
    let script = vec![
        Answer::Watch(vec![event("ADDED", &object("a", 1))], Then::Break),
        Answer::Watch(
            vec![event("ADDED", &object("a", 1)), event("ADDED", &object("b", 2)), end_of_list(3)],
            Then::Hold,
        ),
    ];
    let (reported, _) = run(WatchOptions::default(), 6, script).await;
    assert_eq!(reported, ["begin", "listed a@1", "begin", "listed a@1", "listed b@2", "synced"]);
}

#[tokio::test]
async fn a_silent_watch_is_replaced() {
    let added = Answer::Watch(vec![event("ADDED", &object("a", 6))], Then::Hold);
    let script = vec![list(5, &[]), quiet(), list(5, &[]), added];
    let options = WatchOptions { timeout: Duration::from_millis(200), grace: Duration::from_millis(200), ..paged() };
    let (reported, asked) = run(options, 3, script).await;
    assert_eq!(reported, ["begin", "synced", "applied a@6"]);
    assert!(asked[3].contains("resourceVersion=5"), "{asked:?}");
}

#[tokio::test]
async fn an_outage_is_told_once_and_so_is_its_end() {
    let script = vec![
        list(5, &[]),
        refused(500, "InternalError"),
        refused(429, "TooManyRequests"),
        refused(500, "InternalError"),
        Answer::Watch(vec![event("ADDED", &object("a", 6))], Then::Hold),
    ];
    let (reported, _) = run(paged(), 5, script).await;
    assert_eq!(reported, ["begin", "synced", "failing Some(500)", "applied a@6", "recovered"]);
}

#[tokio::test]
async fn an_outage_is_over_when_a_quiet_watch_stays_open() {
    let script = vec![refused(403, "Forbidden"), list(5, &[]), quiet()];
    let (reported, _) = run(paged(), 5, script).await;
    assert_eq!(reported, ["begin", "failing Some(403)", "begin", "synced", "recovered"]);
}

#[tokio::test]
async fn an_error_event_is_met_by_resuming_first_and_by_a_new_list_if_it_repeats() {
    let error = || Answer::Watch(vec![event("ERROR", &status(500, "InternalError"))], Then::End);
    let script = vec![list(5, &[]), error(), list(5, &[]), error(), list(5, &[]), error(), list(5, &[]), quiet()];
    let (reported, asked) = run(paged(), 8, script).await;
    // A server that lists but cannot watch is not called recovered.
    assert_eq!(reported, ["begin", "synced", "failing Some(500)", "begin", "synced", "begin", "synced", "recovered"]);
    assert!(asked[1].contains("resourceVersion=5") && asked[3].contains("resourceVersion=5"), "{asked:?}");
}

#[tokio::test]
async fn garbage_in_the_stream_leads_to_a_new_list() {
    let script = vec![
        list(5, &[]),
        Answer::Text(200, ("content-type", "application/json"), "{\"type\":\"ADDED\"\n"),
        list(6, &[object("a", 6)]),
        quiet(),
    ];
    let (reported, _) = run(paged(), 6, script).await;
    assert_eq!(reported, ["begin", "synced", "failing None", "begin", "listed a@6", "synced"]);
}

#[tokio::test]
async fn objects_without_a_name_and_unknown_events_are_skipped() {
    let script = vec![
        list(5, &[]),
        Answer::Watch(
            vec![
                event("ADDED", &serde_json::json!({"metadata": {}})),
                event("DANCED", &object("x", 6)),
                event("ADDED", &object("a", 7)),
            ],
            Then::Hold,
        ),
    ];
    let (reported, _) = run(paged(), 3, script).await;
    assert_eq!(reported, ["begin", "synced", "applied a@7"]);
}

/// A watch of a server from which so much is taken, with a script of so many pages or lines of about a kilobyte each.
async fn limited(most: usize, options: WatchOptions, count: usize, script: Vec<Answer>) -> (Vec<String>, Vec<String>) {
    let server = TestServer::start(script).await;
    let opened = server.server();
    opened.take_at_most(most);
    let mut stream = std::pin::pin!(watch(opened.client(), secrets(), options));
    let reported = events(&mut stream, count).await;
    (reported, server.lines())
}

#[tokio::test]
async fn a_list_without_end_is_given_up_whether_it_comes_in_pages_or_as_a_stream() {
    let pages = (0..10).map(|number| page(1, "more", &[object(&format!("a{number}"), 1)])).collect();
    let (reported, asked) = limited(3 * 64 * 1024, paged(), 6, pages).await;
    assert_eq!(reported[..5], ["begin", "listed a0@1", "listed a1@1", "listed a2@1", "begin"]);
    assert_eq!(reported[5], "failing TooLarge", "the server has said nothing wrong");
    assert_eq!(asked.len(), 4, "{asked:?}");

    let lines = (0..100).map(|number| event("ADDED", &object(&format!("a{number}"), 1))).collect();
    let line = event("ADDED", &object("a0", 1)).to_string().len() + 1;
    let (reported, _) = limited(3 * line, WatchOptions::default(), 6, vec![Answer::Watch(lines, Then::Hold)]).await;
    assert_eq!(reported, ["begin", "listed a0@1", "listed a1@1", "listed a2@1", "begin", "failing TooLarge"]);
}

#[tokio::test]
async fn a_watch_that_has_told_a_great_deal_lists_again() {
    let changes = (0..20).map(|number| event("MODIFIED", &object("a", 10 + number)));
    let lines = [event("ADDED", &object("a", 9)), end_of_list(10)].into_iter().chain(changes).collect();
    let again = vec![event("ADDED", &object("a", 40)), end_of_list(41)];
    let script = vec![Answer::Watch(lines, Then::Hold), Answer::Watch(again, Then::Hold)];
    let server = TestServer::start(script).await;
    let opened = server.server();
    opened.take_at_most(1000);
    let mut stream = std::pin::pin!(watch(opened.client(), secrets(), WatchOptions::default()));
    let mut reported = Vec::new();
    while reported.last().is_none_or(|last| last != "listed a@40") {
        reported.extend(events(&mut stream, 1).await);
    }
    assert!(!reported.iter().any(|reported| reported.contains("failing")), "{reported:?}");
    assert_eq!(reported.iter().filter(|reported| *reported == "begin").count(), 2, "{reported:?}");
}
