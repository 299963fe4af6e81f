//! The content of an archive in format 1: a sequence of frames.
//!
//! A frame is a kind (one byte), the length of its content (four bytes, little-endian), and the
//! content.
//!
//! | kind | content |
//! |---|---|
//! | `S` | first: JSON `{"format": 1, "made_by": version, "key": content of the key file}` |
//! | `R` | a record: JSON, see [`Entry`] |
//! | `B` | a blob: length of its key (one byte), its key, its bytes |
//! | `E` | last: JSON `{"records": number, "blobs": number, "bytes": number}` of all before |
//!
//! Frames instead of `tar`, because archives of earlier builds must stay readable: a second format
//! would add code and replace nothing.

use std::io::{Error, ErrorKind, Read};

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::{Row, Time};

use super::Counts;

/// Number of the format that archives have.
pub(super) const ARCHIVE_FORMAT: u32 = 1;
/// Maximum size of a blob in an archive, in bytes: the largest file that a server can be set to accept.
pub(super) const MAX_BLOB_BYTES: u64 = 1 << 30;
/// Maximum length of a frame's content, in bytes: that of a blob with its key.
const MAX_FRAME_BYTES: u32 = MAX_BLOB_BYTES as u32 + 256;

/// Kind of the first frame: the format, the version and the master key.
pub(super) const START_FRAME: u8 = b'S';
pub(super) const RECORD_FRAME: u8 = b'R';
pub(super) const BLOB_FRAME: u8 = b'B';
/// Kind of the last frame: the counts of records, blobs and bytes.
pub(super) const END_FRAME: u8 = b'E';

/// The part of the start frame that every format has.
#[derive(Deserialize)]
pub(super) struct Format {
    /// Number of the format.
    pub format: u32,
}

/// The start frame of an archive.
#[derive(Serialize, Deserialize)]
pub(super) struct Start {
    /// Number of the format.
    pub format: u32,
    /// Version of the program that wrote the archive.
    pub made_by: String,
    /// Master key of the installation.
    pub key: String,
}

/// A record with the name of its collection.
#[derive(Serialize, Deserialize)]
pub(super) struct Entry<'a> {
    #[serde(rename = "in")]
    pub collection: &'a str,
    id: String,
    project: String,
    revision: i64,
    created_at: Time,
    updated_at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deleted_at: Option<Time>,
    #[serde(borrow)]
    body: &'a RawValue,
}

impl<'a> Entry<'a> {
    pub(super) fn new(collection: &'a str, row: &'a Row) -> serde_json::Result<Self> {
        Ok(Self {
            collection,
            id: row.id.clone(),
            project: row.project.clone(),
            revision: row.revision,
            created_at: row.created_at,
            updated_at: row.updated_at,
            deleted_at: row.deleted_at,
            body: serde_json::from_slice(&row.body)?,
        })
    }

    pub(super) fn into_row(self) -> Row {
        Row {
            id: self.id,
            project: self.project,
            revision: self.revision,
            created_at: self.created_at,
            updated_at: self.updated_at,
            deleted_at: self.deleted_at,
            body: Bytes::copy_from_slice(self.body.get().as_bytes()),
        }
    }
}

/// A frame, whose content is not decoded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    /// [`START_FRAME`], [`RECORD_FRAME`], [`BLOB_FRAME`] or [`END_FRAME`].
    pub kind: u8,
    /// JSON, or the key and the bytes of a blob.
    pub content: Bytes,
}

impl Frame {
    pub(super) fn json(kind: u8, value: &impl Serialize) -> serde_json::Result<Self> {
        let content = serde_json::to_vec(value)?.into();
        Ok(Self { kind, content })
    }

    pub(super) fn blob(key: &str, bytes: &[u8]) -> Self {
        let length = u8::try_from(key.len()).expect("a blob's key has at most 200 bytes");
        let content = [&[length], key.as_bytes(), bytes].concat().into();
        let kind = BLOB_FRAME;
        Self { kind, content }
    }

    /// Returns the key and the bytes of a blob.
    pub(super) fn as_blob(&self) -> Option<(&str, Bytes)> {
        let (length, rest) = self.content.split_first()?;
        let key = std::str::from_utf8(rest.get(..usize::from(*length))?).ok()?;
        Some((key, self.content.slice(1 + key.len()..)))
    }

    pub(super) fn encode(&self) -> Bytes {
        let length = u32::try_from(self.content.len())
            .ok()
            .filter(|length| *length <= MAX_FRAME_BYTES)
            .expect("records and blobs have lower limits than frames");
        let mut bytes = BytesMut::with_capacity(5 + self.content.len());
        bytes.extend_from_slice(&[self.kind]);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&self.content);
        bytes.freeze()
    }

    /// Reads the next frame. Returns an error if the frame is incomplete.
    pub(super) fn read(from: &mut impl Read) -> std::io::Result<Self> {
        let mut head = [0; 5];
        from.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length);
        if length > MAX_FRAME_BYTES
            || ![START_FRAME, RECORD_FRAME, BLOB_FRAME, END_FRAME].contains(&kind)
        {
            return Err(Error::new(
                ErrorKind::InvalidData,
                "the archive holds a frame of an unknown kind or size",
            ));
        }
        // The buffer is not allocated in advance, so that a false length alone costs no memory.
        let mut content = Vec::new();
        if from.take(length.into()).read_to_end(&mut content)? < length as usize {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let content = content.into();
        Ok(Self { kind, content })
    }
}

impl Counts {
    /// Counts a record or a blob.
    pub(super) fn add(&mut self, frame: &Frame) {
        self.records += u64::from(frame.kind == RECORD_FRAME);
        self.blobs += u64::from(frame.kind == BLOB_FRAME);
        self.bytes += frame.content.len() as u64;
    }
}
