//! Free ports.

use std::net::{Ipv4Addr, TcpListener};

use carrick_e2e_stage::ports::{free, row};

#[test]
fn nobody_gets_what_another_has() {
    let [first, second] = free().unwrap();
    let held = TcpListener::bind((Ipv4Addr::LOCALHOST, second)).unwrap();
    let [third] = free().unwrap();
    assert!(first != second && first != third && second != third);
    drop(held);
}

#[test]
fn a_row_is_free_as_a_whole() {
    let first = row(4).unwrap();
    let held = TcpListener::bind((Ipv4Addr::LOCALHOST, first + 3)).unwrap();
    let next = row(4).unwrap();
    assert!(next > first + 3 || next + 3 < first, "{first} {next}");
    drop(held);
}
