//! Requests of toolkits, and the view of their lists.

use std::sync::Arc;

use app::{
    catalog::{AuthMode, Release, Toolkit, ToolkitKind},
    core::clock::iso,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::schemes::modes;

/// Filters and order of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Of a category, by id or name.
    pub category: Option<String>,
    /// Older spelling of `type`.
    #[deprecated]
    #[param(inline)]
    pub managed_by: Option<ManagedBy>,
    /// Of the installation, of a project, or both.
    #[param(inline)]
    pub r#type: Option<Publisher>,
    /// Most used first, or by name.
    #[param(inline)]
    pub sort_by: Option<Order>,
    /// Deprecated ones too; without it they are left out.
    pub include_deprecated: Option<bool>,
    /// Part of slug, name or description.
    pub search: Option<String>,
}

/// Publisher of a toolkit, as older clients spell it.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ManagedBy {
    Service,
    All,
    Project,
}

impl From<ManagedBy> for ToolkitKind {
    fn from(managed_by: ManagedBy) -> Self {
        match managed_by {
            ManagedBy::Service => Self::Native,
            ManagedBy::All => Self::Any,
            ManagedBy::Project => Self::Custom,
        }
    }
}

/// Publisher of a toolkit.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Publisher {
    Native,
    All,
    Custom,
}

impl From<Publisher> for ToolkitKind {
    fn from(publisher: Publisher) -> Self {
        match publisher {
            Publisher::Native => Self::Native,
            Publisher::All => Self::Any,
            Publisher::Custom => Self::Custom,
        }
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
#[schema(as = ListToolkits)]
pub(crate) struct ListBody {
    #[serde(default)]
    pub toolkits: Option<Vec<String>>,
    #[serde(default)]
    pub category: Option<String>,
    #[serde(default)]
    pub managed_by: Option<String>,
    #[serde(default)]
    pub sort_by: Option<String>,
    #[serde(default)]
    pub limit: Option<f64>,
    #[serde(default)]
    pub cursor: Option<String>,
}

/// Selection of a version.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReadQuery {
    /// A version or `latest`, which is the default.
    pub version: Option<String>,
}

/// A toolkit in its newest version.
#[derive(Serialize, ToSchema)]
#[schema(as = Toolkit)]
pub(crate) struct View {
    #[schema(value_type = String)]
    slug: Arc<str>,
    name: String,
    auth_schemes: Vec<&'static str>,
    service_managed_auth_schemes: Vec<&'static str>,
    is_local_toolkit: bool,
    /// True if its tools run without an account.
    no_auth: bool,
    deprecated: DeprecatedView,
    meta: Meta,
    r#type: &'static str,
    #[schema(required)]
    auth_guide_url: Option<String>,
    access: &'static str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ToolkitId)]
struct DeprecatedView {
    #[serde(rename = "toolkitId")]
    #[schema(value_type = String)]
    toolkit_id: Arc<str>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ToolkitMeta)]
pub(super) struct Meta {
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub updated_at: String,
    pub description: String,
    pub logo: String,
    #[schema(required)]
    pub app_url: Option<String>,
    pub categories: Vec<CategoryView>,
    pub triggers_count: u64,
    pub tools_count: u64,
    pub version: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Category)]
pub(crate) struct CategoryView {
    pub id: String,
    pub name: String,
}

impl View {
    /// Returns the view of a toolkit. `managed` is true if the operator has an OAuth app at its
    /// provider.
    pub(crate) fn new(toolkit: &Toolkit, managed: bool) -> Self {
        let release = toolkit.current();
        let managed = managed && release.scheme(AuthMode::Oauth2).is_some();
        Self {
            slug: toolkit.slug.clone(),
            name: release.name.clone(),
            auth_schemes: modes(release).into_iter().map(AuthMode::as_str).collect(),
            service_managed_auth_schemes: if managed {
                vec![AuthMode::Oauth2.as_str()]
            } else {
                Vec::new()
            },
            is_local_toolkit: false,
            no_auth: release.no_auth(),
            deprecated: DeprecatedView {
                toolkit_id: toolkit.slug.clone(),
            },
            meta: Meta::new(toolkit, release),
            r#type: "native",
            auth_guide_url: None,
            access: "all",
        }
    }
}

impl Meta {
    /// Returns the metadata of a version.
    pub(super) fn new(toolkit: &Toolkit, release: &Release) -> Self {
        let categories = release.categories.iter();
        Self {
            created_at: iso(toolkit.created_at()),
            updated_at: iso(toolkit.updated_at()),
            description: release.description.clone(),
            logo: release.logo.clone(),
            app_url: None,
            categories: categories.map(|id| CategoryView::new(id)).collect(),
            triggers_count: release.triggers.len() as u64,
            tools_count: release.tools.len() as u64,
            version: release.version.as_str().to_owned(),
        }
    }
}

impl CategoryView {
    pub(crate) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: category_name(id),
        }
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
