//! A CONNECT proxy (RFC 9110, section 9.3.6) to a fake provider with TLS, all on loopback.
//!
//! Every requested name leads to the same provider, as with a proxy that resolves names itself. The
//! certificate is made for each proxy. A server trusts it if it is started with
//! [`Tunnel::authority`] in `SSL_CERT_FILE`. A proxy made with [`Tunnel::to`] passes bytes through
//! without decrypting them.

use std::{io, sync::Arc};

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::TcpStream,
};
use tokio_rustls::TlsAcceptor;

use crate::{FakeApp, loopback, tls};

/// A running proxy. It ends with the process.
#[derive(Debug)]
pub struct Tunnel {
    /// `http://127.0.0.1:port`
    pub address: String,
    asked: Arc<Mutex<Vec<String>>>,
    certificates: TempDir,
}

impl Tunnel {
    /// Starts a proxy on a free port for these names of the provider. With `authorization`, the
    /// proxy requires this `Proxy-Authorization` value.
    pub fn start(application: &FakeApp, hosts: &[&str], authorization: Option<&str>) -> Self {
        let certificates = tempfile::tempdir().expect("a temporary folder can be made");
        tls::make_server_certificate(certificates.path(), hosts);
        let acceptor = tls::acceptor(certificates.path(), None);
        let origin = application.origin.trim_start_matches("http://");
        Self::open(certificates, Some(acceptor), origin, authorization)
    }

    /// Starts a proxy on a free port to a provider that itself serves TLS at
    /// `https://127.0.0.1:port`.
    pub fn to(origin: &str) -> Self {
        let certificates = tempfile::tempdir().expect("a temporary folder can be made");
        let origin = origin.trim_start_matches("https://");
        Self::open(certificates, None, origin, None)
    }

    fn open(
        certificates: TempDir,
        acceptor: Option<TlsAcceptor>,
        origin: &str,
        authorization: Option<&str>,
    ) -> Self {
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let proxy = Arc::new(Proxy {
            acceptor,
            application: origin.to_owned(),
            authorization: authorization.map(str::to_owned),
            asked: Arc::clone(&asked),
        });
        let (listener, address) = loopback::listen();
        loopback::serve_connections(listener, move |stream| Arc::clone(&proxy).pass(stream));
        Self {
            address: format!("http://{address}"),
            asked,
            certificates,
        }
    }

    /// Returns the file of the certificate authority of the provider's certificate.
    pub fn authority(&self) -> String {
        let file = self.certificates.path().join("server.crt");
        file.display().to_string()
    }

    /// Returns the request heads that the proxy received, unchanged, oldest first.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
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
    async fn pass(self: Arc<Self>, mut stream: TcpStream) -> io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        self.asked.lock().push(head.clone());
        let headers = head.lines().filter_map(|line| line.split_once(": "));
        let shown = headers
            .filter(|(name, _)| name.eq_ignore_ascii_case("proxy-authorization"))
            .map(|(_, value)| value);
        let wanted = self.authorization.as_deref();
        let status = if wanted.is_some_and(|wanted| !shown.eq([wanted])) {
            "407 Proxy Authentication Required\r\ncontent-length: 0"
        } else if !head.starts_with("CONNECT ") {
            "405 Method Not Allowed\r\ncontent-length: 0"
        } else {
            "200 OK"
        };
        let response = format!("HTTP/1.1 {status}\r\n\r\n");
        stream.write_all(response.as_bytes()).await?;
        if status != "200 OK" {
            return Ok(());
        }
        let mut application = TcpStream::connect(&self.application).await?;
        match &self.acceptor {
            Some(acceptor) => {
                let mut plain = acceptor.accept(stream).await?;
                copy_bidirectional(&mut plain, &mut application).await?
            }
            None => copy_bidirectional(&mut stream, &mut application).await?,
        };
        Ok(())
    }
}
