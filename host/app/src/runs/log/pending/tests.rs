//! Tests of `pending`.

use sandbox::Level;
use tokio::sync::Semaphore;

use super::*;
use crate::{
    accounts::Source,
    catalog::Release,
    core::ids::{OrganizationId, ProjectId, Sequence},
    projects::{Config, Project, SharedProject, StoredProject},
    runs::log::Observed,
};

const PAYLOAD_BYTES: usize = 1 << 10;

fn project(log_visibility: LogVisibility) -> SharedProject {
    let id = ProjectId::random();
    let stored = StoredProject {
        name: "p".into(),
        number: 1,
        uuid: uuid::Uuid::nil(),
        config: Config {
            log_visibility,
            ..Config::default()
        },
    };
    Arc::new(Project {
        tenant: id.as_str().into(),
        id,
        organization: OrganizationId::random(),
        stored,
        created_at: Time(0),
        updated_at: Time(0),
    })
}

/// Returns an execution with a MiB of arguments, of which the record keeps only a note, and
/// with this many log lines.
pub(in crate::runs::log) fn entry(log_visibility: LogVisibility, lines: usize) -> Entry {
    let line = LogLine {
        level: Level::Info,
        at: Duration::ZERO,
        message: "x".repeat(100),
    };
    let subject = Subject {
        project: project(log_visibility),
        tool: "ACME_RUN".into(),
        release: Some(Arc::new(Release::for_test(&serde_json::json!([])))),
        user: "default".into(),
        account: None,
        auth_config: None,
        source: Source::NoAuth,
        session: None,
        request_id: "req_1".into(),
        arguments: format!("\"{}\"", "x".repeat(1 << 20)).into(),
        tokens: None,
    };
    Entry {
        id: Sequence::new().log(Time(1)),
        subject,
        started_at: Time(1),
        ended_at: Time(2),
        data: Bytes::from_static(b"{\"a\":1}"),
        error: Some("broken: m".into()),
        observed: Observed {
            log: vec![line; lines],
            ..Observed::default()
        },
        trace: None,
        cassette: None,
    }
}

/// Returns the record of an execution that has reserved `taken` of `room` bytes, and the bytes that
/// are free afterwards.
pub(in crate::runs::log) fn pending(
    entry: Entry,
    taken: u32,
    room: usize,
) -> (Box<Pending>, usize) {
    let room = Arc::new(Semaphore::new(room));
    let taken = room.clone().try_acquire_many_owned(taken).unwrap();
    let pending = Pending::new(entry, PAYLOAD_BYTES, taken);
    let free = room.available_permits();
    (pending, free)
}

#[test]
fn only_what_the_record_keeps_waits() {
    let (pending, free) = pending(entry(LogVisibility::ShowAll, 1), 8_000, 8_000);
    assert!(pending.size < 2 * PAYLOAD_BYTES, "{}", pending.size);
    assert_eq!(free, 8_000 - pending.size, "the rest of the room is free");
    let detail = pending.detail.as_ref().unwrap();
    assert_eq!(detail.arguments.0, r#"{"omitted":true,"bytes":1048578}"#);
    assert_eq!((&*detail.data.0, detail.log.len()), (&br#"{"a":1}"#[..], 1));
    let record = pending.record();
    assert_eq!(record.status, Status::Failed);
    assert_eq!(record.failure, Some("broken"));
}

#[test]
fn projects_without_data_have_none_that_waits() {
    let (pending, free) = pending(entry(LogVisibility::DontStoreData, 100), 8_000, 8_000);
    assert!(
        pending.detail.is_none() && pending.size < 2 * PAYLOAD_BYTES,
        "{}",
        pending.size
    );
    assert_eq!(free, 8_000 - pending.size);
}

#[test]
fn long_trace_takes_room_or_is_omitted() {
    let (kept, free) = pending(entry(LogVisibility::ShowAll, 100), 8_000, 80_000);
    assert_eq!(
        (kept.detail.as_ref().unwrap().log.len(), free),
        (100, 80_000 - kept.size)
    );
    let (cut, free) = pending(entry(LogVisibility::ShowAll, 100), 8_000, 9_000);
    assert_eq!(
        (&*cut.detail.as_ref().unwrap().log[0].message, free),
        (NO_ROOM_NOTE, 1_000)
    );
    assert!(cut.size < 8_000, "{}", cut.size);
}
