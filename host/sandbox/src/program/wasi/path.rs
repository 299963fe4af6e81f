//! Functions on paths.

use wasmtime::Caller;

use super::{
    Done, Errno,
    descriptor::{APPEND_FLAG, changed_ms, encode},
    environment::now_ms,
};
use crate::program::{
    State,
    files::FileRef,
    memory,
    state::{Descriptor, OpenFile},
};

const CREATE_FLAG: u32 = 1;
const FOLDER_ONLY_FLAG: u32 = 1 << 1;
const NEW_ONLY_FLAG: u32 = 1 << 2;
const TRUNCATE_FLAG: u32 = 1 << 3;

const READ_RIGHT: u64 = 1 << 1;
const WRITE_RIGHT: u64 = 1 << 6;

fn resolve(
    caller: &mut Caller<'_, State>,
    fd: u32,
    name: u32,
    length: u32,
) -> Result<String, Errno> {
    let name = memory::path(caller, name, length)?;
    caller.data_mut().resolve(fd, &name)
}

pub(super) fn create_folder(
    caller: &mut Caller<'_, State>,
    fd: u32,
    name: u32,
    length: u32,
) -> Done {
    let path = resolve(caller, fd, name, length)?;
    caller.data_mut().files.create_folder(&path)
}

pub(super) fn remove_folder(
    caller: &mut Caller<'_, State>,
    fd: u32,
    name: u32,
    length: u32,
) -> Done {
    let path = resolve(caller, fd, name, length)?;
    caller.data_mut().files.remove_folder(&path)
}

pub(super) fn remove(caller: &mut Caller<'_, State>, fd: u32, name: u32, length: u32) -> Done {
    let path = resolve(caller, fd, name, length)?;
    caller.data_mut().files.remove(&path)
}

pub(super) fn properties(
    caller: &mut Caller<'_, State>,
    fd: u32,
    _lookup: u32,
    name: u32,
    length: u32,
    to: u32,
) -> Done {
    let path = resolve(caller, fd, name, length)?;
    let (memory, state) = memory::split(caller)?;
    memory::write(memory, to, &encode(&state.files.properties(&path)?))
}

#[expect(clippy::too_many_arguments, reason = "the interface defines them")]
pub(super) fn set_times(
    caller: &mut Caller<'_, State>,
    fd: u32,
    _lookup: u32,
    name: u32,
    length: u32,
    _read: u64,
    changed: u64,
    which: u32,
) -> Done {
    let path = resolve(caller, fd, name, length)?;
    let state = caller.data();
    if state.files.is_folder(&path) {
        return Ok(());
    }
    let file = state.files.file(&path)?;
    if let Some(time) = changed_ms(state, changed, which) {
        file.lock().modified_ms = time;
    }
    Ok(())
}

/// Refuses to read a link: links do not exist.
pub(super) fn read_link(
    caller: &mut Caller<'_, State>,
    fd: u32,
    name: u32,
    length: u32,
    _to: u32,
    _room: u32,
    _used: u32,
) -> Done {
    let path = resolve(caller, fd, name, length)?;
    caller.data().files.properties(&path)?;
    Err(Errno::INVAL)
}

#[expect(clippy::too_many_arguments, reason = "the interface defines them")]
pub(super) async fn open(
    caller: &mut Caller<'_, State>,
    fd: u32,
    _lookup: u32,
    name: u32,
    length: u32,
    create: u32,
    rights: u64,
    _inherited: u64,
    flags: u32,
    to: u32,
) -> Done {
    let path = resolve(caller, fd, name, length)?;
    let appends = flags & u32::from(APPEND_FLAG) != 0;
    let writable = rights & WRITE_RIGHT != 0 || appends || create & TRUNCATE_FLAG != 0;
    let readable = rights & READ_RIGHT != 0 || !writable;
    let descriptor = if caller.data().files.is_folder(&path) {
        if writable {
            return Err(Errno::ISDIR);
        }
        if create & CREATE_FLAG != 0 && create & NEW_ONLY_FLAG != 0 {
            return Err(Errno::EXIST);
        }
        Descriptor::Folder {
            path,
            listing: None,
        }
    } else {
        let file = find_or_create(caller, &path, create, writable).await?;
        Descriptor::File(OpenFile {
            file,
            position: 0,
            readable,
            writable,
            appends,
        })
    };
    let number = caller.data_mut().open(descriptor)?;
    memory::store(caller, to, number, 4)
}

async fn find_or_create(
    caller: &mut Caller<'_, State>,
    path: &str,
    create: u32,
    writable: bool,
) -> Result<FileRef, Errno> {
    let now = now_ms(caller.data());
    let files = &mut caller.data_mut().files;
    let file = match files.file(path) {
        Ok(_) if create & FOLDER_ONLY_FLAG != 0 => return Err(Errno::NOTDIR),
        Ok(_) if create & CREATE_FLAG != 0 && create & NEW_ONLY_FLAG != 0 => {
            return Err(Errno::EXIST);
        }
        Ok(file) => file,
        Err(Errno::NOENT) if create & CREATE_FLAG != 0 && create & FOLDER_ONLY_FLAG == 0 => {
            return files.create(path, now);
        }
        Err(errno) => return Err(errno),
    };
    if writable && file.lock().is_read_only() {
        return Err(Errno::ROFS);
    }
    if create & TRUNCATE_FLAG != 0 {
        files.resize(&file, 0, now)?;
    } else {
        fill(caller.data_mut(), &file).await?;
    }
    Ok(file)
}

/// Reads the content of a file that was not read yet.
async fn fill(state: &mut State, file: &FileRef) -> Done {
    if !file.lock().is_stored() {
        return Ok(());
    }
    let path = state.files.stored_path(file).ok_or(Errno::IO)?;
    let bytes = state.host.clone().read(&path).await.map_err(|cause| {
        tracing::warn!(path, cause, "a file of a program cannot be read");
        Errno::IO
    })?;
    let size = file.lock().size();
    if bytes.len() as u64 != size {
        tracing::warn!(
            path,
            size,
            "a file of a program has another size than recorded"
        );
        return Err(Errno::IO);
    }
    state.files.count_read(size)?;
    file.lock().fill(bytes);
    Ok(())
}

pub(super) async fn rename(
    caller: &mut Caller<'_, State>,
    fd: u32,
    name: u32,
    length: u32,
    new_fd: u32,
    new_name: u32,
    new_length: u32,
) -> Done {
    let from = resolve(caller, fd, name, length)?;
    let to = resolve(caller, new_fd, new_name, new_length)?;
    let state = caller.data_mut();
    // The change of a path is recorded as a removed and a new file, which needs the content.
    for (_, file) in state.files.unread(&from) {
        fill(state, &file).await?;
    }
    state.files.rename(&from, &to)
}
