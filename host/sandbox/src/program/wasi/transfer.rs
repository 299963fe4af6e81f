//! Reads and writes of open files and streams.

use wasmtime::Caller;

use super::{Done, Errno, environment::now_ms};
use crate::program::{
    State, memory,
    state::{Descriptor, OpenFile},
};

const FROM_START: u32 = 0;
const FROM_POSITION: u32 = 1;
const FROM_END: u32 = 2;

fn open_file(state: &mut State, fd: u32) -> Result<&mut OpenFile, Errno> {
    match state.descriptor(fd)? {
        Descriptor::File(open) => Ok(open),
        Descriptor::Folder { .. } => Err(Errno::ISDIR),
        Descriptor::Input | Descriptor::Output(_) => Err(Errno::SPIPE),
    }
}

pub(super) fn seek(caller: &mut Caller<'_, State>, fd: u32, by: i64, from: u32, to: u32) -> Done {
    let open = open_file(caller.data_mut(), fd)?;
    let base = match from {
        FROM_START => 0,
        FROM_POSITION => open.position,
        FROM_END => open.file.lock().size(),
        _ => return Err(Errno::INVAL),
    };
    let position = base.checked_add_signed(by).ok_or(Errno::INVAL)?;
    open.position = position;
    memory::store(caller, to, position, 8)
}

pub(super) fn tell(caller: &mut Caller<'_, State>, fd: u32, to: u32) -> Done {
    let position = open_file(caller.data_mut(), fd)?.position;
    memory::store(caller, to, position, 8)
}

pub(super) fn read(
    caller: &mut Caller<'_, State>,
    fd: u32,
    list: u32,
    count: u32,
    done: u32,
) -> Done {
    if matches!(caller.data_mut().descriptor(fd)?, Descriptor::Input) {
        return memory::store(caller, done, 0u32, 4);
    }
    let position = open_file(caller.data_mut(), fd)?.position;
    let length = read_into(caller, fd, list, count, position)?;
    open_file(caller.data_mut(), fd)?.position = position + u64::from(length);
    memory::store(caller, done, length, 4)
}

pub(super) fn read_at(
    caller: &mut Caller<'_, State>,
    fd: u32,
    list: u32,
    count: u32,
    at: u64,
    done: u32,
) -> Done {
    let length = read_into(caller, fd, list, count, at)?;
    memory::store(caller, done, length, 4)
}

fn read_into(
    caller: &mut Caller<'_, State>,
    fd: u32,
    list: u32,
    count: u32,
    at: u64,
) -> Result<u32, Errno> {
    let (memory, state) = memory::split(caller)?;
    let open = open_file(state, fd)?;
    if !open.readable {
        return Err(Errno::BADF);
    }
    let file = open.file.lock();
    let start = usize::try_from(at).map_err(|_| Errno::INVAL)?;
    let mut rest = file.bytes().get(start..).unwrap_or_default();
    let mut length = 0;
    for (place, room) in memory::buffers(memory, list, count)? {
        let piece = &rest[..rest.len().min(room as usize)];
        memory::write(memory, place, piece)?;
        rest = &rest[piece.len()..];
        length += piece.len() as u32;
    }
    Ok(length)
}

pub(super) fn write(
    caller: &mut Caller<'_, State>,
    fd: u32,
    list: u32,
    count: u32,
    done: u32,
) -> Done {
    if let Descriptor::Output(stream) = caller.data_mut().descriptor(fd)? {
        let stream = *stream;
        let bytes = gather(caller, list, count)?;
        let accepted = caller.data().output.write(stream, &bytes);
        if accepted == 0 && !bytes.is_empty() {
            return Err(Errno::NOSPC);
        }
        return memory::store(caller, done, accepted as u32, 4);
    }
    let open = open_file(caller.data_mut(), fd)?;
    let at = if open.appends {
        open.file.lock().size()
    } else {
        open.position
    };
    let length = write_from(caller, fd, list, count, at)?;
    open_file(caller.data_mut(), fd)?.position = at + u64::from(length);
    memory::store(caller, done, length, 4)
}

pub(super) fn write_at(
    caller: &mut Caller<'_, State>,
    fd: u32,
    list: u32,
    count: u32,
    at: u64,
    done: u32,
) -> Done {
    let length = write_from(caller, fd, list, count, at)?;
    memory::store(caller, done, length, 4)
}

fn write_from(
    caller: &mut Caller<'_, State>,
    fd: u32,
    list: u32,
    count: u32,
    at: u64,
) -> Result<u32, Errno> {
    let open = open_file(caller.data_mut(), fd)?;
    if !open.writable {
        return Err(Errno::BADF);
    }
    let file = open.file.clone();
    let bytes = gather(caller, list, count)?;
    let state = caller.data_mut();
    let now = now_ms(state);
    state.files.write(&file, at, &bytes, now)?;
    Ok(bytes.len() as u32)
}

/// Copies the buffers of a write, at most as much as a file may hold.
fn gather(caller: &mut Caller<'_, State>, list: u32, count: u32) -> Result<Vec<u8>, Errno> {
    let (memory, state) = memory::split(caller)?;
    let limits = state.limits;
    let buffers = memory::buffers(memory, list, count)?;
    let size: u64 = buffers.iter().map(|(_, length)| u64::from(*length)).sum();
    if size > limits.file_bytes.max(limits.output) {
        return Err(Errno::NOSPC);
    }
    let mut bytes = Vec::with_capacity(size as usize);
    for (place, length) in buffers {
        bytes.extend_from_slice(memory::range(memory, place, length)?);
    }
    Ok(bytes)
}
