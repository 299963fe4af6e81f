//! Shapes of toolkits, their versions, and tools.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ManagedBy {
    Service,
    All,
    Project,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ToolkitType {
    Native,
    Custom,
    All,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ToolkitOrder {
    Usage,
    Alphabetically,
}

/// A toolkit in its newest version.
#[derive(ToSchema)]
pub(crate) struct Toolkit {
    slug: String,
    name: String,
    auth_schemes: Vec<String>,
    service_managed_auth_schemes: Vec<String>,
    is_local_toolkit: bool,
    /// True if its tools run without an account.
    no_auth: bool,
    deprecated: ToolkitId,
    meta: ToolkitMeta,
    r#type: String,
    #[schema(required)]
    auth_guide_url: Option<String>,
    access: String,
}

#[derive(ToSchema)]
struct ToolkitId {
    #[serde(rename = "toolkitId")]
    toolkit_id: String,
}

#[derive(ToSchema)]
struct ToolkitMeta {
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    description: String,
    logo: String,
    #[schema(required)]
    app_url: Option<String>,
    categories: Vec<Category>,
    triggers_count: u64,
    tools_count: u64,
    version: String,
}

#[derive(ToSchema)]
pub(crate) struct Category {
    id: String,
    name: String,
}

/// A toolkit in one version.
#[derive(ToSchema)]
pub(crate) struct ToolkitDetail {
    slug: String,
    name: String,
    /// False if every version is deprecated.
    enabled: bool,
    service_managed_auth_schemes: Vec<String>,
    service_managed_auth: Vec<ManagedAuth>,
    is_local_toolkit: bool,
    auth_config_details: Vec<SchemeDetail>,
    /// Base URL of its accounts, if it is the same for all of them.
    #[schema(nullable = false)]
    base_url: Option<String>,
    meta: ToolkitDetailMeta,
    deprecated: ToolkitDeprecated,
    r#type: String,
    #[schema(required)]
    auth_guide_url: Option<String>,
    access: String,
}

#[derive(ToSchema)]
struct ManagedAuth {
    mode: String,
    scopes: AvailableScopes,
}

#[derive(ToSchema)]
struct AvailableScopes {
    available: Vec<String>,
}

#[derive(ToSchema)]
struct ToolkitDetailMeta {
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    description: String,
    logo: String,
    #[schema(required)]
    app_url: Option<String>,
    categories: Vec<CategorySlug>,
    triggers_count: u64,
    tools_count: u64,
    version: String,
    available_versions: Vec<String>,
}

#[derive(ToSchema)]
struct CategorySlug {
    slug: String,
    name: String,
}

#[derive(ToSchema)]
struct ToolkitDeprecated {
    #[serde(rename = "toolkitId")]
    toolkit_id: String,
    #[serde(rename = "rawProxyInfoByAuthSchemes")]
    raw_proxy_info_by_auth_schemes: Vec<Map<String, Value>>,
}

/// An auth scheme: one way of connecting accounts.
#[derive(ToSchema)]
struct SchemeDetail {
    mode: String,
    name: String,
    fields: SchemeFields,
    #[schema(required)]
    auth_hint_url: Option<String>,
    /// Scopes requested for every connection.
    required_scopes: Vec<String>,
    /// Endpoints where users authorize; only with OAuth 2.0.
    #[schema(nullable = false)]
    deprecated_auth_provider_details: Option<ProviderDetails>,
    /// Location of the provider's API, if the scheme declares it.
    #[schema(nullable = false)]
    proxy: Option<SchemeProxy>,
}

#[derive(ToSchema)]
struct ProviderDetails {
    authorization_url: String,
    token_url: String,
}

#[derive(ToSchema)]
struct SchemeProxy {
    base_url: String,
}

#[derive(ToSchema)]
struct SchemeFields {
    auth_config_creation: FieldGroup,
    connected_account_initiation: FieldGroup,
}

#[derive(ToSchema)]
struct FieldGroup {
    required: Vec<Field>,
    optional: Vec<Field>,
}

/// A field of a form.
#[derive(ToSchema)]
struct Field {
    name: String,
    #[serde(rename = "displayName")]
    display_name: String,
    r#type: String,
    description: String,
    required: bool,
    #[schema(required)]
    default: Option<String>,
    legacy_template_name: String,
    is_secret: bool,
    user_visible: bool,
}

#[derive(ToSchema)]
pub(crate) struct Changelog {
    items: Vec<ToolkitChanges>,
}

#[derive(ToSchema)]
struct ToolkitChanges {
    slug: String,
    name: String,
    display_name: String,
    versions: Vec<VersionChanges>,
}

#[derive(ToSchema)]
struct VersionChanges {
    version: String,
    changelog: String,
}

/// A published version.
#[derive(ToSchema)]
pub(crate) struct Published {
    slug: String,
    name: String,
    version: String,
    /// Digest of the component: `sha256:` and hexadecimal digits.
    digest: String,
    /// Size of the component, in bytes.
    size: u64,
    /// The key that signed the component, if it is signed.
    #[schema(required)]
    signed_by: Option<String>,
    tools_count: u64,
    triggers_count: u64,
    #[schema(format = DateTime)]
    created_at: String,
    is_deprecated: bool,
    #[schema(required)]
    deprecated_at: Option<String>,
}

#[derive(ToSchema)]
pub(crate) struct PublishedWithManifest {
    #[serde(flatten)]
    published: Published,
    manifest: Map<String, Value>,
}

#[derive(ToSchema)]
pub(crate) struct GrantContext {
    auth_scheme: String,
    toolkit_version: String,
    /// Factors that scopes depend on besides the tools. Always empty.
    grant_context_dimensions: Vec<Map<String, Value>>,
    default_grant_context: Map<String, Value>,
}

#[derive(ToSchema)]
pub(crate) struct RecommendedScopes {
    auth_scheme: String,
    toolkit_version: String,
    grant_context: Map<String, Value>,
    scopes: ScopeChoices,
}

#[derive(ToSchema)]
struct ScopeChoices {
    least_privilege: Vec<String>,
    fewest: Vec<String>,
    conditional: Vec<Map<String, Value>>,
}
