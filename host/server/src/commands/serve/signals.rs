//! Requests to stop: signals, and the end of standard input.

use anyhow::Context;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};

use crate::open::Stop;

/// SIGTERM, ctrl-c, and the end of standard input if it is to stop the server.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    input: Option<oneshot::Receiver<()>>,
}

fn listen(kind: SignalKind) -> Result<Signal, Stop> {
    signal(kind)
        .context("cannot listen for signals")
        .map_err(Stop::from)
}

impl Signals {
    /// Starts listening for signals.
    pub(super) fn new(until_stdin_ends: bool) -> Result<Self, Stop> {
        let input = until_stdin_ends.then(|| {
            let (ended, input) = oneshot::channel();
            // The thread is never joined: reading standard input cannot be interrupted.
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
                ended.send(())
            });
            input
        });
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            input,
        })
    }

    /// Waits for the next one.
    pub(super) async fn wait(&mut self) {
        let input = async {
            match &mut self.input {
                Some(input) => drop(input.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            () = input => {}
        }
        // Standard input ends once; only a signal can come a second time.
        self.input = None;
    }
}
