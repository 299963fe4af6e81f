//! Request and view of the settings of a project.

use app::{
    Error,
    projects::{self, Config},
};
use http::{errors, unimplemented::ignored};
use serde::{Deserialize, de::IgnoredAny};
use utoipa::ToSchema;

/// Changes to the settings of a project: null changes nothing, an empty text clears a setting.
#[derive(Deserialize, ToSchema)]
#[schema(as = ProjectSettings)]
pub(crate) struct Update {
    #[serde(rename = "is_2FA_enabled")]
    is_2fa_enabled: Option<bool>,
    logo_url: Option<String>,
    display_name: Option<String>,
    mask_secret_keys_in_connected_account: Option<bool>,
    log_visibility_setting: Option<LogVisibility>,
    /// Other name of `log_visibility_setting`: `true` is `dont_store_data`, `false` is `show_all`.
    zdr_enabled: Option<bool>,
    require_mcp_api_key: Option<bool>,
    is_service_link_enabled_for_managed_auth: Option<bool>,
    /// 60 to 604800.
    signed_url_file_expiry_in_seconds: Option<f64>,
    oauth_callback_verifier_url: Option<String>,
    #[schema(schema_with = ignored, required = false)]
    #[expect(dead_code, reason = "accepted without effect")]
    theme: Option<IgnoredAny>,
    #[schema(schema_with = ignored, required = false)]
    #[expect(dead_code, reason = "accepted without effect")]
    enable_instant: Option<IgnoredAny>,
}

impl Update {
    /// Refuses settings that contradict each other.
    ///
    /// # Errors
    /// If both names of one setting are given and differ.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match (self.log_visibility_setting, self.zdr_enabled) {
            (Some(setting), Some(zdr)) if setting != zdr_setting(zdr) => Err(errors::invalid(
                "zdr_enabled: contradicts `log_visibility_setting`; send one of them",
            )),
            _ => Ok(()),
        }
    }

    /// Applies the given settings.
    #[rustfmt::skip]
    pub(crate) fn apply(&self, config: &mut Config) {
        set(&mut config.two_factor, self.is_2fa_enabled);
        set(&mut config.mask_secrets, self.mask_secret_keys_in_connected_account);
        let log_visibility = self.log_visibility_setting.or(self.zdr_enabled.map(zdr_setting));
        set(&mut config.log_visibility, log_visibility.map(Into::into));
        set(&mut config.require_mcp_key, self.require_mcp_api_key);
        set(&mut config.hosted_links, self.is_service_link_enabled_for_managed_auth);
        // `Config` refuses values out of range, so the result of this cast does not matter.
        set(&mut config.file_url_expiry, self.signed_url_file_expiry_in_seconds.map(|seconds| seconds as u32));
        set_text(&mut config.logo_url, self.logo_url.as_deref());
        set_text(&mut config.display_name, self.display_name.as_deref());
        set_text(&mut config.verifier_url, self.oauth_callback_verifier_url.as_deref());
    }
}

fn zdr_setting(enabled: bool) -> LogVisibility {
    match enabled {
        true => LogVisibility::DontStoreData,
        false => LogVisibility::ShowAll,
    }
}

fn set<T>(setting: &mut T, given: Option<T>) {
    if let Some(value) = given {
        *setting = value;
    }
}

/// Sets a string; an empty one clears the setting.
fn set_text(setting: &mut Option<String>, given: Option<&str>) {
    if let Some(text) = given.map(str::trim) {
        *setting = Some(text.to_owned()).filter(|text| !text.is_empty());
    }
}

mirror! {
    /// Storage of arguments and results in the execution log.
    #[serde(rename_all = "snake_case")]
    enum LogVisibility of projects::LogVisibility {
        ShowAll,
        DontStoreData,
    }
}

view! {
    /// The settings of a project. Texts are present only if they were set.
    #[schema(as = ProjectConfig)]
    pub(crate) struct View from config: Config {
        /// True if calls that name an account must name its user, too.
        #[serde(rename = "is_2FA_enabled")] is_2fa_enabled: bool = config.two_factor,
        /// True if secrets of accounts are masked in responses.
        mask_secret_keys_in_connected_account: bool = config.mask_secrets,
        log_visibility_setting: LogVisibility = config.log_visibility.into(),
        require_mcp_api_key: bool = config.require_mcp_key,
        is_service_link_enabled_for_managed_auth: bool = config.hosted_links,
        /// Lifetime of a link to a file, in seconds.
        signed_url_file_expiry_in_seconds: u32 = config.file_url_expiry,
        #[serde(skip_serializing_if = "Option::is_none")]
        logo_url: Option<String> = config.logo_url,
        #[serde(skip_serializing_if = "Option::is_none")]
        display_name: Option<String> = config.display_name,
        #[serde(skip_serializing_if = "Option::is_none")]
        oauth_callback_verifier_url: Option<String> = config.verifier_url,
    }
}
