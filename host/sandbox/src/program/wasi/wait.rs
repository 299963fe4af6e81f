//! Waits of a program.

use std::time::Duration;

use wasmtime::Caller;

use super::{Done, Errno, environment::now};
use crate::program::{State, memory};

const SUBSCRIPTION_BYTES: u32 = 48;
const EVENT_BYTES: usize = 32;
/// Maximum number of events in one wait of a program.
const MAX_SUBSCRIPTIONS: u32 = 64;
const CLOCK_EVENT: u8 = 0;
const UNTIL_TIME: u16 = 1;
/// Time beyond the end of a run that a wait may last. A program that oversleeps is then always
/// stopped by the deadline.
const WAIT_PAST_DEADLINE: Duration = Duration::from_secs(1);

/// Event that a program waits for.
struct Subscription {
    user_data: [u8; 8],
    kind: u8,
    /// Remaining time of a clock event; files and streams are always ready.
    wait: Duration,
}

/// Waits for the first of several events.
pub(super) async fn poll(
    caller: &mut Caller<'_, State>,
    subscriptions: u32,
    events: u32,
    count: u32,
    ready: u32,
) -> Done {
    if count == 0 || count > MAX_SUBSCRIPTIONS {
        return Err(Errno::INVAL);
    }
    let (memory, state) = memory::split(caller)?;
    let bytes = memory::range(memory, subscriptions, count * SUBSCRIPTION_BYTES)?;
    let awaited = bytes
        .chunks_exact(SUBSCRIPTION_BYTES as usize)
        .map(|bytes| subscription(state, bytes))
        .collect::<Result<Vec<_>, _>>()?;
    let wait = awaited.iter().map(|it| it.wait).min().unwrap_or_default();
    if !wait.is_zero() {
        if state.preparation.is_some() {
            return Err(Errno::NOTSUP);
        }
        let left = state
            .meter
            .extended_deadline(state.deadline)
            .saturating_duration_since(std::time::Instant::now());
        tokio::time::sleep(wait.min(left + WAIT_PAST_DEADLINE)).await;
    }
    let done: Vec<_> = awaited.iter().filter(|it| it.wait <= wait).collect();
    let (memory, _) = memory::split(caller)?;
    for (index, it) in done.iter().enumerate() {
        let mut event = [0; EVENT_BYTES];
        event[..8].copy_from_slice(&it.user_data);
        event[10] = it.kind;
        let at = events.saturating_add((index * EVENT_BYTES) as u32);
        memory::write(memory, at, &event)?;
    }
    memory::write(memory, ready, &(done.len() as u32).to_le_bytes())
}

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    let mut number = [0; 8];
    number[..length].copy_from_slice(&bytes[at..at + length]);
    u64::from_le_bytes(number)
}

fn subscription(state: &State, bytes: &[u8]) -> Result<Subscription, Errno> {
    let kind = bytes[8];
    let wait = if kind == CLOCK_EVENT {
        let time = Duration::from_nanos(number(bytes, 24, 8));
        if number(bytes, 40, 2) as u16 & UNTIL_TIME != 0 {
            time.saturating_sub(now(state, number(bytes, 16, 4) as u32)?)
        } else {
            time
        }
    } else {
        Duration::ZERO
    };
    Ok(Subscription {
        user_data: number(bytes, 0, 8).to_le_bytes(),
        kind,
        wait,
    })
}
