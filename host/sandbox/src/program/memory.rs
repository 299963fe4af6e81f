//! Access of host functions to the memory of the program.

use wasmtime::Caller;

use super::{State, errno::Errno, files::MAX_PATH_BYTES};

/// Maximum number of buffers of one read or write.
const MAX_BUFFERS: u32 = 1024;

/// Returns the memory of the program and the data of the run.
pub(super) fn split<'a>(
    caller: &'a mut Caller<'_, State>,
) -> Result<(&'a mut [u8], &'a mut State), Errno> {
    let memory = caller.data().memory.ok_or(Errno::FAULT)?;
    Ok(memory.data_and_store_mut(caller))
}

/// Returns a range of the memory.
pub(super) fn range(memory: &mut [u8], start: u32, length: u32) -> Result<&mut [u8], Errno> {
    let start = start as usize;
    let end = start.checked_add(length as usize).ok_or(Errno::FAULT)?;
    memory.get_mut(start..end).ok_or(Errno::FAULT)
}

pub(super) fn read_u32(memory: &mut [u8], at: u32) -> Result<u32, Errno> {
    let bytes = range(memory, at, 4)?;
    Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

pub(super) fn write(memory: &mut [u8], at: u32, bytes: &[u8]) -> Result<(), Errno> {
    let length = u32::try_from(bytes.len()).map_err(|_| Errno::FAULT)?;
    range(memory, at, length)?.copy_from_slice(bytes);
    Ok(())
}

/// Writes a number into the memory.
pub(super) fn store(
    caller: &mut Caller<'_, State>,
    at: u32,
    number: impl Into<u64>,
    bytes: usize,
) -> Result<(), Errno> {
    let (memory, _) = split(caller)?;
    write(memory, at, &number.into().to_le_bytes()[..bytes])
}

/// Reads a path.
pub(super) fn path(
    caller: &mut Caller<'_, State>,
    start: u32,
    length: u32,
) -> Result<String, Errno> {
    if length as usize > MAX_PATH_BYTES {
        return Err(Errno::NAMETOOLONG);
    }
    let (memory, _) = split(caller)?;
    let bytes = range(memory, start, length)?;
    let text = std::str::from_utf8(bytes).map_err(|_| Errno::ILSEQ)?;
    if text.contains('\0') {
        return Err(Errno::INVAL);
    }
    Ok(text.to_owned())
}

/// Reads the places and lengths of the buffers of one read or write.
pub(super) fn buffers(memory: &mut [u8], start: u32, count: u32) -> Result<Vec<(u32, u32)>, Errno> {
    if count > MAX_BUFFERS {
        return Err(Errno::INVAL);
    }
    (0..count)
        .map(|index| {
            let at = start.checked_add(index * 8).ok_or(Errno::FAULT)?;
            Ok((
                read_u32(memory, at)?,
                read_u32(memory, at.saturating_add(4))?,
            ))
        })
        .collect()
}
