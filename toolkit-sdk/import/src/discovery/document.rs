//! The parts of a document that are read. Members of other names are left alone.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// `discovery#restDescription`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Document {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) root_url: String,
    pub(super) service_path: String,
    /// Of every method.
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
    /// `calendar.events.insert`
    pub(super) id: String,
    pub(super) path: String,
    pub(super) http_method: String,
    pub(super) description: String,
    pub(super) deprecated: bool,
    pub(super) parameters: BTreeMap<String, Parameter>,
    /// The order in which people would give them.
    pub(super) parameter_order: Vec<String>,
    pub(super) request: Option<Reference>,
    pub(super) response: Option<Reference>,
    /// Any one of them suffices.
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
    /// Whether the description of a file can go along with it.
    pub(super) multipart: bool,
    /// Below the root, not the service.
    pub(super) path: String,
}

/// A parameter: where it goes, and what else is said in the words of a schema.
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
