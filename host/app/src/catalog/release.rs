//! Releases and their tools, as they are made from a manifest.

use std::{collections::BTreeMap, sync::Arc};

use manifest::{Manifest, joined_lines};
use sandbox::{Digest, Limits, Policy};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json, value::RawValue};
use store::Time;

use super::{
    AuthMode, AuthScheme, FILE_KEYWORD, Release, ResolvedTool, Schema, SchemaFile, Tool,
    TriggerType,
};
use crate::Result;

impl Release {
    /// Creates a release from a manifest. The schemas of its tools are written to the schema file.
    pub(crate) fn new(
        manifest: Manifest<&RawValue>,
        digest: Digest,
        size: u64,
        published_at: Time,
        schema_file: &mut SchemaFile,
    ) -> Result<Self> {
        let limits = Limits::default().with_requested(manifest.limits);
        let no_auth = manifest.no_auth();
        let shared = [true, false].map(|read_only| {
            Arc::new(Policy {
                egress: manifest.egress.clone(),
                read_only,
                ..Policy::default()
            })
        });
        let tools: Vec<_> = manifest
            .tools
            .into_iter()
            .map(|tool| Arc::new(Tool::new(tool, &shared, no_auth, limits, schema_file)))
            .collect();
        let triggers = manifest
            .triggers
            .into_iter()
            .map(|trigger| {
                let trigger = TriggerType::new(trigger, &shared[1], no_auth, limits, schema_file);
                Arc::new(trigger)
            })
            .collect();
        schema_file.write()?;
        let slugs = tools.iter().map(|tool| tool.slug.clone());
        let tool_positions = slugs.zip(0..).collect();
        let logo = manifest.logo.as_deref().map(manifest::sanitized_logo);
        Ok(Self {
            slug: manifest.slug.into(),
            name: manifest.name,
            description: joined_lines(&manifest.description),
            logo: logo.unwrap_or_default(),
            categories: manifest.categories,
            version: manifest.version,
            auth: manifest.auth,
            egress: manifest.egress,
            tools,
            tool_positions,
            triggers,
            digest,
            size,
            signed_by: None,
            published_at,
            deprecated_at: None,
        })
    }

    /// Returns the tools with the release, in the order of the manifest.
    pub fn resolved_tools(self: &Arc<Self>) -> impl Iterator<Item = ResolvedTool> {
        self.tools.iter().map(|tool| ResolvedTool {
            release: self.clone(),
            tool: tool.clone(),
        })
    }

    /// Finds a tool by its slug, in upper or lower case.
    #[must_use]
    pub fn tool(&self, slug: &str) -> Option<&Arc<Tool>> {
        let positions = &self.tool_positions;
        let position = positions
            .get(slug)
            .or_else(|| positions.get(slug.to_ascii_uppercase().as_str()))?;
        self.tools.get(*position)
    }

    /// Returns true if every tool runs without an account.
    #[must_use]
    pub fn no_auth(&self) -> bool {
        let mut schemes = self.auth.iter();
        schemes.all(|scheme| scheme.mode == AuthMode::NoAuth)
    }

    /// Finds an auth scheme by its mode.
    #[must_use]
    pub fn scheme(&self, mode: AuthMode) -> Option<&AuthScheme> {
        self.auth.iter().find(|scheme| scheme.mode == mode)
    }
}

/// Returns the names of the arguments that a schema declares.
fn parameters(input: &RawValue) -> Box<[Box<str>]> {
    #[derive(Deserialize)]
    struct Input {
        properties: Option<BTreeMap<Box<str>, IgnoredAny>>,
    }
    let input: Option<Input> = serde_json::from_str(input.get()).ok();
    let properties = input.and_then(|input| input.properties);
    properties.unwrap_or_default().into_keys().collect()
}

impl Tool {
    /// Creates a tool. `shared` holds the policies of tools without their own egress rules: the
    /// first for read-only tools, the second for all others.
    fn new(
        tool: manifest::Tool<&RawValue>,
        shared: &[Arc<Policy>; 2],
        no_auth: bool,
        limits: Limits,
        schema_file: &mut SchemaFile,
    ) -> Self {
        let output = schema_file.add(tool.output);
        let read_only = tool.hints.read_only;
        let policy = match tool.egress {
            Some(egress) => Arc::new(Policy {
                egress,
                read_only,
                ..Policy::default()
            }),
            None => shared[usize::from(!read_only)].clone(),
        };
        Self {
            slug: tool.slug.to_ascii_uppercase().into(),
            name: tool.name,
            description: joined_lines(&tool.description),
            takes_files: tool.input.get().contains(FILE_KEYWORD),
            parameters: parameters(tool.input),
            input: Schema::new(schema_file.add(tool.input), schema_file.validators()),
            output: if tool.loose_output {
                Schema::loose(output, schema_file.validators())
            } else {
                Schema::new(output, schema_file.validators())
            },
            hints: tool.hints,
            tags: tool.tags,
            synonyms: tool.synonyms,
            scopes: tool.scopes,
            no_auth: tool.no_auth || no_auth,
            policy,
            limits,
        }
    }

    /// Returns the schema of a complete result: `data` as the tool declares it, and the properties
    /// that every result has.
    ///
    /// Definitions move to the top level, where the references inside `data` look for them. Fails
    /// if [`Schema::text`] does.
    pub fn response_schema(&self) -> Result<Value> {
        let mut data: Value = serde_json::from_str(self.output.text()?.get()).unwrap_or_default();
        let definitions: Vec<_> = ["$defs", "definitions"]
            .into_iter()
            .filter_map(|name| Some((name, data.as_object_mut()?.shift_remove(name)?)))
            .collect();
        if data["type"] != "object" {
            // Clients expect an object, so other results are wrapped in one, as `tools` does for
            // results.
            data =
                json!({"type": "object", "properties": {"result": data}, "required": ["result"]});
        }
        let mut whole = json!({
            "type": "object",
            "title": "Answer",
            "properties": {
                "data": data,
                "error": {"type": ["string", "null"], "description": "Why the tool failed."},
                "successful": {"type": "boolean", "description": "Whether the tool succeeded."},
            },
            "required": ["data", "successful"],
        });
        definitions
            .into_iter()
            .for_each(|(name, definition)| whole[name] = definition);
        Ok(whole)
    }

    /// Returns true if the tool is tagged as important, and is therefore listed first.
    #[must_use]
    pub fn is_important(&self) -> bool {
        let mut tags = self.tags.iter();
        tags.any(|tag| tag.eq_ignore_ascii_case("important"))
    }
}

#[cfg(test)]
impl Release {
    /// Creates version 20260101_00 of toolkit `acme`, which has no tools.
    pub(crate) fn for_test(egress: &Value) -> Self {
        let text = json!({
            "abi": "1.0.0", "sdk": "s", "slug": "acme", "name": "n", "description": "d",
            "version": "20260101_00", "egress": egress, "tools": [],
        })
        .to_string();
        let manifest = serde_json::from_str(&text).unwrap();
        let mut schema_file = SchemaFile::create_in(&tempfile::env::temp_dir()).unwrap();
        Self::new(manifest, Digest::compute(b""), 0, Time(0), &mut schema_file).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(output: Value) -> Value {
        let declared =
            json!({"slug": "A_B", "name": "b", "description": "", "input": {}, "output": output});
        let mut schema_file = SchemaFile::create_in(&tempfile::env::temp_dir()).unwrap();
        let text = declared.to_string();
        let tool = Tool::new(
            serde_json::from_str(&text).unwrap(),
            &<[Arc<Policy>; 2]>::default(),
            true,
            Limits::default(),
            &mut schema_file,
        );
        schema_file.write().unwrap();
        tool.response_schema().unwrap()
    }

    #[test]
    fn definitions_stand_where_references_look_for_them() {
        let whole = answers(
            json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": true}}),
        );
        assert_eq!(whole["$defs"], json!({"X": true}));
        assert_eq!(
            whole["properties"]["data"],
            json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}})
        );
    }

    #[test]
    fn non_object_output_is_wrapped_in_result() {
        let whole = answers(json!({"type": "array"}));
        assert_eq!(
            whole["properties"]["data"]["properties"]["result"],
            json!({"type": "array"})
        );
    }
}
