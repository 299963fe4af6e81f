//! The document and its references.

use std::borrow::Cow;

use serde_json::Value;

/// Longest chain of references to references.
const MAX_REFERENCE_CHAIN: usize = 32;

/// A document of version 3.
#[derive(Debug)]
pub(super) struct Document<'a> {
    pub(super) root: &'a Value,
}

impl<'a> Document<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self { root }
    }

    /// Resolves a value that may be a reference. Returns null if its target is not in this
    /// document.
    pub(super) fn follow(&self, value: &'a Value) -> &'a Value {
        let mut value = value;
        for _ in 0..MAX_REFERENCE_CHAIN {
            match value.get("$ref").and_then(Value::as_str) {
                None => return value,
                Some(reference) => match self.target(reference) {
                    Some(target) => value = target,
                    None => return &Value::Null,
                },
            }
        }
        &Value::Null
    }

    /// Resolves a value that may be missing.
    pub(super) fn resolve(&self, value: Option<&'a Value>) -> &'a Value {
        value.map_or(&Value::Null, |value| self.follow(value))
    }

    /// Returns the target of a local reference.
    pub(super) fn target(&self, reference: &str) -> Option<&'a Value> {
        let pointer = reference.strip_prefix('#')?;
        self.root
            .pointer(pointer)
            .or_else(|| self.root.pointer(&unescaped(pointer)))
    }
}

/// Decodes a pointer. References are URLs, so a pointer in one may be percent-encoded.
fn unescaped(pointer: &str) -> Cow<'_, str> {
    percent_encoding::percent_decode_str(pointer).decode_utf8_lossy()
}
