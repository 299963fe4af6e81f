//! View of one version of a toolkit.

use std::{collections::BTreeSet, sync::Arc};

use app::{
    accounts::oauth_apps::OauthApp,
    catalog::{AuthMode, Release, Toolkit},
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    schemes::SchemeView,
    types::{CategoryView, Meta},
};

/// A toolkit in one version.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolkitDetail)]
pub(crate) struct DetailView {
    #[schema(value_type = String)]
    slug: Arc<str>,
    name: String,
    /// False if every version is deprecated.
    enabled: bool,
    service_managed_auth_schemes: Vec<&'static str>,
    service_managed_auth: Vec<ManagedAuth>,
    is_local_toolkit: bool,
    auth_config_details: Vec<SchemeView>,
    /// Base URL of its accounts, if it is the same for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    base_url: Option<String>,
    meta: DetailMeta,
    deprecated: DeprecatedDetail,
    r#type: &'static str,
    #[schema(required)]
    auth_guide_url: Option<String>,
    access: &'static str,
}

#[derive(Serialize, ToSchema)]
struct ManagedAuth {
    mode: &'static str,
    scopes: AvailableScopes,
}

#[derive(Serialize, ToSchema)]
struct AvailableScopes {
    available: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ToolkitDetailMeta)]
struct DetailMeta {
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

#[derive(Serialize, ToSchema)]
struct CategorySlug {
    slug: String,
    name: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ToolkitDeprecated)]
struct DeprecatedDetail {
    #[serde(rename = "toolkitId")]
    #[schema(value_type = String)]
    toolkit_id: Arc<str>,
    #[serde(rename = "rawProxyInfoByAuthSchemes")]
    raw_proxy_info_by_auth_schemes: Vec<Map<String, Value>>,
}

impl DetailView {
    /// Returns the view of a version. `app` is the operator's OAuth app at the provider.
    pub(crate) fn new(toolkit: &Toolkit, release: &Release, app: Option<&OauthApp>) -> Self {
        let managed = app.and_then(|app| ManagedAuth::new(release, app));
        let mut auth = release.auth.iter();
        Self {
            slug: toolkit.slug.clone(),
            name: release.name.clone(),
            enabled: !toolkit.is_deprecated(),
            service_managed_auth_schemes: managed.iter().map(|managed| managed.mode).collect(),
            service_managed_auth: managed.into_iter().collect(),
            is_local_toolkit: false,
            auth_config_details: SchemeView::all(release),
            base_url: auth.find_map(|scheme| scheme.base_url.clone()),
            meta: DetailMeta::new(toolkit, release),
            deprecated: DeprecatedDetail {
                toolkit_id: toolkit.slug.clone(),
                raw_proxy_info_by_auth_schemes: Vec::new(),
            },
            r#type: "native",
            auth_guide_url: None,
            access: "all",
        }
    }
}

impl ManagedAuth {
    fn new(release: &Release, app: &OauthApp) -> Option<Self> {
        let oauth2 = release.scheme(AuthMode::Oauth2)?.oauth2.as_ref()?;
        let available: BTreeSet<_> = oauth2.scopes.iter().chain(&app.scopes).collect();
        Some(Self {
            mode: AuthMode::Oauth2.as_str(),
            scopes: AvailableScopes {
                available: available.into_iter().cloned().collect(),
            },
        })
    }
}

impl DetailMeta {
    fn new(toolkit: &Toolkit, release: &Release) -> Self {
        let Meta {
            created_at,
            updated_at,
            description,
            logo,
            app_url,
            categories,
            triggers_count,
            tools_count,
            version,
        } = Meta::new(toolkit, release);
        let versions = toolkit.versions().into_iter();
        Self {
            created_at,
            updated_at,
            description,
            logo,
            app_url,
            categories: categories.into_iter().map(CategorySlug::from).collect(),
            triggers_count,
            tools_count,
            version,
            available_versions: versions.map(str::to_owned).collect(),
        }
    }
}

impl From<CategoryView> for CategorySlug {
    fn from(category: CategoryView) -> Self {
        Self {
            slug: category.id,
            name: category.name,
        }
    }
}
