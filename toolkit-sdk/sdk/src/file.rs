//! File handles. The bytes of a file enter the guest only when they are read.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};

use crate::{Result, ToolError, host};

/// Largest number of bytes in one read or append.
const CHUNK_BYTES: u32 = 1024 * 1024;

/// A file. In an input struct, the caller uploads it. In an output struct, the caller may download
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct File {
    /// Name of the file, for example `report.pdf`.
    pub name: String,
    /// Media type, for example `application/pdf`.
    #[serde(rename = "mimetype")]
    pub media_type: String,
    #[serde(rename = "s3key")]
    id: String,
}

impl File {
    /// Creates a new, empty file. A call may create at most 32 files. A file outlives the call only
    /// as a part of the output.
    ///
    /// # Errors
    /// The call has created too many files.
    pub fn create(name: impl Into<String>, media_type: impl Into<String>) -> Result<Self> {
        let name = name.into();
        let media_type = media_type.into();
        let id = host::blob_create(&name, &media_type).map_err(failure)?;
        Ok(Self {
            name,
            media_type,
            id,
        })
    }

    /// Creates a file with these bytes.
    ///
    /// # Errors
    /// The call has created too many files, or there are too many bytes.
    pub fn with(
        name: impl Into<String>,
        media_type: impl Into<String>,
        bytes: &[u8],
    ) -> Result<Self> {
        let file = Self::create(name, media_type)?;
        file.append(bytes)?;
        Ok(file)
    }

    /// Opens a file that the platform created, for example from a response body.
    pub(crate) fn existing(id: String) -> Result<Self> {
        let info = host::blob_stat(&id).map_err(failure)?;
        Ok(Self {
            name: info.name,
            media_type: info.media_type,
            id: info.id,
        })
    }

    /// Returns the platform's identifier of the file.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the size in bytes.
    ///
    /// # Errors
    /// The file does not exist.
    pub fn size(&self) -> Result<u64> {
        Ok(host::blob_stat(&self.id).map_err(failure)?.size)
    }

    /// Reads at most `length` bytes, and at most 1 MiB, from `offset`. At the end of the file the
    /// result is shorter or empty.
    ///
    /// # Errors
    /// The file does not exist.
    pub fn read_at(&self, offset: u64, length: u32) -> Result<Vec<u8>> {
        host::blob_read(&self.id, offset, length).map_err(failure)
    }

    /// Reads the whole file, unless it has more than `limit` bytes.
    ///
    /// # Errors
    /// `invalid_input` if the file is larger than `limit`; an error if the file does not exist.
    pub fn read(&self, limit: u64) -> Result<Vec<u8>> {
        let size = self.size()?;
        if size > limit {
            let message = format!(
                "the file `{}` has {size} bytes; at most {limit} can be read",
                self.name
            );
            return Err(ToolError::invalid_input(message));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        loop {
            let chunk = self.read_at(bytes.len() as u64, CHUNK_BYTES)?;
            if chunk.is_empty() {
                return Ok(bytes);
            }
            bytes.extend_from_slice(&chunk);
        }
    }

    /// Reads the whole file as text, unless it has more than `limit` bytes.
    ///
    /// # Errors
    /// `invalid_input` if the file is larger than `limit` or not UTF-8; an error if the file does
    /// not exist.
    pub fn read_text(&self, limit: u64) -> Result<String> {
        String::from_utf8(self.read(limit)?).map_err(|_| {
            ToolError::invalid_input(format!("the file `{}` is not UTF-8 text", self.name))
        })
    }

    /// Appends bytes to a file that was created in this call. A file may have at most 100 MiB by
    /// default.
    ///
    /// # Errors
    /// The file was not created in this call, or becomes too large.
    pub fn append(&self, bytes: &[u8]) -> Result<()> {
        for chunk in bytes.chunks(CHUNK_BYTES as usize) {
            host::blob_append(&self.id, chunk).map_err(failure)?;
        }
        Ok(())
    }
}

/// Writes the id of the file into the output. The platform replaces the id with a URL.
impl Serialize for File {
    fn serialize<S: Serializer>(&self, serializer: S) -> core::result::Result<S::Ok, S::Error> {
        let mut file = serializer.serialize_struct("File", 3)?;
        file.serialize_field("name", &self.name)?;
        file.serialize_field("mimetype", &self.media_type)?;
        file.serialize_field("s3url", &self.id)?;
        file.end()
    }
}

impl JsonSchema for File {
    fn schema_name() -> Cow<'static, str> {
        "File".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let output = generator.contract().is_serialize();
        let (flag, id) = if output {
            ("file_downloadable", "s3url")
        } else {
            ("file_uploadable", "s3key")
        };
        json_schema!({
            "type": "object",
            flag: true,
            "properties": {
                "name": { "type": "string", "description": "Name of the file." },
                "mimetype": { "type": "string", "description": "Media type of the file." },
                id: { "type": "string", "description": "Where the file is." },
            },
            "required": ["name", "mimetype", id],
        })
    }
}

fn failure(failure: host::Failure) -> ToolError {
    match failure.kind.as_str() {
        "not_found" => ToolError::not_found(failure.message),
        "too_large" => ToolError::invalid_input(failure.message),
        "limit" => ToolError::new("limit", failure.message),
        _ => ToolError::internal(failure.message),
    }
}
