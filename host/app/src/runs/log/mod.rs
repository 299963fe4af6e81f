//! The execution log: a record of each execution, its user and its outcome.
//!
//! A separate durable write per record costs far more than the execution of a small tool. Records
//! are therefore written in groups, at most 20 ms late and at most 512 at a time. Executions of one
//! project that ended together share one stored *page*, which costs the store as much as a single
//! record. No record is dropped: a call reserves a slot in the buffer before its tool runs. While
//! the buffer is full, the call waits, or is refused before anything starts. A slot is one of a
//! limited number of records, with capacity for the bytes of one record. An execution is cut down
//! to its record before it waits, see `pending`. A reader first waits until all earlier entries are
//! written, so that the `log_id` of a response can be looked up immediately.
//!
//! An execution may also leave a cassette, with which it can be replayed, see `cassette`.

mod cassette;
mod filter;
mod page;
mod paging;
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
use sandbox::{LogLine, RequestRecord, Usage as RunUsage};
use store::{Store, Time};
use tokio::{
    sync::{Mutex, Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::timeout,
};

pub use cassette::CassettePolicy;
pub(crate) use cassette::{CASSETTES_COLLECTION, PendingCassette};
pub use filter::{Condition, Field, Filter, Operator};
pub(crate) use page::{DETAILS_COLLECTION, PAGES_COLLECTION};
pub use page::{Detail, ExecutionRecord, Line, SentRequest, Status};
pub use read::{ListPart, cassette, get, list};
pub(crate) use retention::{RETENTION_INTERVAL, erase_old};
pub use sandbox::cassette::Cassette;
pub use write::{MAX_GROUP_BYTES, Writer};

use cassette::Recorder;
use pending::Pending;

use crate::{
    Error, Result,
    accounts::Source,
    catalog::{Release, Usage},
    core::{
        clock::Clock,
        ids::{AccountId, AuthConfigId, LogId, SessionId},
        request_id::RequestId,
        trace::TraceId,
        vault::Vault,
    },
    projects::{SharedProject, quotas::Quotas},
    runs::{errors, prompt::Tokens},
};

/// Maximum number of records that are written together.
const MAX_GROUP_RECORDS: usize = 512;
/// Time for which a call waits for a slot in a full buffer.
const SLOT_TIMEOUT: Duration = Duration::from_secs(2);
/// Multiple of the daily quota of a project at which it runs no further tools. From the quota on,
/// records have neither arguments nor result.
pub const MAX_QUOTA_MULTIPLE: u64 = 2;
/// Capacity that an execution reserves for its record in addition to arguments and data, in bytes.
pub const RECORD_OVERHEAD_BYTES: usize = 16 << 10;

/// The facts of a run that are known when it starts.
pub(crate) struct Subject {
    pub project: SharedProject,
    /// The slug of the tool.
    pub tool: Arc<str>,
    /// The release of the toolkit, or `None` for a tool of the host itself.
    pub release: Option<Arc<Release>>,
    pub user: String,
    pub account: Option<AccountId>,
    pub auth_config: Option<AuthConfigId>,
    pub source: Source,
    /// The tool router session in which the tool ran.
    pub session: Option<SessionId>,
    pub request_id: RequestId,
    pub arguments: Bytes,
    /// The tokens used, if a language model made the arguments. They take no memory otherwise.
    pub tokens: Option<Box<Tokens>>,
}

/// The observations of the sandbox during a run.
#[derive(Default)]
pub(crate) struct Observed {
    pub requests: Vec<RequestRecord>,
    pub log: Vec<LogLine>,
    pub usage: RunUsage,
}

/// A run that has ended, before it is cut down to the data that its record keeps.
pub(crate) struct Entry {
    pub id: LogId,
    pub subject: Subject,
    pub started_at: Time,
    pub ended_at: Time,
    pub data: Bytes,
    pub error: Option<String>,
    pub observed: Observed,
    /// The trace, if the run was traced.
    pub trace: Option<TraceId>,
    /// The cassette, if the run was recorded and the cassette is to be kept.
    pub cassette: Option<PendingCassette>,
}

enum Message {
    Entry(Box<Pending>, Option<oneshot::Sender<()>>),
    /// A request for a notification when all earlier entries are written.
    Flush(oneshot::Sender<()>),
}

/// The execution log, as used by callers and readers.
pub struct Log {
    sender: mpsc::Sender<Message>,
    flush_signal: Arc<FlushSignal>,
    wait_until_durable: bool,
    /// The bytes of the buffer that are free for waiting records and cassettes.
    buffer_room: Arc<Semaphore>,
    /// The bytes of the buffer that an execution reserves before it starts.
    reserved_bytes: u32,
    max_payload_bytes: usize,
    pub(crate) recorder: Recorder,
    /// Time after which records are erased; `None` if they are kept forever.
    retention: Option<Duration>,
}

/// A reserved slot in the buffer.
pub(crate) struct Slot {
    permit: mpsc::OwnedPermit<Message>,
    buffer_room: OwnedSemaphorePermit,
}

/// A signal that wakes the writer early, because a group is full or a caller waits. Without it,
/// every record would wake the writer.
#[derive(Default)]
struct FlushSignal {
    submitted: AtomicUsize,
    notify: Notify,
}

/// The operator's settings of the log.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// True if a call responds only after its record is durable.
    pub wait_until_durable: bool,
    /// Maximum number of records that wait to be written.
    pub max_waiting_records: usize,
    /// Maximum size of the records and cassettes that wait to be written, in bytes.
    pub max_waiting_bytes: usize,
    /// Maximum size of the stored arguments and of the stored data, in bytes.
    pub max_payload_bytes: usize,
    /// The executions that leave a cassette.
    pub cassettes: CassettePolicy,
    /// Maximum size of the content of a cassette, in bytes.
    pub max_cassette_bytes: usize,
    /// Time after its end at which a record is erased; `None` if records are kept forever.
    pub retention: Option<Duration>,
}

pub(crate) fn open(
    settings: Settings,
    store: Store,
    vault: Arc<Vault>,
    clock: Clock,
    usage: Arc<Usage>,
    quotas: Arc<Quotas>,
) -> (Log, Writer) {
    let (sender, receiver) = mpsc::channel(settings.max_waiting_records);
    let flush_signal = Arc::new(FlushSignal::default());
    let buffer_room = Arc::new(Semaphore::new(settings.max_waiting_bytes));
    let record_bytes = RECORD_OVERHEAD_BYTES + 2 * settings.max_payload_bytes;
    let reserved_bytes = record_bytes.min(settings.max_waiting_bytes);
    let log = Log {
        sender,
        flush_signal: flush_signal.clone(),
        wait_until_durable: settings.wait_until_durable,
        recorder: Recorder::new(
            settings.cassettes,
            settings.max_cassette_bytes,
            buffer_room.clone(),
        ),
        buffer_room,
        reserved_bytes: u32::try_from(reserved_bytes).unwrap_or(u32::MAX),
        max_payload_bytes: settings.max_payload_bytes,
        retention: settings.retention,
    };
    let writer = Writer {
        receiver,
        flush_signal,
        counts_saved_at: clock.now(),
        store,
        vault,
        clock,
        usage,
        quotas,
        sealing: Mutex::default(),
    };
    (log, writer)
}

impl Log {
    /// Reserves a slot in the buffer, before the execution starts.
    pub(crate) async fn reserve(&self) -> Result<Slot> {
        if let Some(slot) = self.try_reserve() {
            return Ok(slot);
        }
        let reserved = async {
            let buffer_room = self
                .buffer_room
                .clone()
                .acquire_many_owned(self.reserved_bytes)
                .await
                .map_err(|_| stopping())?;
            let permit = self
                .sender
                .clone()
                .reserve_owned()
                .await
                .map_err(|_| stopping())?;
            Ok(Slot {
                permit,
                buffer_room,
            })
        };
        Box::pin(timeout(SLOT_TIMEOUT, reserved))
            .await
            .unwrap_or_else(|_| Err(errors::unavailable("the execution log cannot keep up")))
    }

    /// Reserves a slot if the buffer has capacity and no call waits for it.
    fn try_reserve(&self) -> Option<Slot> {
        let buffer_room = self.buffer_room.clone();
        let buffer_room = buffer_room
            .try_acquire_many_owned(self.reserved_bytes)
            .ok()?;
        let permit = self.sender.clone().try_reserve_owned().ok()?;
        Some(Slot {
            permit,
            buffer_room,
        })
    }

    /// Enters a record. Returns a signal for its durability if the settings require the call to wait
    /// for it.
    pub(crate) fn enter(&self, slot: Slot, entry: Entry) -> Option<oneshot::Receiver<()>> {
        let (done, written) = if self.wait_until_durable {
            Some(oneshot::channel()).unzip()
        } else {
            (None, None)
        };
        let pending = Pending::new(entry, self.max_payload_bytes, slot.buffer_room);
        slot.permit.send(Message::Entry(pending, done));
        if self.flush_signal.submitted.fetch_add(1, Ordering::Relaxed) + 1 == MAX_GROUP_RECORDS
            || self.wait_until_durable
        {
            self.flush_signal.notify.notify_one();
        }
        written
    }

    /// Returns the number of slots of the buffer in use, by running executions and by records that
    /// wait to be written.
    pub(crate) fn used_slots(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    /// Waits until all earlier entries are written.
    async fn wait_until_written(&self) -> Result<()> {
        let (done, written) = oneshot::channel();
        self.sender
            .send(Message::Flush(done))
            .await
            .map_err(|_| stopping())?;
        self.flush_signal.notify.notify_one();
        written.await.map_err(|_| stopping())
    }
}

fn stopping() -> Error {
    errors::unavailable("the server is stopping")
}
