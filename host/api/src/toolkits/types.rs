//! Requests of toolkits, and the view of their lists.

use app::{
    catalog::{AuthMode, Release, Toolkit, ToolkitKind},
    core::clock::iso,
};
use http::members::present;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{logo_url, schemes::modes};

/// Filters and order of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Of a category, by id or name.
    #[serde(default, deserialize_with = "present")]
    pub category: Option<String>,
    /// Older spelling of `type`.
    #[serde(default, deserialize_with = "present")]
    #[deprecated]
    #[param(inline)]
    pub managed_by: Option<ManagedBy>,
    /// Of the installation, of a project, or both.
    #[serde(default, deserialize_with = "present")]
    #[param(inline)]
    pub r#type: Option<Publisher>,
    /// Most used first, or by name.
    #[param(inline)]
    pub sort_by: Option<Order>,
    /// Deprecated ones too; without it they are left out.
    #[serde(default, deserialize_with = "present")]
    pub include_deprecated: Option<bool>,
    /// Part of slug, name or description.
    pub search: Option<String>,
}

mirror! {
    /// Publisher of a toolkit, as older clients spell it.
    pub(crate) enum ManagedBy of ToolkitKind {
        #[serde(rename = "service")]
        Native,
        #[serde(rename = "all")]
        Any,
        #[serde(rename = "project")]
        Custom,
    }
}

mirror! {
    /// Publisher of a toolkit.
    #[serde(rename_all = "lowercase")]
    pub(crate) enum Publisher of ToolkitKind {
        Native,
        #[serde(rename = "all")]
        Any,
        Custom,
    }
}

/// Order of a list.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Order {
    Usage,
    Alphabetically,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ListToolkits)]
pub(crate) struct ListBody {
    pub toolkits: Option<Vec<String>>,
    pub category: Option<String>,
    pub managed_by: Option<String>,
    pub sort_by: Option<String>,
    pub limit: Option<f64>,
    pub cursor: Option<String>,
}

/// Selection of a version.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReadQuery {
    /// A version or `latest`, which is the default.
    pub version: Option<String>,
}

view! {
    /// A toolkit in its newest version.
    #[schema(as = Toolkit)]
    pub(crate) struct View from (toolkit: &Toolkit, managed: bool) where {
        let release = toolkit.current();
        let managed = managed && release.scheme(AuthMode::Oauth2).is_some();
    } {
        slug: String = toolkit.slug.to_string(),
        name: String = release.name.clone(),
        auth_schemes: Vec<&'static str> =
            modes(release).into_iter().map(AuthMode::as_str).collect(),
        service_managed_auth_schemes: Vec<&'static str> = if managed {
            vec![AuthMode::Oauth2.as_str()]
        } else {
            Vec::new()
        },
        is_local_toolkit: bool = false,
        /// True if its tools run without an account.
        no_auth: bool = release.no_auth(),
        deprecated: DeprecatedView = DeprecatedView { toolkit_id: toolkit.slug.to_string() },
        meta: Meta = Meta::new(toolkit, release),
        r#type: &'static str = "native",
        /// Always `active`, for clients that filter by it.
        status: &'static str = "active",
        auth_guide_url!: Option<String> = None,
        access: &'static str = "all",
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = ToolkitId)]
struct DeprecatedView {
    #[serde(rename = "toolkitId")]
    toolkit_id: String,
}

view! {
    #[schema(as = ToolkitMeta)]
    pub(super) struct Meta from (toolkit: &Toolkit, release: &Release) where {
        let categories = release.categories.iter();
    } {
        #[schema(format = DateTime)] pub created_at: String = iso(toolkit.created_at()),
        #[schema(format = DateTime)] pub updated_at: String = iso(toolkit.updated_at()),
        pub description: String = release.description.clone(),
        pub logo: String = logo_url(release),
        pub app_url!: Option<String> = None,
        pub categories: Vec<CategoryView> = categories.map(|id| CategoryView::new(id)).collect(),
        pub triggers_count: u64 = release.triggers.len() as u64,
        pub tools_count: u64 = release.tools.len() as u64,
        pub version: String = release.version.as_str().to_owned(),
    }
}

view! {
    #[schema(as = Category)]
    pub(crate) struct CategoryView from (id: &str) {
        pub id: String = id.to_owned(),
        pub name: String = category_name(id),
    }
}

/// Returns the display name of a category: `developer-tools` becomes `Developer tools`.
fn category_name(id: &str) -> String {
    let mut letters = id
        .chars()
        .map(|c| if c == '-' || c == '_' { ' ' } else { c });
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_are_named_for_people() {
        assert_eq!(category_name("developer-tools"), "Developer tools");
        assert_eq!(category_name(""), "");
    }
}
