//! Limits on the records of one project in each collection, and the deletion that erases them.

use store::{Collection, Erasure};

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
#[rustfmt::skip]
fn bound(collection: &Collection) -> Option<&'static str> {
    Some(match collection.name {
        "data_keys" => "one for each project and rotation",
        "organisations" | "projects" | "members" | "project_removals" => "only a key of the organization adds some",
        "api_keys" => "100 keys",
        "toolkit_versions" | "toolkit_publications" | "toolkit_usage" | "oauth_apps" | "leases" | "fences" => "no key of a project adds any",
        "auth_configs" => "1000, 128 KiB each; `limits.records_mib`",
        "connected_accounts" => "`limits.accounts_per_project`; `limits.records_mib`",
        "credentials" => "one for each account, 64 KiB of given values each",
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
        "webhook_endpoints" => "100 endpoints",
        "events" | "sink_messages" => "half of `limits.records_mib` in a day",
        "webhook_deliveries" => "one for each event and subscription, with 32 attempts; the responses count in half of `limits.records_mib`",
        "webhook_lanes" => "one for each order of deliveries; half of `limits.records_mib`",
        "mcp_servers" => "1000; `limits.records_mib`",
        "mcp_instances" => "`limits.accounts_per_project`; `limits.records_mib`",
        "mcp_consents" => "`limits.records_mib`; kept for 30 days",
        "tool_router_sessions" => "half of `limits.accounts_per_project`, 128 KiB each; `limits.records_mib`",
        "tool_router_configs" => "100 for each session; `limits.records_mib`",
        "approval_answers" => "`limits.records_mib`; kept for ten minutes",
        "recipes" => "a twentieth of `limits.accounts_per_project`, 64 KiB each; `limits.records_mib`",
        "recipe_versions" => "20 for each recipe; `limits.records_mib`",
        "recipe_runs" | "recipe_plans" | "recipe_calls" => "50 runs that have not ended, and half of `limits.records_mib` in a day",
        "session_files" => "900 for each session and `files.quota_mib`; uploads that are awaited in `limits.records_mib`",
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
