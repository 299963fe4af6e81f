//! Runs one call of one toolkit.

mod digest;
mod grant;
mod input;
mod install;
mod limits;
mod outcome;
mod settings;

use std::{process::ExitCode, sync::Arc};

use bytes::Bytes;

pub use digest::{Digest, InvalidDigest};
pub use grant::{Credential, Grant, GrantError, Secret};
pub use input::{Action, Call, Context, File, Inbound, Policy};
pub use install::{InstallError, Installed};
pub use limits::Limits;
pub use outcome::{
    Answer, Cause, Event, Failure, Gauges, Level, LogLine, Outcome, Refusal, RequestRecord, Usage, kind,
};
pub use settings::{Allocator, Compiler, Settings};

/// The argument with which [`Compiler::Child`] is run.
pub const COMPILE_ARG: &str = "compile-component";

/// Runs toolkits. Cloning is cheap.
#[derive(Clone)]
pub struct Sandbox {
    settings: Arc<Settings>,
}

/// Why the sandbox cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);

/// What the compile child does: reads a component from standard input, writes its compiled form to standard output.
#[must_use]
pub fn compile_child() -> ExitCode {
    ExitCode::FAILURE
}

impl Sandbox {
    /// Opens the sandbox.
    ///
    /// # Errors
    /// When the cache folder cannot be made private, or the engine cannot start.
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        Ok(Self { settings: Arc::new(settings) })
    }

    /// Checks and compiles a component. The same bytes again are cheap.
    ///
    /// # Errors
    /// See [`InstallError`]; nothing is kept then.
    pub async fn install(&self, wasm: Bytes) -> Result<Installed, InstallError> {
        let _ = (&self.settings, wasm);
        Err(InstallError::Unavailable("the sandbox is being built".to_owned()))
    }

    /// Runs one call in a fresh instance.
    ///
    /// Dropping the future ends the call.
    ///
    /// # Errors
    /// When nothing ran; a call that ran has an [`Outcome`].
    pub async fn call(&self, call: Call) -> Result<Outcome, Refusal> {
        drop(call);
        Err(Refusal::NotInstalled)
    }

    /// What the sandbox holds at this moment.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        Gauges::default()
    }
}
