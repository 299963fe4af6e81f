//! Compiles components, and the modules of the host's own programs.
//!
//! Problem: a component is untrusted, and a small one can keep a compiler busy for hours or make it
//! use any amount of memory.
//!
//! Guarantee: a server compiles in a child process, so the cost of a component is limited and a
//! crash of the compiler only refuses that component.
//!
//! The guarantee rests on the confinement of the child ([`child`]). It reads the component from
//! standard input and writes machine code to standard output. The output of the child is trusted as
//! much as the compiler is.

use std::{
    io::{self, Read, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitCode, Output},
};

use bytes::Bytes;
use rustix::process::Signal;
use wasmtime::Engine;

use super::{config, error::InstallError, program_config};
use crate::{
    COMPILE_ARG, Compiler,
    child::{self, ChildProgram},
    limits::{ChildLimits, MAX_COMPONENT_BYTES},
    trace::one_line,
};

/// Maximum size of a compiled form, in bytes. The largest known one, of an interpreter, has a third
/// of it.
pub(crate) const MAX_ARTIFACT_BYTES: u64 = 128 << 20;
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
    component: Bytes,
) -> Result<Vec<u8>, InstallError> {
    match compiler {
        Compiler::Child(program, limits) => in_child(program, *limits, component).await,
        Compiler::InProcess => {
            tokio::task::spawn_blocking(move || {
                // The component is the user's own: it may use all processors and their memory.
                let mut config = config();
                config.parallel_compilation(true);
                precompile(&Engine::new(&config)?, &component)
            })
            .await
            .map_err(|broken| compiler_panicked(&broken.to_string()))?
            .map_err(|cause| InstallError::Refused(vec![reason(&cause)]))
        }
    }
}

/// Runs the compile child: reads a component from standard input and writes its compiled form to
/// standard output.
///
/// Call it first in `main`, before any thread starts, because it sets the limits of the process.
#[must_use]
pub fn compile_child() -> ExitCode {
    if let Err(cause) = child::limit_resources().and_then(|()| child::restrict()) {
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

/// Compiles a component, or a module with a program of the host.
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
    limits: ChildLimits,
    component: Bytes,
) -> Result<Vec<u8>, InstallError> {
    let child = ChildProgram {
        program,
        argument: COMPILE_ARG,
        limits,
        max_output_bytes: MAX_ARTIFACT_BYTES,
    };
    match child.run(component, None).await {
        Ok(Some(output)) => read_output(output, limits),
        Ok(None) => Err(past_limit(format!(
            "compiling it takes longer than {:?}",
            limits.wall
        ))),
        Err(cause) => Err(InstallError::Unavailable(format!(
            "the compiler `{}` cannot be run: {cause}",
            program.display()
        ))),
    }
}

fn past_limit(limit: String) -> InstallError {
    InstallError::PastLimit(vec![limit])
}

fn read_output(output: Output, limits: ChildLimits) -> Result<Vec<u8>, InstallError> {
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
fn signal_reason(signal: Option<i32>, limits: ChildLimits) -> String {
    match signal.and_then(Signal::from_named_raw) {
        Some(Signal::XCPU) => format!(
            "compiling it takes more than {} s of processor time",
            limits.cpu_seconds
        ),
        // A Rust program aborts when an allocation fails.
        Some(Signal::ABORT) => past_memory(limits),
        // The kernel killed it because the machine ran out of memory, or its stack overflowed.
        _ => format!(
            "{}, or more memory than the machine has",
            past_memory(limits)
        ),
    }
}

fn past_memory(limits: ChildLimits) -> String {
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
        format!("{:?}", read_output(output, ChildLimits::default()))
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
