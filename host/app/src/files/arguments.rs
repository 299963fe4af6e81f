//! Files in arguments. They are found where the tool's schema allows a file, and passed to the call
//! by their keys.

use std::collections::HashSet;

use bytes::Bytes;
use sandbox::{File as CallFile, Reservation};
use serde_json::Value;
use store::Record;

use crate::{
    App, Result,
    catalog::{FILE_KEYWORD, Tool},
    core::json,
    files::{File, blob, errors, reserve_memory, uploaded},
    projects::Project,
};

/// Maximum nesting depth at which arguments are searched.
const MAX_SEARCH_DEPTH: usize = 32;
/// Maximum number of files of one call.
pub const MAX_FILES_PER_CALL: usize = 32;
/// Maximum number of pairs of a value and a schema that are examined for the files of one call.
pub const MAX_SEARCH_STEPS: usize = 1_000_000;

/// Returns the arguments without empty texts where the schema allows files, the files that they
/// name, and the reservation for the memory of the files. Fails if a key is not of the project, its
/// file was never uploaded, the files are too many or too large together, this node has too little
/// memory for them, or the schema allows files in too many places.
pub(crate) async fn resolve_files(
    app: &App,
    project: &Project,
    tool: &Tool,
    arguments: Bytes,
) -> Result<(Bytes, Vec<CallFile>, Option<Reservation>)> {
    let (arguments, keys) = named_files(app, project, tool, arguments).await?;
    if keys.is_empty() {
        return Ok((arguments, Vec::new(), None));
    }
    let mut records = Vec::with_capacity(keys.len());
    for key in &keys {
        records.push(uploaded(app, project, key).await?);
    }
    let all_bytes: u64 = records.iter().map(|record| record.body.size).sum();
    let max_bytes = app.files.settings.size;
    if all_bytes > max_bytes {
        let problem = format!("the files of a call may have at most {max_bytes} bytes together");
        return Err(errors::arguments_invalid(&tool.slug, problem));
    }
    let memory = reserve_memory(app, &project.tenant, all_bytes)?;
    let mut files = Vec::with_capacity(records.len());
    for record in records {
        files.push(read(app, record).await?);
    }
    Ok((arguments, files, Some(memory)))
}

/// Returns the arguments without empty texts where the schema allows files, and the keys of the files that
/// they name. Fails if the files are too many, or if the schema allows files in too many places.
pub(crate) async fn named_files(
    app: &App,
    project: &Project,
    tool: &Tool,
    arguments: Bytes,
) -> Result<(Bytes, Vec<String>)> {
    let schema = tool.input.text()?;
    let size = arguments.len();
    let large_work = &app.large_work;
    let searched = large_work.run(&project.tenant, size, move || {
        find_files(schema.get(), arguments)
    });
    searched
        .await?
        .map_err(|problem| errors::arguments_invalid(&tool.slug, problem))
}

/// Reads the bytes of a file, for which memory is reserved.
async fn read(app: &App, record: Record<File>) -> Result<CallFile> {
    let (blobs, size) = (app.store.blobs(), record.body.size);
    let bytes = blobs.get_at_most(&blob(&record.id), size).await?;
    let bytes = bytes.ok_or_else(|| errors::file_not_uploaded(&record.id))?;
    Ok(CallFile {
        id: record.id,
        name: record.body.name,
        media_type: record.body.media_type,
        bytes,
    })
}

/// Finds the keys of files. Returns the arguments without empty texts where the schema allows
/// files, and the keys.
fn find_files(schema: &str, arguments: Bytes) -> std::result::Result<(Bytes, Vec<String>), String> {
    let mut value = json::parse(&arguments).map_err(|problem| problem.line("arguments"))?;
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let mut search = Search::new(&schema);
    search.visit(&[&schema], &mut value, 0)?;
    let arguments = match search.has_dropped {
        true => value.to_string().into(),
        false => arguments,
    };
    Ok((arguments, search.keys))
}

fn is_nested(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

struct Search<'a> {
    root: &'a Value,
    keys: Vec<String>,
    has_dropped: bool,
    /// The remaining number of pairs of a value and a schema that may be examined.
    steps: usize,
}

impl<'a> Search<'a> {
    fn new(root: &'a Value) -> Self {
        Self {
            root,
            keys: Vec::new(),
            has_dropped: false,
            steps: MAX_SEARCH_STEPS,
        }
    }

    /// Searches for files in a value that these schemas describe.
    fn visit(
        &mut self,
        schemas: &[&'a Value],
        value: &mut Value,
        depth: usize,
    ) -> std::result::Result<(), String> {
        if depth > MAX_SEARCH_DEPTH || !is_nested(value) {
            return Ok(());
        }
        let all = self.with_alternatives(schemas)?.into_iter();
        let (marked, schemas): (Vec<_>, Vec<_>) =
            all.partition(|schema| schema[FILE_KEYWORD] == true);
        if !marked.is_empty()
            && let Some(key) = value["s3key"].as_str()
            && !self.keys.iter().any(|known| known == key)
        {
            if self.keys.len() == MAX_FILES_PER_CALL {
                return Err(format!("a call takes at most {MAX_FILES_PER_CALL} files"));
            }
            self.keys.push(key.to_owned());
        }
        match value {
            Value::Object(members) => {
                self.drop_empty_texts(&schemas, members)?;
                for (name, value) in members.iter_mut().filter(|(_, value)| is_nested(value)) {
                    self.spend(schemas.len())?;
                    let inner = schemas.iter().map(|schema| {
                        let own = schema["properties"].get(name);
                        own.unwrap_or(&schema["additionalProperties"])
                    });
                    self.visit(&inner.collect::<Vec<_>>(), value, depth + 1)?;
                }
            }
            Value::Array(items) => {
                let inner: Vec<_> = schemas.iter().map(|schema| &schema["items"]).collect();
                for item in items {
                    self.visit(&inner, item, depth + 1)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Removes empty texts where the schema allows files.
    fn drop_empty_texts(
        &mut self,
        schemas: &[&'a Value],
        members: &mut serde_json::Map<String, Value>,
    ) -> std::result::Result<(), String> {
        let mut empty = HashSet::new();
        for (name, _) in members.iter().filter(|(_, value)| **value == "") {
            self.spend(schemas.len())?;
            let inner = schemas.iter();
            let inner = inner.filter_map(|schema| schema["properties"].get(name));
            let all = self.with_alternatives(&inner.collect::<Vec<_>>())?;
            if all.iter().any(|schema| schema[FILE_KEYWORD] == true) {
                empty.insert(name.clone());
            }
        }
        self.has_dropped |= !empty.is_empty();
        members.retain(|name, _| !empty.contains(name));
        Ok(())
    }

    /// Returns the schemas and their alternatives for the same value, with references resolved.
    /// Each schema occurs once.
    fn with_alternatives(
        &mut self,
        schemas: &[&'a Value],
    ) -> std::result::Result<Vec<&'a Value>, String> {
        let mut seen = HashSet::new();
        let mut all = Vec::new();
        let mut waiting: Vec<_> = schemas.iter().rev().copied().collect();
        while let Some(schema) = waiting.pop() {
            let schema = self.resolved(schema);
            if !schema.is_object() || !seen.insert(std::ptr::from_ref(schema)) {
                continue;
            }
            self.spend(1)?;
            all.push(schema);
            if schema[FILE_KEYWORD] != true {
                waiting.extend(alternatives(schema));
            }
        }
        Ok(all)
    }

    fn spend(&mut self, steps: usize) -> std::result::Result<(), String> {
        let left = self.steps.checked_sub(steps);
        self.steps = left.ok_or("the arguments have too many values that may be files")?;
        Ok(())
    }

    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let target = schema["$ref"]
            .as_str()
            .and_then(|target| self.root.pointer(target.strip_prefix('#')?));
        target.unwrap_or(schema)
    }
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    let names = ["anyOf", "oneOf", "allOf"].into_iter();
    names.filter_map(|name| schema[name].as_array()).flatten()
}

#[cfg(test)]
mod tests;
