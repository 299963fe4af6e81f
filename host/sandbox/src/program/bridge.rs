//! Requests of a program to its host.
//!
//! The interpreter of Python that we run has two imports for HTTP requests. They carry a record of
//! fields, each with its length before it. Here the method is [`CALL_METHOD`], the URL is the name
//! of a function, and the body its input. Every other request is refused: a program cannot use the
//! network.

use bytes::Bytes;
use wasmtime::{Caller, Linker, Result};

use super::{State, errno::Errno, memory};
use crate::schedule::scheduler::AbortOnDrop;

const MODULE_NAME: &str = "bashkit";
/// Method of a request to a function of the host.
const CALL_METHOD: &[u8] = b"CALL";
/// Maximum number of headers, which are ignored.
const MAX_HEADERS: u32 = 128;

const STATUS_ANSWERED: i32 = 0;
const STATUS_FAILED: i32 = 1;
const STATUS_INVALID: i32 = 3;
const STATUS_FAULT: i32 = 4;

const NO_NETWORK: &str = "there is no network here: call run_tool or proxy";
const INVALID_REQUEST: &str = "the request is not valid, or too large";

pub(super) fn add_to_linker(linker: &mut Linker<State>) -> Result<()> {
    linker.func_wrap_async(
        MODULE_NAME,
        "http_request",
        |mut caller: Caller<'_, State>, (place, length, _, size): (u32, u32, i64, u32)| {
            Box::new(async move { request(&mut caller, place, length, size).await })
        },
    )?;
    linker.func_wrap(
        MODULE_NAME,
        "http_take",
        |mut caller: Caller<'_, State>, to: u32, room: i32| {
            take(&mut caller, to, room).map_or(STATUS_FAULT, |()| STATUS_ANSWERED)
        },
    )?;
    Ok(())
}

/// Answers a request, and keeps the response until it is taken.
async fn request(caller: &mut Caller<'_, State>, place: u32, length: u32, size: u32) -> i32 {
    let (code, response) = match read(caller, place, length) {
        Ok(Some((function, input))) => match call(caller.data_mut(), function, input).await {
            Ok(response) => (STATUS_ANSWERED, response),
            Err(message) => (STATUS_FAILED, message.into_bytes().into()),
        },
        Ok(None) => (STATUS_FAILED, Bytes::from_static(NO_NETWORK.as_bytes())),
        Err(_) => (
            STATUS_INVALID,
            Bytes::from_static(INVALID_REQUEST.as_bytes()),
        ),
    };
    let bytes = response.len() as u32;
    caller.data_mut().response = Some(response);
    memory::store(caller, size, bytes, 4).map_or(STATUS_FAULT, |()| code)
}

/// Reads the function and the input of a request. Returns `None` if it is for the network.
fn read(
    caller: &mut Caller<'_, State>,
    place: u32,
    length: u32,
) -> std::result::Result<Option<(String, Bytes)>, Errno> {
    let (memory, state) = memory::split(caller)?;
    if u64::from(length) > state.limits.message {
        return Err(Errno::NOSPC);
    }
    let mut rest: &[u8] = memory::range(memory, place, length)?;
    let method = field(&mut rest)?;
    let name = field(&mut rest)?;
    let headers = number(&mut rest)?.min(MAX_HEADERS);
    for _ in 0..2 * headers {
        field(&mut rest)?;
    }
    let input = field(&mut rest)?;
    if method != CALL_METHOD {
        return Ok(None);
    }
    let function = std::str::from_utf8(name).map_err(|_| Errno::ILSEQ)?;
    Ok(Some((function.to_owned(), Bytes::copy_from_slice(input))))
}

fn number(rest: &mut &[u8]) -> std::result::Result<u32, Errno> {
    let (first, after) = rest.split_first_chunk::<4>().ok_or(Errno::INVAL)?;
    *rest = after;
    Ok(u32::from_le_bytes(*first))
}

fn field<'a>(rest: &mut &'a [u8]) -> std::result::Result<&'a [u8], Errno> {
    let length = number(rest)? as usize;
    let (field, after) = rest.split_at_checked(length).ok_or(Errno::INVAL)?;
    *rest = after;
    Ok(field)
}

/// Calls a function of the host. Returns the encoded response. The memory of the messages is reserved
/// until the next request.
async fn call(
    state: &mut State,
    function: String,
    input: Bytes,
) -> std::result::Result<Bytes, String> {
    state.response = None;
    state.messages.release();
    state.reserve_message(input.len())?;
    let limits = state.limits;
    if state.meter.count_host_call() > limits.requests {
        return Err(format!(
            "more than {} calls of the host in one run",
            limits.requests
        ));
    }
    let _ = state
        .preparation
        .take_if(|preparation| preparation.ended_by == function);
    let host = state.host.clone();
    let call = state
        .threads
        .spawn(async move { host.call(&function, input).await });
    let mut task = AbortOnDrop(call);
    let output = (&mut task.0)
        .await
        .map_err(|broken| format!("the host failed: {broken}"))??;
    if output.len() as u64 > limits.message {
        return Err(format!(
            "the response has more than {} bytes",
            limits.message
        ));
    }
    state.reserve_message(2 * output.len())?;
    Ok(encode(&output))
}

/// Returns a response with a status, without headers, and with the output as its body.
fn encode(output: &Bytes) -> Bytes {
    let mut bytes = Vec::with_capacity(output.len() + 12);
    for number in [200, 0, output.len() as u32] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(output);
    bytes.into()
}

/// Copies the response into the memory of the program.
fn take(caller: &mut Caller<'_, State>, to: u32, room: i32) -> std::result::Result<(), Errno> {
    let (memory, state) = memory::split(caller)?;
    let response = state.response.take().ok_or(Errno::INVAL)?;
    // A program without memory for the response drops it.
    let Ok(room) = usize::try_from(room) else {
        return Ok(());
    };
    if response.len() > room {
        return Err(Errno::FAULT);
    }
    memory::write(memory, to, &response)
}
