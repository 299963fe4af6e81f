//! Data of one run, held by its store.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::runtime::Handle;
use wasmtime::Memory;

use super::{
    Preparation, ProgramHost, ProgramLimits,
    errno::Errno,
    files::{Entry, FileRef, Files},
    output::Output,
};
use crate::{
    Clock, Reservation,
    failure::memory_busy,
    schedule::{limiter::Limiter, meter::Meter},
};

/// Maximum number of open files and folders.
const MAX_DESCRIPTORS: usize = 256;

/// Data of the host functions of one run. It is dropped with its store, which is never reused.
pub(crate) struct State {
    pub(super) limiter: Limiter,
    pub(super) meter: Arc<Meter>,
    pub(super) limits: ProgramLimits,
    /// The preparation, until it has ended.
    pub(super) preparation: Option<Preparation>,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<String>,
    pub(super) files: Files,
    pub(super) descriptors: Vec<Option<Descriptor>>,
    pub(super) output: Arc<Output>,
    pub(super) host: Arc<dyn ProgramHost>,
    /// Threads on which requests to the host run, so that they are not timed as the program.
    pub(super) threads: Handle,
    pub(super) clock: Clock,
    pub(super) started: Instant,
    pub(super) deadline: Instant,
    /// Response to the latest request, until the program takes it.
    pub(super) response: Option<Bytes>,
    /// Memory of the latest request and its response.
    pub(super) messages: Reservation,
    /// Memory of the program, after it was instantiated.
    pub(super) memory: Option<Memory>,
}

/// Open file, folder or stream.
pub(super) enum Descriptor {
    Input,
    Output(super::output::Stream),
    Folder {
        path: String,
        /// Listing of the folder, made when it is first read, so that it does not change between
        /// two reads.
        listing: Option<Arc<[Entry]>>,
    },
    File(OpenFile),
}

/// Open file.
pub(super) struct OpenFile {
    pub(super) file: FileRef,
    pub(super) position: u64,
    pub(super) readable: bool,
    pub(super) writable: bool,
    pub(super) appends: bool,
}

impl State {
    /// Returns the maximum processor time of the present phase, counted from the beginning of the run.
    pub(super) fn max_cpu(&self) -> Duration {
        let preparation = self.preparation.map(|preparation| preparation.cpu);
        preparation.map_or(self.limits.cpu, |cpu| cpu.min(self.limits.cpu))
    }

    /// Reserves memory for a part of a message between the program and its host.
    pub(super) fn reserve_message(&self, bytes: usize) -> Result<(), &'static str> {
        self.messages.try_grow(bytes as u64).map_err(memory_busy)
    }

    /// Returns the initial descriptors of a program: the streams, and the root folder, which an
    /// interpreter with a prepared memory expects at this index.
    pub(super) fn initial_descriptors() -> Vec<Option<Descriptor>> {
        use super::output::Stream;
        vec![
            Some(Descriptor::Input),
            Some(Descriptor::Output(Stream::Output)),
            Some(Descriptor::Output(Stream::Error)),
            Some(Descriptor::Folder {
                path: String::new(),
                listing: None,
            }),
        ]
    }

    pub(super) fn descriptor(&mut self, number: u32) -> Result<&mut Descriptor, Errno> {
        self.descriptors
            .get_mut(number as usize)
            .and_then(Option::as_mut)
            .ok_or(Errno::BADF)
    }

    /// Adds a descriptor at the lowest free number.
    pub(super) fn open(&mut self, descriptor: Descriptor) -> Result<u32, Errno> {
        let free = self.descriptors.iter().position(Option::is_none);
        let number = free.unwrap_or(self.descriptors.len());
        if number >= MAX_DESCRIPTORS {
            return Err(Errno::MFILE);
        }
        if number == self.descriptors.len() {
            self.descriptors.push(None);
        }
        self.descriptors[number] = Some(descriptor);
        Ok(number as u32)
    }

    /// Resolves a name in a folder to its path.
    pub(super) fn resolve(&mut self, folder: u32, name: &str) -> Result<String, Errno> {
        match self.descriptor(folder)? {
            Descriptor::Folder { path, .. } => Ok(super::files::join(path, name)),
            _ => Err(Errno::NOTDIR),
        }
    }
}
