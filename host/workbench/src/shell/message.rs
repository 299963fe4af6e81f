//! Messages between the server and the child that runs a command: a head as JSON after its length,
//! then the bytes that it describes.
//!
//! Guarantee: the server reads a reply of any content without harm. A path that leaves the folder of
//! the session is refused where files are stored.

use std::io;

use bytes::Bytes;
use sandbox::FileChange;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{MAX_SHELL_FILE_BYTES, MAX_SHELL_OUTPUT_BYTES};

/// Maximum size of a reply: all files, both outputs, and the head.
pub(super) const MAX_REPLY_BYTES: u64 =
    MAX_SHELL_FILE_BYTES + 2 * MAX_SHELL_OUTPUT_BYTES as u64 + (16 << 20);
/// Number of bytes of the length of the head.
const LENGTH_BYTES: usize = 8;

/// Command for the child.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) command: String,
    /// Advice in the failure of a command that needs a network.
    pub(super) network_advice: String,
    /// Files by path, relative to the folder of the session.
    pub(super) files: Vec<(String, Bytes)>,
}

/// Result of the child.
#[derive(Debug)]
pub(super) struct Reply {
    /// Exit code, or the limit that ended the command.
    pub(super) exit: Result<i32, String>,
    pub(super) stdout: Bytes,
    pub(super) stderr: Bytes,
    pub(super) changes: Vec<FileChange>,
}

#[derive(Serialize, Deserialize)]
struct RequestHead {
    command: String,
    network_advice: String,
    files: Vec<(String, usize)>,
}

#[derive(Serialize, Deserialize)]
struct ReplyHead {
    exit: Result<i32, String>,
    stdout: usize,
    stderr: usize,
    /// Path and size of each changed file. The size of a removed file is absent.
    changes: Vec<(String, Option<usize>)>,
}

impl Request {
    pub(super) fn encode(&self) -> io::Result<Bytes> {
        let files = self.files.iter();
        let head = RequestHead {
            command: self.command.clone(),
            network_advice: self.network_advice.clone(),
            files: files
                .map(|(path, bytes)| (path.clone(), bytes.len()))
                .collect(),
        };
        let parts = self.files.iter().map(|(_, bytes)| bytes);
        encode(&head, parts)
    }

    pub(super) fn decode(message: Bytes) -> io::Result<Self> {
        let (head, mut rest) = decode::<RequestHead>(message)?;
        let files = head
            .files
            .into_iter()
            .map(|(path, size)| Ok((path, take(&mut rest, size)?)));
        Ok(Self {
            command: head.command,
            network_advice: head.network_advice,
            files: files.collect::<io::Result<_>>()?,
        })
    }
}

impl Reply {
    pub(super) fn encode(&self) -> io::Result<Bytes> {
        let changes = self.changes.iter();
        let head = ReplyHead {
            exit: self.exit.clone(),
            stdout: self.stdout.len(),
            stderr: self.stderr.len(),
            changes: changes
                .map(|change| (change.path.clone(), change.content.as_ref().map(Bytes::len)))
                .collect(),
        };
        let contents = self
            .changes
            .iter()
            .filter_map(|change| change.content.as_ref());
        encode(
            &head,
            [&self.stdout, &self.stderr].into_iter().chain(contents),
        )
    }

    pub(super) fn decode(message: Bytes) -> io::Result<Self> {
        let (head, mut rest) = decode::<ReplyHead>(message)?;
        let stdout = take(&mut rest, head.stdout)?;
        let stderr = take(&mut rest, head.stderr)?;
        let changes = head.changes.into_iter().map(|(path, size)| {
            let content = size.map(|size| take(&mut rest, size)).transpose()?;
            Ok(FileChange { path, content })
        });
        Ok(Self {
            exit: head.exit,
            stdout,
            stderr,
            changes: changes.collect::<io::Result<_>>()?,
        })
    }
}

fn encode<'a>(head: &impl Serialize, parts: impl Iterator<Item = &'a Bytes>) -> io::Result<Bytes> {
    let head = serde_json::to_vec(head)?;
    let mut message = (head.len() as u64).to_le_bytes().to_vec();
    message.extend(head);
    parts.for_each(|part| message.extend_from_slice(part));
    Ok(message.into())
}

fn decode<T: DeserializeOwned>(mut message: Bytes) -> io::Result<(T, Bytes)> {
    let prefix = take(&mut message, LENGTH_BYTES)?;
    let mut number = [0; LENGTH_BYTES];
    number.copy_from_slice(&prefix);
    let length = usize::try_from(u64::from_le_bytes(number)).map_err(io::Error::other)?;
    let head = take(&mut message, length)?;
    Ok((serde_json::from_slice(&head)?, message))
}

/// Removes bytes from the beginning of a message.
fn take(message: &mut Bytes, size: usize) -> io::Result<Bytes> {
    if size > message.len() {
        return Err(io::Error::other("the message of the shell ends early"));
    }
    Ok(message.split_to(size))
}
