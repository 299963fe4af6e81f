//! Runs one call: fresh store, limits, deadline, execution, and release of everything the call
//! owned.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use gate::Capacity;
use scopeguard::ScopeGuard;
use tokio::runtime::Handle;
use wasmtime::{Store, UpdateDeadline};

use crate::{
    Action, Call, Clock, Event, Failure, File, Inbound, Limits, Outcome, Output, Refusal,
    cassette::CassetteSession,
    contract::v1::types,
    engine::{Runtime, library::Loaded},
    failure::{self, over_size},
    files::Files,
    observer::Observer,
    redact::Redactor,
    schedule::{
        admission::Permit,
        limiter::{Limiter, Reservation},
        meter::Meter,
        quarantine::Quarantine,
        scheduler::{self, Stopped},
        ticker::{ActiveGuard, TICK_INTERVAL},
    },
    toolkit::{
        State,
        abi::v1::Toolkit,
        imports::http::{LazyOutgoing, Node, OutgoingParts},
        webhook_secrets::{self, WebhookSecrets},
    },
};

/// Maximum number of handles to the guest's own resources.
const MAX_GUEST_HANDLES: usize = 256;
/// Bytes that one host call may carry in addition to bodies and results.
const HOSTCALL_SLACK_BYTES: u64 = 1 << 20;
/// Number of ticks before the first epoch callback. A short call never reaches it.
pub(crate) const FIRST_CALLBACK_TICKS: u64 = 2;

const MAX_CURSOR_BYTES: usize = 64 << 10;
const MAX_EVENTS: usize = 10_000;
const MAX_EVENT_ID_BYTES: usize = 512;
const MAX_MEDIA_TYPE_BYTES: usize = 128;

/// Parts of the sandbox that a call uses.
pub(crate) struct CallContext<'s> {
    pub(crate) runtime: &'s Runtime,
    pub(crate) node: &'s Arc<Node>,
    /// Empty reservation of the tenant.
    pub(crate) memory: Reservation,
    pub(crate) clock: &'s Clock,
    pub(crate) quarantine: &'s Quarantine,
    pub(crate) session: Option<Arc<CassetteSession>>,
    /// Recorded remaining time that the guest is told during a replay.
    pub(crate) remaining_ms: Option<u64>,
}

/// Way in which a guest ended.
enum GuestEnd {
    Returned {
        output: Output,
        files: Vec<File>,
        memory: Option<Reservation>,
        state: BTreeMap<String, Vec<u8>>,
    },
    Failed(Failure),
    /// No instance slot was free: nothing ran.
    NoSlot,
}

/// Runs a call to its end. If the future is dropped after the call started, its outcome is passed
/// to `on_cancel`.
pub(crate) async fn run(
    context: CallContext<'_>,
    loaded: Arc<Loaded>,
    mut call: Box<Call>,
    permit: Permit,
    active: ActiveGuard,
    on_cancel: impl FnOnce(Outcome),
) -> Result<Outcome, Refusal> {
    call.limits = call.limits.clamped();
    let max_wall = call.limits.wall;
    let started = Instant::now();
    let deadline = started + max_wall;
    let observer = Observer::new(started, &call.limits);
    let meter = observer.meter.clone();
    let node = context.node;
    let component = call.component;
    let initial_state = call.state.clone();
    let withhold = loaded.toolkit.verifies_webhooks;
    let prepared = prepare(&context, call, withhold, &permit, &observer, deadline);
    let (store, mut action, guest_context) = prepared;
    let cpu_permits = permit.cpu_permits().clone();
    let guest = async move {
        // These are declared before the store, so that they are held until it is dropped.
        let _held = (permit, active);
        let mut store = store;
        let host_work = store.data().host_work.clone();
        let invoking = invoke(&mut store, &loaded.toolkit, &mut action, &guest_context);
        let invoked = host_work.run_guest(invoking).await;
        guest_end(invoked, &mut store)
    };
    let running = scopeguard::guard((observer, initial_state), |(observer, state)| {
        on_cancel(Outcome {
            state,
            ..observer.outcome(Err(failure::cancelled()))
        });
    });
    let ended = scheduler::run(Box::pin(guest), meter, &node.threads, cpu_permits, deadline).await;
    let (observer, initial_state) = ScopeGuard::into_inner(running);
    let failed = |failure| Outcome {
        state: initial_state,
        ..observer.outcome(Err(failure))
    };
    let mut outcome = match ended {
        Ok(GuestEnd::Returned {
            output,
            files,
            memory,
            state,
        }) => Outcome {
            files,
            memory,
            state,
            ..observer.outcome(Ok(output))
        },
        Ok(GuestEnd::Failed(failure)) => failed(failure),
        Ok(GuestEnd::NoSlot) => return Err(Refusal::NodeBusy(Capacity::Calls)),
        Err(stopped) => {
            if let Stopped::Panicked(text) = &stopped {
                tracing::error!(panic = text, %component, "a host function panicked");
                context.quarantine.panicked(&component, Instant::now());
            }
            failed(failure::from_stopped(&stopped, max_wall))
        }
    };
    let session = context.session;
    if let Some(how) = session.and_then(|session| session.take_difference()) {
        outcome.output = Err(failure::replay_difference(how));
    }
    Ok(outcome)
}

/// Creates the store of a call, whose limits are at most the ceiling. Returns it with the action
/// and the context that the guest gets.
fn prepare(
    context: &CallContext<'_>,
    call: Box<Call>,
    withhold: bool,
    permit: &Permit,
    observer: &Observer,
    deadline: Instant,
) -> (Store<State>, Action, types::Context) {
    let max_wall_ms = call.limits.wall.as_millis() as u64;
    let (action, webhook_secrets) = WebhookSecrets::take(call.action, &call.policy, withhold);
    let trace = observer.trace.clone();
    if !webhook_secrets.is_empty() {
        trace.redact_input(webhook_secrets.redactor());
    }
    if let Some(handed_over) = &call.policy.webhook_secret {
        trace.redact_input(Redactor::new([&handed_over.secret]));
    }
    let node = context.node;
    let meter = observer.meter.clone();
    let guest_memory = context.memory.empty();
    let created_memory = context.memory.empty();
    let state = State {
        limiter: Limiter::new(guest_memory, call.limits.memory, meter.clone()),
        meter,
        host_work: Arc::default(),
        trace,
        files: Files::new(call.files, call.files_memory, created_memory, &call.limits),
        outgoing: LazyOutgoing::new(OutgoingParts {
            node: node.clone(),
            tenant: call.tenant,
            cpu_permits: permit.cpu_permits().clone(),
            policy: call.policy,
            grant: call.grant,
            limits: call.limits,
            run_trace: call.trace,
            caller_runtime: Handle::current(),
            max_decoded_file_bytes: 0,
        }),
        guest_state: call.state,
        webhook_secrets,
        clock: context.clock.clone(),
        session: context.session.clone(),
        deadline,
        instantiated: false,
        table: State::new_table(),
        wasi: None,
    };
    let guest_context = types::Context {
        run_id: call.context.run_id,
        user_id: call.context.user_id,
        fields: call.context.fields,
        remaining_ms: context.remaining_ms.unwrap_or(max_wall_ms),
    };
    (store(context.runtime, state), action, guest_context)
}

/// Creates a store with every limit set.
fn store(runtime: &Runtime, state: State) -> Store<State> {
    let limits = state.limits();
    // The fuel of each host call covers its arguments or the guest's result.
    let fuel = 2 * limits.result.max(limits.request_body) + HOSTCALL_SLACK_BYTES;
    let mut store = Store::new(&runtime.engine, state);
    store.limiter(|state| &mut state.limiter);
    store.set_hostcall_fuel(usize::try_from(fuel).unwrap_or(usize::MAX));
    store.set_max_component_handles(MAX_GUEST_HANDLES);
    store.set_epoch_deadline(FIRST_CALLBACK_TICKS);
    store.epoch_deadline_callback(|store| {
        let state = store.data();
        let limits = state.limits();
        Ok(tick(&state.meter, limits.cpu, limits.host_calls))
    });
    store
}

/// Decides what happens to a computing guest when a tick arrives.
pub(crate) fn tick(meter: &Meter, max_cpu: Duration, max_host_calls: u32) -> UpdateDeadline {
    let used = meter.used_now();
    // WASI functions also count their calls but cannot refuse one.
    if used > max_cpu || meter.host_calls() > max_host_calls {
        return UpdateDeadline::Interrupt;
    }
    if meter.is_long() {
        meter.set_yielded();
        return UpdateDeadline::Yield(1);
    }
    // Ticks also pass while a guest waits; only processor time counts.
    if used < TICK_INTERVAL {
        return UpdateDeadline::Continue(1);
    }
    meter.set_long();
    meter.set_yielded();
    UpdateDeadline::Yield(1)
}

/// Returns the way in which a guest ended, with everything that the caller gets from its store.
fn guest_end(
    invoked: wasmtime::Result<Result<Output, Failure>>,
    store: &mut Store<State>,
) -> GuestEnd {
    match invoked {
        Ok(Err(failure)) => GuestEnd::Failed(failure),
        Ok(Ok(output)) => GuestEnd::Returned {
            output,
            files: store.data().files.take_created(),
            memory: store.data().files.take_memory(),
            state: std::mem::take(&mut store.data_mut().guest_state),
        },
        Err(cause) if cause.is::<wasmtime::PoolConcurrencyLimitError>() => GuestEnd::NoSlot,
        Err(cause) => {
            let state = store.data();
            GuestEnd::Failed(failure::from_engine_error(
                &cause,
                &state.limiter,
                &state.meter,
                state.instantiated,
                state.limits(),
            ))
        }
    }
}

/// Runs the guest from instantiation to the last byte of its result. Takes the request of a webhook
/// out of the action.
async fn invoke(
    store: &mut Store<State>,
    toolkit: &Toolkit,
    action: &mut Action,
    guest_context: &types::Context,
) -> wasmtime::Result<Result<Output, Failure>> {
    let instance = toolkit.instantiate(store).await?;
    store.data_mut().instantiated = true;
    Ok(match action {
        Action::Execute { tool, arguments } => {
            let output = toolkit
                .execute(&mut *store, &instance, (&*tool, &*arguments, guest_context))
                .await?;
            output
                .map_err(failure::from_tool_error)
                .and_then(|bytes| tool_output(bytes, store.data().limits()))
        }
        Action::Poll {
            trigger,
            config,
            cursor,
        } => {
            let output = toolkit
                .poll(
                    &mut *store,
                    &instance,
                    (&*trigger, &*config, &*cursor, guest_context),
                )
                .await?;
            output
                .map_err(failure::from_tool_error)
                .and_then(|polled| poll_output(polled, store.data().limits()))
        }
        Action::Receive {
            trigger,
            config,
            request,
        } => {
            let request = to_inbound(std::mem::take(request));
            let output = toolkit
                .receive(
                    &mut *store,
                    &instance,
                    (&*trigger, &*config, &request, guest_context),
                )
                .await?;
            let redactor = store.data().trace.redactor();
            output
                .map_err(|error| {
                    failure::from_tool_error(webhook_secrets::redacted_error(error, &redactor))
                })
                .and_then(|received| receive_output(received, store.data().limits()))
                .and_then(|output| webhook_secrets::redacted(output, &redactor))
        }
    })
}

fn to_inbound(request: Inbound) -> types::Inbound {
    types::Inbound {
        method: request.method,
        path: request.path,
        headers: request.headers,
        body: request.body.into(),
    }
}

fn tool_output(bytes: Vec<u8>, limits: &Limits) -> Result<Output, Failure> {
    if bytes.len() as u64 > limits.result {
        return Err(over_size(limits));
    }
    check_json(&bytes, "the tool's result")?;
    Ok(Output::Data(bytes.into()))
}

fn poll_output(polled: types::Polled, limits: &Limits) -> Result<Output, Failure> {
    if polled.cursor.len() > MAX_CURSOR_BYTES {
        return Err(failure::invalid(format!(
            "the cursor has more than {MAX_CURSOR_BYTES} bytes"
        )));
    }
    let events = events(polled.events, limits)?;
    Ok(Output::Polled {
        events,
        cursor: polled.cursor.into(),
        more: polled.more,
    })
}

fn receive_output(received: types::Received, limits: &Limits) -> Result<Output, Failure> {
    let media_type = received.media_type;
    let plain = media_type.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if !(200..600).contains(&received.status) || media_type.len() > MAX_MEDIA_TYPE_BYTES || !plain {
        return Err(failure::invalid(
            "the response to the webhook request has an invalid status or media type",
        ));
    }
    if received.body.len() as u64 > limits.result {
        return Err(over_size(limits));
    }
    let events = events(received.events, limits)?;
    Ok(Output::Received {
        events,
        status: received.status,
        media_type,
        body: received.body.into(),
    })
}

fn events(events: Vec<types::Event>, limits: &Limits) -> Result<Vec<Event>, Failure> {
    let size: u64 = events
        .iter()
        .map(|event| (event.id.len() + event.payload.len()) as u64)
        .sum();
    if size > limits.result || events.len() > MAX_EVENTS {
        return Err(over_size(limits));
    }
    events.into_iter().map(checked_event).collect()
}

fn checked_event(event: types::Event) -> Result<Event, Failure> {
    if event.id.is_empty() || event.id.len() > MAX_EVENT_ID_BYTES {
        return Err(failure::invalid(format!(
            "an event's id is empty or has more than {MAX_EVENT_ID_BYTES} bytes"
        )));
    }
    check_json(&event.payload, "an event's payload")?;
    Ok(Event {
        id: event.id,
        payload: Bytes::from(event.payload),
    })
}

/// Refuses bytes that are not JSON or that are nested deeper than the recursion limit of the
/// parser.
fn check_json(bytes: &[u8], what: &str) -> Result<(), Failure> {
    let text = std::str::from_utf8(bytes).map_err(|cause| not_json(what, &cause))?;
    serde_json::from_str::<serde::de::IgnoredAny>(text)
        .map(drop)
        .map_err(|cause| not_json(what, &cause))
}

fn not_json(what: &str, cause: &dyn std::fmt::Display) -> Failure {
    failure::invalid(format!("{what} is not JSON: {cause}"))
}
