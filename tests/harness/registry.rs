//! A real OCI registry in a process of its own, on a free port and in an empty folder.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    Client,
    client::{RawResponse, http},
    free_port,
    process::{Process, program},
    signed::sha256,
    wait_until,
};

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
        let mut command = Command::new(program("docker-registry"));
        command
            .args(["serve", "settings.yml"])
            .current_dir(folder.path())
            .env_clear();
        let registry = Self {
            host,
            folder,
            _process: Process::silent(command),
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
        let url = format!("http://{}/v2/{repository}/manifests/{tag}", self.host);
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        let request = http().put(url).header("content-type", media_type);
        let answer = RawResponse::receive(request.body(manifest.to_string())).await;
        assert_eq!(answer.status, 201, "{manifest}");
    }

    /// Puts a blob and returns its digest.
    pub async fn put_blob(&self, repository: &str, bytes: Vec<u8>) -> String {
        let digest = format!("sha256:{}", sha256(&bytes));
        let uploads = format!("http://{}/v2/{repository}/blobs/uploads/", self.host);
        let begun = RawResponse::receive(http().post(uploads)).await;
        let upload = http().put(begun.header("location"));
        let sent = upload.query(&[("digest", &digest)]).body(bytes);
        assert_eq!(RawResponse::receive(sent).await.status, 201);
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
