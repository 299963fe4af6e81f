//! Files in arguments: found where the tool's schema says that a file stands, and handed to the call by their keys.

use bytes::Bytes;
use sandbox::File as Given;
use serde_json::Value;

use crate::{App, Error, Result, catalog::Tool, json, projects::Project};

/// What marks a node of a schema.
const MARK: &str = "file_uploadable";
/// How deep schema and arguments are followed.
const DEPTH: usize = 32;
/// Files of one call.
pub const MOST: usize = 32;

/// The arguments without empty texts where files may stand, and the files that they name.
///
/// # Errors
/// When a key is none of the project's, its file was never uploaded, or the files are too many or too large together.
pub(crate) async fn given(app: &App, project: &Project, tool: &Tool, arguments: Bytes) -> Result<(Bytes, Vec<Given>)> {
    let invalid = |problem: String| Error::ArgumentsInvalid { tool: tool.slug.to_string(), problems: vec![problem] };
    let mut value = json::read(&arguments).map_err(|cause| invalid(format!("not acceptable JSON: {cause}")))?;
    let schema: Value = serde_json::from_str(tool.input.text()?.get()).unwrap_or_default();
    let mut found = Search { root: &schema, keys: Vec::new(), dropped: false };
    found.visit(&schema, &mut value, 0);
    let Search { keys, dropped, .. } = found;
    if keys.len() > MOST {
        return Err(invalid(format!("a call takes at most {MOST} files")));
    }
    let (mut files, mut size) = (Vec::with_capacity(keys.len()), 0);
    for key in keys {
        let (record, bytes) = super::read(app, project, &key).await?;
        size += bytes.len() as u64;
        if size > app.files.settings.size {
            return Err(invalid(format!(
                "the files of a call have at most {} bytes together",
                app.files.settings.size
            )));
        }
        let (name, media_type) = (record.body.name, record.body.media_type);
        files.push(Given { id: key, name, media_type, bytes });
    }
    let arguments = if dropped { value.to_string().into() } else { arguments };
    Ok((arguments, files))
}

/// Whether a tool takes files at all.
pub(crate) fn takes(input: &str) -> bool {
    input.contains(MARK)
}

struct Search<'a> {
    root: &'a Value,
    keys: Vec<String>,
    dropped: bool,
}

impl<'a> Search<'a> {
    fn visit(&mut self, schema: &'a Value, value: &mut Value, depth: usize) {
        if depth > DEPTH {
            return;
        }
        let schema = self.resolved(schema);
        if schema[MARK] == true {
            if let Some(key) = value["s3key"].as_str()
                && !self.keys.iter().any(|known| known == key)
            {
                self.keys.push(key.to_owned());
            }
            return;
        }
        for alternative in alternatives(schema) {
            self.visit(alternative, value, depth + 1);
        }
        match value {
            Value::Object(members) => {
                let named = schema["properties"].as_object();
                let emptied = |name: &str, value: &Value| {
                    *value == "" && named.and_then(|named| named.get(name)).is_some_and(|node| self.is_file(node, 0))
                };
                let before = members.len();
                members.retain(|name, value| !emptied(name, value));
                self.dropped |= members.len() < before;
                for (name, value) in members {
                    let node = named.and_then(|named| named.get(name)).unwrap_or(&schema["additionalProperties"]);
                    self.visit(node, value, depth + 1);
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.visit(&schema["items"], item, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Whether a file stands at a node, perhaps among other things.
    fn is_file(&self, node: &'a Value, depth: usize) -> bool {
        let node = self.resolved(node);
        node[MARK] == true || (depth < DEPTH && alternatives(node).any(|other| self.is_file(other, depth + 1)))
    }

    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let target = schema["$ref"].as_str().and_then(|target| self.root.pointer(target.strip_prefix('#')?));
        target.unwrap_or(schema)
    }
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|name| schema[name].as_array()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn search(schema: &Value, mut value: Value) -> (Vec<String>, Value) {
        let mut found = Search { root: schema, keys: Vec::new(), dropped: false };
        found.visit(schema, &mut value, 0);
        (found.keys, value)
    }

    #[test]
    fn files_are_found_wherever_a_schema_may_put_them_and_nowhere_else() {
        let file = json!({"type": "object", "file_uploadable": true});
        let schema = json!({
            "properties": {
                "plain": file,
                "listed": {"type": "array", "items": {"$ref": "#/$defs/File"}},
                "maybe": {"anyOf": [{"$ref": "#/$defs/File"}, {"type": "null"}]},
                "deep": {"properties": {"x": {"allOf": [file]}}},
                "free": {"type": "object"},
            },
            "additionalProperties": {"oneOf": [file, {"type": "string"}]},
            "$defs": {"File": file},
        });
        let key = |key: &str| json!({"name": "n", "mimetype": "m/m", "s3key": key});
        let value = json!({
            "plain": key("a"), "listed": [key("b"), key("a")], "maybe": key("c"), "deep": {"x": key("d")},
            "free": key("not a file"), "other": key("e"),
        });
        let (mut keys, _) = search(&schema, value);
        keys.sort();
        assert_eq!(keys, ["a", "b", "c", "d", "e"]);
        let (keys, rest) = search(&schema, json!({"plain": "", "maybe": "", "free": "", "text": "t"}));
        assert_eq!((keys, rest), (vec![], json!({"free": "", "text": "t"})));
    }

    #[test]
    fn a_schema_that_leads_back_to_itself_comes_to_an_end() {
        let schema = json!({"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}});
        assert!(search(&schema, json!({"a": {"b": []}})).0.is_empty());
    }
}
