//! Control socket for the operator's commands, in the data directory of a running server.
//!
//! A process that can connect to the socket can also read the data directory, which only its owner
//! can. Therefore the socket needs no key. A command is one line, and the response depends on it.
//! The store belongs to one process; through this socket another process reads it.

use std::{
    fmt::Display,
    io::{Read, Write},
    net::SocketAddr,
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener as BlockingListener, UnixStream as BlockingStream},
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use app::{
    App, Time, Window,
    core::{
        ids::OrganizationId,
        vault::{MasterKeyUsage, RotateError, Vault},
    },
    projects::{self, permissions::KeyRestrictions},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use store::Store;
use strum::{EnumString, IntoStaticStr};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    task::JoinSet,
    time::timeout,
};
use zeroize::Zeroizing;

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
/// Number of projects whose keys are read at a time.
const LISTED_PROJECTS: u64 = 500;

/// A command of the control socket, requested by a line with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum ControlCommand {
    /// Export of everything in the store, as written by `app::lifecycle::archive`.
    Export,
    /// The master keys: JSON, a [`Reply`] of [`MasterKeyUsage`]s.
    Keys,
    /// Rotation to a new master key. The response is that of [`Self::Keys`].
    Rotate,
    /// The API keys in full: JSON, a [`Reply`] of [`OwnedKey`]s.
    ApiKeys,
    /// The addresses of the server: JSON, a [`Reply`] of [`Addresses`].
    Addresses,
}

/// Addresses of a running server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Addresses {
    /// URL that clients are told.
    pub url: String,
    /// Address that the server listens on.
    pub listen: SocketAddr,
}

/// The result of a command, or the reason why it failed.
type Reply<T> = std::result::Result<T, String>;

/// An API key in full, with the name of the organization or project that it belongs to.
#[derive(Serialize, Deserialize)]
pub(crate) struct OwnedKey {
    pub owner: String,
    /// Kind of the owner: `organization` or `project`.
    pub kind: String,
    pub name: String,
    /// True if the key is limited to permissions or addresses.
    pub restricted: bool,
    #[serde(
        serialize_with = "serialize_secret",
        deserialize_with = "deserialize_secret"
    )]
    pub secret: Zeroizing<String>,
}

/// The server's side of the socket.
pub(crate) struct Control {
    listener: UnixListener,
    path: PathBuf,
}

/// Parts of the server that commands work on.
pub(crate) struct ControlContext {
    pub app: Arc<App>,
    pub store: Store,
    pub key_file: PathBuf,
    pub addresses: Addresses,
}

impl Control {
    /// Opens the socket. A socket left by an earlier process is removed: the store is locked by
    /// this process.
    pub(crate) fn open(data: &Path) -> Result<Self> {
        let path = data.join(SOCKET_NAME);
        let _ = std::fs::remove_file(&path);
        let listener = listen(&path)
            .with_context(|| format!("cannot listen on the control socket {}", path.display()))?;
        Ok(Self { listener, path })
    }

    /// Serves commands until it is dropped.
    pub(crate) async fn serve(self, context: ControlContext) {
        let context = Arc::new(context);
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
    let app = &context.app;
    match line.trim_end().parse() {
        Ok(ControlCommand::Export) => {
            Ok(app::lifecycle::archive::export_frames(&context.store, &mut write).await?)
        }
        Ok(ControlCommand::Keys) => reply(&mut write, app.vault.masters().await).await,
        Ok(ControlCommand::Rotate) => {
            let done = rotate(&app.vault, &context.key_file, app.clock.now()).await;
            reply(&mut write, done).await
        }
        Ok(ControlCommand::ApiKeys) => reply(&mut write, api_keys(app).await).await,
        Ok(ControlCommand::Addresses) => {
            reply(&mut write, Ok::<_, String>(&context.addresses)).await
        }
        Err(_) => bail!("the command `{}` does not exist", line.trim_end()),
    }
}

async fn reply<T: Serialize>(
    to: &mut (impl AsyncWrite + Unpin),
    done: std::result::Result<T, impl Display>,
) -> Result<()> {
    let reply: Reply<T> = done.map_err(|cause| cause.to_string());
    let text = Zeroizing::new(serde_json::to_vec(&reply)?);
    Ok(to.write_all(&text).await?)
}

/// Returns the keys of the organization and of every project in full.
pub(crate) async fn api_keys(app: &App) -> std::result::Result<Vec<OwnedKey>, app::Error> {
    let mut keys = Vec::new();
    let Some(organization) = projects::organization(app).await? else {
        return Ok(keys);
    };
    let name = &organization.body.name;
    keys.extend(owned_keys(app, "organization", name, &organization.id).await?);
    let id = OrganizationId::parse(&organization.id)?;
    let mut window = Window::first(LISTED_PROJECTS);
    loop {
        let found = projects::list(app, &id, window.clone()).await?;
        for project in &found.items {
            let name = &project.stored.name;
            keys.extend(owned_keys(app, "project", name, project.id.as_str()).await?);
        }
        let Some(last) = found.next else {
            return Ok(keys);
        };
        window = window.after(last);
    }
}

/// Returns the keys of the owner with an id.
async fn owned_keys(
    app: &App,
    kind: &str,
    owner_name: &str,
    owner: &str,
) -> std::result::Result<Vec<OwnedKey>, app::Error> {
    let shown = projects::show_keys(app, owner).await?.into_iter();
    let owned = shown.map(|key| OwnedKey {
        owner: owner_name.to_owned(),
        kind: kind.to_owned(),
        name: key.name,
        restricted: key.rights != KeyRestrictions::default(),
        secret: key.secret,
    });
    Ok(owned.collect())
}

fn serialize_secret<S: Serializer>(
    secret: &Zeroizing<String>,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_str(secret)
}

fn deserialize_secret<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<Zeroizing<String>, D::Error> {
    String::deserialize(from).map(Zeroizing::new)
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

/// Returns the addresses of the server of a data directory, if one of this version runs and responds in
/// time.
pub(crate) async fn addresses(data: &Path) -> Option<Addresses> {
    // Not by `request`, whose blocking read would outlive the timeout.
    let asked = async {
        let mut stream = UnixStream::connect(data.join(SOCKET_NAME)).await.ok()?;
        let line = format!("{}\n", <&str>::from(ControlCommand::Addresses));
        stream.write_all(line.as_bytes()).await.ok()?;
        let mut text = Vec::new();
        stream.read_to_end(&mut text).await.ok()?;
        serde_json::from_slice::<Reply<Addresses>>(&text).ok()?.ok()
    };
    timeout(COMMAND_TIMEOUT, asked).await.ok()?
}

/// Sends a command to the server of a data directory, and returns its result.
pub(crate) async fn request<T: DeserializeOwned + Send + 'static>(
    data: &Path,
    command: ControlCommand,
) -> Result<T> {
    let data = data.to_owned();
    let asking = tokio::task::spawn_blocking(move || {
        let mut text = Zeroizing::new(String::new());
        send(&data, command)?.read_to_string(&mut text)?;
        serde_json::from_str::<Reply<T>>(&text).context(
            "the server did not complete the command, because it stopped or has another version: run the command again",
        )
    });
    let reply = asking
        .await
        .context("cannot send the command to the server")??;
    reply.map_err(|cause| anyhow!(cause))
}

/// Sends a command to the server of a data directory. The response is read until it ends.
pub(crate) fn send(data: &Path, command: ControlCommand) -> Result<impl Read + use<>> {
    let path = data.join(SOCKET_NAME);
    connect(&path, command).with_context(|| {
        format!(
            "cannot connect to the control socket {} of the server",
            path.display()
        )
    })
}

fn connect(
    path: &Path,
    command: ControlCommand,
) -> std::io::Result<std::io::BufReader<BlockingStream>> {
    let mut stream = BlockingStream::connect(path)?;
    writeln!(stream, "{}", <&str>::from(command))?;
    Ok(std::io::BufReader::new(stream))
}

fn listen(path: &Path) -> std::io::Result<UnixListener> {
    let listener = BlockingListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}
