//! Runs programs of the host itself, such as an interpreter, on untrusted input.
//!
//! Problem: a script of an agent is untrusted, and the interpreter that runs it expects a system:
//! files, a clock and standard streams.
//!
//! Guarantee: each run has a fresh instance of a WebAssembly module. It sees files in memory that
//! were given to it, no file of this machine, no socket, no other program, and an environment that
//! the caller wrote. Everything else leaves through [`ProgramHost`]. Processor time, wall-clock time,
//! memory, output, files and requests are limited. A run that reaches a limit changes no file.
//!
//! It rests on the same parts as a call of a toolkit: permits, turns, ticks and the memory budget of
//! the node. `files` is the file tree, `wasi` what the module imports, `run` one run.

mod bridge;
mod errno;
mod files;
mod memory;
mod output;
mod run;
mod state;
mod wasi;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use wasmtime::{Config, Engine, InstancePre, Linker, Module, Result};

use crate::{Digest, Failure, Limits, Refusal, Reservation, Usage, engine::cache::Cache};

pub(crate) use run::{ProgramContext, run};
pub(crate) use state::State;

const BYTES_PER_MIB: u64 = 1 << 20;
/// Native stack available to a program, in bytes. An interpreter recurses on it for nested data, and
/// reports its own error only if it reaches its own limit first.
const PROGRAM_STACK_BYTES: usize = 4 << 20;
/// Stack for host functions in addition to the program's own, in bytes.
const HOST_STACK_BYTES: usize = 512 << 10;

/// One run of a program.
pub struct Program {
    /// Module to run, installed with [`crate::Sandbox::install_program`].
    pub module: Digest,
    /// Name of the exported function without parameters that returns the exit code.
    pub entry: &'static str,
    /// Tenant that the run counts against, as for a [`crate::Call`].
    pub tenant: Arc<str>,
    /// Arguments, beginning with the name of the program.
    pub arguments: Vec<String>,
    /// Environment.
    pub environment: Vec<(String, String)>,
    /// Files that the program can only read, by absolute path.
    pub system_files: Vec<(String, Bytes)>,
    /// Files that the program can change, by absolute path. Their content is read on first use.
    pub files: Vec<StoredFile>,
    /// Folders that exist without a file in them, by absolute path.
    pub folders: Vec<String>,
    /// Limits of the run.
    pub limits: ProgramLimits,
    /// Phase at the beginning of the run in which untrusted data is read, if there is one.
    pub preparation: Option<Preparation>,
    /// Host that answers the program's requests.
    pub host: Arc<dyn ProgramHost>,
}

/// Phase at the beginning of a run in which the program reads untrusted data. It cannot sleep in it, so
/// that the processor time limits the phase.
#[derive(Debug, Clone, Copy)]
pub struct Preparation {
    /// Maximum processor time.
    pub cpu: Duration,
    /// Function of the host whose call ends the phase.
    pub ended_by: &'static str,
}

/// File that a program can change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Absolute path.
    pub path: String,
    /// Size, in bytes.
    pub size: u64,
    /// Time of the last change, in milliseconds since 1970.
    pub modified_ms: u64,
}

/// Host of a program: everything that the program can reach outside of its instance.
#[async_trait]
pub trait ProgramHost: Send + Sync {
    /// Answers a request. An error is a message that the program sees.
    async fn call(&self, function: &str, input: Bytes) -> std::result::Result<Bytes, String>;

    /// Returns the content of a [`StoredFile`]. An error is for the log; the program sees that the
    /// file cannot be read.
    async fn read(&self, path: &str) -> std::result::Result<Bytes, String>;
}

/// Limits of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramLimits {
    /// Maximum size of the program's memory, in bytes.
    pub memory: u64,
    /// Maximum processor time.
    pub cpu: Duration,
    /// Maximum wall-clock time, including the time for which requests are answered.
    pub wall: Duration,
    /// Maximum number of requests to the host.
    pub requests: u32,
    /// Maximum size of a request or a response, in bytes.
    pub message: u64,
    /// Maximum size of each standard output stream, in bytes. A write past it fails.
    pub output: u64,
    /// Maximum number of files and folders.
    pub files: u32,
    /// Maximum size of all files together, in bytes.
    pub file_bytes: u64,
}

impl ProgramLimits {
    /// Limits of a script of an agent.
    pub const DEFAULT: Self = Self {
        memory: 256 * BYTES_PER_MIB,
        cpu: Duration::from_secs(60),
        wall: Duration::from_secs(180),
        requests: 500,
        message: 16 * BYTES_PER_MIB,
        output: 8 * BYTES_PER_MIB,
        files: 1_000,
        file_bytes: 64 * BYTES_PER_MIB,
    };

    /// Returns these limits, those that a call of a toolkit also has capped at
    /// [`Limits::CEILING`].
    #[must_use]
    pub fn clamped(self) -> Self {
        let ceiling = Limits::CEILING;
        Self {
            memory: self.memory.min(ceiling.memory),
            cpu: self.cpu.min(ceiling.cpu),
            wall: self.wall.min(ceiling.wall),
            ..self
        }
    }
}

impl Default for ProgramLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Result of a run.
#[derive(Debug)]
pub struct ProgramOutcome {
    /// Exit code, or the reason that the program was ended.
    pub exit: std::result::Result<i32, Failure>,
    /// Standard output, also of a program that was ended.
    pub stdout: Bytes,
    /// Standard error, also of a program that was ended.
    pub stderr: Bytes,
    /// Changed files in the order of their paths; empty if the program was ended.
    pub changes: Vec<FileChange>,
    /// Resource usage of the run.
    pub usage: Usage,
    /// Reservation for the memory of the output and the changed files; drop it with them.
    pub memory: Reservation,
}

/// Change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Absolute path.
    pub path: String,
    /// New content, or `None` if the file was removed.
    pub content: Option<Bytes>,
}

/// Engine of the programs, and the program that was run last.
pub(crate) struct Programs {
    pub(crate) engine: Engine,
    linker: Linker<State>,
    loaded: Mutex<Option<(Digest, Arc<InstancePre<State>>)>>,
}

fn unusable(cause: &str) -> Refusal {
    Refusal::Unavailable(format!("the compiled program cannot be used: {cause}"))
}

impl Programs {
    /// Starts an engine whose compiled code is that of the toolkits' engine, with a larger stack.
    pub(crate) fn start(mut config: Config) -> Result<Self> {
        config
            .max_wasm_stack(PROGRAM_STACK_BYTES)
            .async_stack_size(PROGRAM_STACK_BYTES + HOST_STACK_BYTES);
        let engine = Engine::new(&config)?;
        let mut linker = Linker::new(&engine);
        wasi::add_to_linker(&mut linker)?;
        bridge::add_to_linker(&mut linker)?;
        Ok(Self {
            engine,
            linker,
            loaded: Mutex::default(),
        })
    }

    /// Returns a program from memory or from the cache.
    pub(crate) async fn get(
        self: &Arc<Self>,
        cache: &Arc<Cache>,
        digest: Digest,
    ) -> std::result::Result<Arc<InstancePre<State>>, Refusal> {
        if let Some(found) = self.find(&digest) {
            return Ok(found);
        }
        let programs = self.clone();
        let cache = cache.clone();
        let loaded = tokio::task::spawn_blocking(move || programs.load(&cache, digest)).await;
        loaded.unwrap_or_else(|broken| {
            Err(Refusal::Unavailable(format!(
                "loading a program failed: {broken}"
            )))
        })
    }

    fn find(&self, digest: &Digest) -> Option<Arc<InstancePre<State>>> {
        let loaded = self.loaded.lock();
        loaded
            .as_ref()
            .filter(|(found, _)| found == digest)
            .map(|(_, program)| program.clone())
    }

    /// Maps a program and resolves its imports. Blocks on disk access.
    fn load(
        &self,
        cache: &Cache,
        digest: Digest,
    ) -> std::result::Result<Arc<InstancePre<State>>, Refusal> {
        let module: Module = cache
            .load_module(&self.engine, &digest)
            .map_err(|cause| unusable(&cause.to_string()))?
            .ok_or(Refusal::NotInstalled)?;
        let program = self
            .linker
            .instantiate_pre(&module)
            .map(Arc::new)
            .map_err(|cause| unusable(&format!("{cause:#}")))?;
        *self.loaded.lock() = Some((digest, program.clone()));
        Ok(program)
    }
}
