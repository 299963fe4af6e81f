//! View of one version of a toolkit.

use std::collections::BTreeSet;

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

view! {
    /// A toolkit in one version.
    #[schema(as = ToolkitDetail)]
    pub(crate) struct DetailView from (
        toolkit: &Toolkit,
        release: &Release,
        app: Option<&OauthApp>,
    ) where {
        let managed = app.and_then(|app| ManagedAuth::new(release, app));
        let mut auth = release.auth.iter();
    } {
        slug: String = toolkit.slug.to_string(),
        name: String = release.name.clone(),
        /// False if every version is deprecated.
        enabled: bool = !toolkit.is_deprecated(),
        service_managed_auth_schemes: Vec<&'static str> =
            managed.iter().map(|managed| managed.mode).collect(),
        service_managed_auth: Vec<ManagedAuth> = managed.into_iter().collect(),
        is_local_toolkit: bool = false,
        auth_config_details: Vec<SchemeView> = SchemeView::all(release),
        /// Base URL of its accounts, if it is the same for all of them.
        base_url?: Option<String> = auth.find_map(|scheme| scheme.base_url.clone()),
        meta: DetailMeta = DetailMeta::new(toolkit, release),
        deprecated: DeprecatedDetail = toolkit.into(),
        r#type: &'static str = "native",
        /// Always `active`, for clients that filter by it.
        status: &'static str = "active",
        auth_guide_url!: Option<String> = None,
        access: &'static str = "all",
    }
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

view! {
    #[schema(as = ToolkitDetailMeta)]
    struct DetailMeta from (toolkit: &Toolkit, release: &Release) where {
        let meta = Meta::new(toolkit, release);
        let categories = meta.categories.into_iter();
        let versions = toolkit.versions().into_iter();
    } {
        #[schema(format = DateTime)] created_at: String = meta.created_at,
        #[schema(format = DateTime)] updated_at: String = meta.updated_at,
        description: String = meta.description,
        logo: String = meta.logo,
        app_url!: Option<String> = meta.app_url,
        categories: Vec<CategorySlug> = categories.map(CategorySlug::from).collect(),
        triggers_count: u64 = meta.triggers_count,
        tools_count: u64 = meta.tools_count,
        version: String = meta.version,
        available_versions: Vec<String> = versions.map(str::to_owned).collect(),
    }
}

view! {
    struct CategorySlug from category: CategoryView {
        slug: String = category.id,
        name: String = category.name,
    }
}

view! {
    #[serde(rename_all = "camelCase")]
    #[schema(as = ToolkitDeprecated)]
    struct DeprecatedDetail from toolkit: &Toolkit {
        toolkit_id: String = toolkit.slug.to_string(),
        raw_proxy_info_by_auth_schemes: Vec<Map<String, Value>> = Vec::new(),
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
