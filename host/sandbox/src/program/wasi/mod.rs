//! WASI preview 1 for programs, over files in memory.
//!
//! The interface is that of interpreters that are compiled for it. Nothing here reaches the
//! operating system except the clock, in whole milliseconds, and randomness. Sockets and links are
//! refused.

mod descriptor;
mod environment;
mod path;
mod transfer;
mod wait;

use wasmtime::{Caller, Linker, Result};

use super::{State, errno::Errno};

/// Name of the imported module.
const MODULE_NAME: &str = "wasi_snapshot_preview1";

/// Result of a function of the interface.
type Done = std::result::Result<(), Errno>;

/// Exit of a program through `proc_exit`.
#[derive(Debug, thiserror::Error)]
#[error("the program ended itself with exit code {0}")]
pub(super) struct Exit(pub(super) i32);

fn code(done: Done) -> i32 {
    done.map_or_else(|errno| errno.0.into(), |()| 0)
}

/// Links a function that does not wait.
macro_rules! link {
    ($linker:ident, $name:literal, $function:path $(, $argument:ident: $kind:ty)*) => {
        $linker.func_wrap(
            MODULE_NAME,
            $name,
            |mut caller: Caller<'_, State> $(, $argument: $kind)*| {
                code($function(&mut caller $(, $argument)*))
            },
        )?
    };
}

/// Links a function that may wait.
macro_rules! link_async {
    ($linker:ident, $name:literal, $function:path, $(($argument:ident: $kind:ty)),*) => {
        $linker.func_wrap_async(
            MODULE_NAME,
            $name,
            |mut caller: Caller<'_, State>, ($($argument,)*): ($($kind,)*)| {
                Box::new(async move { code($function(&mut caller $(, $argument)*).await) })
            },
        )?
    };
}

/// Adds the interface to the linker.
pub(super) fn add_to_linker(linker: &mut Linker<State>) -> Result<()> {
    add_environment(linker)?;
    add_descriptors(linker)?;
    add_paths(linker)?;
    add_refused(linker)
}

fn add_environment(linker: &mut Linker<State>) -> Result<()> {
    use environment as own;
    link!(linker, "args_get", own::arguments, list: u32, bytes: u32);
    link!(linker, "args_sizes_get", own::argument_sizes, count: u32, size: u32);
    link!(linker, "environ_get", own::environment, list: u32, bytes: u32);
    link!(linker, "environ_sizes_get", own::environment_sizes, count: u32, size: u32);
    link!(linker, "clock_res_get", own::clock_resolution, clock: u32, to: u32);
    link!(linker, "clock_time_get", own::clock_time, clock: u32, precision: u64, to: u32);
    link!(linker, "random_get", own::random, to: u32, length: u32);
    linker.func_wrap(MODULE_NAME, "sched_yield", || 0)?;
    linker.func_wrap(MODULE_NAME, "proc_exit", |exit: i32| -> Result<()> {
        Err(wasmtime::Error::new(Exit(exit)))
    })?;
    link_async!(
        linker, "poll_oneoff", wait::poll,
        (subscriptions: u32), (events: u32), (count: u32), (ready: u32)
    );
    Ok(())
}

fn add_descriptors(linker: &mut Linker<State>) -> Result<()> {
    use descriptor as own;
    link!(linker, "fd_advise", own::advise, fd: u32, start: u64, length: u64, advice: u32);
    link!(linker, "fd_close", own::close, fd: u32);
    link!(linker, "fd_datasync", own::sync, fd: u32);
    link!(linker, "fd_sync", own::sync, fd: u32);
    link!(linker, "fd_fdstat_get", own::status, fd: u32, to: u32);
    link!(linker, "fd_fdstat_set_flags", own::set_flags, fd: u32, flags: u32);
    link!(linker, "fd_filestat_get", own::properties, fd: u32, to: u32);
    link!(linker, "fd_filestat_set_size", own::set_size, fd: u32, size: u64);
    link!(
        linker, "fd_filestat_set_times", own::set_times,
        fd: u32, read: u64, changed: u64, which: u32
    );
    link!(linker, "fd_prestat_get", own::preopened, fd: u32, to: u32);
    link!(linker, "fd_prestat_dir_name", own::preopened_name, fd: u32, to: u32, length: u32);
    link!(linker, "fd_seek", transfer::seek, fd: u32, by: i64, from: u32, to: u32);
    link!(linker, "fd_tell", transfer::tell, fd: u32, to: u32);
    link!(linker, "fd_read", transfer::read, fd: u32, list: u32, count: u32, done: u32);
    link!(linker, "fd_write", transfer::write, fd: u32, list: u32, count: u32, done: u32);
    link!(
        linker, "fd_pread", transfer::read_at,
        fd: u32, list: u32, count: u32, at: u64, done: u32
    );
    link!(
        linker, "fd_pwrite", transfer::write_at,
        fd: u32, list: u32, count: u32, at: u64, done: u32
    );
    link!(
        linker, "fd_readdir", own::list,
        fd: u32, to: u32, length: u32, cookie: u64, used: u32
    );
    Ok(())
}

fn add_paths(linker: &mut Linker<State>) -> Result<()> {
    use path as own;
    link!(linker, "path_create_directory", own::create_folder, fd: u32, name: u32, length: u32);
    link!(linker, "path_remove_directory", own::remove_folder, fd: u32, name: u32, length: u32);
    link!(linker, "path_unlink_file", own::remove, fd: u32, name: u32, length: u32);
    link!(
        linker, "path_filestat_get", own::properties,
        fd: u32, flags: u32, name: u32, length: u32, to: u32
    );
    link!(
        linker, "path_filestat_set_times", own::set_times,
        fd: u32, flags: u32, name: u32, length: u32, read: u64, changed: u64, which: u32
    );
    link!(
        linker, "path_readlink", own::read_link,
        fd: u32, name: u32, length: u32, to: u32, room: u32, used: u32
    );
    link_async!(
        linker, "path_open", own::open,
        (fd: u32), (lookup: u32), (name: u32), (length: u32), (create: u32),
        (rights: u64), (inherited: u64), (flags: u32), (to: u32)
    );
    link_async!(
        linker, "path_rename", own::rename,
        (fd: u32), (name: u32), (length: u32), (new_fd: u32), (new_name: u32), (new_length: u32)
    );
    Ok(())
}

/// Adds the functions that no program may use: links, and sockets.
fn add_refused(linker: &mut Linker<State>) -> Result<()> {
    const REFUSED_CODE: i32 = Errno::NOTSUP.0 as i32;
    linker.func_wrap(
        MODULE_NAME,
        "path_link",
        |_: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32| REFUSED_CODE,
    )?;
    linker.func_wrap(
        MODULE_NAME,
        "path_symlink",
        |_: u32, _: u32, _: u32, _: u32, _: u32| REFUSED_CODE,
    )?;
    linker.func_wrap(MODULE_NAME, "sock_accept", |_: u32, _: u32, _: u32| {
        REFUSED_CODE
    })?;
    linker.func_wrap(
        MODULE_NAME,
        "sock_recv",
        |_: u32, _: u32, _: u32, _: u32, _: u32, _: u32| REFUSED_CODE,
    )?;
    linker.func_wrap(
        MODULE_NAME,
        "sock_send",
        |_: u32, _: u32, _: u32, _: u32, _: u32| REFUSED_CODE,
    )?;
    linker.func_wrap(MODULE_NAME, "sock_shutdown", |_: u32, _: u32| REFUSED_CODE)?;
    Ok(())
}
