//! Misspelled names of fields and parameters.
//!
//! Problem: requests may have names that the server does not know, because clients may be newer.
//! Such a name is ignored. If it is the misspelled name of a field that restricts the request or
//! chooses its account, the request would do more than its caller asked for, or with another
//! account.
//!
//! Guarantee: a name that is unknown, and most similar to one of [`RESTRICTING_NAMES`], is refused,
//! and so is one of [`MISPLACED_NAMES`] where the request has no such field.

pub use manifest::{is_meant_as, is_near_miss, is_same, nearest};
use manifest::{is_part, is_prefix};

/// Maximum characters of a name that a client sent and a response repeats.
const MAX_NAME_CHARS: usize = 64;
/// Maximum number of sent names that are compared with a missing one.
const MAX_COMPARED_NAMES: usize = 20;
/// Fields and parameters that restrict what a request permits, or that choose the account, the
/// credential or the destination that it uses.
const RESTRICTING_NAMES: [&str; 65] = [
    // Accounts and credentials.
    "account",
    "auth_config_id",
    "auth_config_ids",
    "connectedAuthId",
    "connected_account_id",
    "connected_account_ids",
    "connection_data",
    "credentials",
    "custom_auth_params",
    "custom_connection_data",
    "entity_id",
    "proxy_auth_key",
    "shared_connection_fields",
    "shared_credentials",
    "user_id",
    "user_ids",
    "validate_credentials",
    // Destinations.
    "body_redirect_url",
    "callback_url",
    "egress_url",
    "proxy_config",
    "redirect_uri",
    "redirect_url",
    "webhook_url",
    // Auth configs.
    "is_enabled_for_tool_router",
    "restrict_to_following_tools",
    "scopes",
    "tool_access_config",
    "tools_available_for_execution",
    "tools_for_connected_account_creation",
    "user_scopes",
    // Sharing of accounts.
    "account_type",
    "acl_config_for_shared",
    "allow_all_users",
    "allowed_user_ids",
    "experimental",
    "not_allowed_user_ids",
    // MCP servers and sessions.
    "allowed_tools",
    "config",
    "custom_tools",
    "manually_manage_connections",
    "pin_tools",
    "toolkit",
    "toolkits",
    "tools",
    // Events.
    "action",
    "enabled_events",
    "instead_of_webhook",
    "poll_cron",
    "poll_interval_seconds",
    "poll_time_zone",
    "since",
    "triggerConfig",
    "trigger_config",
    "until",
    // Calls of tools.
    "arguments",
    "parameters",
    // Recipes.
    "input_schema",
    // Versions of toolkits.
    "toolkit_versions",
    "version",
    // Settings of projects.
    "is_2FA_enabled",
    "log_visibility_setting",
    "mask_secret_keys_in_connected_account",
    "oauth_callback_verifier_url",
    "require_mcp_api_key",
];

/// Fields that restrict, or that choose an account, in some requests, and are refused in all others.
const MISPLACED_NAMES: [&str; 33] = [
    "account",
    "account_id",
    "account_type",
    "acl_config_for_shared",
    "alias",
    "allow_all_users",
    "allowed_ips",
    "allowed_tools",
    "auth_config_id",
    "auth_config_ids",
    "config",
    "connected_account_id",
    "connected_account_ids",
    "custom_tools",
    "disable",
    "disabled",
    "enable",
    "expected_config_version",
    "experimental",
    "instead_of_webhook",
    "instead_of_webhooks",
    "is_disabled",
    "not_allowed_user_ids",
    "permissions",
    "read_only",
    "require_api_key",
    "require_approval",
    "require_mcp_api_key",
    "restrict_to_following_tools",
    "tags",
    "tool_access_config",
    "toolkit_versions",
    "tools",
];

/// Fields of session bodies that restrict what a session permits, at any depth.
const SESSION_RESTRICTIONS: [&str; 24] = [
    "account",
    "auth_configs",
    "connected_accounts",
    "disable",
    "enable",
    "enable_proxy_execution",
    "enable_tool_execution",
    "execute",
    "expected_config_version",
    "hooks",
    "manage_connections",
    "multi_account",
    "permissions",
    "preload",
    "proxy_execute",
    "request_state",
    "require_approval",
    "require_explicit_selection",
    "restrict_egress_to_service",
    "search",
    "tags",
    "toolkits",
    "tools",
    "workbench",
];

/// Returns the start of a name that a client sent.
#[must_use]
pub fn shortened(name: &str) -> &str {
    match name.char_indices().nth(MAX_NAME_CHARS) {
        Some((end, _)) => &name[..end],
        None => name,
    }
}

/// Returns the question whether one of the sent names was meant as a missing one; empty if none is similar.
#[must_use]
pub fn sent_instead<'a>(missing: &str, sent: impl IntoIterator<Item = &'a str>) -> String {
    let meant = sent
        .into_iter()
        .take(MAX_COMPARED_NAMES)
        .find(|name| is_near_miss(name, missing) || is_part(name, missing));
    meant.map_or_else(String::new, |name| {
        let name = shortened(name);
        format!("; `{name}` was sent: did you mean `{missing}`?")
    })
}

/// Returns the question whether a value was meant as an allowed one that differs from it only in the
/// operator word; empty if it differs otherwise.
#[must_use]
pub fn other_word_meant<'a>(
    value: &str,
    own_word: &str,
    allowed: impl IntoIterator<Item = &'a str>,
) -> String {
    let meant = allowed.into_iter().find(|allowed| {
        let parts = allowed.split_once(own_word);
        parts.is_some_and(|(start, end)| {
            let rest = value.strip_prefix(start);
            let word = rest.and_then(|rest| rest.strip_suffix(end));
            word.is_some_and(|word| {
                !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
            })
        })
    });
    meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
}

/// Returns true if a name is similar to that of a restriction of a session.
#[must_use]
pub fn resembles_session_restriction(name: &str) -> bool {
    nearest(name, SESSION_RESTRICTIONS).is_some()
}

/// Returns the reason why an unknown name is refused, or `None` if it may be ignored. `known` are
/// the names that the request may have instead.
#[must_use]
pub fn misspelling(name: &str, known: &[&str]) -> Option<String> {
    const REFUSED_REASON: &str =
        "restricts the request or chooses what it uses, so it is refused instead of ignored";
    let is_misplaced = MISPLACED_NAMES.iter().any(|other| is_same(other, name));
    match nearest(name, known) {
        Some(nearest)
            if RESTRICTING_NAMES.contains(nearest) || is_misplaced && is_same(nearest, name) =>
        {
            Some(format!(
                "is unknown; the nearest known name is `{nearest}`, which {REFUSED_REASON}"
            ))
        }
        _ => is_misplaced.then(|| {
            let longer = known.iter().find(|longer| is_prefix(name, longer));
            let longer = longer.map_or_else(String::new, |longer| format!(", unlike `{longer}`"));
            format!("has no meaning here{longer}; elsewhere the name {REFUSED_REASON}")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restrictions_of_sessions_are_recognized_anywhere() {
        for name in [
            "require_approvals",
            "expectedVersion",
            "work-bench",
            "permission",
        ] {
            assert!(resembles_session_restriction(name), "{name}");
        }
        assert!(!resembles_session_restriction("color_scheme"));
    }

    #[test]
    fn name_sent_for_a_missing_one_is_named() {
        for (sent, missing) in [
            ("clientId", "client_id"),
            ("query", "queries"),
            ("code", "code_to_execute"),
            ("path", "mount_relative_path"),
        ] {
            let question = sent_instead(missing, ["user", sent]);
            let expected = format!("; `{sent}` was sent: did you mean `{missing}`?");
            assert_eq!(question, expected);
        }
        assert_eq!(sent_instead("title", ["time", "id"]), "");
    }

    #[test]
    fn value_with_another_operator_word_is_recognized() {
        let allowed = ["acme.trigger.message", "use_custom", "use_acme_managed"];
        for (value, meant) in [
            ("other.trigger.message", "acme.trigger.message"),
            ("use_other_managed", "use_acme_managed"),
        ] {
            let question = format!("; did you mean `{meant}`?");
            assert_eq!(other_word_meant(value, "acme", allowed), question);
        }
        for value in [
            "other.trigger.disabled",
            ".trigger.message",
            "use_a_b_managed",
        ] {
            assert_eq!(other_word_meant(value, "acme", allowed), "", "{value}");
        }
    }

    #[test]
    fn only_misspelled_restrictions_are_refused() {
        let known = ["name", "allowed_tools", "managed_auth_via_service"];
        for name in ["allowed_tool", "allowedTools", "alowed-tools"] {
            let problem = misspelling(name, &known).unwrap();
            assert!(problem.contains("`allowed_tools`"), "{problem}");
        }
        for name in ["customTools", "account", "require_api_key"] {
            let problem = misspelling(name, &known).unwrap();
            assert!(problem.contains("no meaning here"), "{problem}");
        }
        let problem = misspelling("Permissions", &["name", "permissions"]).unwrap();
        assert!(problem.contains("name is `permissions`"), "{problem}");
        let problem = misspelling("enable", &["enable_multi_execute"]).unwrap();
        assert!(
            problem.contains("unlike `enable_multi_execute`"),
            "{problem}"
        );
        for name in ["nme", "managed_auth", "theme", ""] {
            assert_eq!(misspelling(name, &known), None, "{name}");
        }
    }
}
