//! WASI for guests in other languages, linked interface by interface, with every access denied.
//!
//! A guest sees no environment, no arguments and no folder. It sees an empty standard input, a
//! coarse clock and randomness. Its output becomes lines of its log. Sockets, terminals and HTTP
//! are not linked. The filesystem is linked because toolchains import it even if they do not need
//! it; without a preopened folder no descriptor can exist.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use rand_core::{Rng as _, TryRng};
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

use super::{clock, random as randomness};
use crate::{
    Clock, Level,
    cassette::{CassetteSession, Nondeterminism},
    toolkit::State,
    trace::Trace,
};

/// Adds the restricted interfaces to the linker.
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
    state.meter.count_host_call();
    &mut state.table
}

/// Marker for the io interfaces, which use only the handle table.
struct Io;

impl wasmtime::component::HasData for Io {
    type Data<'a> = &'a mut wasmtime::component::ResourceTable;
}

impl WasiView for State {
    /// Returns the context. The engine calls this for each WASI call, so it counts them. Past the
    /// limit the next tick ends the guest.
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.meter.count_host_call();
        let trace = &self.trace;
        let clock = &self.clock;
        let session = &self.session;
        let wasi = self
            .wasi
            .get_or_insert_with(|| Box::new(restricted_context(trace, clock, session)));
        WasiCtxView {
            ctx: wasi,
            table: &mut self.table,
        }
    }
}

fn restricted_context(
    trace: &Arc<Trace>,
    clock: &Clock,
    session: &Option<Arc<CassetteSession>>,
) -> WasiCtx {
    let mut context = WasiCtx::builder();
    if let Some(session) = session {
        let mut random = SessionRandom(session.clone());
        let seed = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
        context
            .insecure_random_seed(seed)
            .insecure_random(SessionRandom(session.clone()))
            .secure_random(random);
    }
    context
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .socket_addr_check(|_, _| Box::pin(async { false }))
        .max_random_size(randomness::MAX_RANDOM_BYTES.into())
        .wall_clock(WallClock(clock.clone(), session.clone()))
        .monotonic_clock(CallClock(trace.clone(), session.clone()))
        .stdout(LogOutput {
            level: Level::Info,
            trace: trace.clone(),
        })
        .stderr(LogOutput {
            level: Level::Warn,
            trace: trace.clone(),
        })
        .build()
}

/// Wall clock in whole milliseconds.
struct WallClock(Clock, Option<Arc<CassetteSession>>);

/// Monotonic clock since the start of the call, in whole milliseconds.
struct CallClock(Arc<Trace>, Option<Arc<CassetteSession>>);

/// Random bytes from a cassette. If the cassette is exhausted, the call fails anyway and the bytes
/// do not matter.
struct SessionRandom(Arc<CassetteSession>);

impl HostWallClock for WallClock {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        Duration::from_millis(clock::read(self.1.as_deref(), Nondeterminism::Now, || {
            clock::now(&self.0)
        }))
    }
}

impl HostMonotonicClock for CallClock {
    fn resolution(&self) -> u64 {
        1_000_000
    }

    fn now(&self) -> u64 {
        clock::read(self.1.as_deref(), Nondeterminism::Elapsed, || {
            self.0.elapsed()
        }) * 1_000_000
    }
}

impl TryRng for SessionRandom {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> std::result::Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.fill_bytes(&mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> std::result::Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, to: &mut [u8]) -> std::result::Result<(), Infallible> {
        if let Ok(bytes) = self
            .0
            .random(to.len(), || randomness::random_bytes(to.len()))
        {
            to.copy_from_slice(&bytes);
        }
        Ok(())
    }
}

/// Guest output as lines of its log.
#[derive(Clone)]
struct LogOutput {
    level: Level,
    trace: Arc<Trace>,
}

impl IsTerminal for LogOutput {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogOutput {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(LineWriter {
            lines: self.clone(),
            pending: Vec::new(),
        })
    }

    /// Discards output. Only WASI generations that are not linked use this method.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}

/// Buffers bytes up to the end of a line.
struct LineWriter {
    lines: LogOutput,
    pending: Vec<u8>,
}

/// Maximum length of a line without a line break, in bytes.
const MAX_LINE_BYTES: usize = 4 << 10;

impl LineWriter {
    fn log_line(&mut self) {
        if !self.pending.is_empty() {
            self.lines
                .trace
                .log(self.lines.level, &String::from_utf8_lossy(&self.pending));
            self.pending.clear();
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for LineWriter {
    async fn ready(&mut self) {}
}

impl OutputStream for LineWriter {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        for byte in bytes {
            match byte {
                b'\n' => self.log_line(),
                _ => self.pending.push(byte),
            }
            if self.pending.len() >= MAX_LINE_BYTES {
                self.log_line();
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(MAX_LINE_BYTES)
    }
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        self.log_line();
    }
}
