//! Certificates that `openssl` makes, and TLS with them.

use std::{
    io,
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::WebPkiClientVerifier,
    },
    server::TlsStream,
};

/// Runs `openssl` in a folder with arguments without spaces, and returns its output.
pub(crate) fn openssl(folder: &Path, arguments: &str) -> Vec<u8> {
    let mut command = Command::new("openssl");
    command.args(arguments.split_whitespace());
    let made = command.current_dir(folder).stdin(Stdio::null()).output();
    let made = made.expect("`openssl` can be run");
    let errors = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "openssl {arguments}: {errors}");
    made.stdout
}

/// Makes a certificate with a new key: the files `{name}.crt` and `{name}.key` of a folder. It
/// signs itself if no other arguments of `openssl` name an authority.
pub fn make_certificate(folder: &Path, name: &str, arguments: &str) {
    let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -batch -days 2";
    let files = format!("-subj /CN={name} -keyout {name}.key -out {name}.crt");
    openssl(folder, &format!("{new} {files} {arguments}"));
}

/// Makes the certificate `server` for these host names, which clients trust as its own authority.
pub(crate) fn make_server_certificate(folder: &Path, hosts: &[&str]) {
    let names: Vec<_> = hosts.iter().map(|host| format!("DNS:{host}")).collect();
    let names = names.join(",");
    let extensions = format!("-addext basicConstraints=CA:FALSE -addext subjectAltName={names}");
    make_certificate(folder, "server", &extensions);
}

/// Returns a TLS acceptor with the certificate `server` of a folder. It refuses clients without a
/// certificate of the authority in `clients`, if that file is given.
pub fn acceptor(folder: &Path, clients: Option<&str>) -> TlsAcceptor {
    let certificate = |name: &str| {
        CertificateDer::from_pem_file(folder.join(name)).expect("the certificate can be read")
    };
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key"));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("the provider knows TLS 1.3");
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            let root = certificate(authority);
            roots.add(root).expect("it is an authority");
            let roots = Arc::new(roots);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            builder.with_client_cert_verifier(verifier.expect("there is a root"))
        }
    };
    let key = key.expect("the key can be read");
    let config = builder.with_single_cert(vec![certificate("server.crt")], key);
    TlsAcceptor::from(Arc::new(config.expect("they belong together")))
}

/// Listener for connections with TLS.
pub struct TlsListener {
    pub listener: TcpListener,
    pub acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.listener).await;
            stream.set_nodelay(true).ok();
            // The client reports a handshake that fails.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}
