//! Hints from HTTP methods, and other parts that every kind of description shares.

use manifest::Hints;
use serde_json::{Value, json};

/// Returns the guarantees of a request's method (RFC 9110, 9.2): GET, HEAD and OPTIONS are
/// read-only, PUT and DELETE are idempotent, DELETE and PUT may be destructive.
#[must_use]
pub fn hints(method: &str) -> Hints {
    let read_only = matches!(method, "GET" | "HEAD" | "OPTIONS");
    Hints {
        read_only,
        destructive: matches!(method, "DELETE" | "PUT"),
        idempotent: read_only || matches!(method, "PUT" | "DELETE"),
        open_world: true,
    }
}

/// Returns the schema of a file that the caller uploads, with a description if one is given.
#[must_use]
pub fn file(description: Option<&str>) -> Value {
    let mut schema = json!({
        "type": "object",
        "file_uploadable": true,
        "properties": {
            "name": { "type": "string", "description": "Name of the file." },
            "mimetype": { "type": "string", "description": "Media type of the file." },
            "s3key": { "type": "string", "description": "Where the file is." },
        },
        "required": ["name", "mimetype", "s3key"],
    });
    if let Some(description) = description {
        schema["description"] = description.into();
    }
    schema
}

/// Returns true if a schema is that of a [`file`].
#[must_use]
pub fn is_file(schema: &Value) -> bool {
    schema.get("file_uploadable").and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_follow_the_method() {
        let of = |method: &str| {
            let hints = hints(method);
            (hints.read_only, hints.destructive, hints.idempotent)
        };
        assert_eq!(of("GET"), (true, false, true));
        assert_eq!(of("OPTIONS"), (true, false, true));
        assert_eq!(of("POST"), (false, false, false));
        assert_eq!(of("PATCH"), (false, false, false));
        assert_eq!(of("PUT"), (false, true, true));
        assert_eq!(of("DELETE"), (false, true, true));
    }

    #[test]
    fn a_file_is_told_by_its_flag() {
        assert!(is_file(&file(Some("A picture."))));
        assert!(!is_file(&json!({ "type": "object" })));
    }
}
