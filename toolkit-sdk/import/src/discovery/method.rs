//! Converts a method to operations.

use manifest::plan::{ParameterIn, Style};
use serde_json::{Map, Value, json};

use super::document::{self, Document, MediaUpload, Method, Simple};
use super::scopes::{self, Counts};
use super::{pages, root_url, schema, server};
use crate::{Answer, Api, Body, Media, Operation, Parameter, Unsupported, file, hints, text};

const HTTP_METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
/// Prefixes of the names of methods that are destructive although their requests are POST.
const DESTRUCTIVE_VERBS: [&str; 10] = [
    "batchDelete",
    "batchRemove",
    "clear",
    "delete",
    "destroy",
    "empty",
    "purge",
    "remove",
    "trash",
    "wipe",
];
const FIELDS_PARAMETER: &str = "Which parts of the answer to tell, so that it is short: names with commas between them, parts of \
                      parts in brackets, for example `items(id,name),nextPageToken`. Without it, all.";

pub(super) struct Reader<'a> {
    document: &'a Document,
    scopes: Counts<'a>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(document: &'a Document) -> Self {
        Self {
            document,
            scopes: scopes::count(document),
        }
    }

    /// Adds the operations of a method: the plain one, the one that uploads, and the one that
    /// downloads.
    pub(super) fn method(&self, id: &str, resource: &str, method: &Method, api: &mut Api) {
        if !HTTP_METHODS.contains(&method.http_method.as_str()) {
            let what = format!("the method {}", text::line(&method.http_method, 40));
            api.unsupported.push(Unsupported::unusable(id, what));
        }
        let plain = self.plain(id, resource, method, api);
        let media = format!("{id}.media");
        let simple = method
            .media_upload
            .as_ref()
            .and_then(|upload| Some((upload, upload.protocols.simple.as_ref()?)));
        if let Some((upload, simple)) = simple {
            let whole = method.request.is_none();
            let id = if whole { id } else { &media };
            api.operations.push(self.upload(id, &plain, upload, simple));
            if whole {
                return;
            }
        }
        if method.supports_media_download {
            // Without a response schema the method returns nothing but the bytes.
            let whole = method.response.is_none();
            api.operations
                .push(self.download(if whole { id } else { &media }, &plain, method));
            if whole {
                return;
            }
        }
        api.operations.push(plain);
    }

    fn plain(&self, id: &str, resource: &str, method: &Method, api: &mut Api) -> Operation {
        let mut hints = hints(&method.http_method);
        let name = id.rsplit('.').next().unwrap_or(id);
        hints.destructive |=
            !hints.read_only && DESTRUCTIVE_VERBS.iter().any(|word| name.starts_with(word));
        let mut operation = Operation {
            id: id.to_owned(),
            method: method.http_method.clone(),
            path: format!(
                "/{}",
                method.path.trim_start_matches('/').replace("{+", "{")
            ),
            description: text::block(&method.description, 4000),
            tags: Some(resource.to_owned())
                .filter(|resource| !resource.is_empty())
                .into_iter()
                .collect(),
            hints,
            deprecated: method.deprecated,
            parameters: self.parameters(id, method, api),
            body: self.body(method),
            ..Operation::default()
        };
        operation.scopes = scopes::chosen(&method.scopes, operation.hints.read_only, &self.scopes)
            .into_iter()
            .collect();
        operation.answer.schema = method
            .response
            .as_ref()
            .map(|response| schema::reference(&response.name));
        let listed = resource.rsplit('.').next().unwrap_or_default();
        operation.pages = pages::detect(&operation, listed, &api.schemas);
        operation
    }

    /// Returns the body of a method, or `None` if the body is empty.
    fn body(&self, method: &Method) -> Option<Body> {
        let name = method.request.as_ref()?.name.as_str();
        let whole = self.document.schemas.get(name)?;
        let members = whole.get("properties").and_then(Value::as_object);
        let open = whole.get("additionalProperties").is_some() || whole["type"] != "object";
        if !open && members.is_none_or(Map::is_empty) {
            return None;
        }
        let required: Vec<&String> = members
            .into_iter()
            .flatten()
            .filter(|(_, member)| is_required(member, method, name))
            .map(|(member, _)| member)
            .collect();
        let mut schema = schema::reference(name);
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        Some(Body {
            media: Media::Json { media_type: None },
            schema,
            required: true,
            defaults: [].into(),
        })
    }

    fn parameters(&self, id: &str, method: &Method, api: &mut Api) -> Vec<Parameter> {
        let mut all: Vec<(&String, &document::Parameter)> = method.parameters.iter().collect();
        all.sort_by_key(|(name, _)| {
            method
                .parameter_order
                .iter()
                .position(|it| it == *name)
                .unwrap_or(usize::MAX)
        });
        let mut made = Vec::new();
        for (name, about) in all {
            if about.deprecated && !about.required && about.location != "path" {
                api.unsupported.push(Unsupported::part(
                    id,
                    format!("`{}` is deprecated", text::line(name, 80)),
                ));
                continue;
            }
            made.push(parameter(name, about, &method.path));
        }
        let own = made.iter().any(|parameter| parameter.name == "fields");
        if let Some(fields) = self.document.parameters.get("fields").filter(|_| !own) {
            let mut fields = parameter("fields", fields, &method.path);
            fields.schema = json!({ "type": "string", "description": FIELDS_PARAMETER });
            made.push(fields);
        }
        made
    }

    /// Builds the operation that uploads the bytes of a file, with its description if the method
    /// accepts one.
    fn upload(
        &self,
        id: &str,
        plain: &Operation,
        upload: &MediaUpload,
        simple: &Simple,
    ) -> Operation {
        let media = file(Some(&takes(upload)));
        let mut operation = with_id(id, plain, &format!("Uploads a file. {}", plain.description));
        operation.server = Some(server(root_url(self.document)));
        operation.path = format!(
            "/{}",
            simple.path.trim_start_matches('/').replace("{+", "{")
        );
        let described = plain.body.clone().filter(|_| simple.multipart);
        let kind = if described.is_some() {
            "multipart"
        } else {
            "media"
        };
        operation.parameters.push(fixed("uploadType", kind));
        operation.body = Some(match described {
            Some(body) => Body {
                media: Media::Related { file: media },
                ..body
            },
            None => Body {
                media: Media::File { media_type: None },
                schema: media,
                required: true,
                defaults: [].into(),
            },
        });
        operation
    }

    fn download(&self, id: &str, plain: &Operation, method: &Method) -> Operation {
        let about = if plain.id == id {
            String::new()
        } else {
            "Downloads the content as a file. ".to_owned()
        };
        let mut operation = with_id(id, plain, &format!("{about}{}", plain.description));
        operation
            .parameters
            .retain(|parameter| parameter.name != "fields");
        operation.parameters.push(fixed("alt", "media"));
        operation.answer = Answer {
            file: true,
            ..Answer::default()
        };
        operation.pages = None;
        if method.use_media_download_service {
            let path = self.document.service_path.trim_matches('/');
            operation.server = Some(server(&format!(
                "{}/download/{path}",
                root_url(self.document)
            )));
        }
        operation
    }
}

fn with_id(id: &str, plain: &Operation, description: &str) -> Operation {
    Operation {
        id: id.to_owned(),
        description: description.trim().to_owned(),
        ..plain.clone()
    }
}

fn parameter(name: &str, about: &document::Parameter, path: &str) -> Parameter {
    let place = if about.location == "path" {
        ParameterIn::Path
    } else {
        ParameterIn::Query
    };
    let list = about.schema.get("type").and_then(Value::as_str) == Some("object");
    Parameter {
        name: name.to_owned(),
        place,
        style: match place {
            _ if list => Style::Json,
            ParameterIn::Path => Style::Simple,
            _ => Style::Form,
        },
        explode: about.repeated,
        // `{+name}` is a name of several segments that keeps its `/` (RFC 6570, 3.2.3).
        segments: path.contains(&format!("{{+{name}}}")),
        required: about.required || place == ParameterIn::Path,
        schema: schema::parameter(about),
        default: None,
        hidden: false,
    }
}

/// Returns a parameter with a fixed value.
fn fixed(name: &str, value: &str) -> Parameter {
    Parameter {
        name: name.to_owned(),
        place: ParameterIn::Query,
        style: Style::Form,
        explode: false,
        segments: false,
        required: false,
        schema: json!({ "type": "string" }),
        default: Some(value.into()),
        hidden: true,
    }
}

/// Returns true if a method requires a property of its body: it is annotated so, or its description
/// starts with `Required.`. A change of a resource requires only the changed properties, so the
/// description counts only for methods that create a resource or take a request message.
fn is_required(member: &Value, method: &Method, schema: &str) -> bool {
    let annotated = member["annotations"]["required"]
        .as_array()
        .into_iter()
        .flatten();
    let said = member["description"]
        .as_str()
        .is_some_and(|words| words.starts_with("Required."));
    let makes = method.id.ends_with(".create") || method.id.ends_with(".insert");
    let asks = schema.ends_with("Request");
    annotated.into_iter().any(|id| id == &method.id)
        || said && method.http_method == "POST" && (makes || asks)
}

fn takes(upload: &MediaUpload) -> String {
    let types: Vec<&str> = upload
        .accept
        .iter()
        .map(String::as_str)
        .filter(|kind| *kind != "*/*")
        .collect();
    let kinds = if types.is_empty() {
        String::new()
    } else {
        format!(" Media types: {}.", types.join(", "))
    };
    let size = if upload.max_size.is_empty() {
        String::new()
    } else {
        format!(" At most {}.", upload.max_size)
    };
    text::block(&format!("The content.{kinds}{size}"), 500)
}
