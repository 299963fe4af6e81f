//! Executions that wait to be written. They are cut down to the data that their records keep, so
//! that nothing larger waits.
//!
//! A pending record reserves bytes of the buffer until it is written. An execution reserves bytes
//! for arguments, data and an error before it starts, and releases the unused part here. If the log
//! lines and requests of a tool need more, they take free bytes, and are left out otherwise.

use std::{mem, sync::Arc, time::Duration};

use bytes::Bytes;
use sandbox::{LogLine, RequestRecord, Usage};
use store::Time;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    Entry, PendingCassette, Subject,
    page::{Detail, ExecutionRecord, Line, SLOW_RUN_MS, SentRequest, Status},
};
use crate::{
    catalog::BASE,
    core::{
        ids::{LogId, ProjectId},
        json::RawJson,
        trace::TraceId,
    },
    projects::LogVisibility,
};

/// Toolkit of the tools of the host, with the default operator word.
const HOST_TOOLKIT: &str = "service";
/// Log line of a record without capacity for the lines and requests of the tool.
const NO_ROOM_NOTE: &str = "lines and requests are omitted: too many records wait to be written";

/// A record that waits to be written.
pub(super) struct Pending {
    pub(super) id: LogId,
    /// The facts of the run, without its arguments.
    pub(super) subject: Subject,
    pub(super) ended_at: Time,
    /// The details, or `None` for projects that store no data.
    pub(super) detail: Option<Detail<RawJson>>,
    /// The size in memory, in bytes, which is about the size when written.
    pub(super) size: usize,
    pub(super) cassette: Option<PendingCassette>,
    trace: Option<TraceId>,
    started_at: Time,
    failure: Option<String>,
    usage: Usage,
    requests: usize,
    room: OwnedSemaphorePermit,
}

impl Pending {
    /// Cuts a run down to its record, with at most `payload` bytes of arguments and of data
    /// each.
    pub(super) fn new(entry: Entry, payload: usize, room: OwnedSemaphorePermit) -> Box<Self> {
        let mut subject = entry.subject;
        let arguments = mem::take(&mut subject.arguments);
        let error = entry.error.as_deref();
        let failure = error.map(|error| error.split(':').next().unwrap_or_default().to_owned());
        let visibility = subject.project.stored.config.log_visibility;
        let mut pending = Box::new(Self {
            size: 0,
            requests: entry.observed.requests.len(),
            detail: (visibility != LogVisibility::DontStoreData).then(|| Detail {
                arguments: truncate_json(&arguments, payload),
                data: truncate_json(&entry.data, payload),
                error: entry.error,
                log: entry.observed.log.into_iter().map(Line::from).collect(),
                requests: entry
                    .observed
                    .requests
                    .into_iter()
                    .map(SentRequest::from)
                    .collect(),
            }),
            id: entry.id,
            subject,
            ended_at: entry.ended_at,
            cassette: entry.cassette,
            trace: entry.trace,
            started_at: entry.started_at,
            failure,
            usage: entry.observed.usage,
            room,
        });
        pending.fit_room();
        pending
    }

    /// Computes the size and adjusts the reservation to it. Releases unused bytes, or takes more if
    /// they are free. Otherwise keeps the reservation and leaves out lines and requests.
    fn fit_room(&mut self) {
        self.size = self.memory();
        let taken = self.room.num_permits();
        if self.size <= taken {
            drop(self.room.split(taken - self.size));
            return;
        }
        let missing = u32::try_from(self.size - taken).unwrap_or(u32::MAX);
        let buffer_room = self.room.semaphore().clone();
        match buffer_room.try_acquire_many_owned(missing) {
            Ok(more) => self.room.merge(more),
            Err(_) => {
                let detail = self.detail.iter_mut();
                detail.for_each(|detail| detail.leave_out_trace(NO_ROOM_NOTE));
                self.size = self.memory();
            }
        }
    }

    /// Returns the size in memory, in bytes.
    fn memory(&self) -> usize {
        let detail = self.detail.as_ref().map_or(0, Detail::size);
        let Subject {
            user, request_id, ..
        } = &self.subject;
        mem::size_of::<Self>() + user.len() + request_id.len() + detail
    }

    /// Returns the execution as it is stored.
    pub(super) fn record(&self) -> ExecutionRecord<&str> {
        let subject = &self.subject;
        let release = subject.release.as_deref();
        ExecutionRecord {
            id: self.id.clone(),
            tool: &subject.tool,
            toolkit: self.toolkit(),
            version: release.map_or(BASE, |release| release.version.as_str()),
            status: self.status(),
            user: &subject.user,
            account: subject.account.clone(),
            auth_config: subject.auth_config.clone(),
            source: subject.source,
            session: subject.session.clone(),
            request: &subject.request_id,
            trace: self.trace,
            started_at: self.started_at,
            ended_at: self.ended_at,
            cpu_us: micros(self.usage.cpu),
            wall_us: micros(self.usage.wall),
            memory: self.usage.peak_memory,
            host_calls: self.usage.host_calls,
            requests: self.requests,
            tokens: subject.tokens.as_deref().cloned(),
            failure: self.failure.as_deref(),
        }
    }

    pub(super) fn project(&self) -> &ProjectId {
        &self.subject.project.id
    }

    /// Returns the slug of the toolkit, or `None` for a tool of the host itself.
    pub(super) fn release_slug(&self) -> Option<&Arc<str>> {
        self.subject.release.as_ref().map(|release| &release.slug)
    }

    /// Returns the slug of the toolkit, also for a tool of the host itself.
    pub(super) fn toolkit(&self) -> &str {
        let release = self.subject.release.as_deref();
        release.map_or(HOST_TOOLKIT, |release| &*release.slug)
    }

    pub(super) fn status(&self) -> Status {
        match self.failure {
            Some(_) => Status::Failed,
            None => Status::Success,
        }
    }

    /// Returns true if the execution took so long that its page must list it. This includes
    /// executions during which the clock was set back.
    pub(super) fn is_slow(&self) -> bool {
        !(0..SLOW_RUN_MS).contains(&(self.ended_at.0 - self.started_at.0))
    }
}

impl Detail<RawJson> {
    /// Returns the size in memory, in bytes, which is about the size when written.
    pub(super) fn size(&self) -> usize {
        let log = self
            .log
            .iter()
            .map(|line| mem::size_of::<Line>() + line.message.len());
        let requests = self.requests.iter().map(|sent| {
            mem::size_of::<SentRequest>() + sent.url.len() + length(sent.error.as_ref())
        });
        let (log, requests): (usize, usize) = (log.sum(), requests.sum());
        self.arguments.0.len() + self.data.0.len() + length(self.error.as_ref()) + log + requests
    }

    /// Replaces all lines and requests by one line with the reason.
    fn leave_out_trace(&mut self, why: &str) {
        self.requests = Vec::new();
        self.log = vec![Line {
            level: "warn".to_owned(),
            at_ms: 0,
            message: why.to_owned(),
        }];
    }

    /// Leaves out everything except the error, and gives the reason. Values that are shorter than
    /// the note that would replace them stay.
    pub(super) fn leave_out(&mut self, why: &str) {
        for json in [&mut self.arguments, &mut self.data] {
            let note = note(json.0.len());
            if note.0.len() < json.0.len() {
                *json = note;
            }
        }
        self.leave_out_trace(why);
    }
}

fn length(text: Option<&String>) -> usize {
    text.map_or(0, String::len)
}

impl From<LogLine> for Line {
    fn from(LogLine { level, at, message }: LogLine) -> Self {
        Self {
            level: level.to_string(),
            at_ms: millis(at),
            message,
        }
    }
}

impl From<RequestRecord> for SentRequest {
    fn from(request: RequestRecord) -> Self {
        Self {
            method: request.method,
            url: request.url,
            status: request.status,
            error: request.error,
            elapsed_ms: millis(request.elapsed),
            sent: request.sent,
            received: request.received,
        }
    }
}

/// Returns the JSON text unchanged, or a note if it is larger than `max_bytes` bytes. The text is
/// copied, because it may be a part of a larger buffer.
fn truncate_json(json: &Bytes, max_bytes: usize) -> RawJson {
    if json.len() <= max_bytes {
        RawJson(Bytes::copy_from_slice(json))
    } else {
        note(json.len())
    }
}

/// Returns the note that replaces JSON text of this size.
fn note(bytes: usize) -> RawJson {
    let note = serde_json::json!({"omitted": true, "bytes": bytes});
    RawJson(note.to_string().into())
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(super) mod tests;
