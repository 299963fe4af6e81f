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
    time::Duration,
};

use bytes::Bytes;
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};

pub use syscalls::restrict;

/// Address space of the child in addition to its writable memory, for its program and its
/// reservations, in bytes.
const PROGRAM_ADDRESS_SPACE_BYTES: u64 = 2 << 30;
/// Maximum size of the child's message on standard error, in bytes.
const MAX_MESSAGE_BYTES: u64 = 16 << 10;
/// Variable by which the server's allocator reserves 64 MiB at a time, in KiB. Its own choice of 1 GiB
/// would count as writable memory of the child.
const ARENA_RESERVE: (&str, &str) = ("MIMALLOC_ARENA_RESERVE", "65536");
/// Maximum number of open files, which are its standard streams.
const MAX_OPEN_FILES: u64 = 16;

/// Limits of a child process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildLimits {
    /// Maximum processor time, in seconds.
    pub cpu_seconds: u64,
    /// Maximum wall-clock time.
    pub wall: Duration,
    /// Maximum writable memory, in bytes.
    pub memory: u64,
}

impl Default for ChildLimits {
    /// Returns the limits for compiling a component.
    fn default() -> Self {
        Self {
            cpu_seconds: 60,
            wall: Duration::from_secs(120),
            memory: 2 << 30,
        }
    }
}

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

impl ChildProgram<'_> {
    /// Runs the program with an input. Returns none if the process was ended because it took too
    /// long. Dropping the future ends the process.
    ///
    /// # Errors
    /// Fails if the process cannot be started, or its streams break.
    pub async fn run(self, input: Bytes) -> io::Result<Option<Output>> {
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
        match timeout(limits.wall, exchange(child, input, self.max_output_bytes)).await {
            Ok(output) => output.map(Some),
            // Dropping the future killed the child.
            Err(_) => Ok(None),
        }
    }
}

/// Writes to the child and reads its output concurrently, so that no pipe blocks.
async fn exchange(mut child: Child, input: Bytes, max_output_bytes: u64) -> io::Result<Output> {
    let missing = || io::Error::other("a pipe is missing");
    let mut stdin = child.stdin.take().ok_or_else(missing)?;
    let mut stdout = child
        .stdout
        .take()
        .ok_or_else(missing)?
        .take(max_output_bytes + 1);
    let mut stderr = child
        .stderr
        .take()
        .ok_or_else(missing)?
        .take(MAX_MESSAGE_BYTES);
    let mut output = Vec::new();
    let mut message = Vec::new();
    let write = async {
        // A child that ended early reports the reason on standard error, so the broken pipe is
        // ignored.
        let _ = stdin.write_all(&input).await;
        drop(stdin);
        Ok(0)
    };
    tokio::try_join!(
        write,
        stdout.read_to_end(&mut output),
        stderr.read_to_end(&mut message)
    )?;
    drop((stdout, stderr));
    Ok(Output {
        status: child.wait().await?,
        stdout: output,
        stderr: message,
    })
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

/// Sets the limits of this process, which its parent wrote into the arguments. A lower limit that is
/// already in force stays.
///
/// # Errors
/// Fails if the kernel refuses a limit.
pub fn limit_resources() -> io::Result<()> {
    let limits = limits_from_arguments();
    let limits = [
        // The kernel kills one second later, so the earlier signal can report the reason.
        (Resource::Cpu, limits.cpu_seconds, 1),
        (
            Resource::As,
            limits.memory.saturating_add(PROGRAM_ADDRESS_SPACE_BYTES),
            0,
        ),
        (Resource::Data, limits.memory, 0),
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
