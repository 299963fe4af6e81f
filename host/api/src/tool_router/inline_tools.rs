//! Tools that a client defines in a request and runs itself. They are not stored: a response repeats
//! them with slugs that no tool of the catalog has.

use std::collections::HashSet;

use app::{Error, agents::Config, core::shown_slug};
use http::errors;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::approval::PermissionsView;

/// Prefix of the slugs.
pub(super) const LOCAL_PREFIX: &str = "LOCAL_";
/// Maximum number of tools of a request, those of its toolkits included.
pub const MAX_INLINE_TOOLS: usize = 500;
/// Maximum number of characters of a name.
const MAX_NAME_CHARS: usize = 128;
/// Maximum number of characters of the description of a tool.
const MAX_DESCRIPTION_CHARS: usize = 5_120;

/// A tool of the client.
#[derive(Clone, Deserialize, ToSchema)]
#[schema(as = InlineCustomTool)]
pub(super) struct InlineTool {
    slug: String,
    name: String,
    description: String,
    input_schema: Map<String, Value>,
    output_schema: Option<Map<String, Value>>,
    extends_toolkit: Option<String>,
    preload: Option<bool>,
}

/// A toolkit of the client.
#[derive(Clone, Deserialize, ToSchema)]
#[schema(as = InlineCustomToolkit)]
pub(super) struct InlineToolkit {
    slug: String,
    name: String,
    description: String,
    tools: Vec<InlineTool>,
    preload: Option<bool>,
}

/// The tools of a client, checked.
pub(crate) struct InlineTools {
    toolkits: Vec<InlineToolkitView>,
    tools: Vec<InlineToolView>,
}

view! {
    #[schema(as = LocalTool)]
    struct InlineToolView {
        /// `original_slug` in upper case, with the prefix `LOCAL_`.
        slug: String,
        name: String,
        description: String,
        input_schema: Map<String, Value>,
        output_schema?: Option<Map<String, Value>>,
        extends_toolkit?: Option<String>,
        original_slug: String,
        preload: bool,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = LocalToolkit)]
struct InlineToolkitView {
    slug: String,
    name: String,
    description: String,
    tools: Vec<InlineToolView>,
    preload: bool,
}

view! {
    /// Text for assistants, permissions of calls, and the client's own tools.
    #[schema(as = SessionExtras)]
    pub(crate) struct ExtrasView {
        /// Text for the system prompt of an assistant that works in the session.
        assistive_prompt: String,
        /// True if the session was created with it.
        restrict_egress_to_service: bool,
        /// Permissions of calls.
        permissions: PermissionsView,
        /// Only in the response to a request that has them.
        custom_toolkits?: Option<Vec<InlineToolkitView>>,
        /// Only in the response to a request that has them.
        custom_tools?: Option<Vec<InlineToolView>>,
    }
}

impl InlineTools {
    /// Checks the tools of a request. Returns `None` if there are no tools.
    pub(super) fn new(
        toolkits: Vec<InlineToolkit>,
        tools: Vec<InlineTool>,
    ) -> Result<Option<Self>, Error> {
        if toolkits.is_empty() && tools.is_empty() {
            return Ok(None);
        }
        let mut problems = Vec::new();
        let views = tools
            .into_iter()
            .map(|tool| tool.into_view("", false, &mut problems));
        let tools: Vec<_> = views.collect();
        let views = toolkits
            .into_iter()
            .map(|toolkit| toolkit.into_view(&mut problems));
        let toolkits: Vec<_> = views.collect();
        let inline = Self { toolkits, tools };
        let mut slugs = HashSet::new();
        for tool in inline.all() {
            if !slugs.insert(&tool.slug) {
                let slug = shown_slug(&tool.slug);
                problems.push(format!("custom tools: {slug} is defined twice"));
            }
        }
        if slugs.len() > MAX_INLINE_TOOLS {
            problems.push(format!("custom tools: at most {MAX_INLINE_TOOLS}"));
        }
        errors::refuse_problems(problems, errors::session_invalid)?;
        Ok(Some(inline))
    }

    fn all(&self) -> impl Iterator<Item = &InlineToolView> {
        let of_toolkits = self.toolkits.iter().flat_map(|toolkit| &toolkit.tools);
        self.tools.iter().chain(of_toolkits)
    }

    /// Returns the slugs of the tools that are shown directly.
    pub(super) fn preloaded(&self) -> impl Iterator<Item = String> {
        let preloaded = self.all().filter(|tool| tool.preload);
        preloaded.map(|tool| tool.slug.clone())
    }
}

impl InlineTool {
    fn into_view(self, toolkit: &str, preload: bool, problems: &mut Vec<String>) -> InlineToolView {
        check_texts(&self.slug, &self.name, &self.description, problems);
        let slug = format!("{LOCAL_PREFIX}{toolkit}{}", self.slug);
        InlineToolView {
            slug: slug.to_ascii_uppercase(),
            name: self.name,
            description: self.description,
            input_schema: self.input_schema,
            output_schema: self.output_schema,
            extends_toolkit: self.extends_toolkit,
            original_slug: self.slug,
            preload: self.preload.unwrap_or(preload),
        }
    }
}

impl InlineToolkit {
    fn into_view(self, problems: &mut Vec<String>) -> InlineToolkitView {
        check_texts(&self.slug, &self.name, &self.description, problems);
        let preload = self.preload.unwrap_or(false);
        let prefix = format!("{}_", self.slug);
        let tools = self.tools.into_iter();
        InlineToolkitView {
            tools: tools
                .map(|tool| tool.into_view(&prefix, preload, problems))
                .collect(),
            slug: self.slug,
            name: self.name,
            description: self.description,
            preload,
        }
    }
}

fn check_texts(slug: &str, name: &str, description: &str, problems: &mut Vec<String>) {
    let is_slug = (1..=MAX_NAME_CHARS).contains(&slug.len())
        && slug
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let has = |text: &str, most| (1..=most).contains(&text.chars().count());
    if !is_slug || !has(name, MAX_NAME_CHARS) || !has(description, MAX_DESCRIPTION_CHARS) {
        let shown = shown_slug(slug);
        problems.push(format!(
            "custom tools: {shown}: needs a slug of letters, digits, `_` and `-`, a name of at most {MAX_NAME_CHARS} and a description of at most {MAX_DESCRIPTION_CHARS} characters"
        ));
    }
}

impl ExtrasView {
    pub(super) fn new(
        assistive_prompt: String,
        config: &Config,
        inline: Option<InlineTools>,
    ) -> Self {
        let (custom_toolkits, custom_tools) =
            inline.map(|inline| (inline.toolkits, inline.tools)).unzip();
        Self {
            assistive_prompt,
            restrict_egress_to_service: config.restrict_egress,
            permissions: config.into(),
            custom_toolkits,
            custom_tools,
        }
    }
}
