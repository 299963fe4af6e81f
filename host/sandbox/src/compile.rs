//! Compiles components.
//!
//! A component comes from a stranger, and a small one can keep a compiler busy for hours or make it use any amount of
//! memory. So a server compiles in a child process: the same program, with limits on processor time, memory, files and
//! wall-clock time, no environment, the component on standard input and machine code on standard output. What the child
//! answers is trusted as far as the compiler is; a child that breaks is a component that is refused.

use std::{
    io::{self, Read, Write},
    path::Path,
    process::{ExitCode, Output, Stdio},
    time::Duration,
};

use bytes::Bytes;
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};
use wasmtime::Engine;

use crate::{COMPILE_ARG, Compiler, InstallError, check::COMPONENT_BYTES, engine, trace::one_line};

/// Processor time of one compilation.
const CPU_SECONDS: u64 = 60;
/// Wall-clock time of one compilation.
const WALL: Duration = Duration::from_secs(120);
/// Writable memory of the child.
const MEMORY: u64 = 2 << 30;
/// Address space of the child: its memory and its program.
const ADDRESS_SPACE: u64 = 4 << 30;
/// Largest compiled form. The largest one seen, of an interpreter, is a third of it.
const ARTEFACT_BYTES: u64 = 128 << 20;
/// What the child may say about a component.
const MESSAGE_BYTES: u64 = 16 << 10;
/// Exit code of a child that judged the component, in words, on standard error.
const REFUSED: u8 = 2;

/// Compiles a component that passed the checks.
pub(crate) async fn compile(compiler: &Compiler, engine: &Engine, component: Bytes) -> Result<Vec<u8>, InstallError> {
    match compiler {
        Compiler::Child(program) => in_child(program, component).await,
        Compiler::InProcess => {
            let engine = engine.clone();
            let compiled = tokio::task::spawn_blocking(move || engine.precompile_component(&component)).await;
            let compiled =
                compiled.map_err(|broken| InstallError::CompileLimit(format!("compiling failed: {broken}")))?;
            compiled.map_err(|cause| InstallError::Refused(vec![reason(&cause)]))
        }
    }
}

/// What the compile child does: reads a component from standard input, writes its compiled form to standard output.
///
/// To be called first thing in `main`, before threads exist: the limits it sets are those of its process.
#[must_use]
pub fn compile_child() -> ExitCode {
    if let Err(cause) = confine() {
        let _ = writeln!(io::stderr(), "the compiler's limits cannot be set: {cause}");
        return ExitCode::FAILURE;
    }
    match compile_stdin() {
        Ok(artefact) => match io::stdout().write_all(&artefact).and_then(|()| io::stdout().flush()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(problem) => {
            let _ = io::stderr().write_all(problem.as_bytes());
            ExitCode::from(REFUSED)
        }
    }
}

/// Sets the limits of this process. A lower limit that is already in force stays.
fn confine() -> io::Result<()> {
    let limits = [
        (Resource::Cpu, CPU_SECONDS),
        (Resource::As, ADDRESS_SPACE),
        (Resource::Data, MEMORY),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, 16),
    ];
    for (resource, limit) in limits {
        let maximum = rustix::process::getrlimit(resource).maximum.map_or(limit, |maximum| maximum.min(limit));
        setrlimit(resource, Rlimit { current: Some(maximum), maximum: Some(maximum) })?;
    }
    Ok(())
}

fn compile_stdin() -> Result<Vec<u8>, String> {
    let mut component = Vec::new();
    io::stdin()
        .take(COMPONENT_BYTES as u64)
        .read_to_end(&mut component)
        .map_err(|cause| format!("the component cannot be read: {cause}"))?;
    let engine = Engine::new(&engine::config()).map_err(|cause| format!("the compiler cannot start: {cause:#}"))?;
    engine.precompile_component(&component).map_err(|cause| reason(&cause))
}

/// Why the compiler refuses a component, in one line.
fn reason(cause: &wasmtime::Error) -> String {
    let chain: Vec<_> = cause.chain().map(ToString::to_string).collect();
    format!("the component cannot be compiled: {}", one_line(&chain.join(": ")))
}

async fn in_child(program: &Path, component: Bytes) -> Result<Vec<u8>, InstallError> {
    let started = Command::new(program)
        .arg(COMPILE_ARG)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let child = started.map_err(|cause| {
        InstallError::Unavailable(format!("the compiler `{}` cannot be started: {cause}", program.display()))
    })?;
    let output = match timeout(WALL, converse(child, component)).await {
        Ok(output) => output.map_err(|cause| InstallError::Unavailable(format!("the compiler broke off: {cause}")))?,
        Err(_) => return Err(InstallError::CompileLimit(format!("compiling takes longer than {WALL:?}"))),
    };
    judge(output)
}

/// Feeds the child and reads what it says, all at once, so that neither side waits for the other.
async fn converse(mut child: Child, component: Bytes) -> io::Result<Output> {
    let missing = || io::Error::other("a pipe is missing");
    let mut stdin = child.stdin.take().ok_or_else(missing)?;
    let mut stdout = child.stdout.take().ok_or_else(missing)?.take(ARTEFACT_BYTES + 1);
    let mut stderr = child.stderr.take().ok_or_else(missing)?.take(MESSAGE_BYTES);
    let (mut artefact, mut message) = (Vec::new(), Vec::new());
    let write = async {
        // A child that ended early says why on standard error; the broken pipe is no news.
        let _ = stdin.write_all(&component).await;
        drop(stdin);
        Ok(0)
    };
    tokio::try_join!(write, stdout.read_to_end(&mut artefact), stderr.read_to_end(&mut message))?;
    drop((stdout, stderr));
    Ok(Output { status: child.wait().await?, stdout: artefact, stderr: message })
}

fn judge(output: Output) -> Result<Vec<u8>, InstallError> {
    let message = one_line(String::from_utf8_lossy(&output.stderr).trim());
    match output.status.code() {
        Some(0) if !output.stdout.is_empty() && output.stdout.len() as u64 <= ARTEFACT_BYTES => Ok(output.stdout),
        Some(0) => Err(InstallError::CompileLimit(format!("its compiled form is larger than {ARTEFACT_BYTES} bytes"))),
        Some(code) if code == i32::from(REFUSED) => Err(InstallError::Refused(vec![message])),
        Some(code) => Err(InstallError::Unavailable(format!("the compiler ended with code {code}: {message}"))),
        // Killed: by its own limits, or by the kernel for lack of memory.
        None => Err(InstallError::CompileLimit(format!(
            "compiling it takes more than {CPU_SECONDS} s of processor time or more than {} MiB of memory",
            MEMORY >> 20
        ))),
    }
}
