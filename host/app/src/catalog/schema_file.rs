//! The file that holds the JSON texts of schemas outside memory.
//!
//! A large provider's toolkit has megabytes of schemas, of which calls use only a few. The idle
//! memory of a server must not grow with the others. The schemas are therefore kept in a file and
//! read on demand, and frequently read parts are in the operating system's page cache. The file is
//! unnamed, so no other process opens it, and it disappears with the process. It only grows and its
//! content never changes, so readers need no lock.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path, sync::Arc};

use serde_json::value::RawValue;

use super::validators::Validators;
use crate::{Error, Result, catalog::errors};

/// The file of schemas.
#[derive(Debug)]
pub struct SchemaFile {
    file: Arc<File>,
    /// The number of bytes in the file.
    end: u64,
    /// The schemas that were added and not yet written to the file.
    fresh: Vec<u8>,
    /// The validators of the schemas in the file.
    validators: Arc<Validators>,
}

/// The JSON text of a schema in the file. It can be read after it was written.
#[derive(Debug, Clone)]
pub(super) struct SchemaText {
    file: Arc<File>,
    at: u64,
    length: usize,
}

impl SchemaFile {
    /// Creates an empty file in a folder. Fails if the file cannot be created.
    pub fn create_in(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            file: Arc::new(tempfile::tempfile_in(folder)?),
            end: 0,
            fresh: Vec::new(),
            validators: Arc::new(Validators::new()?),
        })
    }

    /// Appends a schema. It can be read after [`SchemaFile::write`].
    pub(super) fn add(&mut self, text: &RawValue) -> SchemaText {
        let at = self.end + self.fresh.len() as u64;
        self.fresh.extend_from_slice(text.get().as_bytes());
        SchemaText {
            file: self.file.clone(),
            at,
            length: text.get().len(),
        }
    }

    pub(super) fn validators(&self) -> &Arc<Validators> {
        &self.validators
    }

    /// Writes the added schemas to the file. Fails if the disk is full or fails.
    pub(super) fn write(&mut self) -> Result<()> {
        let fresh = std::mem::take(&mut self.fresh);
        let at = self.end;
        self.end += fresh.len() as u64;
        self.file
            .write_all_at(&fresh, at)
            .map_err(|cause| failed("written", &cause))
    }
}

impl SchemaText {
    /// Reads a schema from the file. Fails if the disk fails.
    pub(super) fn read(&self) -> Result<Box<RawValue>> {
        let mut bytes = vec![0; self.length];
        self.file
            .read_exact_at(&mut bytes, self.at)
            .map_err(|cause| failed("read", &cause))?;
        let text = String::from_utf8(bytes).map_err(|cause| failed("read", &cause))?;
        RawValue::from_string(text).map_err(|cause| failed("read", &cause))
    }
}

fn failed(what: &str, cause: &dyn std::fmt::Display) -> Error {
    errors::unavailable(format!("the schemas of tools cannot be {what}: {cause}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::*;

    #[test]
    fn added_texts_are_read_back_unchanged() {
        let mut schema_file = SchemaFile::create_in(&tempfile::env::temp_dir()).unwrap();
        let mut added = Vec::new();
        for round in 0..3 {
            for text in [
                json!({}),
                json!({"title": "ü", "round": round}),
                json!(true),
            ] {
                let text = to_raw_value(&text).unwrap();
                added.push((schema_file.add(&text), text));
            }
            schema_file.write().unwrap();
            for (kept, text) in &added {
                assert_eq!(kept.read().unwrap().get(), text.get());
            }
        }
    }

    #[test]
    fn what_was_not_written_is_not_read() {
        let mut schema_file = SchemaFile::create_in(&tempfile::env::temp_dir()).unwrap();
        assert!(
            schema_file
                .add(&to_raw_value(&json!({})).unwrap())
                .read()
                .is_err()
        );
    }
}
