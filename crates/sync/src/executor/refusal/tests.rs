//! The whole table, cell by cell, and which answer is which refusal.

use carrick_client::{Error, Status, StatusDetails};

use super::*;

/// One letter for what follows: Done, re(O)bserve, await (K)ind, await (R)ight, retr(Y), (G)ive up; and who gets to know: nobody (-), provider (p), both (b).
/// A star stands for another way that is tried first. Consumer's side, then provider's.
const TABLE: [(Refusal, [&str; 6]); 14] = [
    //                          read      create    change    status    delete    let go
    (Refusal::Unauthenticated, ["Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp"]),
    (Refusal::LacksRight, ["Rb Rp", "Rp* Rp*", "Rp* Rp*", "Rp Rp", "Rp* Rp*", "Gb Gb"]),
    (Refusal::Denied, ["Rb Rp", "Yb* Yb*", "Yb* Yb*", "Yp Yp", "Yp* Yp*", "Gb Gb"]),
    (Refusal::NoObject, ["D- D-", "Yp* Yp*", "O- O-", "O- O-", "D- D-", "D- D-"]),
    (Refusal::NoKind, ["Kb* Kb*", "Kp* Kp*", "Kp Kp", "Kp Kp", "D- D-", "D- D-"]),
    (Refusal::Conflict, ["Yp Yp", "O- O-", "O- O-", "O- O-", "O- O-", "O- O-"]),
    (Refusal::Exists, ["Yp Yp", "O-* O-*", "O- O-", "O- O-", "O- O-", "O- O-"]),
    (Refusal::Expired, ["Y-* Y-*", "Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp"]),
    (Refusal::TooLarge, ["Yp Yp", "Yp Yp", "Yp* Yp*", "Yp Yp", "Yp Yp", "Yp Yp"]),
    (Refusal::Invalid, ["Yp Yp", "Yb Yb", "Yb* Yb*", "Gb Gb", "Yp Yp", "Yp Yp"]),
    (Refusal::Throttled, ["Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp"]),
    (Refusal::Unavailable, ["Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp"]),
    (Refusal::Unreachable, ["Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp"]),
    (Refusal::Unusable, ["Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp", "Yp Yp"]),
];

fn letters(ruling: Ruling) -> String {
    let then = match ruling.then {
        Then::Done => 'D',
        Then::Reobserve => 'O',
        Then::AwaitKind => 'K',
        Then::AwaitRight => 'R',
        Then::Retry => 'Y',
        Then::GiveUp => 'G',
    };
    let inform = match ruling.inform {
        Inform::Nobody => '-',
        Inform::Provider => 'p',
        Inform::Consumer => 'b',
    };
    let star = if ruling.fallback.is_some() { "*" } else { "" };
    format!("{then}{inform}{star}")
}

#[test]
fn every_cell_of_the_table_is_as_written_down_here() {
    assert_eq!(TABLE.map(|(refusal, _)| refusal), Refusal::ALL);
    for (refusal, cells) in TABLE {
        for (access, cell) in Access::ALL.into_iter().zip(cells) {
            let found = [Role::Consumer, Role::Provider].map(|side| letters(ruling(refusal, access, side)));
            assert_eq!(found.join(" "), cell, "{refusal:?} on {access:?}");
        }
    }
}

#[test]
fn what_is_given_up_or_denied_is_never_silent_and_what_is_settled_always_is() {
    for (refusal, access, side) in cells() {
        let Ruling { then, inform, fallback } = ruling(refusal, access, side);
        let at = format!("{refusal:?} on {access:?} at {side:?}");
        assert_eq!(
            inform == Inform::Nobody,
            matches!(then, Then::Done | Then::Reobserve) || fallback == Some(Fallback::ListAgain),
            "{at}"
        );
        assert!(then != Then::GiveUp || inform == Inform::Consumer, "{at}");
    }
}

#[test]
fn only_what_the_server_says_about_itself_is_the_same_whatever_was_attempted() {
    for refusal in [Refusal::Throttled, Refusal::Unavailable, Refusal::Unreachable, Refusal::Unauthenticated] {
        let mut rulings = cells().filter(|(it, ..)| *it == refusal).map(|(it, access, side)| ruling(it, access, side));
        assert!(rulings.all(|it| it == Ruling { fallback: None, then: Then::Retry, inform: Inform::Provider }));
    }
}

fn cells() -> impl Iterator<Item = (Refusal, Access, Role)> {
    let sides = [Role::Consumer, Role::Provider];
    let rows = Refusal::ALL.into_iter().flat_map(|refusal| Access::ALL.map(|access| (refusal, access)));
    rows.flat_map(move |(refusal, access)| sides.map(|side| (refusal, access, side)))
}

fn answered(code: u16, reason: &str, message: &str, name: &str) -> Error {
    let details = StatusDetails { name: name.to_owned(), ..StatusDetails::default() };
    let (reason, message, details) = (reason.to_owned(), message.to_owned(), Some(Box::new(details)));
    Status { code, reason, message, details, ..Status::default() }.into()
}

#[test]
fn answers_are_known_by_code_reason_and_name_and_only_a_missing_right_by_its_words() {
    let right = "widgets is forbidden: User \"u\" cannot list resource \"widgets\" in API group \"g\"";
    for (error, refusal) in [
        (answered(401, "Unauthorized", "", ""), Refusal::Unauthenticated),
        (answered(403, "Forbidden", right, ""), Refusal::LacksRight),
        (answered(403, "Forbidden", "exceeded quota: q", ""), Refusal::Denied),
        (answered(404, "NotFound", "widgets \"a\" not found", "a"), Refusal::NoObject),
        (answered(404, "NotFound", "the server could not find the requested resource", ""), Refusal::NoKind),
        (Status { code: 404, ..Status::default() }.into(), Refusal::NoKind),
        (answered(409, "Conflict", "", "a"), Refusal::Conflict),
        (answered(409, "AlreadyExists", "", "a"), Refusal::Exists),
        (answered(410, "Expired", "", ""), Refusal::Expired),
        (answered(413, "RequestEntityTooLarge", "", ""), Refusal::TooLarge),
        (answered(422, "Invalid", right, "a"), Refusal::Invalid),
        (answered(429, "TooManyRequests", "", ""), Refusal::Throttled),
        (answered(500, "InternalError", right, ""), Refusal::Unavailable),
        (answered(503, "ServiceUnavailable", "", ""), Refusal::Unavailable),
        (answered(400, "BadRequest", "", ""), Refusal::Unusable),
        (answered(501, "", "", ""), Refusal::Unusable),
        (Error::Transport { request: "GET /".into(), problem: "reset".into() }, Refusal::Unreachable),
        (Error::Decode { request: "GET /".into(), problem: "no JSON".into() }, Refusal::Unusable),
        (Error::Request { request: "GET /".into(), problem: "no URL".into() }, Refusal::Unusable),
    ] {
        assert_eq!(Refusal::of(&error), refusal, "{error}");
    }
}

#[test]
fn who_comes_too_late_has_nothing_to_do_and_a_kind_that_is_not_served_is_no_such_thing() {
    let gone = answered(404, "NotFound", "", "a");
    let unserved = answered(404, "NotFound", "", "");
    assert!(
        is_settled(&gone, Access::Delete) && is_settled(&gone, Access::Change) && !is_settled(&gone, Access::Create)
    );
    assert!(is_settled(&unserved, Access::LetGo) && !is_settled(&unserved, Access::Change));
    assert!(is_unserved(&unserved) && !is_unserved(&gone));
}
