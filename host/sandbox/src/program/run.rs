//! Runs one program: fresh store, limits, deadline, execution, and release of everything it owned.

use std::{sync::Arc, time::Instant};

use tokio::runtime::Handle;
use wasmtime::{InstancePre, Store};

use super::{
    FileChange, Program, ProgramLimits, ProgramOutcome, State, output::Output, wasi::Exit,
};
use crate::{
    Clock, Failure, Refusal, Reservation, Usage,
    call::{FIRST_CALLBACK_TICKS, tick},
    failure,
    program::files::Files,
    schedule::{
        admission::Permit,
        limiter::Limiter,
        meter::Meter,
        scheduler::{self, Stopped},
        ticker::ActiveGuard,
    },
};

/// Parts of the sandbox that a run uses.
pub(crate) struct ProgramContext<'s> {
    pub(crate) engine: &'s wasmtime::Engine,
    /// Empty reservation of the tenant.
    pub(crate) memory: Reservation,
    pub(crate) threads: &'s Handle,
    pub(crate) clock: &'s Clock,
}

/// Exit of a program and its changes.
type Ended = Result<(i32, Vec<FileChange>, Reservation), Failure>;

/// Runs a program to its end.
pub(crate) async fn run(
    context: ProgramContext<'_>,
    pre: Arc<InstancePre<State>>,
    program: Program,
    permit: Permit,
    active: ActiveGuard,
) -> Result<ProgramOutcome, Refusal> {
    let limits = program.limits.clamped();
    let started = Instant::now();
    let deadline = started + limits.wall;
    let meter: Arc<Meter> = Arc::default();
    let output = Arc::new(Output::new(limits.output, context.memory.empty()));
    let entry = program.entry;
    let store = store(&context, program, meter.clone(), output.clone(), started);
    let cpu_permits = permit.cpu_permits().clone();
    let guest = async move {
        let ended = run_guest(store, &pre, entry).await;
        // These are held until the store is dropped.
        drop((permit, active));
        ended
    };
    let ended = scheduler::run(
        Box::pin(guest),
        meter.clone(),
        context.threads,
        cpu_permits,
        deadline,
    )
    .await
    .unwrap_or_else(|stopped| {
        if let Stopped::Panicked(text) = &stopped {
            tracing::error!(panic = text, "a host function of a program panicked");
        }
        Err(failure::from_stopped(&stopped, limits.wall))
    });
    let (stdout, stderr, memory) = output.take();
    let (exit, changes) = match ended {
        Ok((exit, changes, files)) => {
            memory.take_over(&files);
            (Ok(exit), changes)
        }
        Err(failure) => (Err(failure), Vec::new()),
    };
    Ok(ProgramOutcome {
        exit,
        stdout,
        stderr,
        changes,
        usage: Usage {
            cpu: meter.used(),
            wall: started.elapsed(),
            peak_memory: meter.peak_memory(),
            host_calls: meter.host_calls(),
        },
        memory,
    })
}

/// Creates the store of a program with every limit set.
fn store(
    context: &ProgramContext<'_>,
    program: Program,
    meter: Arc<Meter>,
    output: Arc<Output>,
    started: Instant,
) -> Store<State> {
    let limits = program.limits.clamped();
    let memory = &context.memory;
    let state = State {
        limiter: Limiter::new(memory.empty(), limits.memory, meter.clone()),
        meter,
        limits,
        preparation: program.preparation,
        files: Files::new(&program, limits, memory.empty()),
        arguments: program.arguments,
        environment: program
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect(),
        descriptors: State::initial_descriptors(),
        output,
        host: program.host,
        threads: Handle::current(),
        clock: context.clock.clone(),
        started,
        deadline: started + limits.wall,
        response: None,
        messages: memory.empty(),
        memory: None,
    };
    let mut store = Store::new(context.engine, state);
    store.limiter(|state| &mut state.limiter);
    store.set_epoch_deadline(FIRST_CALLBACK_TICKS);
    store.epoch_deadline_callback(|store| {
        let state = store.data();
        Ok(tick(&state.meter, state.max_cpu(), u32::MAX))
    });
    store
}

async fn run_guest(
    mut store: Store<State>,
    pre: &InstancePre<State>,
    entry: &'static str,
) -> Ended {
    let exit = match invoke(&mut store, pre, entry).await {
        Ok(exit) => exit,
        Err(cause) => match cause.downcast_ref::<Exit>() {
            Some(Exit(exit)) => *exit,
            None => return Err(from_engine_error(&cause, store.data())),
        },
    };
    let (changes, memory) = store.into_data().files.into_changes();
    Ok((exit, changes, memory))
}

async fn invoke(
    store: &mut Store<State>,
    pre: &InstancePre<State>,
    entry: &str,
) -> wasmtime::Result<i32> {
    let instance = pre.instantiate_async(&mut *store).await?;
    let memory = instance.get_memory(&mut *store, "memory");
    store.data_mut().memory = memory;
    let entry = instance.get_typed_func::<(), i32>(&mut *store, entry)?;
    entry.call_async(store, ()).await
}

fn from_engine_error(cause: &wasmtime::Error, state: &State) -> Failure {
    tracing::debug!(cause = format!("{cause:#}"), "a program was ended");
    let ProgramLimits { memory, .. } = state.limits;
    let cpu = state.max_cpu();
    let is_instantiated = state.memory.is_some();
    failure::from_trap(cause, &state.limiter, is_instantiated, memory, cpu)
        .unwrap_or_else(|| failure::violated(cause))
}
