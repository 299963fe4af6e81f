//! A real NATS server with JetStream in a process of its own, on a free port and in an empty folder.

use std::process::Command;

use async_nats::{Client, ConnectOptions};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    free_port,
    process::{Process, program},
    secret, tls, wait_until,
};

/// Stream that stores the messages.
const STREAM_NAME: &str = "events";
/// Maximum size of a message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// A NATS server. Dropping it kills the process.
#[derive(Debug)]
pub struct Nats {
    port: u16,
    password: String,
    folder: TempDir,
    process: Option<Process>,
}

/// A message that the stream has stored.
#[derive(Debug, Clone)]
pub struct StoredMessage {
    pub subject: String,
    /// Value of the header `Nats-Msg-Id`.
    pub id: String,
    pub body: Value,
}

impl Nats {
    /// Starts a server with a stream that stores all messages of toolhost.
    pub async fn start() -> Self {
        let mut nats = Self {
            port: free_port(),
            password: secret(),
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
            process: None,
        };
        tls::make_server_certificate(nats.folder.path(), &["localhost"]);
        nats.run().await;
        nats.create_stream().await;
        nats
    }

    /// Creates the stream that stores all messages of toolhost.
    pub async fn create_stream(&self) {
        let stream = json!({
            "name": STREAM_NAME, "subjects": ["toolhost.>"], "storage": "file", "duplicate_window": 600_000_000_000_u64,
        });
        self.change("CREATE", &stream).await;
    }

    /// Deletes the stream, so that none stores the messages of toolhost.
    pub async fn delete_stream(&self) {
        self.change("DELETE", &json!({})).await;
    }

    async fn change(&self, action: &str, body: &Value) {
        let path = format!("STREAM.{action}.{STREAM_NAME}");
        let changed = self.request(&path, body).await;
        let changed = changed.expect("the server responds");
        assert!(changed["error"].is_null(), "{changed}");
    }

    /// Returns the address with the credential.
    pub fn url(&self) -> String {
        format!("nats://toolhost:{}@127.0.0.1:{}", self.password, self.port)
    }

    /// Returns the address with TLS and the credential.
    pub fn tls_url(&self) -> String {
        format!("tls://toolhost:{}@localhost:{}", self.password, self.port)
    }

    /// Returns the file of the certificate authority of the server's certificate.
    pub fn authority(&self) -> String {
        self.folder.path().join("server.crt").display().to_string()
    }

    /// Starts the server on the folder and the port of the killed one.
    pub async fn run(&mut self) {
        let folder = self.folder.path();
        let [certificate, key] =
            ["server.crt", "server.key"].map(|name| folder.join(name).display().to_string());
        let settings = format!(
            "listen: 127.0.0.1:{}\nmax_payload: {MAX_MESSAGE_BYTES}\njetstream {{ store_dir: \"{}\" }}\n\
             authorization {{ user: toolhost, password: \"{}\" }}\nallow_non_tls: true\n\
             tls {{ cert_file: \"{certificate}\", key_file: \"{key}\" }}\n",
            self.port,
            folder.display(),
            self.password
        );
        std::fs::write(folder.join("settings"), settings).expect("the folder can be written");
        let mut command = Command::new(program("nats-server"));
        command.arg("-c").arg(folder.join("settings"));
        self.process = Some(Process::silent(command));
        wait_until("the NATS server answers", async || {
            self.request("INFO", &json!({})).await.is_some()
        })
        .await;
    }

    /// Ends the server without a shutdown.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Returns all stored messages, oldest first.
    pub async fn messages(&self) -> Vec<StoredMessage> {
        let client = self.client().await.expect("the server accepts connections");
        let info = request(&client, &format!("STREAM.INFO.{STREAM_NAME}"), &json!({})).await;
        let last = info.expect("the stream exists")["state"]["last_seq"].as_u64();
        let mut messages = Vec::new();
        for number in 1..=last.expect("the stream has a state") {
            let path = format!("STREAM.MSG.GET.{STREAM_NAME}");
            let found = request(&client, &path, &json!({ "seq": number })).await;
            messages.push(StoredMessage::read(
                &found.expect("the stream responds")["message"],
            ));
        }
        messages
    }

    async fn client(&self) -> Option<Client> {
        let options =
            ConnectOptions::new().user_and_password("toolhost".to_owned(), self.password.clone());
        let address = format!("127.0.0.1:{}", self.port);
        options.connect(address).await.ok()
    }

    async fn request(&self, path: &str, body: &Value) -> Option<Value> {
        request(&self.client().await?, path, body).await
    }
}

/// Sends a request of the API of JetStream.
async fn request(client: &Client, path: &str, body: &Value) -> Option<Value> {
    let subject = format!("$JS.API.{path}");
    let response = client.request(subject, body.to_string().into()).await;
    serde_json::from_slice(&response.ok()?.payload).ok()
}

impl StoredMessage {
    fn read(stored: &Value) -> Self {
        let decoded = |name: &str| {
            let text = stored[name].as_str().unwrap_or_default();
            BASE64.decode(text).expect("a part of a message is base64")
        };
        let headers = String::from_utf8(decoded("hdrs")).expect("headers are text");
        let id = headers
            .lines()
            .find_map(|line| line.strip_prefix("Nats-Msg-Id:"));
        Self {
            subject: stored["subject"].as_str().unwrap_or_default().to_owned(),
            id: id.unwrap_or_default().trim().to_owned(),
            body: serde_json::from_slice(&decoded("data")).expect("a message is JSON"),
        }
    }
}
