//! A fake provider that authenticates callers by client certificate (RFC 8446, RFC 8705) and
//! refuses all others.
//!
//! Each response is JSON with the fingerprint of the presented certificate and an access token, so
//! the provider is also its own authorization server. It keeps connections open, as real providers
//! do.

use std::io;

use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::pki_types::{CertificateDer, pem::PemObject},
};

use crate::{loopback, signed::sha256, tls};

/// A running provider and the certificate authority that it trusts. It ends with the process.
#[derive(Debug)]
pub struct MutualTlsProvider {
    /// `https://127.0.0.1:port`
    pub origin: String,
    folder: TempDir,
}

/// A certificate with its key.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// Certificate in PEM.
    pub certificate: String,
    /// Private key in PEM.
    pub key: String,
    /// Fingerprint by which the provider recognizes the certificate.
    pub fingerprint: String,
}

impl MutualTlsProvider {
    /// Starts a provider on a free port.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let (listener, address) = loopback::listen();
        let provider = Self {
            origin: format!("https://{address}"),
            folder,
        };
        let folder = provider.folder.path();
        tls::make_certificate(folder, "root", "");
        provider.issue(
            "server",
            "-addext subjectAltName=IP:127.0.0.1,DNS:api.example.com",
        );
        let acceptor = tls::acceptor(folder, Some("root.crt"));
        loopback::serve_connections(listener, move |stream| serve(acceptor.clone(), stream));
        provider
    }

    /// Returns the file of the certificate authority that signed the server certificate.
    pub fn authority(&self) -> String {
        self.folder.path().join("root.crt").display().to_string()
    }

    /// Issues a new certificate that the provider accepts.
    pub fn certificate(&self, name: &str) -> Certificate {
        self.issue(name, "");
        let [certificate, key] = ["crt", "key"].map(|kind| {
            let file = self.folder.path().join(format!("{name}.{kind}"));
            std::fs::read_to_string(file).expect("openssl has written it")
        });
        let der = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("it is PEM");
        Certificate {
            fingerprint: sha256(&der),
            certificate,
            key,
        }
    }

    /// Issues a certificate signed by the root.
    fn issue(&self, name: &str, extensions: &str) {
        let signer = "-CA root.crt -CAkey root.key -addext basicConstraints=CA:FALSE";
        tls::make_certificate(self.folder.path(), name, &format!("{signer} {extensions}"));
    }
}

/// Responds to the requests of one connection.
async fn serve(acceptor: TlsAcceptor, stream: TcpStream) -> io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let certificates = stream.get_ref().1.peer_certificates();
    let shown = certificates.and_then(<[_]>::first).map(|der| sha256(der));
    while let Some(request) = read(&mut stream).await {
        let path = request.split(' ').nth(1).unwrap_or_default();
        let body = json!({ "certificate": shown, "path": path, "request": request, "access_token": "at-1" });
        let body = body.to_string();
        let length = body.len();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
        let response = format!("{head} {length}\r\n\r\n{body}");
        stream.write_all(response.as_bytes()).await?;
        stream.flush().await?;
    }
    Ok(())
}

/// Reads one request with a body of its declared length.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
    }
}
