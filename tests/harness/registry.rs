//! A real OCI registry in a process of its own, on a free port and in an empty folder.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::{
    Client,
    client::plain_http,
    free_port,
    host::{Process, spawn},
    wait_until,
};

/// Name of the program in Debian.
const PROGRAM_NAME: &str = "docker-registry";
/// User name of a registry that requires authentication.
pub const REGISTRY_USER: &str = "author";
/// Password of that user. The registry stores it hashed with bcrypt.
pub const REGISTRY_PASSWORD: &str = "secret";
const HTPASSWD_FILE: &str = "author:$2b$04$JVS/THZay0Bl/QrATlYaFeurxTnDhc72UHdCT8ccz2LcgpQDn8UOu\n";

/// A running registry. Dropping it kills the process.
#[derive(Debug)]
pub struct Registry {
    /// `127.0.0.1:port`
    pub host: String,
    folder: TempDir,
    _process: Process,
}

impl Registry {
    /// Starts a registry without authentication.
    pub async fn start() -> Self {
        Self::run("").await
    }

    /// Starts a registry that serves [`REGISTRY_USER`] alone.
    pub async fn start_with_password() -> Self {
        Self::run("auth: {htpasswd: {realm: tests, path: passwords}}\n").await
    }

    async fn run(more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let host = format!("127.0.0.1:{}", free_port());
        let settings = format!(
            "version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\nhttp: {{addr: '{host}', secret: tests}}\n\
             storage: {{filesystem: {{rootdirectory: blobs}}}}\n{more}"
        );
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        write("settings.yml", &settings).expect("the folder can be written");
        write("passwords", HTPASSWD_FILE).expect("the folder can be written");
        let mut command = Command::new(program());
        command
            .args(["serve", "settings.yml"])
            .current_dir(folder.path())
            .env_clear();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = Process(spawn(command));
        let registry = Self {
            host,
            folder,
            _process: process,
        };
        let client = Client::new(&format!("http://{}", registry.host), None);
        wait_until("the registry answers", || async {
            client.try_get_root("/v2/").await.is_some()
        })
        .await;
        registry
    }

    /// Puts a manifest under a tag directly, without the checks of a client.
    pub async fn put_manifest(&self, repository: &str, tag: &str, manifest: &Value) {
        let request = http().put(format!(
            "http://{}/v2/{repository}/manifests/{tag}",
            self.host
        ));
        let request = request.header("content-type", "application/vnd.oci.image.manifest.v1+json");
        let answer = request
            .body(manifest.to_string())
            .send()
            .await
            .expect("the registry answers");
        assert_eq!(answer.status(), 201, "{manifest}");
    }

    /// Puts a blob and returns its digest.
    ///
    /// # Panics
    /// If the registry refuses the blob.
    pub async fn put_blob(&self, repository: &str, bytes: Vec<u8>) -> String {
        let digest = format!("sha256:{}", hex::encode(Sha256::digest(&bytes)));
        let begun = http()
            .post(format!(
                "http://{}/v2/{repository}/blobs/uploads/",
                self.host
            ))
            .send()
            .await;
        let begun = begun.expect("the registry answers");
        let place = begun.headers()["location"]
            .to_str()
            .expect("an address is text");
        let sent = http()
            .put(place)
            .query(&[("digest", &digest)])
            .body(bytes)
            .send()
            .await;
        assert_eq!(sent.expect("the registry answers").status(), 201);
        digest
    }

    /// Returns the file of a blob or manifest, by its digest.
    pub fn file(&self, digest: &str) -> PathBuf {
        let hex = digest.trim_start_matches("sha256:");
        let path = Path::new("blobs/docker/registry/v2/blobs/sha256")
            .join(&hex[..2])
            .join(hex)
            .join("data");
        let path = self.folder.path().join(path);
        assert!(path.is_file(), "the registry has no {digest}");
        path
    }
}

fn http() -> reqwest::Client {
    plain_http().build().expect("a client can be made")
}

fn program() -> PathBuf {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/parts/usr/bin");
    let folders = [unpacked, "/usr/bin".into(), "/usr/local/bin".into()];
    let found = folders
        .into_iter()
        .map(|folder| folder.join(PROGRAM_NAME))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{PROGRAM_NAME} is missing: `tests/setup` fetches it"))
}
