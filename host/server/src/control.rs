//! Control socket for the operator's commands, in the data directory of a running server.
//!
//! A process that can connect to the socket can also read the data directory, which only its owner
//! can. Therefore the socket needs no key. A command is one line, and the response depends on it.
//! The store belongs to one process; through this socket another process reads it.

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
    core::vault::{MasterKeyUsage, RotateError, Vault},
};
use store::Store;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    task::JoinSet,
    time::timeout,
};

/// File name of the socket in the data directory.
const SOCKET_NAME: &str = "control.sock";
/// Timeout for receiving the line of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
/// Delay after a connection that could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_secs(5);
/// Maximum size of the line of a command, in bytes.
const MAX_COMMAND_BYTES: u64 = 64;
/// Maximum number of commands served at the same time.
const MAX_CONCURRENT_COMMANDS: usize = 8;

/// A command of the control socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ControlCommand {
    /// Export of everything in the store, as written by `app::lifecycle::archive`.
    Export,
    /// The master keys: one line of JSON, a [`Reply`].
    Keys,
    /// Rotation to a new master key. The response is that of [`Self::Keys`].
    Rotate,
}

/// The master keys, or the reason why the command failed.
pub(crate) type Reply = std::result::Result<Vec<MasterKeyUsage>, String>;

impl ControlCommand {
    const ALL: [Self; 3] = [Self::Export, Self::Keys, Self::Rotate];

    /// Returns the line that requests the command.
    fn name(self) -> &'static str {
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
struct ControlContext {
    store: Store,
    vault: Arc<Vault>,
    clock: Clock,
    key_file: PathBuf,
}

impl Control {
    /// Opens the socket. A socket left by an earlier process is removed: the store is locked by
    /// this process.
    pub(crate) fn open(data: &Path) -> Result<Self> {
        let path = data.join(SOCKET_NAME);
        let _ = std::fs::remove_file(&path);
        let open = || {
            let listener = BlockingListener::bind(&path)?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            UnixListener::from_std(listener)
        };
        let listener = open()
            .with_context(|| format!("cannot listen on the control socket {}", path.display()))?;
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
        let context = Arc::new(ControlContext {
            store,
            vault,
            clock,
            key_file,
        });
        let mut serving = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) if serving.len() < MAX_CONCURRENT_COMMANDS => {
                        let context = context.clone();
                        serving.spawn(async move {
                            if let Err(cause) = handle_command(stream, &context).await {
                                tracing::warn!(%cause, "a command on the control socket failed");
                            }
                        });
                    }
                    Ok(_) => {}
                    Err(cause) => {
                        tracing::warn!(%cause, "cannot accept a connection on the control socket");
                        tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
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

async fn handle_command(mut stream: UnixStream, context: &ControlContext) -> Result<()> {
    let mut line = String::new();
    let (read, mut write) = stream.split();
    let mut reader = BufReader::new(read.take(MAX_COMMAND_BYTES));
    timeout(COMMAND_TIMEOUT, reader.read_line(&mut line))
        .await
        .context("no command was received before the timeout")??;
    if line.is_empty() {
        // A process that checks if a server runs sends no command.
        return Ok(());
    }
    match ControlCommand::ALL
        .into_iter()
        .find(|command| command.name() == line.trim_end())
    {
        Some(ControlCommand::Export) => {
            Ok(app::lifecycle::archive::export_frames(&context.store, &mut write).await?)
        }
        Some(ControlCommand::Keys) => {
            reply(
                &mut write,
                context
                    .vault
                    .masters()
                    .await
                    .map_err(|cause| cause.to_string()),
            )
            .await
        }
        Some(ControlCommand::Rotate) => {
            let done = rotate(&context.vault, &context.key_file, context.clock.now()).await;
            reply(&mut write, done.map_err(|cause| cause.to_string())).await
        }
        None => bail!("the command `{}` does not exist", line.trim_end()),
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
pub(crate) fn is_running(data: &Path) -> bool {
    BlockingStream::connect(data.join(SOCKET_NAME)).is_ok()
}

/// Sends a command to the server of a data directory. The response is read until it ends.
pub(crate) fn send(data: &Path, command: ControlCommand) -> Result<impl Read + use<>> {
    let path = data.join(SOCKET_NAME);
    let connect = || {
        let mut stream = BlockingStream::connect(&path)?;
        writeln!(stream, "{}", command.name())?;
        Ok::<_, std::io::Error>(std::io::BufReader::new(stream))
    };
    connect().with_context(|| {
        format!(
            "cannot connect to the control socket {} of the server",
            path.display()
        )
    })
}
