//! The execution log: what ran, for whom, and what came of it.
//!
//! Writing a record durably by itself costs far more than running a small tool. So records are written in groups, at most
//! 20 ms or 256 behind, and runs of one project that ended together share one stored *page*: a page costs the store what a
//! single record would. None is dropped: a call takes its place in the buffer before its tool runs, and waits, or is refused
//! with nothing started, while the buffer is full. A place is one of a number of records, and room for the bytes of one: a
//! run is cut down to its record before that waits, see `pending`. A reader first waits until everything entered before is written, so that
//! an answer's `log_id` can be looked up at once.
//!
//! A run may also leave a cassette, with which it can be run again: see `cassette`.

mod cassette;
mod page;
mod pending;
mod read;
mod retention;
pub mod usage;
mod write;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use sandbox::Outcome;
use store::{Store, Time};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::timeout,
};

pub(crate) use cassette::{CASSETTES, Kept};
pub use cassette::{Keep, cassette};
pub(crate) use page::{DETAILS, PAGES};
pub use page::{Detail, Executed, Line, Sent, Status};
pub use read::{Condition, Field, Filter, Operator, Part, get, list};
pub use retention::Retention;
pub(crate) use retention::{EVERY, retain};
pub use write::{GROUP_BYTES, Writer};

use cassette::Recorder;
use pending::Pending;

use crate::{
    Error, Result,
    catalog::{Release, Usage},
    clock::Clock,
    connections::Source,
    ids::{AccountId, AuthConfigId, LogId},
    projects::SharedProject,
    quotas::Quotas,
    tools::text::Tokens,
    vault::Vault,
};

/// Records that are written together at most.
const GROUP: usize = 256;
/// How long a call waits for a place in a full buffer.
const PLACE: Duration = Duration::from_secs(2);
/// Bytes of room that a run takes for its record, besides arguments and data, before it starts.
pub const RECORD: usize = 16 << 10;

/// A finished run, before it is cut down to what its record keeps.
pub(crate) struct Entry {
    pub id: LogId,
    pub project: SharedProject,
    pub tool: Arc<str>,
    pub release: Arc<Release>,
    pub user: String,
    pub account: Option<AccountId>,
    pub auth_config: Option<AuthConfigId>,
    pub source: Source,
    pub request_id: String,
    pub started_at: Time,
    pub ended_at: Time,
    pub arguments: Bytes,
    /// When a model made the arguments.
    pub tokens: Option<Tokens>,
    pub data: Bytes,
    pub error: Option<String>,
    pub outcome: Outcome,
    /// When it was recorded, and is to be kept.
    pub cassette: Option<Kept>,
}

enum Message {
    Entry(Box<Pending>, Option<oneshot::Sender<()>>),
    /// Answered when everything before it is written.
    Settle(oneshot::Sender<()>),
}

/// The way into the log.
pub struct Log {
    to: mpsc::Sender<Message>,
    bell: Arc<Bell>,
    wait: bool,
    /// Bytes that are free for records and cassettes that wait.
    room: Arc<Semaphore>,
    /// Bytes of it that a run takes before it starts.
    share: u32,
    payload: usize,
    pub(crate) recorder: Recorder,
    retention: Retention,
}

/// A place in the buffer.
pub(crate) struct Slot {
    permit: mpsc::OwnedPermit<Message>,
    room: OwnedSemaphorePermit,
    payload: usize,
    bell: Arc<Bell>,
    wait: bool,
}

/// Wakes the writer before its time: a group is full, or somebody waits. Without it every record would wake it.
#[derive(Default)]
struct Bell {
    entered: AtomicUsize,
    rung: Notify,
}

/// What the operator decides about the log.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// A call answers only when its record is durable.
    pub wait: bool,
    /// Records that may wait to be written.
    pub buffer: usize,
    /// Bytes of records and cassettes that may wait to be written.
    pub buffer_bytes: usize,
    /// Bytes kept of arguments and of data.
    pub payload: usize,
    /// Which runs leave a cassette.
    pub cassettes: Keep,
    /// Bytes of content that one holds at most.
    pub cassette: usize,
    /// What stays.
    pub retention: Retention,
}

pub(crate) fn open(
    settings: Settings,
    store: Store,
    vault: Arc<Vault>,
    clock: Clock,
    usage: Arc<Usage>,
    quotas: Arc<Quotas>,
) -> (Log, Writer) {
    let Settings { wait, buffer, buffer_bytes, payload, cassettes, cassette, retention } = settings;
    let (to, from) = mpsc::channel(buffer);
    let (bell, room) = (Arc::new(Bell::default()), Arc::new(Semaphore::new(buffer_bytes)));
    let recorder = Recorder::new(cassettes, cassette, room.clone());
    let share = u32::try_from((RECORD + 2 * payload).min(buffer_bytes)).unwrap_or(u32::MAX);
    let log = Log { to, bell: bell.clone(), wait, room, share, payload, recorder, retention };
    let counted = clock.now();
    (log, Writer { from, bell, store, vault, clock, usage, quotas, counted })
}

impl Log {
    /// Takes a place in the buffer, before anything is started.
    pub(crate) async fn reserve(&self) -> Result<Slot> {
        let taken = async {
            let room = self.room.clone().acquire_many_owned(self.share).await.map_err(|_| stopping())?;
            let permit = self.to.clone().reserve_owned().await.map_err(|_| stopping())?;
            Ok(Slot { permit, room, payload: self.payload, bell: self.bell.clone(), wait: self.wait })
        };
        let full = || Error::Unavailable("the execution log cannot keep up".into());
        timeout(PLACE, taken).await.unwrap_or_else(|_| Err(full()))
    }

    /// Waits until everything entered before is written.
    async fn settle(&self) -> Result<()> {
        let (done, written) = oneshot::channel();
        self.to.send(Message::Settle(done)).await.map_err(|_| stopping())?;
        self.bell.rung.notify_one();
        written.await.map_err(|_| stopping())
    }
}

impl Slot {
    /// Enters a record. False when the call was to wait for it and it could not be written.
    pub(crate) async fn enter(self, entry: Entry) -> bool {
        let (done, written) = if self.wait { Some(oneshot::channel()).unzip() } else { (None, None) };
        self.permit.send(Message::Entry(Box::new(Pending::new(entry, self.payload, self.room)), done));
        if self.bell.entered.fetch_add(1, Ordering::Relaxed) + 1 == GROUP || self.wait {
            self.bell.rung.notify_one();
        }
        match written {
            Some(written) => written.await.is_ok(),
            None => true,
        }
    }
}

fn stopping() -> Error {
    Error::Unavailable("the server is stopping".into())
}
