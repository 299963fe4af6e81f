//! Requests of trigger instances.

use std::collections::HashMap;

use app::{
    Result, Time,
    catalog::{LATEST, VersionSelector},
    core::ids::AccountId,
    events::triggers::{Filter, Schedule, Upsert},
};
use http::{
    Page,
    members::present,
    unimplemented::{Unimplemented, refused},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::actions::Action;
use crate::tools::ToolkitVersions;

/// Filters of the list.
#[derive(Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Of these accounts.
    connected_account_ids: Vec<String>,
    /// Of accounts of these auth configs.
    auth_config_ids: Vec<String>,
    /// Of these users.
    user_ids: Vec<String>,
    /// With these ids.
    trigger_ids: Vec<String>,
    /// Of these trigger types.
    trigger_names: Vec<String>,
    /// Disabled ones too.
    #[serde(deserialize_with = "present")]
    show_disabled: Option<bool>,
    /// Number of the page, from 1; a cursor takes precedence.
    page: Option<f64>,
    /// Older spelling of `connected_account_ids`.
    #[serde(rename = "connectedAccountIds")]
    #[deprecated]
    older_account_ids: Vec<String>,
    /// Older spelling of `auth_config_ids`.
    #[serde(rename = "authConfigIds")]
    #[deprecated]
    older_auth_config_ids: Vec<String>,
    /// Older spelling of `trigger_ids`.
    #[serde(rename = "triggerIds")]
    #[deprecated]
    older_trigger_ids: Vec<String>,
    /// Older spelling of `trigger_names`.
    #[serde(rename = "triggerNames")]
    #[deprecated]
    older_trigger_names: Vec<String>,
    /// Older spelling of `show_disabled`.
    #[serde(rename = "showDisabled", deserialize_with = "present")]
    #[deprecated]
    older_show_disabled: Option<bool>,
    /// Of the accounts with these legacy ids.
    #[serde(rename = "deprecatedConnectedAccountUuids")]
    #[deprecated]
    account_uuids: Vec<String>,
    /// Of accounts of the auth configs with these legacy ids.
    #[serde(rename = "deprecatedAuthConfigUuids")]
    #[deprecated]
    auth_config_uuids: Vec<String>,
}

impl ListQuery {
    /// Returns the requested page.
    pub(crate) fn page(&self, page: Page) -> Page {
        match self.page {
            Some(number) if page.number == 1 => Page {
                number: (number as u64).max(1),
                ..page
            },
            _ => page,
        }
    }

    /// Returns the filter for instances that were created until the given time.
    #[expect(deprecated, reason = "older clients send the older spellings")]
    pub(crate) fn into_filter(self, until: Option<Time>) -> Filter {
        let disabled = self.show_disabled.or(self.older_show_disabled);
        Filter {
            ids: or_older(self.trigger_ids, self.older_trigger_ids),
            triggers: or_older(self.trigger_names, self.older_trigger_names),
            accounts: or_older(self.connected_account_ids, self.older_account_ids),
            account_uuids: self.account_uuids,
            auth_configs: or_older(self.auth_config_ids, self.older_auth_config_ids),
            auth_config_uuids: self.auth_config_uuids,
            users: self.user_ids,
            disabled: disabled.unwrap_or(false),
            until,
        }
    }
}

fn or_older(newer: Vec<String>, older: Vec<String>) -> Vec<String> {
    if newer.is_empty() { older } else { newer }
}

#[derive(Default, Deserialize, ToSchema)]
#[schema(as = UpsertTriggerInstance)]
pub(crate) struct UpsertBody {
    /// The account of the trigger; without it, the newest active account of the user.
    connected_account_id: Option<String>,
    /// Older spelling of `connected_account_id`.
    #[serde(rename = "connectedAuthId")]
    older_account_id: Option<String>,
    user_id: Option<String>,
    trigger_config: Option<Map<String, Value>>,
    /// Older spelling of `trigger_config`.
    #[serde(rename = "triggerConfig")]
    older_config: Option<Map<String, Value>>,
    /// A version or `latest` for every toolkit, or a version for each toolkit.
    toolkit_versions: Option<Versions>,
    /// Older spelling of `toolkit_versions`.
    version: Option<String>,
    /// Interval between two polls; at least the default of the server.
    poll_interval_seconds: Option<u64>,
    /// Cron expression of the times of polls, instead of an interval: minute, hour, day of the
    /// month, month and day of the week.
    #[schema(example = "*/10 8-18 * * MON-FRI")]
    poll_cron: Option<String>,
    /// Time zone of the cron expression, a name of the IANA database; UTC by default.
    #[schema(example = "Europe/Paris")]
    poll_time_zone: Option<String>,
    /// Refused: the events of an instance are sent to the subscription of the project.
    #[schema(schema_with = refused, required = false)]
    #[expect(dead_code, reason = "refused while it is read")]
    egress_url: Option<Unimplemented>,
    /// Tool that runs for every event of the instance; null for no tool. Without this property, an
    /// existing instance keeps its own.
    #[serde(default, deserialize_with = "present")]
    pub action: Option<Option<Action>>,
}

/// Version for every toolkit, or versions by toolkit.
#[derive(Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "expected a version, or an object with versions by toolkit"
)]
#[schema(as = ToolkitVersions)]
pub(crate) enum Versions {
    All(String),
    ByToolkit(HashMap<String, String>),
}

impl Versions {
    fn selector(self) -> Result<VersionSelector> {
        let versions = match self {
            Self::All(version) => HashMap::from([(String::new(), version)]),
            Self::ByToolkit(versions) => versions,
        };
        ToolkitVersions::new(versions).selector(LATEST)
    }
}

impl UpsertBody {
    /// Returns the request for an instance of a trigger type.
    ///
    /// # Errors
    /// If an id or a version is malformed.
    pub(crate) fn into_upsert(self, trigger: String) -> Result<Upsert> {
        let account = self.connected_account_id.or(self.older_account_id);
        let action = self
            .action
            .map(|action| action.map(Action::into_app).transpose());
        let config = self.trigger_config.or(self.older_config);
        let versions = self.toolkit_versions.or(self.version.map(Versions::All));
        let versions = versions.map(Versions::selector).transpose()?;
        Ok(Upsert {
            trigger,
            versions: versions.unwrap_or_else(|| VersionSelector::all(LATEST)),
            account: account.as_deref().map(AccountId::parse).transpose()?,
            user_id: self.user_id,
            schedule: Schedule {
                interval_s: self.poll_interval_seconds,
                cron: self.poll_cron,
                time_zone: self.poll_time_zone,
            },
            action: action.transpose()?,
            config: config.unwrap_or_default(),
        })
    }
}

#[derive(Deserialize, ToSchema)]
#[schema(as = ChangeTriggerInstance)]
pub(crate) struct Change {
    /// State that the instance is to have. Required while no other property can be changed.
    #[schema(inline)]
    pub status: Option<WantedStatus>,
    /// The user that the caller expects.
    pub user_id: Option<String>,
    /// Refused: the events of an instance are sent to the subscription of the project.
    #[schema(schema_with = refused, required = false)]
    #[expect(dead_code, reason = "refused while it is read")]
    egress_url: Option<Unimplemented>,
}

/// State that an instance is to have.
#[derive(PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = WantedTriggerStatus)]
pub(crate) enum WantedStatus {
    Enable,
    Disable,
}
