//! The settings of a project.

use serde::{Deserialize, Serialize};

use crate::{Result, core::visible::is_plain_line, projects::errors};

/// Maximum length of a URL in a project's settings, in bytes.
const MAX_URL_BYTES: usize = 2_048;
/// Maximum length of a display name, in characters.
const MAX_DISPLAY_NAME_CHARS: usize = 100;
/// Allowed lifetimes of a link to a file, in seconds.
const FILE_URL_EXPIRY_SECONDS: std::ops::RangeInclusive<u32> = 60..=604_800;

/// The settings of a project.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// If true, a call that names a connected account must also name its user.
    pub two_factor: bool,
    /// If true, secrets in responses are masked.
    pub mask_secrets: bool,
    /// The data that the execution log keeps.
    pub log_visibility: LogVisibility,
    /// If true, MCP endpoints require the project's key.
    pub require_mcp_key: bool,
    /// The logo shown on hosted pages.
    pub logo_url: Option<String>,
    /// The project name shown on hosted pages.
    pub display_name: Option<String>,
    /// If true, hosted pages may connect accounts with the server's own OAuth credentials.
    pub hosted_links: bool,
    /// The lifetime of a link to a file, in seconds.
    pub file_url_expiry: u32,
    /// The URL that a user's browser is sent to before an account becomes active, so that the
    /// application can verify the user.
    pub verifier_url: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            two_factor: true,
            mask_secrets: true,
            log_visibility: LogVisibility::ShowAll,
            require_mcp_key: false,
            logo_url: None,
            display_name: None,
            hosted_links: true,
            file_url_expiry: 3_600,
            verifier_url: None,
        }
    }
}

impl Config {
    /// Checks the settings and reports each invalid value on its own line.
    pub(super) fn check(&self) -> Result<()> {
        let mut problems = Vec::new();
        for (name, url) in [
            ("logo_url", &self.logo_url),
            ("oauth_callback_verifier_url", &self.verifier_url),
        ] {
            if url
                .as_ref()
                .is_some_and(|url| !is_web(url) || url.len() > MAX_URL_BYTES)
            {
                problems.push(format!(
                    "{name}: must be an http or https URL of at most {MAX_URL_BYTES} bytes"
                ));
            }
        }
        if let Some(name) = &self.display_name
            && (name.chars().count() > MAX_DISPLAY_NAME_CHARS || !is_plain_line(name))
        {
            problems.push(format!(
                "display_name: at most {MAX_DISPLAY_NAME_CHARS} characters, without line breaks, invisible ones and those that change the direction of text"
            ));
        }
        if !FILE_URL_EXPIRY_SECONDS.contains(&self.file_url_expiry) {
            let (least, most) = FILE_URL_EXPIRY_SECONDS.into_inner();
            problems.push(format!(
                "signed_url_file_expiry_in_seconds: must be {least} to {most}"
            ));
        }
        errors::refuse_problems(problems, errors::invalid)
    }
}

fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// The data that the execution log keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogVisibility {
    /// Arguments and results are kept, sealed.
    ShowAll,
    /// Arguments and results are not kept; only the execution itself is recorded.
    DontStoreData,
}
