//! Descriptions of tools of the catalog, kept as the JSON text that clients get.
//!
//! The schemas of tools are in a file, and a client lists hundreds of tools at a time. A component never
//! changes, so the description of one of its tools does not either.

use std::{collections::HashMap, sync::Arc};

use app::{Error, catalog::ResolvedTool};
use http::errors;
use parking_lot::Mutex;
use rmcp::model::Tool;
use sandbox::Digest;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::tools;

/// Maximum size of the kept descriptions, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 32 << 20;

/// Description of a tool as JSON text.
#[derive(Debug, Clone)]
pub(super) struct Description(Arc<RawValue>);

impl Description {
    pub(super) fn new(tool: &Tool) -> Result<Self, Error> {
        let text = to_raw_value(tool).map_err(errors::internal)?;
        Ok(Self(text.into()))
    }

    /// Returns the tool that it describes.
    pub(super) fn parse(&self) -> Result<Tool, Error> {
        serde_json::from_str(self.0.get()).map_err(errors::internal)
    }

    /// Returns the size of the text in bytes.
    pub(super) fn size(&self) -> usize {
        self.0.get().len()
    }
}

impl Serialize for Description {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::serialize(&self.0, serializer)
    }
}

/// Component and slug of a tool, and true if the description has the schema of its results.
type Key = (Digest, Arc<str>, bool);

/// The descriptions that clients listed last.
#[derive(Default)]
pub(crate) struct Descriptions(Mutex<Generations>);

/// Descriptions in two generations. When the younger one is full, it replaces the older one, whose
/// descriptions were not used since.
#[derive(Default)]
struct Generations {
    young: HashMap<Key, Description>,
    young_bytes: usize,
    old: HashMap<Key, Description>,
}

impl Descriptions {
    /// Returns the description of a tool, with or without the schema of its results.
    ///
    /// # Errors
    /// If the schemas of the tool cannot be read.
    pub(super) fn describe(
        &self,
        found: &ResolvedTool,
        with_output: bool,
    ) -> Result<Description, Error> {
        let key = (found.release.digest, found.tool.slug.clone(), with_output);
        if let Some(description) = self.0.lock().get(&key) {
            return Ok(description);
        }
        let description = Description::new(&tools::tool(found, with_output)?)?;
        self.0.lock().insert(key, description.clone());
        Ok(description)
    }
}

impl Generations {
    fn get(&mut self, key: &Key) -> Option<Description> {
        if let Some(description) = self.young.get(key) {
            return Some(description.clone());
        }
        let (key, description) = self.old.remove_entry(key)?;
        self.insert(key, description.clone());
        Some(description)
    }

    fn insert(&mut self, key: Key, description: Description) {
        let size = description.size();
        if self.young_bytes + size > MAX_DESCRIPTION_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += size;
        self.young.insert(key, description);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(number: usize) -> Key {
        (
            Digest::compute(b"component"),
            number.to_string().into(),
            true,
        )
    }

    #[test]
    fn unused_descriptions_are_dropped() {
        let text = to_raw_value(&json!("x".repeat(MAX_DESCRIPTION_BYTES / 16))).unwrap();
        let description = Description(text.into());
        let mut kept = Generations::default();
        for number in 0..100 {
            kept.insert(key(number), description.clone());
            assert!(kept.get(&key(0)).is_some(), "{number}");
            let all = kept.young.values().chain(kept.old.values());
            let size: usize = all.map(Description::size).sum();
            assert!(size <= MAX_DESCRIPTION_BYTES, "{size}");
        }
        assert!(kept.get(&key(1)).is_none());
        assert!(kept.get(&key(98)).is_some());
    }
}
