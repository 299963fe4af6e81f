//! Selection of toolkits, tools and tags in the configuration of a session.

use std::{collections::BTreeMap, fmt};

use app::{
    Error,
    agents::{Filter, Tags, ToolFilter},
    core::truncate,
};
use http::errors;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{
        MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use utoipa::ToSchema;

view! {
    /// Selection of toolkits: those to enable, or those to disable.
    // An unknown field is refused, because a misspelled one would permit everything.
    #[derive(Debug, Clone, Default, Deserialize)]
    #[serde(deny_unknown_fields, expecting = "an object such as {\"enable\": [\"github\"]}")]
    #[schema(as = SessionToolkitsRequest)]
    pub(crate) struct Selection {
        enable?: Option<Vec<String>>,
        disable?: Option<Vec<String>>,
        /// Toolkits whose calls the user must approve.
        pub(super) require_approval?: Option<Vec<String>>,
    }
}

view! {
    /// Selection of the tools of a toolkit: those to enable, those to disable, or by tags.
    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields, expecting = "an object such as {\"enable\": [\"GITHUB_GET_ME\"]}")]
    #[schema(as = SessionToolsFilterRequest)]
    pub(crate) struct ToolSelection {
        enable?: Option<Vec<String>>,
        disable?: Option<Vec<String>>,
        pub(super) tags?: Option<TagsBody>,
        /// Tools whose calls the user must approve.
        pub(super) require_approval?: Option<Vec<String>>,
    }
}

/// Tags that tools must have; a list, or those to enable and those to disable.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = SessionTagsRequest)]
pub(crate) enum TagsBody {
    List(Vec<String>),
    Selection(TagSelection),
}

view! {
    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[schema(as = SessionTagSelection)]
    pub(crate) struct TagSelection {
        /// A tool needs at least one of them.
        enable?: Option<Vec<String>>,
        /// A tool may have none of them.
        disable?: Option<Vec<String>>,
        /// Calls of tools with one of them need the approval of the user.
        require_approval?: Option<Vec<String>>,
    }
}

/// Reads a list or an object as it is. An untagged enum would be read from a copy, which hides the
/// names of unknown members and the path to a wrong one.
impl<'de> Deserialize<'de> for TagsBody {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Tags;

        impl<'de> Visitor<'de> for Tags {
            type Value = TagsBody;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list such as [\"readOnlyHint\"], or an object")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<TagsBody, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(TagsBody::List)
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<TagsBody, A::Error> {
                let selection = TagSelection::deserialize(MapAccessDeserializer::new(members));
                selection.map(TagsBody::Selection)
            }
        }

        from.deserialize_any(Tags)
    }
}

impl Selection {
    /// Returns the filter that the request asks for.
    pub(super) fn into_filter(self) -> Result<Option<Filter>, Error> {
        match (self.enable, self.disable) {
            (None, None) => Ok(None),
            (Some(enable), None) => Ok(Some(Filter::Enable(enable))),
            (None, Some(disable)) => Ok(Some(Filter::Disable(disable))),
            (Some(_), Some(_)) => Err(errors::session_invalid(
                "toolkits: cannot have both `enable` and `disable`",
            )),
        }
    }
}

/// Returns the filters that the request asks for, by toolkit.
pub(super) fn into_filters(
    body: BTreeMap<String, ToolSelection>,
) -> Result<BTreeMap<String, ToolFilter>, Error> {
    let mut filters = BTreeMap::new();
    let mut problems = Vec::new();
    for (toolkit, selection) in body {
        let tags = selection.tags.and_then(TagsBody::into_tags);
        let filter = match (selection.enable, selection.disable, tags) {
            (None, None, None) => continue,
            (Some(enable), None, None) => ToolFilter::Enable(enable),
            (None, Some(disable), None) => ToolFilter::Disable(disable),
            (None, None, Some(tags)) => ToolFilter::Tags(tags),
            _ => {
                let toolkit = truncate(&toolkit);
                problems.push(format!(
                    "tools.{toolkit}: must have one of `enable`, `disable` and `tags`"
                ));
                continue;
            }
        };
        filters.insert(toolkit, filter);
    }
    errors::refuse_problems(problems, errors::session_invalid)?;
    Ok(filters)
}

impl TagsBody {
    /// Returns the tags of tools whose calls need approval, if they are set.
    pub(super) fn approval(&self) -> Option<Vec<String>> {
        match self {
            Self::List(_) => None,
            Self::Selection(selection) => selection.require_approval.clone(),
        }
    }

    /// Returns the tags that select tools, if any are set.
    pub(super) fn into_tags(self) -> Option<Tags> {
        let is_list = matches!(self, Self::List(_));
        let (enable, disable) = match self {
            Self::List(enable) => (Some(enable), None),
            Self::Selection(selection) => (selection.enable, selection.disable),
        };
        let is_set = enable.is_some() || disable.is_some();
        is_set.then(|| Tags {
            enable: enable.unwrap_or_default(),
            disable: disable.unwrap_or_default(),
            is_list,
        })
    }
}
