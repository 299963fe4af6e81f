//! Runs one call of one toolkit in a sandbox.
//!
//! Problem: a toolkit is untrusted code.
//!
//! Guarantee: each call runs in a fresh instance of a WebAssembly component. The guest can import
//! only the contract. Its processor time, wall-clock time, memory, host calls, requests, log size
//! and result size are limited. The guest never holds a credential.
//!
//! The guarantee rests on three facts. No instance is reused between calls, so no data leaks between
//! tenants. The host adds credentials to requests after they leave the guest and removes them from
//! responses before the guest reads these. It verifies webhook requests for guests that import the
//! interface for it.
//!
//! [`Sandbox::install`] checks and compiles a component; [`Sandbox::call`] runs it. The modules at
//! the top say what goes in (`input`, `limits`, `grant`), what happens (`call`) and what comes out
//! (`outcome`, `failure`, `trace`). The folders: `contract` has the types of the contract, `engine`
//! turns bytes into machine code, `schedule` decides who may run, `toolkit` is what a guest can reach,
//! `program` runs programs of the host on untrusted input, `child` confines processes, `sign` signs
//! requests, `redact` removes secrets from what a guest reads and `cassette` records calls.

mod call;
pub mod cassette;
pub mod child;
mod contract;
mod digest;
mod engine;
mod failure;
mod files;
mod grant;
mod input;
mod limits;
mod observer;
mod outcome;
mod program;
mod redact;
mod refusal;
mod schedule;
mod secret;
mod settings;
mod sign;
mod toolkit;
mod trace;
mod trace_context;
mod webhook_signature;

#[cfg(test)]
#[path = "../tests/guest/mod.rs"]
mod guest;

use std::sync::Arc;

use bytes::Bytes;
use gate::Capacity;
use tokio::sync::Semaphore;

use cassette::{Cassette, CassetteSession};
use engine::{
    Runtime,
    cache::Cache,
    install,
    library::{Library, Loaded},
};
use program::Programs;
use schedule::{
    admission::CallAdmission, limiter::NodeMemory, quarantine::Quarantine, scheduler::GuestThreads,
    ticker::Ticker,
};
use toolkit::{imports::http, webhook_secrets::WebhookSecrets};

pub use digest::{Digest, InvalidDigest};
pub use engine::{
    check::{MAX_FUNCTION_BYTES, MAX_FUNCTIONS, import_advice, is_import_available},
    compile::compile_child,
    error::InstallError,
    install::Installed,
    open_page_map,
};
pub use grant::{Credential, Grant, GrantError};
pub use input::{Action, Call, Context, File, HandedOverSecret, Inbound, Policy, ProxyRequest};
pub use limits::{
    Limits, MAX_COMPONENT_BYTES, MAX_CORE_INSTANCES, MAX_MEMORIES, MAX_TABLE_ELEMENTS, MAX_TABLES,
};
pub use outcome::{
    Cause, Event, Failure, Gauges, Level, LogLine, Outcome, Output, ProxyResponse, RequestRecord,
    RequestSpan, Usage, kind,
};
pub use program::{
    FileChange, Preparation, Program, ProgramHost, ProgramLimits, ProgramOutcome, StoredFile,
};
pub use redact::STEPS_PER_BYTE;
pub use refusal::Refusal;
pub use schedule::{
    admission::call_shares,
    limiter::{Reservation, memory_shares},
};
pub use secret::{MAX_SECRET_BYTES, MAX_SECRETS, Secret};
pub use settings::{Allocator, Clock, Compiler, Settings};
pub use sign::{SignatureStamp, Signing, SigningError, digest};
pub use toolkit::{
    imports::http::MAX_PARTS,
    webhook_secrets::{MAX_SIGNED_BYTES_PER_CALL, MAX_SIGNED_MESSAGE_BYTES},
};
pub use trace_context::{RunTrace, SpanContext, SpanId, TraceId};
pub use webhook_signature::STANDARD_WEBHOOKS_PREFIX;

/// Maximum number of simultaneous compilations of components; further ones wait. Each takes one
/// processor and gigabytes of memory.
const MAX_COMPONENT_COMPILATIONS: usize = 2;

/// Argument that makes the program of [`Compiler::Child`] compile a component.
pub const COMPILE_ARG: &str = "compile-component";

/// Loaded component, ready to be called.
pub struct Component(Arc<Loaded>);

/// Installs and runs toolkits. Cloning is cheap.
#[derive(Clone)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    admission: CallAdmission,
    cache: Arc<Cache>,
    library: Arc<Library>,
    node: Arc<http::Node>,
    /// Threads of the node, which end with the sandbox.
    _threads: GuestThreads,
    ticker: Ticker,
    runtime: Arc<Runtime>,
    programs: Arc<Programs>,
    program_ticker: Ticker,
    /// Concurrency limit for compilations.
    compiling: Semaphore,
    quarantine: Quarantine,
}

/// Reason that the sandbox cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);

fn no_threads(cause: std::io::Error) -> OpenError {
    OpenError(format!("no threads for guests: {cause}"))
}

impl Sandbox {
    /// Opens the sandbox.
    ///
    /// # Errors
    /// Returns an error if the cache folder cannot be made private or if the engine cannot start.
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        let runtime = Runtime::start(&settings)
            .map(Arc::new)
            .map_err(|cause| OpenError(format!("the sandbox cannot start: {cause:#}")))?;
        let programs = Programs::start(engine::program_config())
            .map(Arc::new)
            .map_err(|cause| OpenError(format!("the sandbox cannot start: {cause:#}")))?;
        let folder = settings.cache.display();
        let cache = Cache::open(&settings.cache, settings.seal_key, &runtime.hash)
            .map(Arc::new)
            .map_err(|cause| {
                OpenError(format!(
                    "the folder `{folder}` for compiled toolkits cannot be used: {cause}"
                ))
            })?;
        let threads = GuestThreads::start(settings.guest_threads).map_err(no_threads)?;
        let inner = Inner {
            admission: CallAdmission::new(&settings),
            library: Arc::new(Library::new(
                runtime.clone(),
                cache.clone(),
                settings.resident_bytes,
            )?),
            cache,
            node: Arc::new(http::Node {
                net: settings.net.clone(),
                memory: NodeMemory::new(settings.node_memory),
                threads: threads.handle().clone(),
            }),
            _threads: threads,
            ticker: Ticker::start(&runtime.engine).map_err(no_threads)?,
            program_ticker: Ticker::start(&programs.engine).map_err(no_threads)?,
            programs,
            runtime,
            compiling: Semaphore::new(MAX_COMPONENT_COMPILATIONS),
            quarantine: Quarantine::default(),
            settings,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Checks and compiles a component. Installing the same bytes again is cheap.
    ///
    /// # Errors
    /// Returns an [`InstallError`]; nothing is kept in that case.
    pub async fn install(&self, wasm: Bytes) -> Result<Installed, InstallError> {
        let Inner {
            settings,
            runtime,
            cache,
            compiling,
            ..
        } = &*self.inner;
        install::install(wasm, &settings.compiler, compiling, runtime, cache).await
    }

    /// Runs one call in a fresh instance.
    ///
    /// Dropping the future ends the call.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if nothing ran. A call that ran has an [`Outcome`].
    pub async fn call(&self, call: Call) -> Result<Outcome, Refusal> {
        let component = self.load(&call.component).await?;
        self.run(component, Box::new(call), None, None, drop).await
    }

    /// Loads a component, unless it is loaded already.
    ///
    /// # Errors
    /// Returns [`Refusal::NotInstalled`] if this node does not have the component.
    pub async fn load(&self, component: &Digest) -> Result<Component, Refusal> {
        self.inner.library.get(component).await.map(Component)
    }

    /// Runs one call like [`Self::call`] and records it. Returns no cassette if it would hold more
    /// than `most` bytes of content.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if nothing ran.
    pub async fn record(
        &self,
        call: Call,
        most: usize,
    ) -> Result<(Outcome, Option<Box<Cassette>>), Refusal> {
        let component = self.load(&call.component).await?;
        self.call_or_cancel(component, Box::new(call), Some(most), drop)
            .await
    }

    /// Runs one call like [`Self::call`], or like [`Self::record`] if a size is given. If the
    /// future is dropped after the call started, its outcome with [`kind::CANCELLED`] is passed to
    /// `on_cancel`.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if nothing ran.
    pub async fn call_or_cancel(
        &self,
        component: Component,
        call: Box<Call>,
        max_cassette_bytes: Option<usize>,
        on_cancel: impl FnOnce(Outcome),
    ) -> Result<(Outcome, Option<Box<Cassette>>), Refusal> {
        let Some(max_bytes) = max_cassette_bytes else {
            let ended = self.run(component, call, None, None, on_cancel).await;
            return ended.map(|outcome| (outcome, None));
        };
        Box::pin(self.record_or_cancel(component, call, max_bytes, on_cancel)).await
    }

    async fn record_or_cancel(
        &self,
        component: Component,
        call: Box<Call>,
        max_bytes: usize,
        on_cancel: impl FnOnce(Outcome),
    ) -> Result<(Outcome, Option<Box<Cassette>>), Refusal> {
        let session = Arc::new(CassetteSession::record(max_bytes));
        let withhold = component.0.toolkit.verifies_webhooks;
        let (action, _) = WebhookSecrets::take(call.action.clone(), &call.policy, withhold);
        let recording = Box::new(Cassette::begin(&call, &action));
        let outcome = self
            .run(component, call, Some(session.clone()), None, on_cancel)
            .await?;
        let cassette = recording.end(&session, &outcome);
        Ok((outcome, cassette))
    }

    /// Replays a recorded call on the given component. No request is sent; all external input comes
    /// from the cassette.
    ///
    /// The result equals the recorded one if the component is the recorded one. A call that differs
    /// from the recording ends with [`kind::REPLAY_DIFFERS`] and a message that shows the
    /// difference.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if nothing ran.
    pub async fn replay(
        &self,
        component: Digest,
        limits: Limits,
        cassette: &Cassette,
    ) -> Result<Outcome, Refusal> {
        let call = Call {
            component,
            tenant: Arc::from("replay"),
            action: cassette.call.action(),
            context: Context {
                run_id: cassette.run_id.clone(),
                user_id: cassette.user_id.clone(),
                fields: cassette.fields.clone(),
            },
            policy: Arc::default(),
            grant: None,
            limits,
            files: cassette
                .files
                .iter()
                .map(cassette::InputFile::file)
                .collect(),
            files_memory: None,
            state: cassette
                .state
                .iter()
                .map(|(key, value)| (key.clone(), value.bytes().into()))
                .collect(),
            trace: None,
        };
        let component = self.load(&call.component).await?;
        self.run(
            component,
            Box::new(call),
            Some(Arc::new(CassetteSession::replay(cassette))),
            Some(cassette.remaining_ms),
            drop,
        )
        .await
    }

    /// Sends one proxy request with the rules that apply to the requests of a guest. If the future
    /// is dropped after the request started, its outcome with [`kind::CANCELLED`] is passed to
    /// `on_cancel`.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if no capacity is free; nothing was sent in that case.
    pub async fn send_proxy_request(
        &self,
        request: ProxyRequest,
        on_cancel: impl FnOnce(Outcome<ProxyResponse>),
    ) -> Result<Outcome<ProxyResponse>, Refusal> {
        let inner = &*self.inner;
        let permit = inner.admission.acquire(&request.tenant).await?;
        let memory = inner.node.memory.reserve_for_start(&request.tenant)?;
        let cpu_permits = permit.cpu_permits();
        Ok(http::send_proxy_request(&inner.node, memory, cpu_permits, request, on_cancel).await)
    }

    async fn run(
        &self,
        Component(loaded): Component,
        call: Box<Call>,
        session: Option<Arc<CassetteSession>>,
        remaining_ms: Option<u64>,
        on_cancel: impl FnOnce(Outcome),
    ) -> Result<Outcome, Refusal> {
        let inner = &*self.inner;
        if inner.quarantine.holds(&call.component) {
            return Err(Refusal::Quarantined);
        }
        let permit = inner.admission.acquire(&call.tenant).await?;
        let memory = inner.node.memory.reserve_for_start(&call.tenant)?;
        let context = call::CallContext {
            runtime: &inner.runtime,
            node: &inner.node,
            memory,
            clock: &inner.settings.clock,
            quarantine: &inner.quarantine,
            session,
            remaining_ms,
        };
        let active = inner.ticker.enter();
        call::run(context, loaded, call, permit, active, on_cancel).await
    }

    /// Compiles a program of the host if it is not compiled yet. The module is trusted: it is not
    /// checked as components of toolkits are.
    ///
    /// # Errors
    /// Returns an [`InstallError`]; nothing is kept in that case.
    pub async fn install_program(&self, wasm: Bytes) -> Result<Digest, InstallError> {
        let Inner {
            settings,
            cache,
            compiling,
            ..
        } = &*self.inner;
        install::install_program(wasm, &settings.compiler, compiling, cache).await
    }

    /// Returns true if a program is compiled on this node. Its file is verified when it is loaded.
    #[must_use]
    pub fn has_program(&self, module: &Digest) -> bool {
        self.inner.cache.size(module).is_some()
    }

    /// Runs a program in a fresh instance.
    ///
    /// Dropping the future ends the run.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if nothing ran. A started run has a [`ProgramOutcome`].
    pub async fn run_program(&self, program: Program) -> Result<ProgramOutcome, Refusal> {
        let inner = &*self.inner;
        let loaded = inner.programs.get(&inner.cache, program.module).await?;
        let permit = inner.admission.acquire(&program.tenant).await?;
        let memory = inner.node.memory.reserve_for_start(&program.tenant)?;
        let context = program::ProgramContext {
            engine: &inner.programs.engine,
            memory,
            threads: &inner.node.threads,
            clock: &inner.settings.clock,
        };
        let active = inner.program_ticker.enter();
        program::run(context, loaded, program, permit, active).await
    }

    /// Reserves memory of the node for bytes that the caller holds for a tenant, such as the files of
    /// a call.
    ///
    /// # Errors
    /// Returns [`Refusal::TenantBusy`] or [`Refusal::NodeBusy`] if the tenant may not have it now.
    pub fn try_reserve_memory(
        &self,
        tenant: &Arc<str>,
        bytes: u64,
    ) -> Result<Reservation, Refusal> {
        let memory = self.inner.node.memory.reserve(tenant);
        let grown = memory.try_grow(bytes);
        grown.map_err(|busy| Refusal::busy(Capacity::Memory, busy))?;
        Ok(memory)
    }

    /// Returns the current load of the sandbox.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        let (live, queued) = self.inner.admission.counts();
        Gauges {
            live,
            queued,
            loaded: self.inner.library.len(),
            memory: self.inner.node.memory.used(),
        }
    }

    /// Returns the allocator in use. It is the configured one, or on demand if the address space is
    /// too small for a pool.
    #[must_use]
    pub fn allocator(&self) -> Allocator {
        self.inner.runtime.allocator
    }
}
