//! Parser for command line arguments: `--arg name=value`, converted as the schema requires.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};
use sandbox::File;
use serde_json::{Map, Value, json};

/// Parses arguments. A repeated name makes a list. `@file` means the text of a file, or for the
/// file itself if the schema expects one.
pub(crate) fn read(schema: &Value, given: &[String], files: &mut Vec<File>) -> Result<Value> {
    let mut arguments = Map::new();
    for one in given {
        let (name, text) = one
            .split_once('=')
            .with_context(|| format!("`{one}` is not an argument; write name=value"))?;
        let property = property(schema, name)?;
        if is_file(schema, property) {
            let path = text
                .strip_prefix('@')
                .with_context(|| format!("`{name}` is a file; write {name}=@path"))?;
            arguments.insert(name.to_owned(), upload(Path::new(path), files)?);
            continue;
        }
        let text = match text.strip_prefix('@') {
            Some(file) => fs::read_to_string(file)
                .with_context(|| format!("cannot read {file} for `{name}`"))?,
            None => text.to_owned(),
        };
        let value = value(schema, property, &text)
            .with_context(|| format!("`{name}` does not fit its schema"))?;
        match (arguments.get_mut(name), value) {
            (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
            (Some(_), _) => bail!("`{name}` is given twice, but is not a list"),
            (None, value) => {
                arguments.insert(name.to_owned(), value);
            }
        }
    }
    Ok(Value::Object(arguments))
}

/// Parses JSON text, or the file named by `@file`.
pub(crate) fn json(text: &str, what: &str) -> Result<Value> {
    let text = match text.strip_prefix('@') {
        Some(file) => {
            fs::read_to_string(file).with_context(|| format!("cannot read {file} for {what}"))?
        }
        None => text.to_owned(),
    };
    serde_json::from_str(&text).with_context(|| format!("cannot read {what} as JSON"))
}

/// Adds a file to the call and returns its reference for the arguments.
fn upload(path: &Path, files: &mut Vec<File>) -> Result<Value> {
    let bytes = fs::read(path)
        .with_context(|| format!("cannot read {}", path.display()))?
        .into();
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let media_type = media_type(path).to_owned();
    let id = format!("given_{}", files.len() + 1);
    let value = json!({ "name": name, "mimetype": media_type, "s3key": id });
    files.push(File {
        id,
        name,
        media_type,
        bytes,
    });
    Ok(value)
}

fn media_type(path: &Path) -> &'static str {
    match path
        .extension()
        .and_then(|end| end.to_str())
        .unwrap_or_default()
    {
        "csv" => "text/csv",
        "gif" => "image/gif",
        "htm" | "html" => "text/html",
        "jpeg" | "jpg" => "image/jpeg",
        "json" => "application/json",
        "md" => "text/markdown",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => "text/plain",
        "xml" => "application/xml",
        "zip" => "application/zip",
        _ => "application/octet-stream",
    }
}

fn is_file(root: &Value, schema: &Value) -> bool {
    resolve(root, schema).get("file_uploadable") == Some(&Value::Bool(true))
}

fn property<'a>(schema: &'a Value, name: &str) -> Result<&'a Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(property) = properties.and_then(|properties| properties.get(name)) {
        return Ok(property);
    }
    if schema
        .get("additionalProperties")
        .is_some_and(|more| *more != Value::Bool(false))
    {
        return Ok(&Value::Null);
    }
    let known: Vec<_> = properties
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .collect();
    match known.is_empty() {
        true => bail!("the argument `{name}` is unknown; the tool takes no arguments"),
        false => bail!(
            "the argument `{name}` is unknown; known are {}",
            known.join(", ")
        ),
    }
}

/// Converts one value to the first type of number, boolean, null, list, object and text that the
/// schema allows and the text fits.
fn value(root: &Value, schema: &Value, text: &str) -> Result<Value> {
    let mut types = Vec::new();
    collect(root, schema, 0, &mut types);
    let parsed = serde_json::from_str::<Value>(text).ok();
    match parsed {
        Some(parsed) if types.is_empty() || fits(&types, &parsed) => Ok(parsed),
        _ if types.is_empty() || types.contains(&"string") => Ok(Value::String(text.to_owned())),
        _ if types.contains(&"array") => Ok(Value::Array(vec![element(root, schema, text)?])),
        _ => bail!(
            "`{}` is not {}",
            text.chars().take(60).collect::<String>(),
            types.join(" or ")
        ),
    }
}

/// Returns true if a value that is not a string has one of the types.
fn fits(types: &[&str], value: &Value) -> bool {
    let allows = |kind: &str| types.contains(&kind);
    match value {
        Value::Number(_) => allows("number") || (allows("integer") && !value.is_f64()),
        Value::Bool(_) => allows("boolean"),
        Value::Null => allows("null") && !allows("string"),
        Value::Array(_) => allows("array"),
        Value::Object(_) => allows("object"),
        Value::String(_) => false,
    }
}

/// Converts one element of a list whose elements are given one by one.
fn element(root: &Value, schema: &Value, text: &str) -> Result<Value> {
    let schema = resolve(root, schema);
    let branches = ["anyOf", "oneOf"]
        .iter()
        .filter_map(|word| schema.get(word)?.as_array())
        .flatten();
    let items = std::iter::once(schema)
        .chain(branches)
        .find_map(|branch| resolve(root, branch).get("items"));
    value(root, items.unwrap_or(&Value::Null), text)
}

/// Collects the types that a schema allows.
fn collect<'a>(root: &'a Value, schema: &'a Value, depth: u8, types: &mut Vec<&'a str>) {
    // A schema may refer to itself.
    if depth > 8 {
        return;
    }
    let schema = resolve(root, schema);
    match schema.get("type") {
        Some(Value::String(kind)) => types.push(kind),
        Some(Value::Array(kinds)) => types.extend(kinds.iter().filter_map(Value::as_str)),
        _ => {}
    }
    let constants = schema
        .get("enum")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .chain(schema.get("const"));
    types.extend(constants.map(|constant| -> &'a str { kind(constant) }));
    for word in ["anyOf", "oneOf", "allOf"] {
        for branch in schema
            .get(word)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            collect(root, branch, depth + 1, types);
        }
    }
    types.dedup();
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Follows one local reference.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|path| path.strip_prefix('#'));
    target.and_then(|path| root.pointer(path)).unwrap_or(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "text": { "type": "string" },
                "limit": { "type": ["integer", "null"] },
                "ratio": { "type": "number" },
                "exact": { "type": "boolean" },
                "tags": { "type": "array", "items": { "type": "string" } },
                "ids": { "anyOf": [{ "type": "array", "items": { "type": "integer" } }, { "type": "null" }] },
                "order": { "$ref": "#/definitions/Order" },
                "filter": { "type": "object" },
                "any": true,
                "attachment": { "type": "object", "file_uploadable": true },
            },
            "definitions": { "Order": { "enum": ["up", "down"] } },
        })
    }

    fn arguments(given: &[&str]) -> Result<Value> {
        let given: Vec<_> = given.iter().map(|text| (*text).to_owned()).collect();
        read(&schema(), &given, &mut Vec::new())
    }

    #[test]
    fn each_value_is_read_as_its_schema_says() {
        let given = [
            "text=5",
            "limit=5",
            "ratio=0.5",
            "exact=true",
            "order=up",
            r#"filter={"a":1}"#,
            "any=[1]",
        ];
        let expected = json!({
            "text": "5", "limit": 5, "ratio": 0.5, "exact": true, "order": "up", "filter": { "a": 1 }, "any": [1],
        });
        assert_eq!(arguments(&given).unwrap(), expected);
        let plain = arguments(&["limit=null", "any=plain"]);
        assert_eq!(plain.unwrap(), json!({ "limit": null, "any": "plain" }));
    }

    #[test]
    fn list_is_given_whole_or_by_element() {
        for (given, expected) in [
            (&[r#"tags=["a","b"]"#][..], json!({ "tags": ["a", "b"] })),
            (&["tags=a", "tags=2"], json!({ "tags": ["a", "2"] })),
            (&["ids=1", "ids=2"], json!({ "ids": [1, 2] })),
        ] {
            assert_eq!(arguments(given).unwrap(), expected);
        }
    }

    #[test]
    fn a_value_may_come_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("text.md");
        fs::write(&file, "# Title = 1\n").unwrap();
        let given = format!("text=@{}", file.display());
        assert_eq!(
            arguments(&[&given]).unwrap(),
            json!({ "text": "# Title = 1\n" })
        );
    }

    #[test]
    fn file_argument_becomes_upload_if_schema_asks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        fs::write(&path, [0xff, 0x00]).unwrap();
        let mut files = Vec::new();
        let read = read(
            &schema(),
            &[format!("attachment=@{}", path.display())],
            &mut files,
        )
        .unwrap();
        let expected = json!({ "attachment": { "name": "table.csv", "mimetype": "text/csv", "s3key": files[0].id } });
        assert_eq!(read, expected);
        assert_eq!(&files[0].bytes[..], [0xff, 0x00]);
    }

    #[test]
    fn a_mistake_says_what_would_be_right() {
        for (given, part) in [
            (&["txt=a"][..], "text, limit"),
            (&["text"], "name=value"),
            (&["exact=maybe"], "boolean"),
            (&["limit=1.5"], "integer"),
            (&["limit=1", "limit=2"], "twice"),
            (&["text=@/nowhere/at/all"], "/nowhere/at/all"),
        ] {
            let problem = format!("{:#}", arguments(given).unwrap_err());
            assert!(problem.contains(part), "{problem}");
        }
    }
}
