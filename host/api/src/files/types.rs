//! Requests and views of files.

use std::collections::BTreeMap;

use app::{
    Record,
    files::{File, Upload, UploadRequest},
};
use http::members::present;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Filters of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// For this toolkit, or made by it.
    #[serde(default, deserialize_with = "present")]
    pub toolkit_slug: Option<String>,
    /// For this tool, or made by it.
    #[serde(default, deserialize_with = "present")]
    pub tool_slug: Option<String>,
}

/// Properties of a file to upload.
#[derive(Deserialize, ToSchema)]
#[schema(as = RequestUpload)]
pub(crate) struct UploadBody {
    toolkit_slug: String,
    tool_slug: String,
    /// A name, not a path.
    filename: String,
    mimetype: String,
    /// Digest of the bytes, as 32 hexadecimal digits.
    md5: String,
}

impl From<UploadBody> for UploadRequest {
    fn from(body: UploadBody) -> Self {
        Self {
            toolkit: body.toolkit_slug,
            tool: body.tool_slug,
            name: body.filename,
            media_type: body.mimetype,
            md5: body.md5,
        }
    }
}

view! {
    /// A file.
    #[schema(as = File)]
    pub(crate) struct View from record: Record<File> {
        toolkit_slug: String = record.body.toolkit,
        tool_slug: String = record.body.tool,
        filename: String = record.body.name,
        mimetype: String = record.body.media_type,
        md5: String = record.body.md5,
    }
}

view! {
    /// Link to upload a file, and the key that names the file in arguments.
    #[schema(as = Upload)]
    pub(crate) struct UploadView from upload: Upload where {
        let id = upload.id.to_string();
        let existing_url = upload.existing.map(|existing| existing.url);
        let headers: BTreeMap<_, _> = upload.put.headers.into_iter().collect();
    } {
        id: String = id.clone(),
        /// The value for `s3key` in arguments.
        key: String = id,
        r#type: UploadKind = match existing_url {
            Some(_) => UploadKind::Existing,
            None => UploadKind::New,
        },
        /// Link to which the bytes are sent. Clients read it regardless of the type.
        new_presigned_url: String = upload.put.url.clone(),
        #[serde(rename = "newPresignedUrl")] new_presigned_url_older: String = upload.put.url,
        /// Link to the file, if it exists already.
        existing_url?: Option<String> = existing_url.clone(),
        #[serde(rename = "existingUrl", skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        existing_url_older: Option<String> = existing_url,
        metadata: UploadMetadata = UploadMetadata { storage_backend: "s3" },
        /// Headers that the PUT request must have, if the bucket itself receives it.
        headers?: Option<BTreeMap<String, String>> = (!headers.is_empty()).then_some(headers),
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum UploadKind {
    New,
    /// A file with the same content exists already.
    Existing,
}

#[derive(Serialize, ToSchema)]
struct UploadMetadata {
    /// Always `s3`: the client uploads with a plain PUT request.
    storage_backend: &'static str,
}
