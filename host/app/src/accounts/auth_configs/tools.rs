//! Lists of tools in auth configs.

use std::collections::BTreeSet;

use super::AuthConfig;
use crate::{Result, accounts::errors, catalog::Snapshot, core::shown_slug};

/// Slug by which proxy requests are listed among the tools that may run, and by which the execution log names
/// them.
pub(crate) const PROXY_REQUEST_SLUG: &str = "PROXY_EXECUTE";

/// Names of the lists in requests, in the order of [`AuthConfig::tool_lists`].
const LIST_NAMES: [&str; 3] = [
    "restrict_to_following_tools",
    "tool_access_config.tools_available_for_execution",
    CONNECTION_LIST_NAME,
];
/// Name of the list of tools whose scopes are requested. Proxy requests have no scopes of their own.
const CONNECTION_LIST_NAME: &str = "tool_access_config.tools_for_connected_account_creation";
/// Maximum number of unknown tools that an error names.
const MAX_NAMED_TOOLS: usize = 20;

impl AuthConfig {
    /// Returns true if a tool may run with the accounts of this auth config.
    #[must_use]
    pub fn allows(&self, tool: &str) -> bool {
        allows_tool(&self.tools_for_execution, tool) && allows_tool(&self.restrict_to, tool)
    }

    /// Returns true if every tool may run with the accounts of this auth config.
    #[must_use]
    pub fn allows_all(&self) -> bool {
        self.tools_for_execution.is_empty() && self.restrict_to.is_empty()
    }

    pub(super) fn tool_lists(&self) -> [&Vec<String>; 3] {
        [
            &self.restrict_to,
            &self.tools_for_execution,
            &self.tools_for_connection,
        ]
    }

    /// Returns the tools of all lists, in upper case.
    pub(super) fn listed_tools(&self) -> BTreeSet<String> {
        let listed = self.tool_lists().into_iter().flatten();
        listed.map(|slug| slug.to_ascii_uppercase()).collect()
    }

    /// Spells the tools of all lists as the catalog does. Those that were listed before are not checked,
    /// because their toolkit may no longer exist. `path` is the start of the paths to the lists. Fails if
    /// another one is not a tool of the toolkit, in any of its versions, and does not stand for proxy requests.
    pub(super) fn check_tools(
        &mut self,
        catalog: &Snapshot,
        path: &str,
        before: &BTreeSet<String>,
    ) -> Result<()> {
        let toolkit = &self.toolkit;
        let lists = [
            &mut self.restrict_to,
            &mut self.tools_for_execution,
            &mut self.tools_for_connection,
        ];
        let mut unknown = Vec::new();
        for (list, name) in lists.into_iter().zip(LIST_NAMES) {
            for (index, slug) in list.iter_mut().enumerate() {
                let upper = slug.trim().to_ascii_uppercase();
                let owner = catalog.toolkit_of(&upper);
                let is_proxy = upper == PROXY_REQUEST_SLUG && name != CONNECTION_LIST_NAME;
                if is_proxy
                    || owner.is_some_and(|owner| *owner.slug == **toolkit)
                    || before.contains(&upper)
                {
                    *slug = upper;
                } else {
                    unknown.push((format!("{path}{name}[{index}]"), slug.clone()));
                }
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        let slugs = unknown.iter().map(|(_, slug)| slug.as_str());
        Err(catalog.missing(slugs, || {
            let named = unknown.iter().take(MAX_NAMED_TOOLS);
            let problems = named.map(|(path, slug)| {
                let (similar, slug) = (catalog.similar_tool(slug), shown_slug(slug));
                format!("{path}: {slug} is not a tool of toolkit {toolkit}{similar}")
            });
            errors::invalid(problems.collect::<Vec<_>>())
        }))
    }
}

fn allows_tool(list: &[String], tool: &str) -> bool {
    list.is_empty()
        || list
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(tool))
}

#[cfg(test)]
mod tests {
    use manifest::AuthMode;
    use uuid::Uuid;

    use super::*;
    use crate::accounts::auth_configs::Status;

    fn config(restrict_to: &[&str], for_execution: &[&str]) -> AuthConfig {
        let sealed = || serde_json::from_str("\"v1.a.b\"").unwrap();
        let owned = |list: &[&str]| list.iter().map(|&s| s.to_owned()).collect();
        AuthConfig {
            name: "n".into(),
            folded: "n".into(),
            toolkit: "mail".into(),
            scheme: AuthMode::ApiKey,
            managed: false,
            status: Status::Enabled,
            uuid: Uuid::nil(),
            restrict_to: owned(restrict_to),
            tools_for_execution: owned(for_execution),
            tools_for_connection: vec![],
            in_sessions: false,
            credentials: sealed(),
            shared: sealed(),
            proxy: None,
        }
    }

    #[test]
    fn both_lists_must_let_a_tool_through() {
        assert!(config(&[], &[]).allows("MAIL_SEND"));
        assert!(config(&["mail_send"], &[]).allows("MAIL_SEND"));
        assert!(!config(&["MAIL_SEND"], &["MAIL_LIST"]).allows("MAIL_SEND"));
        assert!(!config(&[], &["MAIL_LIST"]).allows("MAIL_SEND"));
    }

    #[test]
    fn tools_listed_before_are_kept() {
        let mut stored = config(&["mail_gone"], &[]);
        let before = stored.listed_tools();
        let catalog = Snapshot::default();
        stored.check_tools(&catalog, "", &before).unwrap();
        assert_eq!(stored.restrict_to, ["MAIL_GONE"]);
        stored.tools_for_connection = vec!["MAIL_OTHER".to_owned()];
        let refused = stored.check_tools(&catalog, "", &before).unwrap_err();
        assert!(
            refused.to_string().contains("MAIL_OTHER is not a tool"),
            "{refused}"
        );
    }
}
