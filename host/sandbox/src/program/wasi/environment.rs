//! Arguments, environment, clocks and randomness.

use std::time::{Duration, Instant};

use wasmtime::Caller;

use super::{Done, Errno};
use crate::{
    program::{State, memory},
    toolkit::imports::clock,
};

const REAL_TIME: u32 = 0;
const MONOTONIC_TIME: u32 = 1;
const CLOCK_RESOLUTION: Duration = Duration::from_millis(1);
/// Maximum number of random bytes of one call.
const MAX_RANDOM_BYTES: u32 = 1 << 20;

pub(super) fn arguments(caller: &mut Caller<'_, State>, list: u32, bytes: u32) -> Done {
    let (memory, state) = memory::split(caller)?;
    write_texts(memory, &state.arguments, list, bytes)
}

pub(super) fn argument_sizes(caller: &mut Caller<'_, State>, count: u32, size: u32) -> Done {
    let (memory, state) = memory::split(caller)?;
    write_sizes(memory, &state.arguments, count, size)
}

pub(super) fn environment(caller: &mut Caller<'_, State>, list: u32, bytes: u32) -> Done {
    let (memory, state) = memory::split(caller)?;
    write_texts(memory, &state.environment, list, bytes)
}

pub(super) fn environment_sizes(caller: &mut Caller<'_, State>, count: u32, size: u32) -> Done {
    let (memory, state) = memory::split(caller)?;
    write_sizes(memory, &state.environment, count, size)
}

/// Writes texts, each with a zero byte at its end, and a list of their places.
fn write_texts(memory: &mut [u8], texts: &[String], mut list: u32, mut bytes: u32) -> Done {
    for text in texts {
        memory::write(memory, list, &bytes.to_le_bytes())?;
        memory::write(memory, bytes, text.as_bytes())?;
        let end = bytes.saturating_add(text.len() as u32);
        memory::write(memory, end, &[0])?;
        bytes = end.saturating_add(1);
        list = list.saturating_add(4);
    }
    Ok(())
}

fn write_sizes(memory: &mut [u8], texts: &[String], count: u32, size: u32) -> Done {
    let bytes: usize = texts.iter().map(|text| text.len() + 1).sum();
    memory::write(memory, count, &(texts.len() as u32).to_le_bytes())?;
    memory::write(memory, size, &(bytes as u32).to_le_bytes())
}

pub(super) fn clock_resolution(caller: &mut Caller<'_, State>, clock: u32, to: u32) -> Done {
    if clock > MONOTONIC_TIME {
        return Err(Errno::INVAL);
    }
    memory::store(caller, to, CLOCK_RESOLUTION.as_nanos() as u64, 8)
}

pub(super) fn clock_time(
    caller: &mut Caller<'_, State>,
    clock: u32,
    _precision: u64,
    to: u32,
) -> Done {
    let time = now(caller.data(), clock)?;
    memory::store(caller, to, time.as_nanos() as u64, 8)
}

/// Returns the time of a clock, in whole milliseconds.
pub(super) fn now(state: &State, clock: u32) -> Result<Duration, Errno> {
    match clock {
        REAL_TIME => Ok(clock::now(&state.clock)),
        MONOTONIC_TIME => {
            let since = Instant::now().saturating_duration_since(state.started);
            Ok(Duration::from_millis(since.as_millis() as u64))
        }
        _ => Err(Errno::INVAL),
    }
}

/// Returns the time of files, in milliseconds since 1970.
pub(super) fn now_ms(state: &State) -> u64 {
    clock::now(&state.clock).as_millis() as u64
}

pub(super) fn random(caller: &mut Caller<'_, State>, to: u32, length: u32) -> Done {
    if length > MAX_RANDOM_BYTES {
        return Err(Errno::INVAL);
    }
    let (memory, _) = memory::split(caller)?;
    getrandom::fill(memory::range(memory, to, length)?).map_err(|_| Errno::IO)
}
