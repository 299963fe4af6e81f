//! The parts of a document that are read. Other members are ignored.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Document of kind `discovery#restDescription`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Document {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) root_url: String,
    pub(super) service_path: String,
    /// Parameters of every method.
    pub(super) parameters: BTreeMap<String, Parameter>,
    pub(super) auth: Auth,
    pub(super) schemas: BTreeMap<String, Value>,
    pub(super) methods: BTreeMap<String, Method>,
    pub(super) resources: BTreeMap<String, Resource>,
    pub(super) endpoints: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Auth {
    pub(super) oauth2: Scopes,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Scopes {
    pub(super) scopes: BTreeMap<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Resource {
    pub(super) methods: BTreeMap<String, Method>,
    pub(super) resources: BTreeMap<String, Resource>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Method {
    /// Identifier, for example `calendar.events.insert`.
    pub(super) id: String,
    pub(super) path: String,
    pub(super) http_method: String,
    pub(super) description: String,
    pub(super) deprecated: bool,
    pub(super) parameters: BTreeMap<String, Parameter>,
    /// Names of the parameters in their natural order.
    pub(super) parameter_order: Vec<String>,
    pub(super) request: Option<Reference>,
    pub(super) response: Option<Reference>,
    /// Scopes, any one of which suffices.
    pub(super) scopes: Vec<String>,
    pub(super) supports_media_download: bool,
    pub(super) use_media_download_service: bool,
    pub(super) media_upload: Option<MediaUpload>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Reference {
    #[serde(rename = "$ref")]
    pub(super) name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct MediaUpload {
    pub(super) accept: Vec<String>,
    pub(super) max_size: String,
    pub(super) protocols: Protocols,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Protocols {
    pub(super) simple: Option<Simple>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Simple {
    /// True if the description of a file can be sent along with it.
    pub(super) multipart: bool,
    /// Path below the root, not below the service.
    pub(super) path: String,
}

/// A parameter: its location, and further members in the form of a schema.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Parameter {
    pub(super) location: String,
    pub(super) required: bool,
    pub(super) repeated: bool,
    pub(super) deprecated: bool,
    #[serde(flatten)]
    pub(super) schema: Map<String, Value>,
}
