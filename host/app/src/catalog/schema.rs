//! Schemas of tools, and the validation of values against them.
//!
//! A validator is compiled when a schema is first used, and kept with it while it is in use.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Value, value::RawValue};
use tokio::time::timeout;

use super::{
    check::{Accepted, Check, compile},
    schema_file::SchemaText,
    validators::{CompiledSchema, Slot, Validators},
};
use crate::{
    Error, Result,
    catalog::errors,
    core::large_work::{LargeWork, MAX_INLINE_BYTES},
};

/// Time within which a larger value must be checked, including the wait for its project's turn.
pub const LARGE_CHECK_DEADLINE: Duration = Duration::from_secs(20);

/// A schema as JSON text, with its validator while the latter is cached.
#[derive(Debug)]
pub struct Schema {
    text: SchemaText,
    slot: Arc<Slot>,
    is_enforced: bool,
}

impl Schema {
    /// Creates a schema that can be used, see `schema_problem`.
    pub(super) fn new(text: SchemaText, validators: &Arc<Validators>) -> Self {
        Self {
            text,
            slot: validators.slot(),
            is_enforced: true,
        }
    }

    /// Creates a schema that is shown to callers but not enforced: every object passes its check.
    pub(super) fn loose(text: SchemaText, validators: &Arc<Validators>) -> Self {
        let slot = validators.slot();
        slot.keep(Arc::new(CompiledSchema::new(Check::AnyObject)));
        Self {
            text,
            slot,
            is_enforced: false,
        }
    }

    /// Returns true if every value that passes the check matches the schema.
    #[must_use]
    pub fn is_enforced(&self) -> bool {
        self.is_enforced
    }

    /// Returns the schema as JSON text. Fails if the schema file cannot be read.
    pub fn text(&self) -> Result<Box<RawValue>> {
        self.text.read()
    }

    /// Parses and validates a value of a toolkit. Returns one line per problem; a valid value yields
    /// an empty list. For a schema that allows everything, this costs one pass over the text. Fails if
    /// [`Schema::text`] does, or if too many large values of the project are being checked for too
    /// long.
    pub(crate) async fn problems(
        &self,
        large: &LargeWork,
        project: &Arc<str>,
        bytes: &Bytes,
    ) -> Result<Vec<String>> {
        self.check(large, project, bytes, |check: &Check, bytes: &Bytes| {
            check.problems(bytes)
        })
        .await
    }

    /// Parses and validates a value of a caller. Returns it without the properties that are null where
    /// the schema does not allow null, or one line per problem. Fails as [`Schema::problems`] does.
    pub(crate) async fn accept(
        &self,
        large: &LargeWork,
        project: &Arc<str>,
        bytes: &Bytes,
    ) -> Result<std::result::Result<Accepted, Vec<String>>> {
        self.check(large, project, bytes, Check::accept).await
    }

    async fn check<T: Send + 'static>(
        &self,
        large: &LargeWork,
        project: &Arc<str>,
        bytes: &Bytes,
        check: fn(&Check, &Bytes) -> T,
    ) -> Result<T> {
        if bytes.len() <= MAX_INLINE_BYTES
            && let Some(loaded) = self.slot.load()
        {
            return Ok(check(&loaded.check, bytes));
        }
        Box::pin(self.check_in_turn(large, project, bytes, check)).await
    }

    /// Validates the parts of a caller's value that are known. A value for which `is_unknown` is
    /// true, or that contains such a value, counts as valid apart from missing and unexpected
    /// properties. Fails if [`Schema::text`] does.
    pub(crate) async fn problems_of_known(
        &self,
        value: Value,
        is_unknown: fn(&Value) -> bool,
    ) -> Result<Vec<String>> {
        let loaded = self.loaded().await?;
        let Check::Full(full) = &loaded.check else {
            return Ok(Vec::new());
        };
        Ok(full.problems_of_known(value, is_unknown))
    }

    /// Checks a large value, or one whose schema is not cached.
    async fn check_in_turn<T: Send + 'static>(
        &self,
        large: &LargeWork,
        project: &Arc<str>,
        bytes: &Bytes,
        check: fn(&Check, &Bytes) -> T,
    ) -> Result<T> {
        let loaded = self.loaded().await?;
        let value = bytes.clone();
        let checked = large.run(project, bytes.len(), move || check(&loaded.check, &value));
        timeout(LARGE_CHECK_DEADLINE, checked)
            .await
            .unwrap_or_else(|_| Err(errors::deadline(LARGE_CHECK_DEADLINE.as_secs())))
    }

    /// Returns the compiled schema. Compiles it on a separate thread unless it is cached.
    async fn loaded(&self) -> Result<Arc<CompiledSchema>> {
        if let Some(loaded) = self.slot.load() {
            return Ok(loaded);
        }
        let _compile_lock = self.slot.compile_lock().lock().await;
        if let Some(loaded) = self.slot.load() {
            return Ok(loaded);
        }
        let (text, slot) = (self.text.clone(), self.slot.clone());
        let compiled = tokio::task::spawn_blocking(move || {
            let schema = serde_json::from_str(text.read()?.get()).map_err(unusable)?;
            let check = compile(&schema).map_err(unusable)?;
            let loaded = Arc::new(CompiledSchema::new(check));
            slot.keep(loaded.clone());
            Ok(loaded)
        });
        compiled.await.unwrap_or_else(|broken| {
            Err(errors::unavailable(format!(
                "a schema cannot be compiled: {broken}"
            )))
        })
    }
}

fn unusable(cause: impl fmt::Display) -> Error {
    errors::unavailable(format!("a schema cannot be used: {cause}"))
}

#[cfg(test)]
mod tests;
