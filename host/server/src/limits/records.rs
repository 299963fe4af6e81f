//! Limits on the records of one project in each collection, and the deletion that erases them.

use app::{
    accounts::{MAX_VALUES_BYTES, auth_configs::MAX_AUTH_CONFIG_BYTES},
    agents::{self, recipes, session_files},
    events::{delivery::MAX_KEPT_ATTEMPTS, endpoints::MAX_ENDPOINTS},
    projects::MAX_KEYS_PER_OWNER,
};
use settings::Limits;
use store::{Collection, Erasure};

use super::size;

const RECORDS_SECTION: &str = "
## Records of one project

Everything that is stored is a record of one of these collections. The limits are those of the tables above, or are named by their
settings. A limit refuses new records of one project: other projects can still write, and records that exist stay.

| Collection | What bounds the records of one project | Erased |
|---|---|---|
";

/// Adds the section to the page.
pub(super) fn write(page: &mut String) {
    page.push_str(RECORDS_SECTION);
    for collection in app::COLLECTIONS {
        let bound = bound(collection).unwrap_or_default();
        let erased = match collection.erasure {
            Erasure::Project => "with the project",
            Erasure::HidingProject => {
                "with the project; one that was deleted, after `webhooks.keep_days`"
            }
            Erasure::ProjectWithBlobs => "with the project, and the bytes with the record",
            Erasure::Other(reason) => reason,
        };
        page.push_str(&format!("| {} | {bound} | {erased} |\n", collection.name));
    }
}

/// Returns the limits on the records of a collection; `None` for an unknown collection.
fn bound(collection: &Collection) -> Option<String> {
    bound_with_number(collection).or_else(|| bound_without_number(collection).map(str::to_owned))
}

/// Returns the limits of a collection that has a limit without a setting.
#[rustfmt::skip]
fn bound_with_number(collection: &Collection) -> Option<String> {
    let records = Limits::default().record_limits();
    Some(match collection.name {
        "api_keys" => format!("{MAX_KEYS_PER_OWNER} keys"),
        "auth_configs" => format!("{}, {} each; `limits.records_mib`", records.auth_configs, size(MAX_AUTH_CONFIG_BYTES as u64)),
        "credentials" => format!("one for each account, {} of given values each", size(MAX_VALUES_BYTES as u64)),
        "webhook_endpoints" => format!("{MAX_ENDPOINTS} endpoints"),
        "webhook_deliveries" => format!("one for each event and subscription, with {MAX_KEPT_ATTEMPTS} attempts; the responses count in half of `limits.records_mib`"),
        "mcp_servers" => format!("{}; `limits.records_mib`", records.mcp_servers),
        "tool_router_sessions" => format!("half of `limits.accounts_per_project`, {} each; `limits.records_mib`", size(agents::MAX_CONFIG_BYTES as u64)),
        "tool_router_configs" => format!("{} for each session; `limits.records_mib`", agents::MAX_VERSIONS),
        "recipes" => format!("a twentieth of `limits.accounts_per_project`, {} each; `limits.records_mib`", size(recipes::MAX_DEFINITION_BYTES as u64)),
        "recipe_versions" => format!("{} for each recipe; `limits.records_mib`", recipes::MAX_VERSIONS),
        "recipe_runs" | "recipe_plans" | "recipe_calls" => format!("{} runs that have not ended, and half of `limits.records_mib` in a day", recipes::MAX_PENDING_RUNS),
        "session_files" => format!("{} for each session and `files.quota_mib`; uploads that are awaited in `limits.records_mib`", session_files::MAX_FILES),
        _ => return None,
    })
}

/// Returns the limits of any other collection.
#[rustfmt::skip]
fn bound_without_number(collection: &Collection) -> Option<&'static str> {
    Some(match collection.name {
        "data_keys" => "one for each project and rotation",
        "organisations" | "projects" | "members" | "project_removals" => "only a key of the organization adds some",
        "toolkit_versions" | "toolkit_publications" | "toolkit_usage" | "oauth_apps" | "leases" | "fences" => "no key of a project adds any",
        "connected_accounts" => "`limits.accounts_per_project`; `limits.records_mib`",
        "flows" => "`limits.records_mib`; kept for a day",
        "clients" => "one for each auth config and address of this server",
        "trigger_instances" => "a tenth of `limits.accounts_per_project`; `limits.records_mib`",
        "trigger_progress" | "trigger_subscriptions" => "one for each trigger instance",
        "trigger_actions" => "one for each event with an action; half of `limits.records_mib`",
        "legacy_ids" => "only the operator adds some",
        "files" => "`files.quota_mib`; `limits.records_mib`",
        "file_totals" | "session_turns" => "one for each project or session",
        "execution_pages" | "execution_details" | "execution_cassettes" => "twice `limits.records_mib` in a day",
        "webhook_subscriptions" => "one",
        "events" | "sink_messages" => "half of `limits.records_mib` in a day",
        "webhook_lanes" => "one for each order of deliveries; half of `limits.records_mib`",
        "mcp_instances" => "`limits.accounts_per_project`; `limits.records_mib`",
        "mcp_consents" => "`limits.records_mib`; kept for 30 days",
        "approval_answers" => "`limits.records_mib`; kept for ten minutes",
        "idempotency_keys" => "`limits.records_mib`, with their responses in an eighth of it; kept for a day",
        "daily_amounts" => "one record of all projects",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_collection_has_documented_limit() {
        let (page, settings) = (super::super::page(), settings::all());
        for collection in app::COLLECTIONS {
            let bound = bound(collection).unwrap_or_else(|| panic!("{}", collection.name));
            let row = format!("| {} | {bound} | ", collection.name);
            assert!(page.contains(&row), "{row}");
            for key in bound.split('`').filter(|text| text.contains('.')) {
                assert!(settings.iter().any(|setting| setting.key == key), "{key}");
            }
        }
    }
}
