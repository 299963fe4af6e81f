//! A real RabbitMQ server in processes of its own, on free ports and in an empty folder.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use lapin::{
    Channel, Connection, ConnectionProperties, ExchangeKind,
    options::{
        BasicAckOptions, BasicGetOptions, ExchangeDeclareOptions, QueueBindOptions,
        QueueDeclareOptions, QueueDeleteOptions,
    },
    types::FieldTable,
};
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::{
    free_port,
    host::{Process, START_TIMEOUT, spawn},
    nats::{MAX_MESSAGE_BYTES, StoredMessage},
    secret, tunnel, wait_for,
};

/// Time in which stored messages are read.
const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// Exchange to which the messages are published.
const EXCHANGE_NAME: &str = "toolhost";
/// Timeout of a connection and its channel.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Queue that stores the messages.
const QUEUE_NAME: &str = "events";
/// Routing keys of all messages of toolhost.
const ROUTING_KEYS: &str = "toolhost.#";

/// A RabbitMQ server. Dropping it kills its processes.
#[derive(Debug)]
pub struct RabbitMq {
    port: u16,
    tls_port: u16,
    password: String,
    folder: TempDir,
    /// The server, and the daemon by which the nodes of Erlang find each other.
    processes: Vec<Process>,
    daemon_port: u16,
    node_port: u16,
    /// Messages that were taken out of the queue, oldest first.
    taken: Mutex<Vec<StoredMessage>>,
}

impl RabbitMq {
    /// Starts a server with a queue that stores all messages of toolhost.
    pub async fn start() -> Self {
        let mut server = Self {
            port: free_port(),
            tls_port: free_port(),
            password: secret(),
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
            processes: Vec::new(),
            daemon_port: free_port(),
            node_port: free_port(),
            taken: Mutex::default(),
        };
        tunnel::make_certificate(server.folder.path(), &["localhost"]);
        server.run().await;
        server
    }

    /// Returns the address with the credential.
    #[must_use]
    pub fn url(&self) -> String {
        format!("amqp://toolhost:{}@127.0.0.1:{}", self.password, self.port)
    }

    /// Returns the address with TLS and the credential.
    #[must_use]
    pub fn tls_url(&self) -> String {
        let Self {
            password, tls_port, ..
        } = self;
        format!("amqps://toolhost:{password}@localhost:{tls_port}")
    }

    /// Returns the file of the certificate authority of the server's certificate.
    #[must_use]
    pub fn authority(&self) -> String {
        self.folder.path().join("certificate").display().to_string()
    }

    /// Starts the server on the folder and the ports of the killed one. Declares the queue again, as
    /// applications do when they connect: a server that is killed may forget what it has just confirmed.
    pub async fn run(&mut self) {
        let folder = self.folder.path();
        let [certificate, key] =
            ["certificate", "key"].map(|name| folder.join(name).display().to_string());
        let settings = format!(
            "listeners.tcp.1 = 127.0.0.1:{}\nlisteners.ssl.1 = 127.0.0.1:{}\n\
             ssl_options.certfile = {certificate}\nssl_options.keyfile = {key}\n\
             default_user = toolhost\ndefault_pass = {}\nmax_message_size = {MAX_MESSAGE_BYTES}\n",
            self.port, self.tls_port, self.password
        );
        std::fs::write(folder.join("server.conf"), settings).expect("the folder can be written");
        let root = root();
        let mut daemon = self.command(&file_in(&root.join("usr/lib/erlang"), "erts-", "bin/epmd"));
        daemon.args([
            "-address",
            "127.0.0.1",
            "-port",
            &self.daemon_port.to_string(),
        ]);
        let scripts = root.join("usr/lib/rabbitmq/lib");
        let mut server = self.command(&file_in(
            &scripts,
            "rabbitmq_server-",
            "sbin/rabbitmq-server",
        ));
        server
            // The script is replaced by the server, as under systemd, so that a kill ends the server.
            .env("RUNNING_UNDER_SYSTEMD", "1")
            .env("RABBITMQ_BASE", folder)
            .env("RABBITMQ_CONFIG_FILE", folder.join("server"))
            .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("plugins"))
            .env("RABBITMQ_MNESIA_BASE", folder.join("data"))
            .env("RABBITMQ_LOG_BASE", folder.join("log"))
            .env(
                "RABBITMQ_NODENAME",
                format!("toolhost{}@localhost", self.port),
            )
            .env("RABBITMQ_DIST_PORT", self.node_port.to_string());
        self.processes = vec![Process(spawn(daemon)), Process(spawn(server))];
        wait_for(START_TIMEOUT, "the RabbitMQ server answers", async || {
            self.declare().await.is_some()
        })
        .await;
    }

    /// Declares a queue that stores all messages of toolhost. Returns none if the server does not answer.
    pub async fn declare(&self) -> Option<()> {
        let channel = self.channel().await?;
        let durable = ExchangeDeclareOptions {
            durable: true,
            ..ExchangeDeclareOptions::default()
        };
        let none = FieldTable::default;
        let exchange = EXCHANGE_NAME.into();
        let declared = channel.exchange_declare(exchange, ExchangeKind::Topic, durable, none());
        declared.await.ok()?;
        let queue = QUEUE_NAME.into();
        let declared = channel.queue_declare(queue, QueueDeclareOptions::durable(), none());
        declared.await.ok()?;
        let (queue, exchange, keys) =
            (QUEUE_NAME.into(), EXCHANGE_NAME.into(), ROUTING_KEYS.into());
        let bound = channel.queue_bind(queue, exchange, keys, QueueBindOptions::default(), none());
        bound.await.ok()
    }

    /// Deletes the queue, so that no queue stores the messages of toolhost.
    pub async fn delete_queue(&self) {
        let channel = self.channel().await.expect("the server answers");
        let deleted = channel.queue_delete(QUEUE_NAME.into(), QueueDeleteOptions::default());
        deleted.await.expect("the queue can be deleted");
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", root().join("usr/bin").display()),
            )
            .env("HOME", self.folder.path())
            .env("ERL_EPMD_PORT", self.daemon_port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Ends the server without a shutdown.
    pub fn kill(&mut self) {
        self.processes.clear();
    }

    /// Returns all stored messages, oldest first. Those that the server does not give in time are
    /// missing.
    pub async fn messages(&self) -> Vec<StoredMessage> {
        let mut taken = self.taken.lock().await;
        let taking = self.take(&mut taken);
        // A server that begins may accept a connection and not answer.
        let _ = tokio::time::timeout(READ_TIMEOUT, taking).await;
        taken.clone()
    }

    async fn take(&self, taken: &mut Vec<StoredMessage>) {
        let Some(channel) = self.channel().await else {
            return;
        };
        let next = || channel.basic_get(QUEUE_NAME.into(), BasicGetOptions::default());
        while let Some(message) = next().await.expect("the queue can be read") {
            let id = message.properties.message_id();
            taken.push(StoredMessage {
                subject: message.routing_key.to_string(),
                id: id.as_ref().map(ToString::to_string).unwrap_or_default(),
                body: serde_json::from_slice(&message.data).expect("a message is JSON"),
            });
            let acknowledged = message.ack(BasicAckOptions::default()).await;
            acknowledged.expect("the message can be acknowledged");
        }
    }

    async fn channel(&self) -> Option<Channel> {
        let url = self.url();
        let opened = async {
            let connected = Connection::connect(&url, ConnectionProperties::default());
            connected.await?.create_channel().await
        };
        // A server that begins may accept a connection and not answer.
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, opened).await;
        opened.ok()?.ok()
    }
}

/// Returns the folder below which the server was unpacked, or the root folder if it is installed.
fn root() -> PathBuf {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/parts");
    let has_server = |root: &Path| root.join("usr/lib/rabbitmq").is_dir();
    let found = [unpacked, "/".into()]
        .into_iter()
        .find(|root| has_server(root));
    let found = found.and_then(|root| root.canonicalize().ok());
    found.unwrap_or_else(|| panic!("rabbitmq-server is missing: `tests/setup` fetches it"))
}

/// Returns a file in the only folder whose name begins with a prefix.
fn file_in(folder: &Path, prefix: &str, path: &str) -> PathBuf {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let name = names.find(|name| name.starts_with(prefix));
    folder.join(name.unwrap_or_default()).join(path)
}
