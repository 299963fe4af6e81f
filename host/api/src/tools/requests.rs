//! Requests of the catalog of tools.

use std::collections::HashMap;

use app::{
    Result,
    catalog::{VersionSelector, is_version},
};
use http::{errors, members::present};
use serde::Deserialize;
use utoipa::IntoParams;

/// Filters of the list.
#[derive(Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Task for the tools, for example `post a message to a channel`, or words of their slugs, names and
    /// descriptions.
    pub query: Option<String>,
    /// The older spelling of `query`.
    #[deprecated]
    pub search: Option<String>,
    /// These tools; no other filter applies then.
    pub tool_slugs: Vec<String>,
    /// Of these toolkits.
    pub toolkit_slug: Vec<String>,
    /// Of the toolkits of these auth configs.
    pub auth_config_ids: Vec<String>,
    /// With at least one of these labels.
    pub tags: Vec<String>,
    /// That need at least one of these scopes.
    pub scopes: Vec<String>,
    /// With the label `important`, or without.
    #[serde(deserialize_with = "present")]
    pub important: Option<bool>,
    /// Deprecated ones too; `true` without it.
    #[serde(deserialize_with = "present")]
    pub include_deprecated: Option<bool>,
    /// A version or `latest` for every toolkit; or, written `toolkit_versions[slug]=version`, for
    /// each toolkit separately.
    #[param(value_type = Option<String>)]
    pub toolkit_versions: ToolkitVersions,
}

/// Version of a tool to read.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReadQuery {
    /// A version or `latest`; takes precedence over `toolkit_versions`.
    pub version: Option<String>,
    /// A version or `latest` for every toolkit; or, written `toolkit_versions[slug]=version`, for
    /// each toolkit separately.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    pub toolkit_versions: ToolkitVersions,
}

/// Versions by toolkit. The version for every toolkit has an empty key.
#[derive(Default, Deserialize)]
pub(crate) struct ToolkitVersions(HashMap<String, String>);

impl ToolkitVersions {
    /// Returns the versions that a body gives by toolkit.
    pub(crate) fn new(by_toolkit: HashMap<String, String>) -> Self {
        Self(by_toolkit)
    }

    /// Returns the selection of versions. Without a version for every toolkit, `default` is used.
    ///
    /// # Errors
    /// Returns an error if a version is neither `latest` nor dated.
    pub(crate) fn selector(mut self, default: &str) -> Result<VersionSelector> {
        if !self.0.values().all(|version| is_version(version)) {
            let problem = "toolkit_versions: must be `latest` or a version such as `20260101_00`";
            return Err(errors::invalid(problem));
        }
        let given = self.0.remove("");
        let by_toolkit = self
            .0
            .into_iter()
            .map(|(slug, version)| (slug.to_ascii_lowercase(), version));
        Ok(VersionSelector {
            default: given.unwrap_or_else(|| default.to_owned()),
            by_toolkit: by_toolkit.collect(),
        })
    }
}
