//! The execution log: a record of each execution, its user and its outcome.
//!
//! A separate durable write per record costs far more than the execution of a small tool. Records
//! are therefore written in groups, at most 20 ms late and at most 256 at a time. Executions of one
//! project that ended together share one stored *page*, which costs the store as much as a single
//! record. No record is dropped: a call reserves a slot in the buffer before its tool runs. While
//! the buffer is full, the call waits, or is refused before anything starts. A slot is one of a
//! number of records, and room for the bytes of one record. An execution is cut down to its record
//! before it waits, see `pending`. A reader first waits until all earlier entries are written, so
//! that the `log_id` of a response can be looked up at once.
//!
//! An execution may also leave a cassette, with which it can be replayed, see `cassette`.

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

/// Maximum number of records that are written together.
const GROUP: usize = 256;
/// Time for which a call waits for a slot in a full buffer.
const PLACE: Duration = Duration::from_secs(2);
/// Room that an execution reserves for its record in addition to arguments and data, in bytes.
pub const RECORD: usize = 16 << 10;

/// A finished execution, before it is cut down to the data that its record keeps.
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
    /// The tokens used, if a language model made the arguments.
    pub tokens: Option<Tokens>,
    pub data: Bytes,
    pub error: Option<String>,
    pub outcome: Outcome,
    /// The cassette, if the execution was recorded and the cassette is to be kept.
    pub cassette: Option<Kept>,
}

enum Message {
    Entry(Box<Pending>, Option<oneshot::Sender<()>>),
    /// A request for a notification when all earlier entries are written.
    Settle(oneshot::Sender<()>),
}

/// The execution log, as used by callers and readers.
pub struct Log {
    to: mpsc::Sender<Message>,
    bell: Arc<Bell>,
    wait: bool,
    /// The bytes of the buffer that are free for waiting records and cassettes.
    room: Arc<Semaphore>,
    /// The bytes of the buffer that an execution reserves before it starts.
    share: u32,
    payload: usize,
    pub(crate) recorder: Recorder,
    retention: Retention,
}

/// A reserved slot in the buffer.
pub(crate) struct Slot {
    permit: mpsc::OwnedPermit<Message>,
    room: OwnedSemaphorePermit,
    payload: usize,
    bell: Arc<Bell>,
    wait: bool,
}

/// A signal that wakes the writer early, because a group is full or a caller waits. Without it,
/// every record would wake the writer.
#[derive(Default)]
struct Bell {
    entered: AtomicUsize,
    rung: Notify,
}

/// The operator's settings of the log.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// True if a call responds only after its record is durable.
    pub wait: bool,
    /// Maximum number of records that wait to be written.
    pub buffer: usize,
    /// Maximum size of the records and cassettes that wait to be written, in bytes.
    pub buffer_bytes: usize,
    /// Maximum size of the stored arguments and of the stored data, in bytes.
    pub payload: usize,
    /// The executions that leave a cassette.
    pub cassettes: Keep,
    /// Maximum size of the content of a cassette, in bytes.
    pub cassette: usize,
    /// The retention of records.
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
    let Settings {
        wait,
        buffer,
        buffer_bytes,
        payload,
        cassettes,
        cassette,
        retention,
    } = settings;
    let (to, from) = mpsc::channel(buffer);
    let (bell, room) = (
        Arc::new(Bell::default()),
        Arc::new(Semaphore::new(buffer_bytes)),
    );
    let recorder = Recorder::new(cassettes, cassette, room.clone());
    let share = u32::try_from((RECORD + 2 * payload).min(buffer_bytes)).unwrap_or(u32::MAX);
    let log = Log {
        to,
        bell: bell.clone(),
        wait,
        room,
        share,
        payload,
        recorder,
        retention,
    };
    let counted = clock.now();
    (
        log,
        Writer {
            from,
            bell,
            store,
            vault,
            clock,
            usage,
            quotas,
            counted,
        },
    )
}

impl Log {
    /// Reserves a slot in the buffer, before the execution starts.
    pub(crate) async fn reserve(&self) -> Result<Slot> {
        let taken = async {
            let room = self
                .room
                .clone()
                .acquire_many_owned(self.share)
                .await
                .map_err(|_| stopping())?;
            let permit = self
                .to
                .clone()
                .reserve_owned()
                .await
                .map_err(|_| stopping())?;
            Ok(Slot {
                permit,
                room,
                payload: self.payload,
                bell: self.bell.clone(),
                wait: self.wait,
            })
        };
        let full = || Error::Unavailable("the execution log cannot keep up".into());
        timeout(PLACE, taken).await.unwrap_or_else(|_| Err(full()))
    }

    /// Waits until all earlier entries are written.
    async fn settle(&self) -> Result<()> {
        let (done, written) = oneshot::channel();
        self.to
            .send(Message::Settle(done))
            .await
            .map_err(|_| stopping())?;
        self.bell.rung.notify_one();
        written.await.map_err(|_| stopping())
    }
}

impl Slot {
    /// Enters a record. Returns false if the settings require the call to wait for the record and
    /// the record could not be written.
    pub(crate) async fn enter(self, entry: Entry) -> bool {
        let (done, written) = if self.wait {
            Some(oneshot::channel()).unzip()
        } else {
            (None, None)
        };
        self.permit.send(Message::Entry(
            Box::new(Pending::new(entry, self.payload, self.room)),
            done,
        ));
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
