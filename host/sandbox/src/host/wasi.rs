//! WASI for guests of other languages, linked interface by interface, with everything denied.
//!
//! A guest sees no environment, no arguments, no folder, an empty standard input, a coarse clock and randomness. What it
//! prints becomes lines of its log. Sockets, terminals and HTTP are not linked at all; filesystem is, because toolchains
//! import it whether they need it or not, but without an opened folder no descriptor can exist.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime::{Result, component::Linker};
use wasmtime_wasi::{
    HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxView, WasiView,
    cli::{IsTerminal, StdoutStream, WasiCli, WasiCliView as _},
    clocks::{WasiClocks, WasiClocksView as _},
    filesystem::{WasiFilesystem, WasiFilesystemView as _},
    p2::{
        OutputStream, Pollable, StreamResult,
        bindings::{cli, clocks, filesystem, io, random},
    },
    random::{WasiRandom, WasiRandomView as _},
};

use super::{clock, random::AT_ONCE};
use crate::{Clock, Level, state::State, trace::Trace};

/// The one context of a guest.
pub(crate) struct Wasi(WasiCtx);

/// Gives guests the closed interfaces.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> Result<()> {
    io::error::add_to_linker::<State, Io>(linker, table)?;
    io::poll::add_to_linker::<State, Io>(linker, table)?;
    io::streams::add_to_linker::<State, Io>(linker, table)?;
    clocks::wall_clock::add_to_linker::<State, WasiClocks>(linker, State::clocks)?;
    clocks::monotonic_clock::add_to_linker::<State, WasiClocks>(linker, State::clocks)?;
    random::random::add_to_linker::<State, WasiRandom>(linker, State::random)?;
    random::insecure::add_to_linker::<State, WasiRandom>(linker, State::random)?;
    random::insecure_seed::add_to_linker::<State, WasiRandom>(linker, State::random)?;
    cli::environment::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::stdin::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::stdout::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::stderr::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::exit::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    filesystem::types::add_to_linker::<State, WasiFilesystem>(linker, State::filesystem)?;
    filesystem::preopens::add_to_linker::<State, WasiFilesystem>(linker, State::filesystem)
}

fn table(state: &mut State) -> &mut wasmtime::component::ResourceTable {
    state.meter.host_call();
    &mut state.table
}

/// The io interfaces work on the table of handles alone.
struct Io;

impl wasmtime::component::HasData for Io {
    type Data<'a> = &'a mut wasmtime::component::ResourceTable;
}

impl WasiView for State {
    /// Called once for each call of a function of WASI. Past the limit of calls the next tick ends the guest.
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.meter.host_call();
        let (trace, clock) = (&self.trace, &self.clock);
        let wasi = self.wasi.get_or_insert_with(|| Box::new(Wasi(closed(trace, clock))));
        WasiCtxView { ctx: &mut wasi.0, table: &mut self.table }
    }
}

fn closed(trace: &Arc<Trace>, clock: &Clock) -> WasiCtx {
    WasiCtx::builder()
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .socket_addr_check(|_, _| Box::pin(async { false }))
        .max_random_size(AT_ONCE.into())
        .wall_clock(OfDay(clock.clone()))
        .monotonic_clock(SinceStart(trace.clone()))
        .stdout(Lines { level: Level::Info, trace: trace.clone() })
        .stderr(Lines { level: Level::Warn, trace: trace.clone() })
        .build()
}

/// The time of day, in whole milliseconds.
struct OfDay(Clock);

/// The time since the call began, in whole milliseconds.
struct SinceStart(Arc<Trace>);

impl HostWallClock for OfDay {
    fn resolution(&self) -> std::time::Duration {
        std::time::Duration::from_millis(1)
    }

    fn now(&self) -> std::time::Duration {
        clock::now(&self.0)
    }
}

impl HostMonotonicClock for SinceStart {
    fn resolution(&self) -> u64 {
        1_000_000
    }

    fn now(&self) -> u64 {
        self.0.elapsed().as_millis() as u64 * 1_000_000
    }
}

/// What a guest prints, as lines of its log.
#[derive(Clone)]
struct Lines {
    level: Level,
    trace: Arc<Trace>,
}

impl IsTerminal for Lines {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Lines {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(Writer { lines: self.clone(), pending: Vec::new() })
    }

    /// Only for generations of WASI that are not linked.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}

/// Collects bytes up to the end of a line.
struct Writer {
    lines: Lines,
    pending: Vec<u8>,
}

/// Bytes without an end of line that make a line all the same.
const LINE: usize = 4 << 10;

impl Writer {
    fn line(&mut self) {
        if !self.pending.is_empty() {
            self.lines.trace.log(self.lines.level, &String::from_utf8_lossy(&self.pending));
            self.pending.clear();
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {}
}

impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        for byte in bytes {
            match byte {
                b'\n' => self.line(),
                _ => self.pending.push(byte),
            }
            if self.pending.len() >= LINE {
                self.line();
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(LINE)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.line();
    }
}
