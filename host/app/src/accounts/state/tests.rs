//! Tests of `state`.

use super::*;

/// Every event in every status. The columns have the order of [`Status::VARIANTS`]; `-` marks an
/// event that cannot happen.
#[test]
fn status_changes_follow_the_table() {
    let table = [
        (
            Event::Redirected,
            "INITIATED INITIATED ACTIVE INACTIVE - - -",
        ),
        (
            Event::Authorized,
            "ACTIVE ACTIVE ACTIVE INACTIVE - ACTIVE -",
        ),
        (
            Event::Filled,
            "ACTIVE ACTIVE ACTIVE INACTIVE ACTIVE ACTIVE ACTIVE",
        ),
        (
            Event::AttemptFailed,
            "FAILED FAILED ACTIVE INACTIVE - FAILED -",
        ),
        (Event::TimedOut, "EXPIRED EXPIRED - - - - -"),
        (Event::RefreshFailed, "- - EXPIRED EXPIRED - - -"),
        (Event::CredentialRejected, "- - FAILED FAILED - - -"),
        (Event::Enabled, "- - ACTIVE ACTIVE - - -"),
        (Event::Disabled, "- - INACTIVE INACTIVE - - -"),
        (
            Event::ReconnectRequested,
            "INITIATED INITIATED ACTIVE INITIATED INITIATED INITIATED INITIATED",
        ),
        (Event::Revoked, "- - REVOKED REVOKED - REVOKED REVOKED"),
    ];
    for (event, row) in table {
        let found: Vec<&str> = Status::VARIANTS
            .iter()
            .map(|status| status.after(event).map_or("-", <&str>::from))
            .collect();
        assert_eq!(found.join(" "), row, "{event:?}");
    }
}
