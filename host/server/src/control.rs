//! Control socket for the operator's commands, in the data directory of a running server.
//!
//! A process that can connect can read the data directory, which only its owner can. Therefore the
//! socket needs no key. A command is one line, and the response depends on it. The store belongs to
//! one process; through this socket another process reads it.

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
use app::{
    Clock, Time,
    vault::{MasterKeyUsage, RotateError, Vault},
};
use store::Store;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    task::JoinSet,
    time::timeout,
};

/// Name of the socket in the data directory.
const NAME: &str = "control.sock";
/// Timeout for receiving the command line; below, its maximum length in bytes.
const ASKS: Duration = Duration::from_secs(5);
const LINE: u64 = 64;
/// Maximum number of commands served at the same time.
const AT_ONCE: usize = 8;

/// A command of the control socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Export of everything in the store, as written by `app::archive`.
    Export,
    /// The master keys: one line of JSON, a [`Reply`].
    Keys,
    /// Rotation to a new master key, answered as [`Self::Keys`] is.
    Rotate,
}

/// The master keys, or the reason why the command failed.
pub(crate) type Reply = std::result::Result<Vec<MasterKeyUsage>, String>;

impl Ask {
    const ALL: [Self; 3] = [Self::Export, Self::Keys, Self::Rotate];

    fn line(self) -> &'static str {
        match self {
            Self::Export => "export",
            Self::Keys => "keys",
            Self::Rotate => "rotate",
        }
    }
}

/// The server's side of the socket.
pub(crate) struct Control {
    listener: UnixListener,
    path: PathBuf,
}

/// Parts of the server that commands work on.
struct House {
    store: Store,
    vault: Arc<Vault>,
    clock: Clock,
    key_file: PathBuf,
}

impl Control {
    /// Opens the socket. A socket left by an earlier process is removed: the store is locked by
    /// this process.
    pub(crate) fn open(data: &Path) -> Result<Self> {
        let path = data.join(NAME);
        let _ = std::fs::remove_file(&path);
        let open = || {
            let listener = BlockingListener::bind(&path)?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            UnixListener::from_std(listener)
        };
        let listener = open()
            .with_context(|| format!("listen on {} for the operator's commands", path.display()))?;
        Ok(Self { listener, path })
    }

    /// Serves commands until it is dropped.
    pub(crate) async fn serve(
        self,
        store: Store,
        vault: Arc<Vault>,
        clock: Clock,
        key_file: PathBuf,
    ) {
        let house = Arc::new(House {
            store,
            vault,
            clock,
            key_file,
        });
        let mut serving = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) if serving.len() < AT_ONCE => {
                        let house = house.clone();
                        serving.spawn(async move {
                            if let Err(cause) = answer(stream, &house).await {
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

async fn answer(mut stream: UnixStream, house: &House) -> Result<()> {
    let mut line = String::new();
    let (read, mut write) = stream.split();
    timeout(ASKS, BufReader::new(read.take(LINE)).read_line(&mut line))
        .await
        .context("wait for a command")??;
    match Ask::ALL
        .into_iter()
        .find(|ask| ask.line() == line.trim_end())
    {
        Some(Ask::Export) => Ok(app::archive::export_frames(&house.store, &mut write).await?),
        Some(Ask::Keys) => {
            reply(
                &mut write,
                house
                    .vault
                    .masters()
                    .await
                    .map_err(|cause| cause.to_string()),
            )
            .await
        }
        Some(Ask::Rotate) => {
            let done = rotate(&house.vault, &house.key_file, house.clock.now()).await;
            reply(&mut write, done.map_err(|cause| cause.to_string())).await
        }
        None => bail!("no command is called `{}`", line.trim_end()),
    }
}

async fn reply(to: &mut (impl AsyncWrite + Unpin), reply: Reply) -> Result<()> {
    Ok(to.write_all(&serde_json::to_vec(&reply)?).await?)
}

/// Replaces the master key and returns all master keys that exist afterwards.
pub(crate) async fn rotate(
    vault: &Vault,
    key_file: &Path,
    now: Time,
) -> std::result::Result<Vec<MasterKeyUsage>, RotateError> {
    vault.rotate(key_file, now).await?;
    Ok(vault.masters().await?)
}

/// Returns true if a server listens in a data directory.
pub(crate) fn is_there(data: &Path) -> bool {
    BlockingStream::connect(data.join(NAME)).is_ok()
}

/// Sends a command to the server of a data directory. The response is read until it ends.
pub(crate) fn ask(data: &Path, ask: Ask) -> Result<impl Read + use<>> {
    let path = data.join(NAME);
    let connect = || {
        let mut stream = BlockingStream::connect(&path)?;
        writeln!(stream, "{}", ask.line())?;
        Ok::<_, std::io::Error>(std::io::BufReader::new(stream))
    };
    connect().with_context(|| format!("cannot reach the running server at {}", path.display()))
}
