//! Servers on loopback, for the fake services of tests.

use std::{collections::BTreeSet, io, net::TcpListener, ops::Range, thread};

use axum::Router;
use parking_lot::Mutex;
use tokio::{net::TcpStream, runtime, task::JoinSet};

use crate::Dice;

/// Ports that the operating system gives to no socket by itself.
const NAMED_PORTS: Range<u64> = 20_000..32_000;

/// Returns a port for a server with a configured port. Each port is returned once. Another socket
/// does not get it before that server listens, or while it is restarted.
pub fn free_port() -> u16 {
    static GIVEN_PORTS: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN_PORTS.lock();
    let mut dice = Dice::new(Dice::seed());
    loop {
        let port = NAMED_PORTS.start + dice.below(NAMED_PORTS.end - NAMED_PORTS.start);
        let port = port as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() && given.insert(port) {
            return port;
        }
    }
}

/// Listens on a free port. Returns the listener and `127.0.0.1:port`.
pub fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be used");
    let address = listener.local_addr();
    let address = address.expect("a bound socket has an address").to_string();
    (listener, address)
}

/// Serves a router on a free port until the process ends. Returns `http://127.0.0.1:port`.
pub fn serve(router: Router) -> String {
    let (listener, address) = listen();
    run(listener, async move |listener| {
        axum::serve(listener, router).await.ok();
    });
    format!("http://{address}")
}

/// Serves each connection of a listener until the process ends. A connection that fails is the
/// client's error.
pub fn serve_connections<F>(listener: TcpListener, serve: impl Fn(TcpStream) -> F + Send + 'static)
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    run(listener, async move |listener| {
        let mut open = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.spawn(serve(stream));
        }
    });
}

/// Runs a server in its own thread and runtime, because it outlives the test that starts it.
pub(crate) fn run(
    listener: TcpListener,
    serve: impl AsyncFnOnce(tokio::net::TcpListener) + Send + 'static,
) {
    listener
        .set_nonblocking(true)
        .expect("a socket can be used");
    thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let serving = async move {
            let listener = tokio::net::TcpListener::from_std(listener);
            serve(listener.expect("a socket can be used")).await;
        };
        runtime.expect("a runtime can be made").block_on(serving);
    });
}
