//! Properties of open files and folders.

use wasmtime::Caller;

use super::{Done, Errno, environment::now_ms};
use crate::program::{
    State,
    files::Properties,
    memory,
    state::{Descriptor, OpenFile},
};

const CHARACTER_DEVICE_TYPE: u8 = 2;
const FOLDER_TYPE: u8 = 3;
const REGULAR_FILE_TYPE: u8 = 4;

pub(super) const APPEND_FLAG: u16 = 1;
/// Every right of the interface: what is allowed is decided when a file is opened.
const ALL_RIGHTS: u64 = (1 << 30) - 1;

const SET_CHANGED: u32 = 1 << 2;
const SET_CHANGED_NOW: u32 = 1 << 3;
const NANOS_PER_MS: u64 = 1_000_000;

/// Number of the root folder, the only folder open at the start.
const ROOT_DESCRIPTOR: u32 = 3;
const ROOT_NAME: &[u8] = b"/";

pub(super) fn advise(
    caller: &mut Caller<'_, State>,
    fd: u32,
    _start: u64,
    _length: u64,
    _advice: u32,
) -> Done {
    sync(caller, fd)
}

/// Does nothing: files are in memory.
pub(super) fn sync(caller: &mut Caller<'_, State>, fd: u32) -> Done {
    caller.data_mut().descriptor(fd).map(drop)
}

pub(super) fn close(caller: &mut Caller<'_, State>, fd: u32) -> Done {
    let state = caller.data_mut();
    state.descriptor(fd)?;
    state.descriptors[fd as usize] = None;
    Ok(())
}

pub(super) fn status(caller: &mut Caller<'_, State>, fd: u32, to: u32) -> Done {
    let (memory, state) = memory::split(caller)?;
    let (kind, flags) = match state.descriptor(fd)? {
        Descriptor::Input | Descriptor::Output(_) => (CHARACTER_DEVICE_TYPE, 0),
        Descriptor::Folder { .. } => (FOLDER_TYPE, 0),
        Descriptor::File(open) if open.appends => (REGULAR_FILE_TYPE, APPEND_FLAG),
        Descriptor::File(_) => (REGULAR_FILE_TYPE, 0),
    };
    let mut status = [0; 24];
    status[0] = kind;
    status[2..4].copy_from_slice(&flags.to_le_bytes());
    status[8..16].copy_from_slice(&ALL_RIGHTS.to_le_bytes());
    status[16..24].copy_from_slice(&ALL_RIGHTS.to_le_bytes());
    memory::write(memory, to, &status)
}

pub(super) fn set_flags(caller: &mut Caller<'_, State>, fd: u32, flags: u32) -> Done {
    if let Descriptor::File(open) = caller.data_mut().descriptor(fd)? {
        open.appends = flags & u32::from(APPEND_FLAG) != 0;
    }
    Ok(())
}

pub(super) fn properties(caller: &mut Caller<'_, State>, fd: u32, to: u32) -> Done {
    let (memory, state) = memory::split(caller)?;
    let properties = match state.descriptor(fd)? {
        Descriptor::Input | Descriptor::Output(_) => {
            let mut bytes = [0; 64];
            bytes[16] = CHARACTER_DEVICE_TYPE;
            return memory::write(memory, to, &bytes);
        }
        Descriptor::Folder { path, .. } => {
            let path = path.clone();
            state.files.properties(&path)?
        }
        Descriptor::File(open) => open.file.lock().properties(),
    };
    memory::write(memory, to, &encode(&properties))
}

/// Returns properties as the interface writes them.
pub(super) fn encode(properties: &Properties) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[8..16].copy_from_slice(&properties.inode.to_le_bytes());
    bytes[16] = kind(properties.is_folder);
    bytes[24..32].copy_from_slice(&1u64.to_le_bytes());
    bytes[32..40].copy_from_slice(&properties.size.to_le_bytes());
    let time = properties.modified_ms.saturating_mul(NANOS_PER_MS);
    for at in [40, 48, 56] {
        bytes[at..at + 8].copy_from_slice(&time.to_le_bytes());
    }
    bytes
}

fn kind(is_folder: bool) -> u8 {
    if is_folder {
        FOLDER_TYPE
    } else {
        REGULAR_FILE_TYPE
    }
}

pub(super) fn set_size(caller: &mut Caller<'_, State>, fd: u32, size: u64) -> Done {
    let state = caller.data_mut();
    let now = now_ms(state);
    let file = match state.descriptor(fd)? {
        Descriptor::File(OpenFile {
            file,
            writable: true,
            ..
        }) => file.clone(),
        _ => return Err(Errno::BADF),
    };
    state.files.resize(&file, size, now)
}

pub(super) fn set_times(
    caller: &mut Caller<'_, State>,
    fd: u32,
    _read: u64,
    changed: u64,
    which: u32,
) -> Done {
    let state = caller.data_mut();
    let time = changed_ms(state, changed, which);
    if let Descriptor::File(open) = state.descriptor(fd)?
        && let Some(time) = time
    {
        open.file.lock().modified_ms = time;
    }
    Ok(())
}

/// Returns the time of change to set, in milliseconds since 1970, if there is one.
pub(super) fn changed_ms(state: &State, changed: u64, which: u32) -> Option<u64> {
    if which & SET_CHANGED_NOW != 0 {
        return Some(now_ms(state));
    }
    (which & SET_CHANGED != 0).then_some(changed / NANOS_PER_MS)
}

pub(super) fn preopened(caller: &mut Caller<'_, State>, fd: u32, to: u32) -> Done {
    if fd != ROOT_DESCRIPTOR {
        return Err(Errno::BADF);
    }
    let (memory, _) = memory::split(caller)?;
    let mut bytes = [0; 8];
    bytes[4..8].copy_from_slice(&(ROOT_NAME.len() as u32).to_le_bytes());
    memory::write(memory, to, &bytes)
}

pub(super) fn preopened_name(
    caller: &mut Caller<'_, State>,
    fd: u32,
    to: u32,
    length: u32,
) -> Done {
    if fd != ROOT_DESCRIPTOR {
        return Err(Errno::BADF);
    }
    if (length as usize) < ROOT_NAME.len() {
        return Err(Errno::NAMETOOLONG);
    }
    let (memory, _) = memory::split(caller)?;
    memory::write(memory, to, ROOT_NAME)
}

/// Lists a folder from an entry on, as much as fits. The last entry may be cut.
pub(super) fn list(
    caller: &mut Caller<'_, State>,
    fd: u32,
    to: u32,
    length: u32,
    cookie: u64,
    used: u32,
) -> Done {
    let (memory, state) = memory::split(caller)?;
    let Descriptor::Folder { path, listing } = state.descriptor(fd)? else {
        return Err(Errno::NOTDIR);
    };
    // A listing that is read from its start again is built again.
    let entries = match listing {
        Some(entries) if cookie > 0 => entries.clone(),
        _ => {
            let path = path.clone();
            let entries = state.files.list(&path);
            if let Descriptor::Folder { listing, .. } = state.descriptor(fd)? {
                *listing = Some(entries.clone());
            }
            entries
        }
    };
    let room = length as usize;
    let mut bytes = Vec::new();
    let first = usize::try_from(cookie).map_err(|_| Errno::INVAL)?;
    for (index, entry) in entries.iter().enumerate().skip(first) {
        if bytes.len() >= room {
            break;
        }
        bytes.extend_from_slice(&(index as u64 + 1).to_le_bytes());
        bytes.extend_from_slice(&entry.inode.to_le_bytes());
        bytes.extend_from_slice(&(entry.name.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&u32::from(kind(entry.is_folder)).to_le_bytes());
        bytes.extend_from_slice(entry.name.as_bytes());
    }
    bytes.truncate(room);
    memory::write(memory, to, &bytes)?;
    memory::write(memory, used, &(bytes.len() as u32).to_le_bytes())
}
