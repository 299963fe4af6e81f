//! Multipart forms.

use std::fmt::Display;

use crate::File;
use crate::host::{Content, Part};

/// A `multipart/form-data` body. The platform writes the boundary.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Multipart {
    pub(super) parts: Vec<Part>,
}

impl Multipart {
    /// Creates a form without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a part with text.
    pub fn text(mut self, name: &str, value: impl Display) -> Self {
        let content = Content::Bytes(value.to_string().into_bytes());
        self.parts.push(Part {
            name: name.to_owned(),
            filename: None,
            media_type: None,
            content,
        });
        self
    }

    /// Adds a part with text if the value is present.
    pub fn text_opt(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.text(name, value),
            None => self,
        }
    }

    /// Adds a file. Its bytes do not pass through the guest.
    pub fn file(mut self, name: &str, file: &File) -> Self {
        self.parts.push(Part {
            name: name.to_owned(),
            filename: Some(file.name.clone()),
            media_type: Some(file.media_type.clone()),
            content: Content::Blob(file.id().to_owned()),
        });
        self
    }

    /// Adds bytes as a file.
    pub fn bytes(mut self, name: &str, filename: &str, media_type: &str, bytes: Vec<u8>) -> Self {
        self.parts.push(Part {
            name: name.to_owned(),
            filename: Some(filename.to_owned()),
            media_type: Some(media_type.to_owned()),
            content: Content::Bytes(bytes),
        });
        self
    }
}
