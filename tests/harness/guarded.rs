//! A fake provider that authenticates callers by client certificate (RFC 8446, RFC 8705) and
//! refuses all others.
//!
//! Each response is JSON with the fingerprint of the presented certificate and an access token, so
//! the provider is also its own authorization server. It keeps connections open, as real providers
//! do.

use axum::{
    Json, Router,
    body::Bytes,
    extract::{ConnectInfo, connect_info::Connected},
    http::Uri,
    serve::IncomingStream,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject};

use crate::{
    loopback,
    signed::sha256,
    tls::{self, TlsListener},
};

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
        let router = Router::new().fallback(answer);
        let service = router.into_make_service_with_connect_info::<Fingerprint>();
        loopback::run(listener, async move |listener| {
            let listener = TlsListener { listener, acceptor };
            axum::serve(listener, service).await.ok();
        });
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

/// Fingerprint of the certificate that the client of a connection presented.
#[derive(Debug, Clone)]
struct Fingerprint(String);

impl Connected<IncomingStream<'_, TlsListener>> for Fingerprint {
    fn connect_info(stream: IncomingStream<'_, TlsListener>) -> Self {
        let certificates = stream.io().get_ref().1.peer_certificates();
        let shown = certificates.and_then(<[_]>::first).map(|der| sha256(der));
        Self(shown.unwrap_or_default())
    }
}

/// Responds to a request. It reads the body, because the connection is used again.
async fn answer(
    ConnectInfo(Fingerprint(shown)): ConnectInfo<Fingerprint>,
    uri: Uri,
    _body: Bytes,
) -> Json<Value> {
    Json(json!({ "certificate": shown, "path": uri.path(), "access_token": "at-1" }))
}
