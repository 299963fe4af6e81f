//! Requests and views of keys.

use app::{
    Error,
    core::clock::iso,
    projects::{
        ShownKey,
        permissions::{self, KeyRestrictions, Permissions, Ranges},
    },
};
use http::errors;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Number of characters shown of a shortened key.
const SHOWN_CHARS: usize = 4;

// An unknown field is refused, because a misspelled restriction would permit everything.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateKey)]
pub(crate) struct Create {
    pub name: String,
    /// Permissions of the key: all of them without the list, none if it is empty.
    pub permissions: Option<Vec<Permission>>,
    /// Addresses and ranges from which the key may be used, at least one; any address without the list.
    pub allowed_ips: Option<Vec<String>>,
}

/// Permission of a key in one area.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Permission {
    #[serde(with = "Area")]
    #[schema(value_type = Area)]
    preset: permissions::Area,
    #[serde(with = "Access")]
    #[schema(value_type = Access)]
    access: permissions::Access,
}

/// A part of the API that keys may be restricted to.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(remote = "permissions::Area", rename_all = "snake_case")]
enum Area {
    AuthConfigs,
    ConnectedAccounts,
    Tools,
    ToolExecution,
    ProxyExecute,
    Toolkits,
    Triggers,
    Webhooks,
    Observability,
    #[serde(alias = "session_management")]
    Sessions,
    SessionToolExecution,
    #[serde(alias = "legacy_mcp")]
    McpServers,
}

/// Access to an area.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(remote = "permissions::Access", rename_all = "snake_case")]
enum Access {
    None,
    Read,
    Write,
    ReadWrite,
}

/// Builds the restrictions of a key. No permissions mean no restriction; an empty list means that
/// nothing is allowed. An empty list of addresses is refused, because it could mean either. `prefix`
/// precedes the names of the fields in problems.
pub(crate) fn restrictions(
    prefix: &str,
    permissions: Option<Vec<Permission>>,
    allowed_ips: Option<Vec<String>>,
) -> Result<KeyRestrictions, Error> {
    let given = permissions.as_deref().unwrap_or_default();
    let mut problems = Vec::new();
    for (index, Permission { preset, .. }) in given.iter().enumerate() {
        if given[..index].iter().any(|other| other.preset == *preset) {
            let name = preset.into_str();
            problems.push(format!(
                "{prefix}permissions[{index}]: `{name}` is there twice"
            ));
        }
    }
    let field = format!("{prefix}allowed_ips");
    if allowed_ips.as_ref().is_some_and(Vec::is_empty) {
        problems.push(format!("{field}: is empty; leave it out for every address"));
    }
    let addresses = Ranges::parse(&field, &allowed_ips.unwrap_or_default());
    let ((), addresses) = errors::both(
        errors::refuse_problems(problems, errors::invalid),
        addresses.map_err(errors::invalid),
    )?;
    let scopes = permissions.map(|given| {
        let pairs = given.into_iter().map(|one| (one.preset, one.access));
        pairs.collect::<Permissions>()
    });
    Ok(KeyRestrictions { scopes, addresses })
}

#[derive(Deserialize, ToSchema)]
#[schema(as = RevokeKeys)]
pub(crate) struct Revoke {
    /// 1 to 100 keys.
    pub api_keys: Vec<String>,
}

view! {
    /// A key of a project.
    #[schema(as = Key)]
    pub(crate) struct View from (key: ShownKey, in_full: bool) where {
        let shown = if in_full {
            key.secret.to_string()
        } else {
            let start: String = key.secret.chars().take(SHOWN_CHARS).collect();
            format!("{start}...")
        };
        let permissions = key.rights.scopes.map(|scopes| {
            scopes
                .iter()
                .map(|(preset, access)| Permission { preset, access })
                .collect()
        });
    } {
        id: String = key.id,
        name: String = key.name,
        /// In full if it is new or the operator has set `keys.reveal`; otherwise its first
        /// characters.
        key: String = shown,
        /// Null if the key is unrestricted.
        permissions!: Option<Vec<Permission>> = permissions,
        /// Empty if the key may be used from any address.
        allowed_ips: Vec<String> = key.rights.addresses.into(),
        #[schema(format = DateTime)] created_at: String = iso(key.created_at),
        #[schema(format = DateTime)] last_used_at!: Option<String> = key.used_at.map(iso),
    }
}

/// The keys of a project.
#[derive(Serialize, ToSchema)]
#[schema(as = Keys)]
pub(crate) struct List {
    pub items: Vec<View>,
}

/// Confirmation that a revocation was received.
#[derive(Serialize, ToSchema)]
pub(crate) struct Received {
    pub received: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn areas_have_their_names_and_earlier_ones() {
        for (preset, access) in Permissions::reading().iter() {
            let expected = json!({ "preset": preset.into_str(), "access": "read" });
            assert_eq!(json!(Permission { preset, access }), expected);
            let read: Permission = serde_json::from_value(expected).unwrap();
            assert_eq!(read.preset, preset);
        }
        for (earlier, area) in [
            ("session_management", permissions::Area::Sessions),
            ("legacy_mcp", permissions::Area::McpServers),
        ] {
            let given = json!({ "preset": earlier, "access": "read_write" });
            let read: Permission = serde_json::from_value(given).unwrap();
            assert_eq!(
                (read.preset, read.access),
                (area, permissions::Access::ReadWrite)
            );
        }
    }

    #[test]
    fn absent_and_empty_permissions_differ() {
        let permissions = |body: Value| {
            let body: Create = serde_json::from_value(body).unwrap();
            let rights = restrictions("", body.permissions, body.allowed_ips).unwrap();
            rights.scopes.map(|scopes| scopes.iter().count())
        };
        assert_eq!(permissions(json!({ "name": "x" })), None);
        assert_eq!(
            permissions(json!({ "name": "x", "permissions": null })),
            None
        );
        assert_eq!(
            permissions(json!({ "name": "x", "permissions": [] })),
            Some(0)
        );
    }
}
