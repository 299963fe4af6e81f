//! Compiles components, and the modules of the host's own programs.
//!
//! Problem: a component is untrusted, and a small one can keep a compiler busy for hours or make it
//! use any amount of memory.
//!
//! Guarantee: a server compiles in a child process, so the cost of a component is limited and a
//! crash of the compiler only refuses that component.
//!
//! The guarantee rests on the confinement of the child. It is the same program with limits on
//! processor time, memory, files and wall-clock time, and without an environment. It reads the
//! component from standard input and writes machine code to standard output. After the limits are
//! set it can only make the system calls that compilation needs (`syscalls`). The output of the
//! child is trusted as much as the compiler is.

use std::{
    io::{self, Read, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitCode, Output, Stdio},
};

use bytes::Bytes;
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};
use wasmtime::Engine;

use super::{check::MAX_COMPONENT_BYTES, config, program_config, syscalls};
use crate::{COMPILE_ARG, CompileLimits, Compiler, InstallError, trace::one_line};

/// Address space of the child in addition to its writable memory, for its program and its
/// reservations, in bytes.
const PROGRAM_ADDRESS_SPACE_BYTES: u64 = 2 << 30;
/// Maximum size of a compiled form, in bytes. The largest known one, of an interpreter, has a third
/// of it.
const MAX_ARTIFACT_BYTES: u64 = 128 << 20;
/// Maximum size of the child's message about a component, in bytes.
const MAX_MESSAGE_BYTES: u64 = 16 << 10;
/// Exit code of a child that refused the component and wrote the reason to standard error.
const EXIT_REFUSED: u8 = 2;
/// Exit code of a Rust program that panicked. The compiler met a component that it cannot handle.
const EXIT_PANICKED: i32 = 101;

/// Beginning of the compiler's panic message for components inside a component that pass values
/// between their memories.
const ADAPTER_PANIC_PREFIX: &str = "invalid adapter module";
const TWO_MEMORIES_PROBLEM: &str = "components inside it pass values to each other, each with a memory of its own, which this host does \
    not support; link them into one module before it becomes a component";

/// Texts with which a library reports a failed allocation, when it returns an error or panics
/// instead of aborting the program.
const OUT_OF_MEMORY_TEXTS: [&str; 2] = ["out of memory", "out-of-memory"];

/// Compiles a component that passed the checks.
pub(crate) async fn compile(
    compiler: &Compiler,
    engine: &Engine,
    component: Bytes,
) -> Result<Vec<u8>, InstallError> {
    match compiler {
        Compiler::Child(program, limits) => in_child(program, *limits, component).await,
        Compiler::InProcess => {
            let engine = engine.clone();
            let compiled =
                tokio::task::spawn_blocking(move || precompile(&engine, &component)).await;
            let compiled = compiled.map_err(|broken| compiler_panicked(&broken.to_string()))?;
            compiled.map_err(|cause| InstallError::Refused(vec![reason(&cause)]))
        }
    }
}

/// Runs the compile child: reads a component from standard input and writes its compiled form to
/// standard output.
///
/// Call it first in `main`, before any thread starts, because it sets the limits of the process.
#[must_use]
pub fn compile_child() -> ExitCode {
    if let Err(cause) = confine(limits_from_arguments()).and_then(|()| syscalls::restrict()) {
        let _ = writeln!(io::stderr(), "the compiler's limits cannot be set: {cause}");
        return ExitCode::FAILURE;
    }
    match compile_stdin() {
        Ok(artifact) => match io::stdout()
            .write_all(&artifact)
            .and_then(|()| io::stdout().flush())
        {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(problem) => {
            let _ = io::stderr().write_all(problem.as_bytes());
            ExitCode::from(EXIT_REFUSED)
        }
    }
}

/// Reads the limits that the parent wrote into the arguments with [`arguments`].
fn limits_from_arguments() -> CompileLimits {
    let mut numbers = std::env::args().skip(2).map_while(|text| text.parse().ok());
    let defaults = CompileLimits::default();
    CompileLimits {
        cpu_seconds: numbers.next().unwrap_or(defaults.cpu_seconds),
        memory: numbers.next().unwrap_or(defaults.memory),
        ..defaults
    }
}

fn arguments(limits: CompileLimits) -> [String; 3] {
    [
        COMPILE_ARG.to_owned(),
        limits.cpu_seconds.to_string(),
        limits.memory.to_string(),
    ]
}

/// Sets the limits of this process. A lower limit that is already in force stays.
fn confine(limits: CompileLimits) -> io::Result<()> {
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
        (Resource::Nofile, 16, 0),
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

fn compile_stdin() -> Result<Vec<u8>, String> {
    let mut component = Vec::new();
    io::stdin()
        .take(MAX_COMPONENT_BYTES as u64)
        .read_to_end(&mut component)
        .map_err(|cause| format!("the component cannot be read: {cause}"))?;
    let engine =
        Engine::new(&config()).map_err(|cause| format!("the compiler cannot start: {cause:#}"))?;
    precompile(&engine, &component).map_err(|cause| reason(&cause))
}

/// Compiles a component, or a module that is a program of the host.
fn precompile(engine: &Engine, wasm: &[u8]) -> wasmtime::Result<Vec<u8>> {
    if wasmparser::Parser::is_component(wasm) {
        engine.precompile_component(wasm)
    } else {
        Engine::new(&program_config())?.precompile_module(wasm)
    }
}

/// Returns the reason why the compiler refused a component, in one line.
fn reason(cause: &wasmtime::Error) -> String {
    let chain: Vec<_> = cause.chain().map(ToString::to_string).collect();
    format!(
        "the component cannot be compiled: {}",
        one_line(&chain.join(": "))
    )
}

async fn in_child(
    program: &Path,
    limits: CompileLimits,
    component: Bytes,
) -> Result<Vec<u8>, InstallError> {
    let started = Command::new(program)
        .args(arguments(limits))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let child = started.map_err(|cause| {
        InstallError::Unavailable(format!(
            "the compiler `{}` cannot be started: {cause}",
            program.display()
        ))
    })?;
    let output = match timeout(limits.wall, exchange_output(child, component)).await {
        Ok(output) => output.map_err(|cause| {
            InstallError::Unavailable(format!("the compiler was interrupted: {cause}"))
        })?,
        // Dropping the future killed the child.
        Err(_) => {
            return Err(past_limit(format!(
                "compiling it takes longer than {:?}",
                limits.wall
            )));
        }
    };
    read_output(output, limits)
}

fn past_limit(limit: String) -> InstallError {
    InstallError::PastLimit(vec![limit])
}

/// Writes to the child and reads its output concurrently, so that no pipe blocks.
async fn exchange_output(mut child: Child, component: Bytes) -> io::Result<Output> {
    let missing = || io::Error::other("a pipe is missing");
    let mut stdin = child.stdin.take().ok_or_else(missing)?;
    let mut stdout = child
        .stdout
        .take()
        .ok_or_else(missing)?
        .take(MAX_ARTIFACT_BYTES + 1);
    let mut stderr = child
        .stderr
        .take()
        .ok_or_else(missing)?
        .take(MAX_MESSAGE_BYTES);
    let mut artifact = Vec::new();
    let mut message = Vec::new();
    let write = async {
        // A child that ended early reports the reason on standard error, so the broken pipe is
        // ignored.
        let _ = stdin.write_all(&component).await;
        drop(stdin);
        Ok(0)
    };
    tokio::try_join!(
        write,
        stdout.read_to_end(&mut artifact),
        stderr.read_to_end(&mut message)
    )?;
    drop((stdout, stderr));
    Ok(Output {
        status: child.wait().await?,
        stdout: artifact,
        stderr: message,
    })
}

fn read_output(output: Output, limits: CompileLimits) -> Result<Vec<u8>, InstallError> {
    let message = one_line(String::from_utf8_lossy(&output.stderr).trim());
    match output.status.code() {
        Some(0)
            if !output.stdout.is_empty() && output.stdout.len() as u64 <= MAX_ARTIFACT_BYTES =>
        {
            Ok(output.stdout)
        }
        Some(0) => Err(past_limit(format!(
            "its compiled form is larger than {MAX_ARTIFACT_BYTES} bytes"
        ))),
        Some(code) if code == i32::from(EXIT_REFUSED) || code == EXIT_PANICKED => {
            let out_of_memory = OUT_OF_MEMORY_TEXTS
                .iter()
                .any(|text| message.contains(text));
            Err(match code {
                _ if out_of_memory => past_limit(past_memory(limits)),
                EXIT_PANICKED => compiler_panicked(&message),
                _ => InstallError::Refused(vec![message]),
            })
        }
        Some(code) => Err(InstallError::Unavailable(format!(
            "the compiler ended with code {code}: {message}"
        ))),
        None => Err(past_limit(signal_reason(output.status.signal(), limits))),
    }
}

/// Converts a panic of the compiler into an error about the component.
fn compiler_panicked(message: &str) -> InstallError {
    // Values pass between two memories through a module with both. The compiler writes that module
    // and then finds it invalid, because a module has one memory here. Only the compiler knows
    // which calls need that.
    if message.contains(ADAPTER_PANIC_PREFIX) {
        return InstallError::Refused(vec![TWO_MEMORIES_PROBLEM.to_owned()]);
    }
    tracing::warn!(message, "the compiler panicked");
    past_limit("the compiler failed on it".to_owned())
}

/// Converts the signal that ended the child into a message about the component.
fn signal_reason(signal: Option<i32>, limits: CompileLimits) -> String {
    match signal.and_then(Signal::from_named_raw) {
        Some(Signal::XCPU) => format!(
            "compiling it takes more than {} s of processor time",
            limits.cpu_seconds
        ),
        // A Rust program aborts when an allocation fails.
        Some(Signal::ABORT) => past_memory(limits),
        // The kernel killed it because the machine has no memory left, or its stack overflowed.
        _ => format!(
            "{}, or more memory than the machine has",
            past_memory(limits)
        ),
    }
}

fn past_memory(limits: CompileLimits) -> String {
    format!(
        "compiling it takes more than {} MiB of memory",
        limits.memory >> 20
    )
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::*;

    fn problem(wait_status: i32, message: &str) -> String {
        let output = Output {
            status: ExitStatus::from_raw(wait_status),
            stdout: Vec::new(),
            stderr: message.as_bytes().to_vec(),
        };
        format!("{:?}", read_output(output, CompileLimits::default()))
    }

    /// A wait status holds the exit code in its second byte, and a signal in its first one.
    #[test]
    fn failed_allocation_is_reported_as_memory_limit() {
        for (status, message) in [
            (2 << 8, "the component cannot be read: out of memory"),
            (
                101 << 8,
                "panicked: unhandled out-of-memory error: out of memory",
            ),
            (6, "memory allocation of 64 bytes failed"),
        ] {
            let problem = problem(status, message);
            assert!(problem.starts_with("Err(PastLimit"), "{problem}");
            assert!(problem.contains("MiB of memory"), "{problem}");
        }
        assert!(problem(2 << 8, "invalid opcode").starts_with("Err(Refused"));
        assert!(problem(101 << 8, "index out of bounds").contains("the compiler failed on it"));
    }
}
