//! Schemas from types. The functions take the author's function only to learn its types. The macros
//! therefore never have to spell the types, and an unmet bound is reported at the author's own
//! type.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde_json::Value;

use super::UNSTAMPED_VERSION;
use crate::subscription::Subscribe;
use crate::{Polled, Received, Result, ToolError, schema};

/// Return type of a tool's function.
#[diagnostic::on_unimplemented(
    message = "a tool must return `Result<…>`, not `{Self}`",
    label = "write `Result<{Self}>`",
    note = "use `Result` of `toolkit_sdk::prelude`; its error is `ToolError`"
)]
pub trait Outcome {
    type Data;

    fn outcome(self) -> Result<Self::Data>;
}

impl<T> Outcome for Result<T, ToolError> {
    type Data = T;

    fn outcome(self) -> Result<T> {
        self
    }
}

/// Return type of a trigger's function.
#[diagnostic::on_unimplemented(
    message = "a trigger must return `Result<Polled<…>>` or `Result<Received<…>>`, not `{Self}`",
    label = "write `Result<Polled<Item, Cursor>>` or `Result<Received<Item>>`"
)]
pub trait Carries {
    type Payload;
}

impl<T, C> Carries for Result<Polled<T, C>> {
    type Payload = T;
}

impl<T> Carries for Result<Received<T>> {
    type Payload = T;
}

/// Returns the schema of a tool's argument.
pub fn input_schema<I: JsonSchema, R>(_: fn(I) -> R) -> Value {
    object(schema::of_input::<I>())
}

/// Returns the schema of a tool without arguments.
pub fn no_input_schema() -> Value {
    object(Value::Object(serde_json::Map::new()))
}

/// Returns the schema of a tool's output.
pub fn output_schema<I, R: Outcome>(_: fn(I) -> R) -> Value
where
    R::Data: JsonSchema,
{
    schema::of_output::<R::Data>()
}

/// Returns the schema of a trigger's configuration.
pub fn config_schema<C: JsonSchema, A, R>(_: fn(C, A) -> R) -> Value {
    object(schema::of_input::<C>())
}

/// Returns the schema of a trigger's events.
pub fn payload_schema<C, A, R: Carries>(_: fn(C, A) -> R) -> Value
where
    R::Payload: JsonSchema,
{
    schema::of_output::<R::Payload>()
}

/// Adds `type` and `properties` to an object schema that lacks them. An empty struct has a schema
/// without `properties`, but clients expect that keyword.
fn object(mut schema: Value) -> Value {
    if let Value::Object(object) = &mut schema {
        if !object.contains_key("type") && object.is_empty() {
            object.insert("type".to_owned(), "object".into());
        }
        if object.get("type").is_some_and(|kind| kind == "object")
            && !object.contains_key("properties")
        {
            object.insert(
                "properties".to_owned(),
                Value::Object(serde_json::Map::new()),
            );
        }
    }
    schema
}

/// Parses an example that the macro has already validated as JSON.
pub fn example(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or(Value::Null)
}

/// Parses the version that the author wrote, or returns the placeholder [`UNSTAMPED_VERSION`].
pub fn version(text: &str) -> manifest::Version {
    text.parse()
        .or_else(|_| UNSTAMPED_VERSION.parse())
        .expect("the version that stands for none is valid")
}

/// Parses the members of an OAuth 2.0 description other than its URLs, from JSON that the macro has
/// checked to be an object.
pub fn flow(json: &str) -> manifest::OAuth2 {
    let mut members: serde_json::Map<String, Value> =
        serde_json::from_str(json).unwrap_or_default();
    for name in ["authorize_url", "token_url"] {
        members.insert(name.to_owned(), Value::String(String::new()));
    }
    serde_json::from_value(Value::Object(members))
        .unwrap_or_else(|cause| panic!("`flow` cannot be read: {cause}"))
}

/// Parses the signing of requests, from JSON that the macro has checked to be an object.
pub fn sign(json: &str) -> manifest::Sign {
    serde_json::from_str(json).unwrap_or_else(|cause| panic!("`sign` cannot be read: {cause}"))
}

/// Parses the client certificate of connections, from JSON that the macro has checked to be an
/// object.
pub fn client_certificate(json: &str) -> manifest::ClientCertificate {
    serde_json::from_str(json)
        .unwrap_or_else(|cause| panic!("`client_certificate` cannot be read: {cause}"))
}

/// Parses the description of an `oauth1` scheme, from JSON that the macro has checked to be an
/// object.
pub fn oauth1(json: &str) -> manifest::OAuth1 {
    serde_json::from_str(json).unwrap_or_else(|cause| panic!("`flow` cannot be read: {cause}"))
}

/// Returns the declaration of subscribing.
pub fn subscribing<S: Subscribe>() -> manifest::Subscribing {
    manifest::Subscribing {
        secret: S::SECRET.to_owned(),
        pointer: S::SECRET_POINTER.to_owned(),
        requires: S::REQUIRES.iter().map(ToString::to_string).collect(),
    }
}

/// Encodes a PNG as a `data:` URL.
pub fn png(bytes: &[u8]) -> String {
    format!("data:image/png;base64,{}", STANDARD.encode(bytes))
}

/// Serializes the manifest as JSON, without `version` unless the author wrote one.
pub fn manifest_json(manifest: &manifest::Manifest) -> Vec<u8> {
    let mut json = serde_json::to_value(manifest).unwrap_or_default();
    if let Value::Object(members) = &mut json
        && manifest.version.as_str() == UNSTAMPED_VERSION
    {
        members.shift_remove("version");
    }
    json.to_string().into_bytes()
}
