//! Checks the toolkit against Google's own description of its API: Google must accept every request
//! of the cases, and the toolkit must read every response that Google may send.

use std::path::Path;

use discovery::{Document, Given, all, invented, refused, unread};

fn cases() -> Vec<Given> {
    all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases"))
}

#[test]
fn every_request_is_one_that_google_takes() {
    let problems = refused(&Document::get("calendar.v3"), &cases());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn answers_in_cases_are_ones_that_google_gives() {
    let problems = invented(&Document::get("calendar.v3"), &cases());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn an_answer_with_everything_in_it_is_read() {
    let problems = unread(
        &Document::get("calendar.v3"),
        &cases(),
        &googlecalendar::TOOLKIT,
    );
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
