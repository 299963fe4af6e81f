//! JSON Schemas from Rust types, in the plain draft-07 form that clients and model providers agree
//! on: everything is inlined, without `$schema`, `title` or number formats that only Rust knows.
//! Only recursive types keep a local `$ref`.

use schemars::generate::{Contract, SchemaSettings};
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// Returns the schema of the JSON that `T` deserializes from.
pub(crate) fn of_input<T: JsonSchema>() -> Value {
    let mut schema = schema::<T>(Contract::Deserialize);
    // The description would be that of the struct, or of a struct flattened into it. The tool's own
    // description already says what the arguments are for.
    if let Value::Object(schema) = &mut schema {
        schema.shift_remove("description");
    }
    schema
}

/// Returns the schema of the JSON that `T` serializes to.
pub(crate) fn of_output<T: JsonSchema>() -> Value {
    schema::<T>(Contract::Serialize)
}

fn schema<T: JsonSchema>(contract: Contract) -> Value {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
        settings.contract = contract;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    RecursiveTransform(plain).transform(&mut schema);
    schema.to_value()
}

fn plain(schema: &mut Schema) {
    const RUST_FORMATS: [&str; 16] = [
        "int8",
        "int16",
        "int32",
        "int64",
        "int128",
        "int",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "uint128",
        "uint",
        "float",
        "double",
        "partial-date-time",
        "decimal",
    ];
    if schema
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|format| RUST_FORMATS.contains(&format))
    {
        schema.remove("format");
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::{of_input, of_output};
    use crate::File;

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Order {
        Up,
        Down,
    }

    /// A search.
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Search {
        /// What to look for.
        text: String,
        /// How many.
        limit: Option<u32>,
        #[serde(default)]
        order: Vec<Order>,
    }

    #[test]
    fn an_input_schema_is_plain_and_inlined() {
        let expected = json!({
            "type": "object",
            "properties": {
                "text": { "type": "string", "description": "What to look for." },
                "limit": { "type": ["integer", "null"], "minimum": 0, "description": "How many." },
                "order": { "type": "array", "items": { "type": "string", "enum": ["up", "down"] }, "default": [] },
            },
            "required": ["text"],
        });
        assert_eq!(of_input::<Search>(), expected);
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Attachment {
        file: File,
    }

    #[test]
    fn a_file_is_flagged_by_direction() {
        assert_eq!(
            of_input::<Attachment>()["properties"]["file"]["file_uploadable"],
            json!(true)
        );
        assert_eq!(
            of_output::<Attachment>()["properties"]["file"]["file_downloadable"],
            json!(true)
        );
        assert_eq!(
            of_output::<Attachment>()["properties"]["file"]["required"],
            json!(["name", "mimetype", "s3url"])
        );
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Node {
        children: Vec<Node>,
    }

    #[test]
    fn a_recursive_type_refers_to_itself_locally() {
        let text = of_input::<Node>().to_string();
        assert!(text.contains("\"$ref\":\"#"), "{text}");
    }
}
