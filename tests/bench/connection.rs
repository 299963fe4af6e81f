//! A keep-alive connection of the load generator: HTTP/1.1 as bytes.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// End of a body in chunks, after the line break in front of it.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";
/// Start of a response, up to its status.
const STATUS_PREFIX: &str = "HTTP/1.1 ";

/// An open connection, with the last response that it received.
pub(crate) struct Connection {
    socket: TcpStream,
    response: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let socket = TcpStream::connect(address)
            .await
            .with_context(|| format!("connect to {address}"))?;
        socket.set_nodelay(true)?;
        Ok(Self {
            socket,
            response: Vec::with_capacity(128 << 10),
        })
    }

    /// Sends a request and reads the response.
    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<()> {
        self.socket.write_all(request).await?;
        self.response.clear();
        let mut length = None;
        while length.is_none_or(|length| self.response.len() < length) {
            ensure!(
                self.socket.read_buf(&mut self.response).await? > 0,
                "the server closed the connection"
            );
            if length.is_none() {
                length = whole_length(&self.response)?;
            }
        }
        Ok(())
    }

    /// Returns head and body of the last response.
    pub(crate) fn response(&self) -> &[u8] {
        &self.response
    }

    /// Returns true if the last response has one of these statuses.
    pub(crate) fn has_status(&self, statuses: &[&str]) -> bool {
        let rest = self.response.strip_prefix(STATUS_PREFIX.as_bytes());
        rest.is_some_and(|rest| {
            statuses
                .iter()
                .any(|status| rest.starts_with(status.as_bytes()))
        })
    }
}

/// Lets this program and those that it starts open as many files as the system permits: each
/// connection is one.
pub(crate) fn raise_file_limit() -> Result<()> {
    let limits = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limits.maximum,
        ..limits
    };
    setrlimit(Resource::Nofile, raised).context("raise the number of open files")
}

/// Returns the number of files that this program may have open.
pub(crate) fn file_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Returns the length of head and body, or `None` while the head, or a body in chunks, is
/// incomplete.
fn whole_length(response: &[u8]) -> Result<Option<usize>> {
    let Some(end) = response.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&response[..end])?;
    if head.contains("\r\ntransfer-encoding: chunked") {
        return Ok(response.ends_with(LAST_CHUNK).then_some(response.len()));
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length
        .with_context(|| format!("no length in {head}"))?
        .trim()
        .parse()?;
    Ok(Some(end + 4 + length))
}
