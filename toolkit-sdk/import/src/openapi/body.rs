//! Reads the bodies of requests and responses.

use std::collections::BTreeMap;

use manifest::plan::FieldEncoding;
use serde_json::{Map, Value, json};

use super::{Reader, schema::is_binary};
use crate::{Answer, Body, Field, Media, Operation, file};

/// Kinds of media types, in order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Json,
    Multipart,
    Form,
    Bytes,
    Text,
}

impl<'a> Reader<'a> {
    /// Reads the body of a request.
    pub(super) fn body(&mut self, made: &mut Operation, body: &'a Value) {
        let body = self.document.follow(body);
        if matches!(made.method.as_str(), "GET" | "HEAD") {
            return self.part(&made.id, "a body, which a GET request does not carry");
        }
        let required = body["required"].as_bool() == Some(true);
        let Some(content) = body["content"].as_object() else {
            return;
        };
        let mut best: Option<(Kind, &'a String, &'a Value)> = None;
        for (media_type, about) in content {
            let kind = self.kind(media_type, about);
            // If a part is a file, the multipart form is preferred to the plain one.
            let binary = kind == Kind::Multipart && self.has_file(about);
            let better =
                best.is_none_or(|(best, ..)| kind < best || (binary && best == Kind::Form));
            if better {
                best = Some((kind, media_type, about));
            }
        }
        let Some((kind, media_type, about)) = best else {
            return;
        };
        let said = body["description"].as_str();
        let read = self
            .schemas
            .read(about.get("schema").unwrap_or(&Value::Null));
        let plain = media_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        let (media, schema) = match kind {
            Kind::Json => (
                Media::Json {
                    media_type: (plain != "application/json" && !plain.contains('*'))
                        .then_some(plain),
                },
                read,
            ),
            Kind::Form => (
                Media::Form {
                    fields: self.fields(about),
                },
                self.flat(&read),
            ),
            Kind::Multipart => (
                Media::Multipart {
                    fields: self.fields(about),
                },
                self.with_files(&read),
            ),
            Kind::Bytes => (
                Media::File {
                    media_type: fixed(&plain),
                },
                file(said),
            ),
            Kind::Text => {
                if !plain.starts_with("text/plain") {
                    self.part(
                        &made.id,
                        format!("the parts of its {plain} body: it is written as one text"),
                    );
                }
                (
                    Media::Text {
                        media_type: plain.clone(),
                    },
                    json!({ "type": "string", "description": said.unwrap_or(&plain) }),
                )
            }
        };
        made.body = Some(Body {
            media,
            schema,
            required,
            defaults: BTreeMap::new(),
        });
    }

    fn kind(&self, media_type: &str, about: &'a Value) -> Kind {
        let media_type = media_type.to_ascii_lowercase();
        let plain = media_type.split(';').next().unwrap_or_default().trim();
        match plain {
            "application/x-www-form-urlencoded" => Kind::Form,
            _ if plain.starts_with("multipart/") => Kind::Multipart,
            _ if is_json(plain) => Kind::Json,
            "*/*" if !is_binary(self.document.resolve(about.get("schema"))) => Kind::Json,
            _ if is_text(plain) => Kind::Text,
            _ => Kind::Bytes,
        }
    }

    fn has_file(&mut self, about: &'a Value) -> bool {
        let read = self
            .schemas
            .read(about.get("schema").unwrap_or(&Value::Null));
        let whole = self.with_files(&read);
        whole["properties"].as_object().is_some_and(|members| {
            members
                .values()
                .any(|member| crate::is_file(member) || crate::is_file(&member["items"]))
        })
    }

    /// Returns the encodings of the members of a form that the description states.
    fn fields(&self, about: &Value) -> Vec<Field> {
        let encodings = about["encoding"].as_object().into_iter().flatten();
        encodings
            .filter_map(|(name, encoding)| {
                let media_type = encoding["contentType"].as_str().unwrap_or_default();
                let carries = match (encoding["style"].as_str(), encoding["explode"].as_bool()) {
                    _ if is_json(media_type) => FieldEncoding::Json,
                    (Some("deepObject"), _) => FieldEncoding::Brackets,
                    (Some("form") | None, Some(false)) => FieldEncoding::Joined,
                    (Some("form"), _) => FieldEncoding::Plain,
                    _ => return None,
                };
                Some(Field {
                    name: name.clone(),
                    carries,
                })
            })
            .collect()
    }

    /// Returns the fields of a multipart form, with a file for each binary field.
    fn with_files(&mut self, read: &Value) -> Value {
        let mut whole = self.flat(read);
        let Some(members) = whole.get_mut("properties").and_then(Value::as_object_mut) else {
            return whole;
        };
        for member in members.values_mut() {
            let flat = self.flat(member);
            let said = flat["description"].as_str().map(str::to_owned);
            if is_binary(&flat) {
                *member = file(said.as_deref());
            } else if is_binary(&self.flat(&flat["items"])) && flat["items"].is_object() {
                *member = json!({ "type": "array", "items": file(None), "description": said.unwrap_or_default() });
            }
        }
        whole
    }

    /// Reads the response of an operation, and returns the part of the document that describes it.
    pub(super) fn answer(
        &mut self,
        made: &mut Operation,
        own: &'a Map<String, Value>,
    ) -> &'a Value {
        let responses = own.get("responses").and_then(Value::as_object);
        let response = responses
            .and_then(success)
            .map_or(&Value::Null, |response| self.document.follow(response));
        let Some(content) = response["content"]
            .as_object()
            .filter(|content| !content.is_empty())
        else {
            return response;
        };
        let json = content
            .iter()
            .find(|(media_type, _)| is_json(media_type))
            .or_else(|| content.iter().find(|(it, _)| *it == "*/*"));
        if let Some((media_type, about)) = json {
            let schema = about.get("schema").map(|schema| self.schemas.read(schema));
            if schema
                .as_ref()
                .is_some_and(|schema| is_binary(&self.flat(schema)))
            {
                made.answer = Answer {
                    file: true,
                    ..Answer::default()
                };
                return response;
            }
            made.answer.schema = schema;
            let media_type = media_type.split(';').next().unwrap_or_default().trim();
            let accept = if media_type.contains('*') {
                "application/json"
            } else {
                media_type
            };
            made.headers.push(("accept".to_owned(), accept.to_owned()));
        } else if !content
            .keys()
            .any(|media_type| is_text(&media_type.to_ascii_lowercase()))
        {
            made.answer.file = true;
        }
        response
    }

    /// Returns a schema with its references and parts merged.
    pub(super) fn flat(&mut self, schema: &Value) -> Value {
        self.schemas.flat(schema)
    }
}

/// Returns the response that describes success: the lowest of the 200s, otherwise the default.
fn success(responses: &Map<String, Value>) -> Option<&Value> {
    let mut good: Vec<&String> = responses
        .keys()
        .filter(|status| status.starts_with('2'))
        .collect();
    good.sort();
    let status = good.first().map_or("default", |status| status.as_str());
    responses.get(status)
}

fn is_json(media_type: &str) -> bool {
    let plain = media_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    matches!(
        plain.as_str(),
        "application/json" | "text/json" | "application/*" | "json"
    ) || plain.ends_with("+json")
}

fn is_text(media_type: &str) -> bool {
    let plain = media_type.split(';').next().unwrap_or_default().trim();
    plain.starts_with("text/")
        || plain.ends_with("xml")
        || plain.ends_with("yaml")
        || plain.ends_with("ndjson")
        || matches!(
            plain,
            "application/graphql"
                | "application/javascript"
                | "application/sql"
                | "application/jsonl"
        )
}

/// Returns a media type if it is specific.
fn fixed(media_type: &str) -> Option<String> {
    let open = media_type.contains('*')
        || media_type == "application/octet-stream"
        || media_type.is_empty();
    (!open).then(|| media_type.to_owned())
}
