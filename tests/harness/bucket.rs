//! A real S3 service with one bucket, in this process, on a free port and an empty folder.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Mutex,
};

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use s3s::{auth::SimpleAuth, service::S3ServiceBuilder};
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
};

/// Name of the only bucket.
pub const BUCKET_NAME: &str = "blobs";
/// Access key id of the bucket.
pub const ACCESS_KEY: &str = "AKIDFORTESTS";
/// Secret access key of the bucket, with the mark that every secret of the tests carries. The tests
/// of the store include this file too, so it is spelled out.
pub const SECRET_KEY: &str = "bucket-secret-zqcanaryqz";

/// An S3 service that can stop and come back at the same address.
pub struct BucketService {
    address: SocketAddr,
    folder: TempDir,
    /// Runtime of the service. `None` while it is stopped. Ending the runtime closes every
    /// connection.
    running: Mutex<Option<Runtime>>,
}

impl BucketService {
    /// Starts a service.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        std::fs::create_dir(folder.path().join(BUCKET_NAME)).expect("the folder can be written");
        let free = "127.0.0.1:0".parse().expect("this is an address");
        let (running, address) = run(folder.path(), free);
        Self {
            address,
            folder,
            running: Mutex::new(Some(running)),
        }
    }

    /// `http://127.0.0.1:port`
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the path of an object's file under its prefix.
    pub fn file(&self, key: &str) -> PathBuf {
        self.folder.path().join(BUCKET_NAME).join(key)
    }

    /// Stops the service: its address refuses connections.
    pub fn stop(&self) {
        if let Some(running) = self.running.lock().expect("no test panics in here").take() {
            running.shutdown_background();
        }
    }

    /// Starts the service again with the same objects.
    pub fn restart(&self) {
        *self.running.lock().expect("no test panics in here") =
            Some(run(self.folder.path(), self.address).0);
    }
}

impl Drop for BucketService {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(folder: &Path, wanted: SocketAddr) -> (Runtime, SocketAddr) {
    let mut service =
        S3ServiceBuilder::new(FileSystem::new(folder).expect("the folder can be read"));
    service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
    let service = service.build();
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime can be made");
    // The listener belongs to the new runtime, and an asynchronous test cannot block on another
    // runtime.
    let (bound, address) = std::sync::mpsc::channel();
    runtime.spawn(async move {
        let listener = TcpListener::bind(wanted).await.expect("the port is free");
        bound
            .send(listener.local_addr().expect("it has an address"))
            .ok();
        while let Ok((socket, _)) = listener.accept().await {
            let connection =
                http1::Builder::new().serve_connection(TokioIo::new(socket), service.clone());
            #[expect(
                clippy::disallowed_methods,
                reason = "it ends with the runtime, which the test owns"
            )]
            tokio::spawn(async move { connection.await.ok() });
        }
    });
    let address = address.recv().expect("the service listens");
    (runtime, address)
}
