//! Child processes in which the server's own program works on untrusted input.
//!
//! Problem: a compiler or a shell can be kept busy for hours by a small input, be made to use any
//! amount of memory, or have a bug by which the input takes it over.
//!
//! Guarantee: processor time, memory, wall-clock time, output and open files of the child are
//! limited. It has nothing of the server's environment. It cannot reach files, sockets, other
//! programs or other processes, and a crash of it harms nothing else.
//!
//! It rests on limits that the kernel enforces, and on `syscalls`. The child reads its input from
//! standard input and writes its result to standard output. It has to call [`limit_resources`] and
//! [`restrict`] before it reads.

mod syscalls;

use std::{
    io,
    path::Path,
    process::{Output, Stdio},
};

use bytes::Bytes;
use gate::Busy;
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};

pub use crate::limits::ChildLimits;
pub use syscalls::restrict;

use crate::Reservation;

/// Address space of the child in addition to its writable memory, for its program and its
/// reservations, in bytes.
const PROGRAM_ADDRESS_SPACE_BYTES: u64 = 2 << 30;
/// Maximum size of the child's message on standard error, in bytes.
const MAX_MESSAGE_BYTES: u64 = 16 << 10;
/// Variable by which the server's allocator reserves 64 MiB at a time, in KiB. Its own choice of 1 GiB
/// would count as writable memory of the child.
const ARENA_RESERVE: (&str, &str) = ("MIMALLOC_ARENA_RESERVE", "65536");
/// Number of bytes of the output for which memory is taken first. It doubles with the output.
const MIN_OUTPUT_ROOM: usize = 64 << 10;
/// Maximum number of open files, which are its standard streams.
const MAX_OPEN_FILES: u64 = 16;

/// A program that runs as a child process.
#[derive(Debug, Clone, Copy)]
pub struct ChildProgram<'a> {
    /// Path of the server's own program.
    pub program: &'a Path,
    /// First argument, which selects the work. The limits follow it.
    pub argument: &'static str,
    /// Limits of the process.
    pub limits: ChildLimits,
    /// Maximum size of standard output, in bytes. One byte more is read, so that the caller can tell.
    pub max_output_bytes: u64,
}

/// Child process that gave no output.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// It cannot be started, or its streams broke.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Its output got no memory, and the process was ended.
    #[error("the output gets no memory")]
    Busy(Busy),
}

impl ChildProgram<'_> {
    /// Runs the program with an input. Reserves the memory of its output from `memory`, if it is
    /// given. Returns `None` if the process was ended because it took too long. Dropping the future
    /// ends the process.
    ///
    /// # Errors
    /// Fails if the process cannot be started, its streams break, or its output gets no memory.
    pub async fn run(
        self,
        input: Bytes,
        memory: Option<&Reservation>,
    ) -> Result<Option<Output>, ChildError> {
        let limits = self.limits;
        let child = Command::new(self.program)
            .arg(self.argument)
            .arg(limits.cpu_seconds.to_string())
            .arg(limits.memory.to_string())
            .env_clear()
            .env(ARENA_RESERVE.0, ARENA_RESERVE.1)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let exchanged = exchange(child, input, self.max_output_bytes, memory);
        match timeout(limits.wall, exchanged).await {
            Ok(output) => output.map(Some),
            // Dropping the future killed the child.
            Err(_) => Ok(None),
        }
    }
}

fn missing_pipe() -> io::Error {
    io::Error::other("a pipe is missing")
}

/// Writes to the child and reads its output concurrently, so that no pipe blocks.
async fn exchange(
    mut child: Child,
    input: Bytes,
    max_output_bytes: u64,
    memory: Option<&Reservation>,
) -> Result<Output, ChildError> {
    let mut stdin = child.stdin.take().ok_or_else(missing_pipe)?;
    let mut stdout = child
        .stdout
        .take()
        .ok_or_else(missing_pipe)?
        .take(max_output_bytes + 1);
    let mut stderr = child
        .stderr
        .take()
        .ok_or_else(missing_pipe)?
        .take(MAX_MESSAGE_BYTES);
    let mut message = Vec::new();
    let write = async {
        // A child that ended early reports the reason on standard error, so the broken pipe is
        // ignored.
        let _ = stdin.write_all(&input).await;
        drop(stdin);
        Ok(())
    };
    let ((), output, _) = tokio::try_join!(write, read_all(&mut stdout, memory), async {
        Ok(stderr.read_to_end(&mut message).await?)
    })?;
    drop((stdout, stderr));
    Ok(Output {
        status: child.wait().await?,
        stdout: output,
        stderr: message,
    })
}

/// Reads to the end. The memory for it is reserved before it is taken.
async fn read_all(
    stream: &mut (impl AsyncRead + Unpin),
    memory: Option<&Reservation>,
) -> Result<Vec<u8>, ChildError> {
    let mut all = Vec::new();
    loop {
        if all.len() == all.capacity() {
            let room = all.len().max(MIN_OUTPUT_ROOM);
            memory
                .map_or(Ok(()), |memory| memory.try_grow(room as u64))
                .map_err(ChildError::Busy)?;
            all.reserve_exact(room);
        }
        if stream.read_buf(&mut all).await? == 0 {
            return Ok(all);
        }
    }
}

/// Reads the limits that the parent wrote into the arguments.
fn limits_from_arguments() -> ChildLimits {
    let mut numbers = std::env::args().skip(2).map_while(|text| text.parse().ok());
    let defaults = ChildLimits::default();
    ChildLimits {
        cpu_seconds: numbers.next().unwrap_or(defaults.cpu_seconds),
        memory: numbers.next().unwrap_or(defaults.memory),
        ..defaults
    }
}

/// Sets the limits of this process, which its parent wrote into the arguments. A lower limit
/// already in force stays.
///
/// # Errors
/// Fails if the kernel refuses a limit.
pub fn limit_resources() -> io::Result<()> {
    let arguments = limits_from_arguments();
    let limits = [
        // The kernel kills one second later, so the earlier signal can report the reason.
        (Resource::Cpu, arguments.cpu_seconds, 1),
        (
            Resource::As,
            arguments.memory.saturating_add(PROGRAM_ADDRESS_SPACE_BYTES),
            0,
        ),
        (Resource::Data, arguments.memory, 0),
        (Resource::Core, 0, 0),
        (Resource::Fsize, 0, 0),
        (Resource::Nofile, MAX_OPEN_FILES, 0),
    ];
    for (resource, limit, grace) in limits {
        let in_force = rustix::process::getrlimit(resource)
            .maximum
            .unwrap_or(u64::MAX);
        let current = limit.min(in_force);
        let maximum = limit.saturating_add(grace).min(in_force);
        setrlimit(
            resource,
            Rlimit {
                current: Some(current),
                maximum: Some(maximum),
            },
        )?;
    }
    Ok(())
}
