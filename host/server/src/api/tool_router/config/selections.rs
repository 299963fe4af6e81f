//! Selection of toolkits, tools and tags in the configuration of a session.

use std::collections::BTreeMap;

use app::agents::{Config, Filter, Tags, ToolFilter};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::{ApiResult, errors};

view! {
    /// Selection of toolkits: those to enable, or those to disable.
    // An unknown member is refused, because a misspelled one would permit everything.
    #[derive(Debug, Clone, Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[schema(as = SessionToolkitsRequest)]
    pub(crate) struct Selection {
        pub(super) enable?: Option<Vec<String>>,
        pub(super) disable?: Option<Vec<String>>,
        /// Toolkits whose calls the user must approve.
        pub(super) require_approval?: Option<Vec<String>>,
    }
}

view! {
    /// Selection of the tools of a toolkit: those to enable, those to disable, or by tags.
    #[derive(Debug, Clone, Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[schema(as = SessionToolsFilterRequest)]
    pub(crate) struct ToolSelection {
        pub(super) enable?: Option<Vec<String>>,
        pub(super) disable?: Option<Vec<String>>,
        pub(super) tags?: Option<TagsBody>,
        /// Tools whose calls the user must approve.
        pub(super) require_approval?: Option<Vec<String>>,
    }
}

/// Tags that tools must have; a list, or those to enable and those to disable.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = SessionTagsRequest)]
pub(crate) enum TagsBody {
    List(Vec<String>),
    Selection(TagSelection),
}

#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SessionTagSelection)]
pub(crate) struct TagSelection {
    /// A tool needs at least one of them.
    #[serde(default)]
    enable: Vec<String>,
    /// A tool may have none of them.
    #[serde(default)]
    disable: Vec<String>,
    /// Calls of tools with one of them need the approval of the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    require_approval: Vec<String>,
}

impl Selection {
    /// Returns the filter that the request asks for.
    pub(super) fn into_filter(self) -> ApiResult<Option<Filter>> {
        match (self.enable, self.disable) {
            (None, None) => Ok(None),
            (Some(enable), None) => Ok(Some(Filter::Enable(enable))),
            (None, Some(disable)) => Ok(Some(Filter::Disable(disable))),
            (Some(_), Some(_)) => Err(errors::session_invalid(
                "toolkits: cannot have both `enable` and `disable`",
            )
            .into()),
        }
    }

    /// Returns the selection of a configuration, if it has one.
    pub(crate) fn from_config(config: &Config) -> Option<Self> {
        let (enable, disable) = match &config.toolkits {
            Some(Filter::Enable(slugs)) => (Some(slugs.clone()), None),
            Some(Filter::Disable(slugs)) => (None, Some(slugs.clone())),
            None => (None, None),
        };
        let approval = &config.approval_toolkits;
        let require_approval = (!approval.is_empty()).then(|| approval.clone());
        let is_selected = config.toolkits.is_some() || require_approval.is_some();
        is_selected.then_some(Self {
            enable,
            disable,
            require_approval,
        })
    }
}

/// Returns the filters that the request asks for, by toolkit.
pub(super) fn into_filters(
    body: BTreeMap<String, ToolSelection>,
) -> ApiResult<BTreeMap<String, ToolFilter>> {
    let mut filters = BTreeMap::new();
    for (toolkit, selection) in body {
        let filter = match (selection.enable, selection.disable, selection.tags) {
            (None, None, None) => continue,
            (Some(enable), None, None) => ToolFilter::Enable(enable),
            (None, Some(disable), None) => ToolFilter::Disable(disable),
            (None, None, Some(tags)) if tags.approval().is_empty() => {
                ToolFilter::Tags(tags.into_tags())
            }
            (None, None, Some(_)) => {
                let problem = "tags.require_approval: name the tools in `require_approval`";
                return Err(errors::session_invalid(format!("tools.{toolkit}.{problem}")).into());
            }
            _ => {
                let problem = "must have one of `enable`, `disable` and `tags`";
                return Err(errors::session_invalid(format!("tools.{toolkit}: {problem}")).into());
            }
        };
        filters.insert(toolkit, filter);
    }
    Ok(filters)
}

impl ToolSelection {
    /// Returns the selections of a configuration, by toolkit.
    pub(crate) fn from_config(config: &Config) -> BTreeMap<String, Self> {
        let mut selections = BTreeMap::<_, Self>::new();
        for (toolkit, filter) in &config.tools {
            let selection = selections.entry(toolkit.clone()).or_default();
            match filter {
                ToolFilter::Enable(slugs) => selection.enable = Some(slugs.clone()),
                ToolFilter::Disable(slugs) => selection.disable = Some(slugs.clone()),
                ToolFilter::Tags(tags) => selection.tags = Some(TagsBody::from_tags(tags, &[])),
            }
        }
        for (toolkit, tools) in &config.approval_tools {
            let selection = selections.entry(toolkit.clone()).or_default();
            selection.require_approval = Some(tools.clone());
        }
        selections
    }
}

impl TagsBody {
    /// Returns the tags of tools whose calls need approval.
    pub(super) fn approval(&self) -> Vec<String> {
        match self {
            Self::List(_) => Vec::new(),
            Self::Selection(selection) => selection.require_approval.clone(),
        }
    }

    pub(super) fn into_tags(self) -> Tags {
        match self {
            Self::List(enable) => Tags {
                enable,
                disable: Vec::new(),
            },
            Self::Selection(selection) => Tags {
                enable: selection.enable,
                disable: selection.disable,
            },
        }
    }

    /// Returns the tags of a configuration.
    pub(crate) fn from_tags(tags: &Tags, approval: &[String]) -> Self {
        Self::Selection(TagSelection {
            enable: tags.enable.clone(),
            disable: tags.disable.clone(),
            require_approval: approval.to_vec(),
        })
    }
}
