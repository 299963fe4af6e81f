//! Servers on loopback, for the fake services of tests.

use std::{net::TcpListener, thread};

use axum::Router;
use tokio::runtime;

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
