//! PgBouncer, a pooler of connections to PostgreSQL, in a process of its own on a free port.

use std::{
    fs::{Permissions, set_permissions},
    os::unix::fs::{MetadataExt, PermissionsExt},
    process::Command,
};

use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::{
    Database, free_port,
    process::{Process, program},
    wait_until,
};

/// A pooler. Dropping it kills the process.
#[derive(Debug)]
pub struct PgBouncer {
    url: String,
    _process: Process,
    _folder: TempDir,
}

impl PgBouncer {
    /// Starts a pooler of connections to a database with default settings, in which a client has a connection
    /// of the server for a `session` or for a `transaction`. All clients together have at most `connections`.
    pub async fn start(database: &Database, mode: &str, connections: u32) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let (port, name) = (free_port(), database.name());
        let settings = format!(
            "[databases]\n{name} = host={host} dbname={name} user=postgres\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\n\
             pool_mode = {mode}\ndefault_pool_size = {connections}\nunix_socket_dir =\n",
            host = database.server_folder().display(),
        );
        let file = folder.path().join("settings");
        std::fs::write(&file, settings).expect("the folder can be written");
        // It refuses to run as root, and then reads the settings as another user.
        set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("the folder is ours");
        let runs_as_root = folder
            .path()
            .metadata()
            .is_ok_and(|folder| folder.uid() == 0);
        let mut command = if runs_as_root {
            let mut command = Command::new("setpriv");
            command
                .args([
                    "--reuid",
                    "postgres",
                    "--regid",
                    "postgres",
                    "--clear-groups",
                ])
                // The kernel forgets this signal when the user changes.
                .args(["--pdeathsig", "KILL"])
                .arg(program("pgbouncer"));
            command
        } else {
            Command::new(program("pgbouncer"))
        };
        command.arg("-q").arg(&file);
        let process = Process::silent(command);
        let address = format!("127.0.0.1:{port}");
        wait_until("the pooler accepts connections", async || {
            TcpStream::connect(&address).await.is_ok()
        })
        .await;
        Self {
            url: format!("postgres://postgres@{address}/{name}?sslmode=disable"),
            _process: process,
            _folder: folder,
        }
    }

    /// Returns the address of the database through the pooler, in the form of the setting `store`.
    pub fn url(&self) -> &str {
        &self.url
    }
}
