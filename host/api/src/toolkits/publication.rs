//! Publication of toolkits: their versions as publishers see them.

use app::{
    catalog::{self, Release, Terms},
    core::clock::iso,
};
use axum::http::HeaderMap;
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{
    ApiResult, IN_TABLE, Json, Listed, OrganizationKey, Page, Path, Query, body::ComponentBytes,
    errors, members::present, reply::CreatedOrExisting,
};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use utoipa::{IntoParams, ToSchema};

/// Header of a publication: base64 of the component's minisign file.
pub const SIGNATURE_HEADER: &str = "x-toolkit-signature";

view! {
    /// A published version.
    #[schema(as = Published)]
    pub struct PublishedView from release: &Release {
        slug: String = release.slug.to_string(),
        name: String = release.name.clone(),
        version: String = release.version.as_str().to_owned(),
        /// Digest of the component: `sha256:` and hexadecimal digits.
        digest: String = format!("sha256:{}", release.digest),
        /// Size of the component, in bytes.
        size: u64 = release.size,
        /// The key that signed the component, if it is signed.
        signed_by!: Option<String> = release.signed_by.clone(),
        tools_count: u64 = release.tools.len() as u64,
        triggers_count: u64 = release.triggers.len() as u64,
        #[schema(format = DateTime)] created_at: String = iso(release.published_at),
        is_deprecated: bool = release.deprecated_at.is_some(),
        deprecated_at!: Option<String> = release.deprecated_at.map(iso),
    }
}

/// A published version with its manifest.
#[derive(Serialize, ToSchema)]
#[schema(as = PublishedWithManifest)]
pub(crate) struct ManifestView {
    #[serde(flatten)]
    published: PublishedView,
    /// The manifest as it was published.
    #[schema(value_type = Map<String, Value>)]
    manifest: Box<RawValue>,
}

/// Lists every version of every toolkit, for the operator.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn published(
    key: OrganizationKey,
    page: Page,
) -> ApiResult<Json<Listed<PublishedView>>> {
    let snapshot = key.app().catalog.snapshot();
    let (found, total) = page.cut(snapshot.releases().collect());
    let items = found
        .into_iter()
        .map(|release| PublishedView::from(&**release))
        .collect();
    Ok(Json(Listed::counted(items, &page, total)))
}

/// Reads a version with its manifest, for publishers.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read_version(
    key: OrganizationKey,
    Path((slug, version)): Path<(String, String)>,
) -> ApiResult<Json<ManifestView>> {
    let release = key.app().catalog.release(&slug, &version)?;
    let manifest = catalog::manifest_of(key.app(), &release.slug, release.version.as_str()).await?;
    // As raw JSON, its members keep their names.
    let manifest = to_raw_value(&manifest)
        .map_err(|cause| errors::internal(format!("cannot serialize the manifest: {cause}")))?;
    Ok(Json(ManifestView {
        published: PublishedView::from(&*release),
        manifest,
    }))
}

/// Terms of a publication.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PublishQuery {
    /// Publishes the version even if it breaks callers of an earlier version of the same day.
    #[serde(default, deserialize_with = "present")]
    breaking: Option<bool>,
}

/// Publishes a component under a version: 201, or 200 if it was published before.
#[utoipa::path(
    put, path = IN_TABLE,
    params(("x-toolkit-signature" = Option<String>, Header, description = "Base64 of the component's minisign file")),
    responses(
        (status = 403, description = "The component is not signed by a trusted key, which the server requires"),
        (status = 409, description = "Another component is published under the version"),
        (status = 422, description = "The component exceeds a limit, or breaks callers of an earlier version of the same day"),
    ),
)]
pub(crate) async fn publish(
    key: OrganizationKey,
    Path((slug, version)): Path<(String, String)>,
    Query(query): Query<PublishQuery>,
    headers: HeaderMap,
    ComponentBytes(component): ComponentBytes,
) -> ApiResult<CreatedOrExisting<PublishedView>> {
    let signature = signature(&headers)?;
    let terms = Terms {
        signature: signature.as_deref(),
        breaking: query.breaking.unwrap_or(false),
    };
    let slug = slug.to_ascii_lowercase();
    let published = catalog::publish(key.app(), &slug, &version, component, terms).await?;
    let view = (&*published.release).into();
    Ok(CreatedOrExisting(published.new, view))
}

/// Reads the signature header: a minisign file, in base64 because it has several lines.
fn signature(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let Some(value) = headers.get(SIGNATURE_HEADER) else {
        return Ok(None);
    };
    let text = STANDARD
        .decode(value.as_bytes())
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(Some).ok_or_else(|| {
        errors::signature_invalid(format!("`{SIGNATURE_HEADER}` is not base64 of text")).into()
    })
}

/// Change of a deprecation.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeprecationQuery {
    /// Ends the deprecation of the version instead.
    #[serde(default, deserialize_with = "present")]
    undo: Option<bool>,
}

/// Deprecates a version: it is then used only if it is named exactly.
#[utoipa::path(delete, path = IN_TABLE)]
pub(crate) async fn deprecate(
    key: OrganizationKey,
    Path((slug, version)): Path<(String, String)>,
    Query(query): Query<DeprecationQuery>,
) -> ApiResult<Json<PublishedView>> {
    let is_deprecated = !query.undo.unwrap_or(false);
    let release = catalog::set_deprecated(key.app(), &slug, &version, is_deprecated).await?;
    Ok(Json(PublishedView::from(&*release)))
}
