//! Runs one call: fresh store, limits, deadline, execution, and release of everything the call
//! owned.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use bytes::Bytes;
use tokio::runtime::Handle;
use wasmtime::{Store, UpdateDeadline};

use crate::{
    Action, Answer, Call, Clock, Event, Failure, File, Inbound, Limits, Outcome, Refusal, Usage,
    abi::v1::types,
    admission::Permit,
    cassette::Tape,
    engine::Runtime,
    failure::{self, over_size},
    host::{
        blob::Files,
        http::{Node, Outgoing},
    },
    library::Loaded,
    limiter::{Limiter, NodeMemory, Reservation},
    meter::Meter,
    quarantine::Quarantine,
    state::State,
    ticker::{Living, TICK},
    trace::Trace,
    turns::{self, Stopped},
};

/// Maximum number of handles to the guest's own resources.
const HANDLES: usize = 256;
/// Bytes that one host call may carry in addition to bodies and results.
const HOSTCALL_SLACK: u64 = 1 << 20;
/// Number of ticks before the first epoch callback. A short call never reaches it.
const FIRST_LOOK: u64 = 2;

const CURSOR_BYTES: usize = 64 << 10;
const EVENTS: usize = 10_000;
const EVENT_ID_BYTES: usize = 512;
const MEDIA_TYPE_BYTES: usize = 128;

/// Parts of the sandbox that a call uses.
pub(crate) struct Place<'s> {
    pub(crate) runtime: &'s Runtime,
    pub(crate) memory: &'s Arc<NodeMemory>,
    pub(crate) threads: &'s Handle,
    pub(crate) net: &'s net::Client,
    pub(crate) clock: &'s Clock,
    pub(crate) quarantine: &'s Quarantine,
    pub(crate) tape: Option<Arc<Tape>>,
    /// Recorded remaining time that the guest is told during a replay.
    pub(crate) remaining_ms: Option<u64>,
}

/// Way in which a guest ended.
enum Ended {
    Answered {
        answer: Result<Answer, Failure>,
        files: Vec<File>,
        memory: Reservation,
        state: BTreeMap<String, Vec<u8>>,
    },
    Broken(Failure),
    /// No instance slot was free: nothing ran.
    NoSlot,
}

/// Runs a call to its end.
pub(crate) async fn run(
    place: Place<'_>,
    loaded: Arc<Loaded>,
    call: Call,
    permit: Permit,
    living: Living,
) -> Result<Outcome, Refusal> {
    let limits = call.limits.clamped();
    let started = Instant::now();
    let deadline = started + limits.wall;
    let meter = Arc::new(Meter::default());
    let trace = Arc::new(Trace::new(started, limits));
    let before = call.state.clone();
    let node = Node {
        net: place.net,
        memory: place.memory,
        threads: place.threads,
        busy: &permit.busy,
    };
    let outgoing = Outgoing::new(node, call.policy, call.grant, limits, trace.clone());
    let state = State {
        limiter: Limiter::new(place.memory.reserve(), limits.memory, meter.clone()),
        meter: meter.clone(),
        trace: trace.clone(),
        outgoing: Arc::new(outgoing),
        files: Files::new(call.files, place.memory.reserve(), limits),
        kept: call.state,
        clock: place.clock.clone(),
        tape: place.tape.clone(),
        deadline,
        host_calls: limits.host_calls,
        instantiated: false,
        table: State::table(),
        wasi: None,
    };
    let context = types::Context {
        run_id: call.context.run_id,
        user_id: call.context.user_id,
        fields: call.context.fields,
        remaining_ms: place.remaining_ms.unwrap_or(limits.wall.as_millis() as u64),
    };
    let store = store(place.runtime, state, limits);
    let busy = permit.busy.clone();
    let action = call.action;
    let guest = async move {
        let ended = live(store, &loaded, action, context, limits).await;
        // These are held until the store is dropped.
        drop((permit, living));
        ended
    };
    let ended = turns::run(
        Box::pin(guest),
        meter.clone(),
        place.threads,
        busy,
        deadline,
    )
    .await;
    let (answer, files, memory, state) = match ended {
        Ok(Ended::Answered {
            answer: Ok(answer),
            files,
            memory,
            state,
        }) => (Ok(answer), files, Some(memory), state),
        Ok(
            Ended::Answered {
                answer: Err(failure),
                ..
            }
            | Ended::Broken(failure),
        ) => (Err(failure), Vec::new(), None, before),
        Ok(Ended::NoSlot) => return Err(Refusal::NodeBusy),
        Err(stopped) => {
            if let Stopped::Panicked(text) = &stopped {
                tracing::error!(panic = text, component = %call.component, "a host function panicked");
                place.quarantine.panicked(&call.component, Instant::now());
            }
            (
                Err(failure::stopped(&stopped, limits)),
                Vec::new(),
                None,
                before,
            )
        }
    };
    let answer = match place.tape.and_then(|tape| tape.differs()) {
        Some(how) => Err(failure::differs(how)),
        None => answer,
    };
    let (log, requests) = trace.take();
    let usage = Usage {
        cpu: meter.used(),
        wall: started.elapsed(),
        peak_memory: meter.peak_memory(),
        host_calls: meter.host_calls(),
    };
    Ok(Outcome {
        answer,
        requests,
        log,
        usage,
        files,
        memory,
        state,
    })
}

/// Creates a store with every limit set.
fn store(runtime: &Runtime, state: State, limits: Limits) -> Store<State> {
    let meter = state.meter.clone();
    let mut store = Store::new(&runtime.engine, state);
    store.limiter(|state| &mut state.limiter);
    // The fuel of each host call covers its arguments or the guest's result.
    let fuel = 2 * limits.result.max(limits.request_body) + HOSTCALL_SLACK;
    store.set_hostcall_fuel(usize::try_from(fuel).unwrap_or(usize::MAX));
    store.set_max_component_handles(HANDLES);
    store.set_epoch_deadline(FIRST_LOOK);
    store.epoch_deadline_callback(move |_| Ok(tick(&meter, limits)));
    store
}

/// Decides what happens to a guest that is computing when a tick arrives.
fn tick(meter: &Meter, limits: Limits) -> UpdateDeadline {
    let used = meter.used_now();
    // WASI functions also count their calls but cannot refuse one.
    if used > limits.cpu || meter.host_calls() > limits.host_calls {
        return UpdateDeadline::Interrupt;
    }
    if meter.is_long() {
        meter.yields();
        return UpdateDeadline::Yield(1);
    }
    // Ticks also pass while a guest waits; only processor time counts.
    if used < TICK {
        return UpdateDeadline::Continue(1);
    }
    meter.set_long();
    meter.yields();
    UpdateDeadline::Yield(1)
}

/// Runs the guest from instantiation to the last byte of its result.
async fn live(
    mut store: Store<State>,
    loaded: &Loaded,
    action: Action,
    context: types::Context,
    limits: Limits,
) -> Ended {
    match invoke(&mut store, loaded, action, &context, limits).await {
        Ok(answer) => Ended::Answered {
            answer,
            files: store.data().files.take_made(),
            memory: store.data().files.take_room(),
            state: std::mem::take(&mut store.data_mut().kept),
        },
        Err(cause) if cause.is::<wasmtime::PoolConcurrencyLimitError>() => Ended::NoSlot,
        Err(cause) => Ended::Broken(failure::broken(&cause, store.data(), limits)),
    }
}

async fn invoke(
    store: &mut Store<State>,
    loaded: &Loaded,
    action: Action,
    context: &types::Context,
    limits: Limits,
) -> wasmtime::Result<Result<Answer, Failure>> {
    let toolkit = &loaded.toolkit;
    let instance = toolkit.instantiate(store).await?;
    store.data_mut().instantiated = true;
    Ok(match action {
        Action::Execute { tool, arguments } => {
            let answer = toolkit
                .execute(store, &instance, (&tool, &arguments, context))
                .await?;
            answer
                .map_err(failure::told)
                .and_then(|bytes| data(bytes, limits))
        }
        Action::Poll {
            trigger,
            config,
            cursor,
        } => {
            let answer = toolkit
                .poll(store, &instance, (&trigger, &config, &cursor, context))
                .await?;
            answer
                .map_err(failure::told)
                .and_then(|polled| self::polled(polled, limits))
        }
        Action::Receive {
            trigger,
            config,
            request,
        } => {
            let request = inbound(request);
            let answer = toolkit
                .receive(store, &instance, (&trigger, &config, &request, context))
                .await?;
            answer
                .map_err(failure::told)
                .and_then(|received| self::received(received, limits))
        }
    })
}

fn inbound(request: Inbound) -> types::Inbound {
    let Inbound {
        method,
        path,
        headers,
        body,
    } = request;
    types::Inbound {
        method,
        path,
        headers,
        body: body.into(),
    }
}

fn data(bytes: Vec<u8>, limits: Limits) -> Result<Answer, Failure> {
    if bytes.len() as u64 > limits.result {
        return Err(over_size(limits));
    }
    json(&bytes, "the answer")?;
    Ok(Answer::Data(bytes.into()))
}

fn polled(polled: types::Polled, limits: Limits) -> Result<Answer, Failure> {
    if polled.cursor.len() > CURSOR_BYTES {
        return Err(failure::invalid(format!(
            "the cursor has more than {CURSOR_BYTES} bytes"
        )));
    }
    let events = events(polled.events, limits)?;
    Ok(Answer::Polled {
        events,
        cursor: polled.cursor.into(),
        more: polled.more,
    })
}

fn received(received: types::Received, limits: Limits) -> Result<Answer, Failure> {
    let media_type = received.media_type;
    let plain = media_type.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if !(200..600).contains(&received.status) || media_type.len() > MEDIA_TYPE_BYTES || !plain {
        return Err(failure::invalid(
            "the answer to the webhook request has no proper status or media type",
        ));
    }
    if received.body.len() as u64 > limits.result {
        return Err(over_size(limits));
    }
    let events = events(received.events, limits)?;
    Ok(Answer::Received {
        events,
        status: received.status,
        media_type,
        body: received.body.into(),
    })
}

fn events(events: Vec<types::Event>, limits: Limits) -> Result<Vec<Event>, Failure> {
    let size: u64 = events
        .iter()
        .map(|event| (event.id.len() + event.payload.len()) as u64)
        .sum();
    if size > limits.result || events.len() > EVENTS {
        return Err(over_size(limits));
    }
    let event = |event: types::Event| {
        if event.id.is_empty() || event.id.len() > EVENT_ID_BYTES {
            return Err(failure::invalid(format!(
                "an event's id has no bytes, or more than {EVENT_ID_BYTES}"
            )));
        }
        json(&event.payload, "an event's payload")?;
        Ok(Event {
            id: event.id,
            payload: Bytes::from(event.payload),
        })
    };
    events.into_iter().map(event).collect()
}

/// Refuses bytes that are not JSON or that are nested deeper than the recursion limit of the
/// parser.
fn json(bytes: &[u8], what: &str) -> Result<(), Failure> {
    let invalid =
        |cause: &dyn std::fmt::Display| failure::invalid(format!("{what} is not JSON: {cause}"));
    let text = std::str::from_utf8(bytes).map_err(|cause| invalid(&cause))?;
    serde_json::from_str::<serde::de::IgnoredAny>(text)
        .map(drop)
        .map_err(|cause| invalid(&cause))
}
