//! Files, by handle: their bytes enter the guest only when asked for.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};

use crate::{Result, ToolError, host};

/// What one read asks for at most.
const CHUNK: u32 = 1024 * 1024;

/// A file. As a field of an input struct the caller uploads it, as a field of an output struct the caller may download it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct File {
    /// Its name, for example `report.pdf`.
    pub name: String,
    /// Its media type, for example `application/pdf`.
    #[serde(rename = "mimetype")]
    pub media_type: String,
    #[serde(rename = "s3key")]
    id: String,
}

impl File {
    /// Makes a new, empty file. At most 32 a call; it outlives the call only as a part of the answer.
    ///
    /// # Errors
    /// When there are too many.
    pub fn create(name: impl Into<String>, media_type: impl Into<String>) -> Result<Self> {
        let (name, media_type) = (name.into(), media_type.into());
        let id = host::blob_create(&name, &media_type).map_err(failure)?;
        Ok(Self { name, media_type, id })
    }

    /// Makes a file with these bytes.
    ///
    /// # Errors
    /// When there are too many files or too many bytes.
    pub fn with(name: impl Into<String>, media_type: impl Into<String>, bytes: &[u8]) -> Result<Self> {
        let file = Self::create(name, media_type)?;
        file.append(bytes)?;
        Ok(file)
    }

    /// A file the platform made, for example from a response.
    pub(crate) fn existing(id: String) -> Result<Self> {
        let info = host::blob_stat(&id).map_err(failure)?;
        Ok(Self { name: info.name, media_type: info.media_type, id: info.id })
    }

    /// The platform's name for the file.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its size in bytes.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn size(&self) -> Result<u64> {
        Ok(host::blob_stat(&self.id).map_err(failure)?.size)
    }

    /// At most `length` bytes, and at most 1 MiB, from `offset`; shorter, or empty, at the end.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn read_at(&self, offset: u64, length: u32) -> Result<Vec<u8>> {
        host::blob_read(&self.id, offset, length).map_err(failure)
    }

    /// The whole file, unless it has more than `limit` bytes.
    ///
    /// # Errors
    /// `invalid_input` when the file is larger; when there is no such file.
    pub fn read(&self, limit: u64) -> Result<Vec<u8>> {
        let size = self.size()?;
        if size > limit {
            let message = format!("the file `{}` has {size} bytes; at most {limit} can be read", self.name);
            return Err(ToolError::invalid_input(message));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        loop {
            let chunk = self.read_at(bytes.len() as u64, CHUNK)?;
            if chunk.is_empty() {
                return Ok(bytes);
            }
            bytes.extend_from_slice(&chunk);
        }
    }

    /// The whole file as text, unless it has more than `limit` bytes.
    ///
    /// # Errors
    /// `invalid_input` when the file is larger or not UTF-8; when there is no such file.
    pub fn read_text(&self, limit: u64) -> Result<String> {
        String::from_utf8(self.read(limit)?)
            .map_err(|_| ToolError::invalid_input(format!("the file `{}` is not UTF-8 text", self.name)))
    }

    /// Adds to the end of a file made in this call. At most 100 MiB a file.
    ///
    /// # Errors
    /// When the file was not made in this call, or gets too large.
    pub fn append(&self, bytes: &[u8]) -> Result<()> {
        for chunk in bytes.chunks(CHUNK as usize) {
            host::blob_append(&self.id, chunk).map_err(failure)?;
        }
        Ok(())
    }
}

/// The answer names the file by its id; the platform puts an address in its place.
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
        let (flag, id) = if output { ("file_downloadable", "s3url") } else { ("file_uploadable", "s3key") };
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
