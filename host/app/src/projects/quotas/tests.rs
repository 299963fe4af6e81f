//! Tests of `quotas`.

use super::*;
use crate::COLLECTIONS;

fn limited_settings() -> Settings {
    Settings {
        log: Some(100),
        events: Some(100),
        ..Settings::default()
    }
}

fn limited() -> Quotas {
    Quotas {
        settings: limited_settings(),
        ..Quotas::default()
    }
}

#[test]
fn a_quota_is_of_one_owner_and_kind() {
    let quotas = limited();
    assert!(quotas.take(Kind::Log, "a", 60, Time(0)));
    assert!(!quotas.take(Kind::Log, "a", 41, Time(0)));
    assert!(quotas.take(Kind::Log, "a", 40, Time(0)));
    assert!(quotas.take(Kind::Log, "b", 100, Time(0)));
    assert!(
        quotas.take(Kind::Responses, "a", 1_000, Time(0)),
        "there is no limit"
    );
}

#[test]
fn bytes_past_a_quota_are_counted_if_asked() {
    let quotas = limited();
    quotas.count(Kind::Events, "a", 150, Time(0));
    assert!(!quotas.take(Kind::Events, "a", 1, Time(0)));
    assert!(quotas.take(Kind::Events, "b", 100, Time(0)));
    assert!(quotas.take(Kind::Log, "a", 100, Time(0)));
}

#[test]
fn stored_names_of_kinds_are_kept() {
    let stored = r#"{"log":{"a":{"0":1}},"answers":{"a":{"0":2}}}"#;
    let mut amounts: Amounts = serde_json::from_str(stored).unwrap();
    amounts.add(Kind::Events, "a", 0, 3);
    let sums = Kind::VARIANTS.iter().map(|kind| amounts.sum(*kind, "a", 0));
    assert_eq!(
        sums.collect::<Vec<_>>(),
        [1, 2, 3, 0, 0],
        "an earlier version has written the first two"
    );
    let written = serde_json::to_string(&amounts).unwrap();
    let added = stored.replace(
        "}}}",
        r#"}},"events":{"a":{"0":3}},"runs":{},"records":{}}"#,
    );
    assert_eq!(written, added);
}

#[test]
fn a_quota_is_free_again_after_a_day() {
    let quotas = limited();
    assert!(quotas.take(Kind::Log, "a", 100, Time(0)));
    assert!(!quotas.take(Kind::Log, "a", 1, Time(24 * 3_600_000)));
    assert!(quotas.take(Kind::Log, "a", 100, Time(28 * 3_600_000)));
}

#[tokio::test]
async fn servers_and_starts_share_one_quota() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), COLLECTIONS).unwrap();
    let open = async || Quotas::open(limited_settings(), &store).await.unwrap();
    let (one, other) = (open().await, open().await);
    assert!(one.take(Kind::Log, "a", 50, Time(0)) && other.take(Kind::Log, "a", 40, Time(0)));
    for server in [&one, &other, &one] {
        server.save(&store, Time(0)).await;
    }
    for server in [&one, &other, &open().await] {
        assert!(
            !server.take(Kind::Log, "a", 11, Time(0)),
            "90 of 100 are taken"
        );
    }
    assert!(one.take(Kind::Log, "a", 10, Time(0)));
    one.save(&store, Time(48 * 3_600_000)).await;
    let record = store
        .get::<Amounts>(INSTALLATION_PROJECT, RECORD_ID)
        .await
        .unwrap()
        .unwrap();
    assert!(
        record.body.is_empty(),
        "what does not count any more is forgotten"
    );
}

#[test]
fn grants_are_used_up_one_by_one() {
    let (quotas, project) = (Quotas::default(), ProjectId::random());
    let use_grant = |kind| quotas.use_grant(&project, kind);
    assert!(!use_grant(RecordKind::Session));
    quotas.grant(&project, RecordKind::Session, 2);
    quotas.grant(&project, RecordKind::Account, 0);
    let kinds = [
        RecordKind::Account,
        RecordKind::Session,
        RecordKind::Session,
        RecordKind::Session,
    ];
    assert_eq!(kinds.map(use_grant), [false, true, true, false]);
}
