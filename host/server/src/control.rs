//! A door for the operator's commands: a socket in the data directory of a running server.
//!
//! Whoever can connect can read the data directory, which only its owner can; so there is no key. A command is one line; what
//! is answered depends on it. The store belongs to one process, and this is how another has it read out.

use std::{
    io::{Read, Write},
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener as BlockingListener, UnixStream as BlockingStream},
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use store::Store;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    net::{UnixListener, UnixStream},
    task::JoinSet,
    time::timeout,
};

/// Where the socket lies in the data directory.
const NAME: &str = "control.sock";
/// How long a command may take to say what it wants, and how long it may be.
const ASKS: Duration = Duration::from_secs(5);
const LINE: u64 = 64;
/// Commands served at once.
const AT_ONCE: usize = 8;

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Everything in the store, as `app::archive` reads it out.
    Export,
}

impl Ask {
    const ALL: [Self; 1] = [Self::Export];

    fn line(self) -> &'static str {
        match self {
            Self::Export => "export",
        }
    }
}

/// The server's end.
pub(crate) struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Control {
    /// Opens the door. What an earlier process left is taken away: the store is ours.
    pub(crate) fn open(data: &Path) -> Result<Self> {
        let path = data.join(NAME);
        let _ = std::fs::remove_file(&path);
        let open = || {
            let listener = BlockingListener::bind(&path)?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            UnixListener::from_std(listener)
        };
        let listener = open().with_context(|| format!("listen on {} for the operator's commands", path.display()))?;
        Ok(Self { listener, path })
    }

    /// Serves commands until it is dropped.
    pub(crate) async fn serve(self, store: Store) {
        let store = Arc::new(store);
        let mut serving = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) if serving.len() < AT_ONCE => {
                        let store = store.clone();
                        serving.spawn(async move {
                            if let Err(cause) = answer(stream, &store).await {
                                tracing::warn!(%cause, "a command of the operator was broken off");
                            }
                        });
                    }
                    Ok(_) => {}
                    Err(cause) => {
                        tracing::warn!(%cause, "the operator's commands cannot be accepted");
                        tokio::time::sleep(ASKS).await;
                    }
                },
                Some(_) = serving.join_next() => {}
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn answer(mut stream: UnixStream, store: &Store) -> Result<()> {
    let mut line = String::new();
    let (read, mut write) = stream.split();
    timeout(ASKS, BufReader::new(read.take(LINE)).read_line(&mut line)).await.context("wait for a command")??;
    match Ask::ALL.into_iter().find(|ask| ask.line() == line.trim_end()) {
        Some(Ask::Export) => Ok(app::archive::read_out(store, &mut write).await?),
        None => bail!("no command is called `{}`", line.trim_end()),
    }
}

/// The other end: asks the server of a data directory. The answer is read until it ends.
pub(crate) fn ask(data: &Path, ask: Ask) -> Result<impl Read + use<>> {
    let path = data.join(NAME);
    let connect = || {
        let mut stream = BlockingStream::connect(&path)?;
        writeln!(stream, "{}", ask.line())?;
        Ok::<_, std::io::Error>(std::io::BufReader::new(stream))
    };
    connect().with_context(|| format!("cannot reach the running server at {}", path.display()))
}
