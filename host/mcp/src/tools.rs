//! Tools as MCP clients see them.

use std::sync::Arc;

use app::{Error, agents::meta::MetaTool, catalog::ResolvedTool};
use http::{branding::Branding, errors};
use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::results::MAX_RESULT_BYTES;

/// Keyword of a schema with the name of the header in which clients repeat an argument.
const HEADER_KEYWORD: &str = "x-mcp-header";
/// Property of a result too large for a response.
const RESULT_FILE: &str = "result_file";
/// Property of `_meta` with the maximum characters of the text of a result.
const RESULT_SIZE_MEMBER: &str = "anthropic/maxResultSizeChars";
/// Keywords of a schema of results that say nothing about its members, or only about those that it names.
const PERMISSIVE_KEYWORDS: [&str; 12] = [
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "additionalProperties",
    "definitions",
    "description",
    "examples",
    "properties",
    "required",
    "title",
    "type",
];

/// Returns the name of a meta tool, with the word of this installation.
pub(super) fn meta_name(tool: MetaTool, branding: &Branding) -> String {
    branding.rename(tool.slug()).into_owned()
}

/// Describes a meta tool.
pub(super) fn meta_tool(tool: MetaTool, branding: &Branding) -> Tool {
    let definition = tool.definition();
    let has = |hint: &str| definition.tags.iter().any(|tag| tag == hint);
    let annotations = ToolAnnotations::with_title(definition.name.clone())
        .read_only(has("readOnlyHint"))
        .destructive(has("destructiveHint"))
        .idempotent(has("idempotentHint"))
        .open_world(has("openWorldHint"));
    let description = branding.rename(&definition.description).into_owned();
    let input = branding.render(definition.input.clone());
    let described = Tool::new(
        meta_name(tool, branding),
        description,
        Arc::new(object(input)),
    )
    .with_title(definition.name.clone())
    .with_annotations(annotations)
    .with_meta(result_size());
    match output(branding.render(definition.output.clone())) {
        Some(schema) => described.with_raw_output_schema(Arc::new(schema)),
        None => described,
    }
}

/// Describes a tool of the catalog, with or without the schema of its results.
pub(super) fn tool(found: &ResolvedTool, with_output: bool) -> Result<Tool, Error> {
    let tool = &found.tool;
    let hints = &tool.hints;
    let annotations = ToolAnnotations::with_title(tool.name.clone())
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    let name = tool.slug.to_string();
    let input = Arc::new(object(parsed(&tool.input, &tool.slug)?));
    let described = Tool::new(name, tool.description.clone(), input)
        .with_title(tool.name.clone())
        .with_annotations(annotations)
        .with_meta(result_size());
    // Clients refuse results that do not match the schema.
    if !with_output || !tool.output.is_enforced() {
        return Ok(described);
    }
    Ok(match output(parsed(&tool.output, &tool.slug)?) {
        Some(schema) => described.with_raw_output_schema(Arc::new(schema)),
        None => described,
    })
}

/// Parses a schema of the tool `slug`.
fn parsed(schema: &app::catalog::Schema, slug: &str) -> Result<Value, Error> {
    let text = schema.text()?;
    serde_json::from_str(text.get())
        .map_err(|cause| errors::internal(format!("a schema of {slug} is not JSON: {cause}")))
}

/// Declares how long the text of a result may be. Claude Code shows a model 50,000 characters of one that
/// declares nothing, and hides the rest.
fn result_size() -> MetaObject {
    let mut meta = MetaObject::new();
    meta.insert(RESULT_SIZE_MEMBER.to_owned(), json!(MAX_RESULT_BYTES));
    meta
}

/// Returns a schema of arguments, which has to be one of objects.
fn object(schema: Value) -> JsonObject {
    let mut schema = match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    schema.insert("type".to_owned(), json!("object"));
    remove_header_names(&mut schema);
    schema
}

/// Removes the names of headers in which clients would repeat arguments. Proxies and logs see headers, and
/// the server does not compare them.
fn remove_header_names(schema: &mut JsonObject) {
    schema.shift_remove(HEADER_KEYWORD);
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    let nested = properties.into_iter().flat_map(|named| named.values_mut());
    nested
        .filter_map(Value::as_object_mut)
        .for_each(remove_header_names);
}

/// Returns a schema of results that also admits the link to a file, which replaces an oversized
/// result. Returns `None` if the results are not objects, or if a keyword may exclude the link.
fn output(schema: Value) -> Option<JsonObject> {
    let Value::Object(mut schema) = schema else {
        return None;
    };
    let is_permissive = schema
        .keys()
        .all(|keyword| PERMISSIVE_KEYWORDS.contains(&&**keyword) || keyword.starts_with("x-"));
    let has_own_file = schema
        .get("properties")
        .is_some_and(|named| !named[RESULT_FILE].is_null());
    if has_own_file || schema.get("type") != Some(&json!("object")) || !is_permissive {
        return None;
    }
    let required = schema.shift_remove("required");
    if schema.get("additionalProperties") != Some(&json!(true)) {
        schema.shift_remove("additionalProperties");
    }
    if let Some(required) = required.filter(|required| *required != json!([])) {
        let choices = json!([{ "required": required }, { "required": [RESULT_FILE] }]);
        schema.insert("anyOf".to_owned(), choices);
    }
    Some(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_schema_admits_a_result_file() {
        let schema = json!({
            "type": "object",
            "properties": { "a": { "type": "string" } },
            "required": ["a"],
            "additionalProperties": false,
        });
        let expected = json!({
            "type": "object",
            "properties": { "a": { "type": "string" } },
            "anyOf": [{ "required": ["a"] }, { "required": ["result_file"] }],
        });
        assert_eq!(Value::Object(output(schema).unwrap()), expected);
        assert_eq!(output(json!({ "type": "array" })), None);
        let strict = json!({ "type": "object", "maxProperties": 1, "minProperties": 1 });
        assert_eq!(output(strict), None);
        let typed = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        let open = json!({ "type": "object" });
        assert_eq!(Value::Object(output(typed).unwrap()), open);
    }

    #[test]
    fn input_schema_is_one_of_objects() {
        assert_eq!(object(json!(true))["type"], "object");
        assert_eq!(object(json!({ "properties": {} }))["type"], "object");
        let named =
            json!({ "properties": { "a": { "properties": { "b": { "x-mcp-header": "B" } } } } });
        let expected =
            json!({ "type": "object", "properties": { "a": { "properties": { "b": {} } } } });
        assert_eq!(Value::Object(object(named)), expected);
    }
}
