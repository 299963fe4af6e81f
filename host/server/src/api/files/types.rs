//! Requests and views of files.

use std::collections::BTreeMap;

use app::files::{File, Upload, UploadRequest};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Filters of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// For this toolkit, or made by it.
    pub toolkit_slug: Option<String>,
    /// For this tool, or made by it.
    pub tool_slug: Option<String>,
}

/// Properties of a file that is to be uploaded.
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

/// A file.
#[derive(Serialize, ToSchema)]
#[schema(as = File)]
pub(crate) struct View {
    toolkit_slug: String,
    tool_slug: String,
    filename: String,
    mimetype: String,
    md5: String,
}

impl From<File> for View {
    fn from(file: File) -> Self {
        Self {
            toolkit_slug: file.toolkit,
            tool_slug: file.tool,
            filename: file.name,
            mimetype: file.media_type,
            md5: file.md5,
        }
    }
}

/// Link to upload a file, and the key that names the file in arguments.
#[derive(Serialize, ToSchema)]
#[schema(as = Upload)]
pub(crate) struct UploadView {
    id: String,
    /// The value for `s3key` in arguments.
    key: String,
    r#type: UploadKind,
    /// Link to which the bytes are sent. Clients read it regardless of the type.
    new_presigned_url: String,
    #[serde(rename = "newPresignedUrl")]
    new_presigned_url_older: String,
    /// Link to the file, if it exists already.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    existing_url: Option<String>,
    #[serde(rename = "existingUrl", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    existing_url_older: Option<String>,
    metadata: UploadMetadata,
    /// Headers that the PUT request must have, if the bucket itself receives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    headers: Option<BTreeMap<String, String>>,
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

impl From<Upload> for UploadView {
    fn from(upload: Upload) -> Self {
        let id = upload.id.to_string();
        let existing_url = upload.existing.map(|existing| existing.url);
        let headers: BTreeMap<_, _> = upload.put.headers.into_iter().collect();
        Self {
            id: id.clone(),
            key: id,
            r#type: match existing_url {
                Some(_) => UploadKind::Existing,
                None => UploadKind::New,
            },
            new_presigned_url: upload.put.url.clone(),
            new_presigned_url_older: upload.put.url,
            existing_url: existing_url.clone(),
            existing_url_older: existing_url,
            metadata: UploadMetadata {
                storage_backend: "s3",
            },
            headers: (!headers.is_empty()).then_some(headers),
        }
    }
}
