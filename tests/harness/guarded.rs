//! A fake provider that authenticates callers by client certificate (RFC 8446, RFC 8705) and
//! refuses all others.
//!
//! Each response is JSON with the fingerprint of the presented certificate and an access token, so
//! the provider is also its own authorization server. It keeps connections open, as real providers
//! do.

use std::{path::Path, process::Command, sync::Arc};

use serde_json::json;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::WebPkiClientVerifier,
    },
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
    ///
    /// # Panics
    /// If `openssl` is not installed.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let root = [
            "req", "-x509", "-subj", "/CN=root", "-keyout", "root.key", "-out", "root.crt",
        ];
        openssl(folder.path(), &[&root[..], &NEW_KEY_ARGUMENTS].concat());
        issue(
            folder.path(),
            "server",
            Some("subjectAltName=IP:127.0.0.1,DNS:api.example.com"),
        );
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback can be used");
        let origin = format!(
            "https://{}",
            listener
                .local_addr()
                .expect("a bound socket has an address")
        );
        let acceptor = TlsAcceptor::from(Arc::new(settings(folder.path())));
        #[expect(
            clippy::disallowed_methods,
            reason = "it ends with the runtime, which the test owns"
        )]
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(acceptor.clone(), stream));
            }
        });
        Self { origin, folder }
    }

    /// Returns the file of the certificate authority that signed the server certificate.
    pub fn authority(&self) -> String {
        self.folder.path().join("root.crt").display().to_string()
    }

    /// Issues a new certificate that the provider accepts.
    ///
    /// # Panics
    /// If `openssl` fails.
    pub fn certificate(&self, name: &str) -> Certificate {
        issue(self.folder.path(), name, None);
        let read = |kind: &str| {
            let file = self.folder.path().join(format!("{name}.{kind}"));
            std::fs::read_to_string(file).expect("openssl has written it")
        };
        let certificate = read("crt");
        let key = read("key");
        let der = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("it is PEM");
        Certificate {
            fingerprint: fingerprint(&der),
            certificate,
            key,
        }
    }
}

/// Arguments of `openssl` that create a key for a requested certificate.
const NEW_KEY_ARGUMENTS: [&str; 6] = [
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-batch",
];

/// Issues a certificate signed by the root.
fn issue(folder: &Path, name: &str, extension: Option<&str>) {
    let [key, request, certificate] = ["key", "csr", "crt"].map(|kind| format!("{name}.{kind}"));
    let subject = format!("/CN={name}");
    openssl(
        folder,
        &[
            &["req", "-subj", &subject, "-keyout", &key, "-out", &request][..],
            &NEW_KEY_ARGUMENTS,
        ]
        .concat(),
    );
    std::fs::write(
        folder.join("extensions"),
        extension.unwrap_or("basicConstraints=CA:FALSE"),
    )
    .expect("a file can be written");
    let signing = [
        "x509",
        "-req",
        "-CA",
        "root.crt",
        "-CAkey",
        "root.key",
        "-CAcreateserial",
        "-extfile",
        "extensions",
    ];
    openssl(
        folder,
        &[&signing[..], &["-in", &request, "-out", &certificate]].concat(),
    );
}

fn openssl(folder: &Path, arguments: &[&str]) {
    let output = Command::new("openssl")
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("openssl can be run");
    assert!(
        output.status.success(),
        "openssl {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn settings(folder: &Path) -> ServerConfig {
    let certificate = |name: &str| {
        CertificateDer::from_pem_file(folder.join(name)).expect("openssl has written it")
    };
    let key =
        PrivateKeyDer::from_pem_file(folder.join("server.key")).expect("openssl has written it");
    let mut roots = RootCertStore::empty();
    roots
        .add(certificate("root.crt"))
        .expect("it is an authority");
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows TLS 1.3")
        .with_client_cert_verifier(verifier.expect("there is a root"))
        .with_single_cert(vec![certificate("server.crt")], key)
        .expect("they belong together")
}

/// Responds to the requests of one connection.
async fn serve(acceptor: TlsAcceptor, stream: TcpStream) {
    let Ok(mut stream) = acceptor.accept(stream).await else {
        return;
    };
    let shown = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(<[_]>::first)
        .map(fingerprint);
    while let Some(request) = read(&mut stream).await {
        let path = request.split(' ').nth(1).unwrap_or_default();
        let body =
            json!({ "certificate": shown, "path": path, "request": request, "access_token": "at-1" }).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if write(&mut stream, &(head + &body)).await.is_err() {
            return;
        }
    }
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

async fn write(stream: &mut (impl AsyncWrite + Unpin), text: &str) -> std::io::Result<()> {
    stream.write_all(text.as_bytes()).await?;
    stream.flush().await
}

fn fingerprint(der: &CertificateDer<'_>) -> String {
    hex::encode(Sha256::digest(der))
}
