//! A CONNECT proxy (RFC 9110, section 9.3.6) to a fake provider with TLS, all on loopback.
//!
//! Every requested name leads to the same provider, as with a proxy that resolves names itself. The
//! certificate is made for each proxy. A server trusts it if it is started with
//! [`Tunnel::authority`] in `SSL_CERT_FILE`. A proxy made with [`Tunnel::to`] passes bytes through
//! without decrypting them.

use std::{
    io,
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

use crate::FakeApp;

/// A running proxy. It ends with the process.
#[derive(Debug)]
pub struct Tunnel {
    /// `http://127.0.0.1:port`
    pub address: String,
    asked: Arc<Mutex<Vec<String>>>,
    certificates: Option<TempDir>,
}

impl Tunnel {
    /// Starts a proxy on a free port for these names of the provider. With `authorization`, the
    /// proxy requires this `Proxy-Authorization` value.
    ///
    /// # Panics
    /// If `openssl` is not installed.
    #[must_use]
    pub fn start(application: &FakeApp, hosts: &[&str], authorization: Option<&str>) -> Self {
        let certificates = tempfile::tempdir().expect("a temporary folder can be made");
        let acceptor = acceptor(certificates.path(), hosts);
        let door = Proxy {
            acceptor: Some(acceptor),
            application: application.origin.trim_start_matches("http://").to_owned(),
            authorization: authorization.map(str::to_owned),
            asked: Arc::default(),
        };
        Self {
            certificates: Some(certificates),
            ..Self::open(door)
        }
    }

    /// Starts a proxy on a free port to a provider that itself serves TLS at
    /// `https://127.0.0.1:port`.
    #[must_use]
    pub fn to(origin: &str) -> Self {
        let application = origin.trim_start_matches("https://").to_owned();
        Self::open(Proxy {
            acceptor: None,
            application,
            authorization: None,
            asked: Arc::default(),
        })
    }

    fn open(door: Proxy) -> Self {
        let asked = Arc::clone(&door.asked);
        let (port, bound) = std::sync::mpsc::channel();
        // The proxy has its own thread and runtime, as the provider does.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime
                .expect("a runtime can be made")
                .block_on(async move {
                    let listener = TcpListener::bind("127.0.0.1:0")
                        .await
                        .expect("loopback can be used");
                    port.send(
                        listener
                            .local_addr()
                            .expect("a bound socket has an address")
                            .port(),
                    )
                    .ok();
                    let door = Arc::new(door);
                    let mut open = JoinSet::new();
                    while let Ok((stream, _)) = listener.accept().await {
                        open.spawn(Arc::clone(&door).pass(stream));
                    }
                });
        });
        let port = bound.recv().expect("the proxy starts");
        Self {
            address: format!("http://127.0.0.1:{port}"),
            asked,
            certificates: None,
        }
    }

    /// Returns the file of the certificate authority of the provider's certificate.
    ///
    /// # Panics
    /// If the provider itself serves TLS.
    #[must_use]
    pub fn authority(&self) -> String {
        let certificates = self
            .certificates
            .as_ref()
            .expect("it has a certificate of its own");
        certificates
            .path()
            .join("certificate")
            .display()
            .to_string()
    }

    /// Returns the request heads that the proxy received, unchanged, oldest first.
    ///
    /// # Panics
    /// If the proxy has panicked.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic holds it").clone()
    }
}

struct Proxy {
    /// TLS acceptor. `None` if the provider itself serves TLS.
    acceptor: Option<TlsAcceptor>,
    application: String,
    authorization: Option<String>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn pass(self: Arc<Self>, mut stream: TcpStream) {
        // A disconnected client is not an error of the test.
        self.tunnel(&mut stream).await.ok();
    }

    async fn tunnel(&self, stream: &mut TcpStream) -> io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        self.asked
            .lock()
            .expect("no panic holds it")
            .push(head.clone());
        let shown = head.lines().filter_map(|line| line.split_once(": "));
        let shown = shown
            .filter(|(name, _)| name.eq_ignore_ascii_case("proxy-authorization"))
            .map(|(_, value)| value);
        if self
            .authorization
            .as_deref()
            .is_some_and(|wanted| !shown.eq([wanted]))
        {
            return stream
                .write_all(
                    b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
                )
                .await;
        }
        if !head.starts_with("CONNECT ") {
            return stream
                .write_all(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n")
                .await;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
        let mut application = TcpStream::connect(&self.application).await?;
        match &self.acceptor {
            Some(acceptor) => {
                copy_bidirectional(&mut acceptor.accept(stream).await?, &mut application)
                    .await
                    .map(drop)
            }
            None => copy_bidirectional(stream, &mut application).await.map(drop),
        }
    }
}

/// Makes a certificate for these names: the files `certificate` and `key` of a folder.
pub(crate) fn make_certificate(folder: &Path, hosts: &[&str]) {
    let names: Vec<_> = hosts.iter().map(|host| format!("DNS:{host}")).collect();
    let extensions = format!(
        "basicConstraints=CA:FALSE\nsubjectAltName={}\n",
        names.join(",")
    );
    std::fs::write(folder.join("extensions"), extensions).expect("a file can be written");
    for arguments in [
        "req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key -out request -subj /CN=tests",
        "x509 -req -in request -signkey key -days 2 -extfile extensions -out certificate",
    ] {
        let mut command = Command::new("openssl");
        command
            .current_dir(folder)
            .args(arguments.split(' '))
            .stdin(Stdio::null());
        let made = command.output().expect("`openssl` can be run");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
    }
}

/// Makes a certificate for these names and returns the TLS acceptor that uses it.
pub(crate) fn acceptor(folder: &Path, hosts: &[&str]) -> TlsAcceptor {
    make_certificate(folder, hosts);
    let chain = CertificateDer::pem_file_iter(folder.join("certificate"))
        .and_then(|chain| chain.collect::<Result<Vec<_>, _>>());
    let key = PrivateKeyDer::from_pem_file(folder.join("key")).expect("the key can be read");
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(chain.expect("the certificate can be read"), key)
        });
    TlsAcceptor::from(Arc::new(config.expect("the certificate can be used")))
}
