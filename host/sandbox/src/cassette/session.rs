//! Records the imports of a call, or answers them from a cassette.

use std::{collections::VecDeque, sync::Arc};

use manifest::cases;
use parking_lot::{Mutex, MutexGuard};

use super::{Cassette, Content, Import, Interaction, Request, SignedMessage, Verification};
use crate::{
    contract::v1::{HttpResult, webhook},
    files::Files,
    redact::Redactor,
};

/// Size of one recorded import in addition to its content, in bytes.
const IMPORT_OVERHEAD_BYTES: usize = 64;

/// Recorder or player for the imports of one call.
pub(crate) struct CassetteSession(Mutex<Mode>);

enum Mode {
    Record(Recording),
    Replay(Replay),
}

struct Recording {
    imports: Vec<Import>,
    signed: Vec<SignedMessage>,
    redactor: Arc<Redactor>,
    /// Bytes that may still be recorded; `None` if the limit was exceeded.
    remaining_bytes: Option<usize>,
}

/// Result of a recording.
pub(super) struct Recorded {
    pub(super) imports: Vec<Import>,
    /// Messages whose signatures were right.
    pub(super) signed: Vec<SignedMessage>,
    pub(super) redactor: Arc<Redactor>,
    /// Bytes that may still be recorded.
    pub(super) remaining_bytes: usize,
}

/// Recorded imports that remain, one queue per kind. A changed toolkit may read the clock more
/// often.
#[derive(Default)]
struct Replay {
    now: RecordedTimes,
    elapsed: RecordedTimes,
    random: VecDeque<Content>,
    interactions: VecDeque<Interaction>,
    verifications: VecDeque<Verification>,
    /// Number of requests replayed.
    replayed: usize,
    /// First difference from the recorded call.
    difference: Option<String>,
}

/// Recorded times in order. The last one repeats at the end.
#[derive(Default)]
struct RecordedTimes {
    left: VecDeque<u64>,
    last: u64,
}

/// Kind of clock.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Nondeterminism {
    Now,
    Elapsed,
}

impl CassetteSession {
    /// Creates a session that records up to `remaining_bytes` bytes of content.
    pub(crate) fn record(remaining_bytes: usize) -> Self {
        let recording = Recording {
            imports: Vec::new(),
            signed: Vec::new(),
            redactor: Arc::default(),
            remaining_bytes: Some(remaining_bytes),
        };
        Self(Mutex::new(Mode::Record(recording)))
    }

    /// Creates a session that plays a cassette.
    pub(crate) fn replay(cassette: &Cassette) -> Self {
        let mut replay = Replay::default();
        for import in cassette.imports.iter().cloned() {
            match import {
                Import::Now(at) => replay.now.left.push_back(at),
                Import::Elapsed(at) => replay.elapsed.left.push_back(at),
                Import::Random(bytes) => replay.random.push_back(bytes),
                Import::Http(interaction) => replay.interactions.push_back(*interaction),
                Import::Webhook(result) => replay.verifications.push_back(result),
            }
        }
        // A toolkit that did not read the clock before and does so now sees the first known time.
        replay.now.last = replay.now.left.front().copied().unwrap_or(0);
        Self(Mutex::new(Mode::Replay(replay)))
    }

    /// Returns true if imports are answered from a cassette.
    pub(crate) fn is_replay(&self) -> bool {
        matches!(*self.lock(), Mode::Replay(_))
    }

    /// Returns the time in milliseconds.
    pub(crate) fn time(&self, source: Nondeterminism, real: impl FnOnce() -> u64) -> u64 {
        match (&mut *self.lock(), source) {
            (Mode::Record(recording), source) => {
                let at = real();
                recording.keep(
                    if matches!(source, Nondeterminism::Now) {
                        Import::Now(at)
                    } else {
                        Import::Elapsed(at)
                    },
                    0,
                );
                at
            }
            (Mode::Replay(replay), Nondeterminism::Now) => replay.now.next(),
            (Mode::Replay(replay), Nondeterminism::Elapsed) => replay.elapsed.next(),
        }
    }

    /// Returns random bytes.
    pub(crate) fn random(
        &self,
        length: usize,
        real: impl FnOnce() -> wasmtime::Result<Vec<u8>>,
    ) -> wasmtime::Result<Vec<u8>> {
        match &mut *self.lock() {
            Mode::Record(recording) => {
                let bytes = real()?;
                recording.keep(Import::Random(Content::from_bytes(&bytes)), bytes.len());
                Ok(bytes)
            }
            Mode::Replay(replay) => match replay.random.pop_front() {
                Some(bytes) if bytes.len() == length => Ok(bytes.bytes().into()),
                Some(bytes) => replay.fail_as_different(format!(
                    "the call requests {length} random bytes; the recorded call requested {}",
                    bytes.len()
                )),
                None => replay.fail_as_different(
                    "the call requests random bytes once more than the recorded call".to_owned(),
                ),
            },
        }
    }

    /// Returns the result of the verification of a webhook request.
    pub(crate) fn verification(
        &self,
        redactor: Arc<Redactor>,
        message: SignedMessage,
        real: impl FnOnce(&SignedMessage) -> Result<bool, webhook::Error>,
    ) -> wasmtime::Result<Result<bool, webhook::Error>> {
        match &mut *self.lock() {
            Mode::Record(recording) => {
                let result = real(&message);
                let import = Import::Webhook(Verification::new(&result));
                let is_right = matches!(result, Ok(true));
                let size = if is_right { message.message.len() } else { 0 };
                recording.signed.extend(is_right.then_some(message));
                recording.keep(import, size);
                recording.redactor = redactor;
                Ok(result)
            }
            Mode::Replay(replay) => match replay.verifications.pop_front() {
                Some(result) => Ok(result.into_result()),
                None => replay.fail_as_different(
                    "the call verifies a signature once more than the recorded call".to_owned(),
                ),
            },
        }
    }

    /// Records requests and their responses, in the order of the requests.
    pub(crate) fn keep(
        &self,
        requests: Vec<Request>,
        responses: &[HttpResult],
        files: &Files,
        redactor: Arc<Redactor>,
    ) {
        if let Mode::Record(recording) = &mut *self.lock() {
            for (request, response) in requests.into_iter().zip(responses) {
                let interaction = Interaction::new(request, response, files);
                let size = interaction.size();
                recording.keep(Import::Http(Box::new(interaction)), size);
            }
            recording.redactor = redactor;
        }
    }

    /// Returns the recorded response if the request equals the next recorded one.
    pub(crate) fn recorded_response(
        &self,
        request: &Request,
        files: &Files,
    ) -> wasmtime::Result<HttpResult> {
        let Mode::Replay(replay) = &mut *self.lock() else {
            wasmtime::bail!("the call is recorded, not replayed")
        };
        replay.replayed += 1;
        let number = replay.replayed;
        match replay.interactions.pop_front() {
            Some(interaction) if interaction.request == *request => {
                Ok(interaction.into_response(files))
            }
            Some(interaction) => {
                let lines = cases::lines(&interaction.request.lines(), &request.lines());
                replay.fail_as_different(format!(
                    "request {number} differs from the recorded one (- recorded, + sent):\n{lines}"
                ))
            }
            None => replay.fail_as_different(format!(
                "request {number} is one more than were recorded:\n{}",
                cases::lines("", &request.lines())
            )),
        }
    }

    /// Takes the difference between the call and the recorded one.
    pub(crate) fn take_difference(&self) -> Option<String> {
        match &mut *self.lock() {
            Mode::Record(_) => None,
            Mode::Replay(replay) => replay.difference.take(),
        }
    }

    /// Takes the result of the recording. Returns `None` if the limit was exceeded.
    pub(super) fn take(&self) -> Option<Recorded> {
        match &mut *self.lock() {
            Mode::Record(recording) => Some(Recorded {
                imports: std::mem::take(&mut recording.imports),
                signed: std::mem::take(&mut recording.signed),
                redactor: recording.redactor.clone(),
                remaining_bytes: recording.remaining_bytes?,
            }),
            Mode::Replay(_) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Mode> {
        self.0.lock()
    }
}

impl Recording {
    fn keep(&mut self, import: Import, size: usize) {
        self.remaining_bytes = self
            .remaining_bytes
            .and_then(|remaining_bytes| remaining_bytes.checked_sub(size + IMPORT_OVERHEAD_BYTES));
        match self.remaining_bytes {
            Some(_) => self.imports.push(import),
            // The recording is discarded as a whole.
            None => {
                self.imports = Vec::new();
                self.signed = Vec::new();
            }
        }
    }
}

impl Replay {
    fn fail_as_different<T>(&mut self, how: String) -> wasmtime::Result<T> {
        self.difference.get_or_insert(how);
        wasmtime::bail!("the call differs from the recorded one")
    }
}

impl RecordedTimes {
    fn next(&mut self) -> u64 {
        self.last = self.left.pop_front().unwrap_or(self.last);
        self.last
    }
}
