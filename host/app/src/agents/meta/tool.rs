//! The meta tools by their slugs, and those that a session has.

use strum::{IntoStaticStr, VariantArray};

use crate::{
    Result,
    agents::{Config, errors},
};

/// Start of the slugs, with the default operator word.
const DEFAULT_PREFIX: &str = "SERVICE_";

/// A meta tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(
    serialize_all = "SCREAMING_SNAKE_CASE",
    prefix = "SERVICE_",
    const_into_str
)]
pub enum MetaTool {
    /// Finds tools for use cases.
    SearchTools,
    /// Returns the schemas of tools.
    GetToolSchemas,
    /// Executes several tools in parallel.
    MultiExecuteTool,
    /// Creates links by which the user connects accounts.
    ManageConnections,
    /// Waits until the user has connected accounts.
    WaitForConnections,
    /// Runs Python in the workbench.
    RemoteWorkbench,
    /// Runs a shell command in the workbench.
    RemoteBashTool,
    /// Stores a recipe.
    UpsertRecipe,
    /// Returns a recipe.
    GetRecipe,
    /// Sends a request to a provider.
    ProxyExecute,
    /// Answers feedback about tools, which newer clients send by themselves, and stores nothing.
    SubmitFeedback,
}

impl MetaTool {
    /// Returns all meta tools, in the order in which sessions list them.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::VARIANTS.iter().copied()
    }

    /// Returns the slug, with the default operator word.
    #[must_use]
    pub fn slug(self) -> &'static str {
        self.into_str()
    }

    /// Returns the slug without an operator word.
    pub(super) fn name(self) -> &'static str {
        let slug = self.slug();
        slug.strip_prefix(DEFAULT_PREFIX).unwrap_or(slug)
    }

    /// Finds a meta tool by its slug with the default operator word, in upper or lower case.
    #[must_use]
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::all().find(|tool| tool.slug().eq_ignore_ascii_case(slug))
    }

    /// Returns true if a session has the meta tool.
    #[must_use]
    pub fn is_enabled(self, config: &Config) -> bool {
        let connections = &config.manage_connections;
        match self {
            Self::SearchTools => !config.search_disabled,
            Self::MultiExecuteTool => !config.multi_execute_disabled,
            Self::ManageConnections => connections.enabled,
            Self::WaitForConnections => connections.enabled && connections.wait_for_connections,
            Self::RemoteWorkbench | Self::RemoteBashTool => config.workbench.enabled,
            Self::ProxyExecute => config.proxy_execute == Some(true),
            Self::GetToolSchemas | Self::UpsertRecipe | Self::GetRecipe | Self::SubmitFeedback => {
                true
            }
        }
    }

    /// Returns the path of the setting of a session that switches the meta tool on and off.
    pub(in crate::agents) fn setting(self) -> Option<&'static str> {
        match self {
            Self::SearchTools => Some("search.enable"),
            Self::MultiExecuteTool => Some("execute.enable_multi_execute"),
            Self::ManageConnections => Some("manage_connections.enable"),
            Self::WaitForConnections => Some("manage_connections.enable_wait_for_connections"),
            Self::RemoteWorkbench | Self::RemoteBashTool => Some("workbench.enable"),
            Self::ProxyExecute => Some("proxy_execute.enable"),
            Self::GetToolSchemas | Self::UpsertRecipe | Self::GetRecipe | Self::SubmitFeedback => {
                None
            }
        }
    }

    pub(in crate::agents) fn check_switched_on(self, config: &Config) -> Result<()> {
        if self.is_enabled(config) {
            Ok(())
        } else {
            Err(errors::meta_tool_off(self.slug()))
        }
    }

    /// Returns true if the result has data of other tools, or of scripts.
    #[must_use]
    pub fn returns_tool_data(self) -> bool {
        matches!(
            self,
            Self::MultiExecuteTool
                | Self::RemoteWorkbench
                | Self::RemoteBashTool
                | Self::UpsertRecipe
                | Self::GetRecipe
                | Self::ProxyExecute
        )
    }

    /// Returns the meta tools that lists of a session show.
    pub fn in_force(config: &Config) -> impl Iterator<Item = Self> {
        Self::all().filter(|tool| *tool != Self::SubmitFeedback && tool.is_enabled(config))
    }
}

#[cfg(test)]
mod tests;
