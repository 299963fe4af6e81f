//! Servers on loopback, for the fake services of tests.

use std::{collections::BTreeSet, net::TcpListener, ops::Range, sync::Mutex, thread};

use axum::Router;
use tokio::runtime;

use crate::Dice;

/// Ports that the operating system gives to no socket by itself.
const NAMED_PORTS: Range<u64> = 20_000..32_000;

/// Returns a port for a server with a configured port. Each port is returned once. Another socket
/// does not get it before that server listens, or while it is restarted.
pub fn free_port() -> u16 {
    static GIVEN_PORTS: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN_PORTS.lock().expect("no panic holds it");
    let mut dice = Dice::new(Dice::seed());
    loop {
        let port = NAMED_PORTS.start + dice.below(NAMED_PORTS.end - NAMED_PORTS.start);
        let port = port as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() && given.insert(port) {
            return port;
        }
    }
}

/// Serves a router on a free port until the process ends. Returns `http://127.0.0.1:port`.
///
/// The server has its own thread and runtime, because it outlives the test that starts it.
pub(crate) fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be used");
    let address = listener
        .local_addr()
        .expect("a bound socket has an address");
    listener
        .set_nonblocking(true)
        .expect("a socket can be used");
    thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let serving = async move {
            let listener = tokio::net::TcpListener::from_std(listener);
            let listener = listener.expect("a socket can be used");
            axum::serve(listener, router).await.ok();
        };
        runtime.expect("a runtime can be made").block_on(serving);
    });
    format!("http://{address}")
}
