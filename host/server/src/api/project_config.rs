//! Settings of a project.

use std::sync::Arc;

use app::{
    Error,
    projects::{self, Config, LogVisibility},
};
use axum::{extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Server,
    http::{auth::ProjectKey, branding::Branding, error::ApiResult, reply::Json, scaffold::ok},
    shapes,
};

/// The setting whose name contains the operator word.
const HOSTED_LINKS: &str = "is_service_link_enabled_for_managed_auth";

/// Settings in a request: absent or null members stay as they are, an empty text clears the
/// setting.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Given {
    #[serde(rename = "is_2FA_enabled")]
    is_2fa_enabled: Option<bool>,
    logo_url: Option<String>,
    display_name: Option<String>,
    mask_secret_keys_in_connected_account: Option<bool>,
    log_visibility_setting: Option<LogVisibility>,
    require_mcp_api_key: Option<bool>,
    signed_url_file_expiry_in_seconds: Option<f64>,
    oauth_callback_verifier_url: Option<String>,
    /// The member whose name contains the operator word.
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl Given {
    /// Applies the given settings.
    ///
    /// # Errors
    /// If a value is of the wrong type.
    pub(crate) fn apply(&self, config: &mut Config, branding: &Branding) -> Result<(), Error> {
        let name = &*branding.rename(HOSTED_LINKS);
        let hosted_links = match self.other.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::Bool(given)) => Some(*given),
            Some(_) => return Err(Error::invalid(format!("{name}: must be true or false"))),
        };
        for (given, setting) in [
            (self.is_2fa_enabled, &mut config.two_factor),
            (
                self.mask_secret_keys_in_connected_account,
                &mut config.mask_secrets,
            ),
            (self.require_mcp_api_key, &mut config.require_mcp_key),
            (hosted_links, &mut config.hosted_links),
        ] {
            *setting = given.unwrap_or(*setting);
        }
        for (given, setting) in [
            (&self.logo_url, &mut config.logo_url),
            (&self.display_name, &mut config.display_name),
            (&self.oauth_callback_verifier_url, &mut config.verifier_url),
        ] {
            if let Some(text) = given {
                *setting = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
            }
        }
        config.log_visibility = self.log_visibility_setting.unwrap_or(config.log_visibility);
        if let Some(seconds) = self.signed_url_file_expiry_in_seconds {
            // A value out of range is refused below, so the result of this cast does not matter.
            config.file_url_expiry = seconds as u32;
        }
        Ok(())
    }
}

/// Reads the settings of the project.
#[utoipa::path(
    get,
    path = "/org/project/config",
    operation_id = "read_config",
    responses((status = 200, description = "The settings", body = shapes::ProjectConfig)),
)]
pub(crate) async fn read(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
) -> ApiResult<Response> {
    ok(&view(&key.project.stored.config, &server.branding))
}

/// Changes the given settings, effective from the next request.
#[utoipa::path(
    patch,
    path = "/org/project/config",
    operation_id = "update_config",
    request_body = Option<shapes::ProjectSettings>,
    responses((status = 200, description = "The settings as they are now", body = shapes::ProjectConfig)),
)]
pub(crate) async fn update(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    crate::http::scaffold::AnyJson(given): crate::http::scaffold::AnyJson<Given>,
) -> ApiResult<Response> {
    let change = |config: &mut Config| given.apply(config, &server.branding);
    let config = projects::configure(&server.app, &key.project, change).await?;
    ok(&view(&config, &server.branding))
}

fn view(config: &Config, branding: &Branding) -> Value {
    let mut view = json!({
        "is_2FA_enabled": config.two_factor,
        "mask_secret_keys_in_connected_account": config.mask_secrets,
        "log_visibility_setting": config.log_visibility,
        "require_mcp_api_key": config.require_mcp_key,
        &*branding.rename(HOSTED_LINKS): config.hosted_links,
        "signed_url_file_expiry_in_seconds": config.file_url_expiry,
    });
    for (name, text) in [
        ("logo_url", &config.logo_url),
        ("display_name", &config.display_name),
        ("oauth_callback_verifier_url", &config.verifier_url),
    ] {
        if let Some(text) = text {
            view[name] = json!(text);
        }
    }
    view
}
