//! Converts documents of version 2.0 to version 3.0.

use serde_json::{Map, Value, json};

use super::{document::Document, is_method};
use crate::text;

/// Members of a 2.0 parameter that describe its value.
const VALUE_KEYWORDS: [&str; 19] = [
    "type",
    "format",
    "items",
    "default",
    "enum",
    "pattern",
    "maximum",
    "minimum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "multipleOf",
    "maxItems",
    "minItems",
    "maxLength",
    "minLength",
    "uniqueItems",
    "x-nullable",
    "title",
    "description",
];

/// Converts a document of version 2.0 to 3.0. Parts that are the same in both stay as they are.
pub(super) fn upgraded(old: Value) -> Value {
    let mut new = json!({ "openapi": "3.0.0", "info": old["info"], "servers": servers(&old), "tags": old["tags"] });
    if let Some(security) = old.get("security") {
        new["security"] = security.clone();
    }
    let schemes: Map<String, Value> = old["securityDefinitions"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, about)| (name.clone(), scheme(about)))
        .collect();
    new["components"] = json!({ "securitySchemes": schemes });
    let document = Document::new(&old);
    let paths: Map<String, Value> = old["paths"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(path, item)| (path.clone(), item_of(&document, document.follow(item))))
        .collect();
    new["paths"] = Value::Object(paths);
    // Must be last, since it is taken from the old document.
    new["components"]["schemas"] = old["definitions"].clone();
    renamed(&mut new);
    new
}

fn servers(old: &Value) -> Value {
    let Some(host) = old["host"].as_str().filter(|host| !host.is_empty()) else {
        return json!([]);
    };
    let base = old["basePath"]
        .as_str()
        .unwrap_or_default()
        .trim_matches('/');
    let schemes: Vec<&str> = text::listed(old.get("schemes")).collect();
    let scheme = if schemes.contains(&"http") && !schemes.contains(&"https") {
        "http"
    } else {
        "https"
    };
    let url = format!("{scheme}://{host}/{base}");
    json!([{ "url": url.trim_end_matches('/') }])
}

fn scheme(about: &Value) -> Value {
    let mut about = about.clone();
    if about["type"] == "basic" {
        about["type"] = "http".into();
        about["scheme"] = "basic".into();
    } else if about["flow"] == "accessCode" {
        about["flows"] = json!({ "authorizationCode": {
            "authorizationUrl": about["authorizationUrl"], "tokenUrl": about["tokenUrl"],
        } });
    }
    about
}

fn item_of<'a>(document: &Document<'a>, item: &'a Value) -> Value {
    let Value::Object(item) = item else {
        return json!({});
    };
    let shared = parameters(document, item);
    let mut new = Map::new();
    for (method, operation) in item {
        match operation.as_object().filter(|_| is_method(method)) {
            Some(operation) => {
                new.insert(
                    method.clone(),
                    self::operation(document, operation, &shared),
                );
            }
            None if method == "parameters" => {}
            None => {
                new.insert(method.clone(), operation.clone());
            }
        }
    }
    Value::Object(new)
}

fn parameters<'a>(document: &Document<'a>, holder: &'a Map<String, Value>) -> Vec<&'a Value> {
    let list = holder
        .get("parameters")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    list.map(|parameter| document.follow(parameter))
        .filter(|parameter| parameter.is_object())
        .collect()
}

fn operation<'a>(
    document: &Document<'a>,
    old: &'a Map<String, Value>,
    shared: &[&'a Value],
) -> Value {
    let mut new = old.clone();
    let mut all: Vec<&Value> = shared.to_vec();
    for own in parameters(document, old) {
        all.retain(|known| known["name"] != own["name"] || known["in"] != own["in"]);
        all.push(own);
    }
    let body = all.iter().find(|it| it["in"] == "body");
    let form: Vec<&Value> = all
        .iter()
        .filter(|it| it["in"] == "formData")
        .copied()
        .collect();
    let rest = all
        .iter()
        .filter(|it| !matches!(it["in"].as_str(), Some("body" | "formData")));
    new.insert(
        "parameters".to_owned(),
        rest.map(|parameter| parameter_of(parameter)).collect(),
    );
    let consumes = media_types(document, old, "consumes");
    if let Some(body) = body {
        new.insert("requestBody".to_owned(), body_of(body, &consumes));
    } else if !form.is_empty() {
        new.insert("requestBody".to_owned(), form_of(&form, &consumes));
    }
    let produces = media_types(document, old, "produces");
    let responses: Map<String, Value> = old
        .get("responses")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(status, response)| {
            (
                status.clone(),
                response_of(document.follow(response), &produces),
            )
        })
        .collect();
    new.insert("responses".to_owned(), responses.into());
    Value::Object(new)
}

/// Returns a list of media types of an operation, otherwise that of the document.
fn media_types(document: &Document<'_>, operation: &Map<String, Value>, word: &str) -> Vec<String> {
    let named = operation.get(word).or_else(|| document.root.get(word));
    text::listed(named).map(str::to_owned).collect()
}

fn parameter_of(old: &Value) -> Value {
    let Value::Object(own) = old else {
        return old.clone();
    };
    let mut new: Map<String, Value> = own
        .iter()
        .filter(|(name, _)| !VALUE_KEYWORDS.contains(&name.as_str()))
        .map(owned)
        .collect();
    let schema: Map<String, Value> = own
        .iter()
        .filter(|(name, _)| VALUE_KEYWORDS.contains(&name.as_str()))
        .map(owned)
        .collect();
    if let Some(description) = own.get("description") {
        new.insert("description".to_owned(), description.clone());
    }
    new.insert("schema".to_owned(), schema.into());
    let (style, explode) = match own.get("collectionFormat").and_then(Value::as_str) {
        Some("multi") => ("form", true),
        Some("ssv") => ("spaceDelimited", false),
        Some("pipes") => ("pipeDelimited", false),
        _ if own.get("in").is_some_and(|place| place == "query") => ("form", false),
        _ => ("simple", false),
    };
    new.insert("style".to_owned(), style.into());
    new.insert("explode".to_owned(), explode.into());
    Value::Object(new)
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

fn body_of(old: &Value, consumes: &[String]) -> Value {
    let content = content(&old["schema"], consumes);
    json!({ "description": old["description"], "required": old["required"], "content": content })
}

fn content(schema: &Value, media_types: &[String]) -> Value {
    let any = ["application/json".to_owned()];
    let media_types = if media_types.is_empty() {
        &any
    } else {
        media_types
    };
    media_types
        .iter()
        .map(|media_type| (media_type.clone(), json!({ "schema": schema })))
        .collect::<Map<_, _>>()
        .into()
}

fn form_of(fields: &[&Value], consumes: &[String]) -> Value {
    let mut members = Map::new();
    let mut encoding = Map::new();
    let mut required = Vec::new();
    for field in fields {
        let Some(name) = field["name"].as_str() else {
            continue;
        };
        let mut schema = parameter_of(field)["schema"].take();
        if schema["type"] == "file" {
            schema = json!({ "type": "string", "format": "binary", "description": field["description"] });
        }
        members.insert(name.to_owned(), schema);
        if field["required"] == true {
            required.push(name);
        }
        if field["type"] == "array" && field["collectionFormat"] != "multi" {
            encoding.insert(
                name.to_owned(),
                json!({ "style": "form", "explode": false }),
            );
        }
    }
    let file = fields.iter().any(|field| field["type"] == "file");
    let multipart = file
        || consumes.iter().any(|it| it.starts_with("multipart/"))
            && !consumes.iter().any(|it| it.ends_with("urlencoded"));
    let media_type = if multipart {
        "multipart/form-data"
    } else {
        "application/x-www-form-urlencoded"
    };
    let schema = json!({ "type": "object", "properties": members, "required": required });
    json!({ "required": !required.is_empty(), "content": { media_type: { "schema": schema, "encoding": encoding } } })
}

fn response_of(old: &Value, produces: &[String]) -> Value {
    let mut new = json!({ "description": old["description"], "headers": old["headers"] });
    match &old["schema"] {
        Value::Null => {}
        schema if schema["type"] == "file" => {
            let media_type = produces
                .iter()
                .find(|it| !it.contains("json"))
                .map_or("application/octet-stream", String::as_str);
            new["content"] =
                json!({ media_type: { "schema": { "type": "string", "format": "binary" } } });
        }
        schema => new["content"] = content(schema, produces),
    }
    new
}

/// Changes references to the new places of the schemas.
fn renamed(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(reference) if name == "$ref" => {
                        if let Some(rest) = reference.strip_prefix("#/definitions/") {
                            *reference = format!("#/components/schemas/{rest}");
                        }
                    }
                    other => renamed(other),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(renamed),
        _ => {}
    }
}
