//! Records the imports of a call, or answers them from a cassette.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use manifest::cases;

use super::{Cassette, Content, Exchange, Import, Request};
use crate::{abi::v1::http, host::blob::Files, redact::Redactor};

/// Size of one recorded import in addition to its content, in bytes.
const EACH: usize = 64;

type Answered = Result<http::Response, http::Error>;

/// Recorder or player for the imports of one call.
pub(crate) struct Tape(Mutex<Mode>);

enum Mode {
    Records(Recording),
    Plays(Playing),
}

struct Recording {
    imports: Vec<Import>,
    redactor: Arc<Redactor>,
    /// Bytes that may still be recorded; none if the limit was exceeded.
    room: Option<usize>,
}

/// Recorded imports that remain, one queue per kind. A changed toolkit may read the clock more
/// often.
#[derive(Default)]
struct Playing {
    now: Times,
    elapsed: Times,
    random: VecDeque<Content>,
    exchanges: VecDeque<Exchange>,
    /// Number of requests played.
    played: usize,
    /// First difference from the recorded call.
    differs: Option<String>,
}

/// Recorded times in order. The last one repeats at the end.
#[derive(Default)]
struct Times {
    left: VecDeque<u64>,
    last: u64,
}

/// Kind of clock.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hand {
    Now,
    Elapsed,
}

impl Tape {
    /// Creates a tape that records up to `room` bytes of content.
    pub(crate) fn record(room: usize) -> Self {
        let recording = Recording {
            imports: Vec::new(),
            redactor: Arc::default(),
            room: Some(room),
        };
        Self(Mutex::new(Mode::Records(recording)))
    }

    /// Creates a tape that plays a cassette.
    pub(crate) fn play(cassette: &Cassette) -> Self {
        let mut playing = Playing::default();
        for import in cassette.imports.iter().cloned() {
            match import {
                Import::Now(at) => playing.now.left.push_back(at),
                Import::Elapsed(at) => playing.elapsed.left.push_back(at),
                Import::Random(bytes) => playing.random.push_back(bytes),
                Import::Http(exchange) => playing.exchanges.push_back(*exchange),
            }
        }
        // A toolkit that did not read the clock before and does so now sees the first known time.
        playing.now.last = playing.now.left.front().copied().unwrap_or(0);
        Self(Mutex::new(Mode::Plays(playing)))
    }

    /// Returns true if imports are answered from a cassette.
    pub(crate) fn plays(&self) -> bool {
        matches!(*self.lock(), Mode::Plays(_))
    }

    /// Returns the time in milliseconds.
    pub(crate) fn time(&self, hand: Hand, real: impl FnOnce() -> u64) -> u64 {
        match (&mut *self.lock(), hand) {
            (Mode::Records(recording), hand) => {
                let at = real();
                recording.keep(
                    if matches!(hand, Hand::Now) {
                        Import::Now(at)
                    } else {
                        Import::Elapsed(at)
                    },
                    0,
                );
                at
            }
            (Mode::Plays(playing), Hand::Now) => playing.now.next(),
            (Mode::Plays(playing), Hand::Elapsed) => playing.elapsed.next(),
        }
    }

    /// Returns random bytes.
    pub(crate) fn random(
        &self,
        length: usize,
        real: impl FnOnce() -> wasmtime::Result<Vec<u8>>,
    ) -> wasmtime::Result<Vec<u8>> {
        match &mut *self.lock() {
            Mode::Records(recording) => {
                let bytes = real()?;
                recording.keep(Import::Random(Content::of(&bytes)), bytes.len());
                Ok(bytes)
            }
            Mode::Plays(playing) => match playing.random.pop_front() {
                Some(bytes) if bytes.len() == length => Ok(bytes.bytes().into()),
                Some(bytes) => playing.differ(format!(
                    "it asks for {length} random bytes, and asked for {} when it was recorded",
                    bytes.len()
                )),
                None => playing.differ(
                    "it asks for random bytes once more than when it was recorded".to_owned(),
                ),
            },
        }
    }

    /// Records requests and their responses, in the order of the requests.
    pub(crate) fn keep(
        &self,
        requests: Vec<Request>,
        answers: &[Answered],
        files: &Files,
        redactor: Arc<Redactor>,
    ) {
        if let Mode::Records(recording) = &mut *self.lock() {
            for (request, answer) in requests.into_iter().zip(answers) {
                let exchange = Exchange::of(request, answer, files);
                let weight = exchange.weight();
                recording.keep(Import::Http(Box::new(exchange)), weight);
            }
            recording.redactor = redactor;
        }
    }

    /// Returns the recorded response if the request equals the next recorded one.
    pub(crate) fn answer(&self, request: &Request, files: &Files) -> wasmtime::Result<Answered> {
        let Mode::Plays(playing) = &mut *self.lock() else {
            wasmtime::bail!("the tape records")
        };
        playing.played += 1;
        let number = playing.played;
        match playing.exchanges.pop_front() {
            Some(exchange) if exchange.request == *request => Ok(exchange.answer(files)),
            Some(exchange) => {
                let lines = cases::lines(&exchange.request.lines(), &request.lines());
                playing.differ(format!(
                    "request {number} differs from the recorded one (- recorded, + sent):\n{lines}"
                ))
            }
            None => playing.differ(format!(
                "request {number} is one more than were recorded:\n{}",
                cases::lines("", &request.lines())
            )),
        }
    }

    /// Takes the difference between the call and the recorded one.
    pub(crate) fn differs(&self) -> Option<String> {
        match &mut *self.lock() {
            Mode::Records(_) => None,
            Mode::Plays(playing) => playing.differs.take(),
        }
    }

    /// Takes the recorded imports, the redactor, and the remaining room. Returns `None` if the
    /// limit was exceeded.
    pub(super) fn take(&self) -> Option<(Vec<Import>, Arc<Redactor>, usize)> {
        match &mut *self.lock() {
            Mode::Records(recording) => Some((
                std::mem::take(&mut recording.imports),
                recording.redactor.clone(),
                recording.room?,
            )),
            Mode::Plays(_) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Mode> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recording {
    fn keep(&mut self, import: Import, weight: usize) {
        self.room = self.room.and_then(|room| room.checked_sub(weight + EACH));
        match self.room {
            Some(_) => self.imports.push(import),
            // The recording is discarded as a whole.
            None => self.imports = Vec::new(),
        }
    }
}

impl Playing {
    fn differ<T>(&mut self, how: String) -> wasmtime::Result<T> {
        self.differs.get_or_insert(how);
        wasmtime::bail!("the call differs from the recorded one")
    }
}

impl Times {
    fn next(&mut self) -> u64 {
        self.last = self.left.pop_front().unwrap_or(self.last);
        self.last
    }
}
