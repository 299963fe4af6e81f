//! The server that a command works on, and the key to it: from options, from the environment, or
//! from `<data>.env`.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use http::auth;
use settings::Config;
use url::{ParseError, Url};
use zeroize::Zeroizing;

use super::Running;
use crate::open::Stop;

/// Name of the URL of a server, in the environment and in `<data>.env`.
const URL_NAME: &str = "TOOLHOST_URL";
const PROJECT_KEY: Key = Key {
    header: auth::PROJECT_KEY_HEADER,
    flag: "--api-key",
    name: "TOOLHOST_API_KEY",
};
const ORGANIZATION_KEY: Key = Key {
    header: auth::ORGANIZATION_KEY_HEADER,
    flag: "--org-key",
    name: "TOOLHOST_ORG_API_KEY",
};

/// Kind of the key that a command needs.
struct Key {
    /// The header that carries it.
    header: &'static str,
    /// The option that sets it.
    flag: &'static str,
    /// Its name in `<data>.env`.
    name: &'static str,
}

/// Another server than the one of the data directory, and the organization's key to it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub(in crate::commands) struct ServerArgs {
    /// URL of the server [default: the one in <data>.env]
    #[arg(long, global = true, env = URL_NAME, value_parser = server_url)]
    url: Option<Url>,
    /// Organization key [default: the one in <data>.env]
    #[arg(
        long,
        global = true,
        env = "TOOLHOST_ORG_API_KEY",
        hide_env_values = true,
        value_name = "KEY"
    )]
    org_key: Option<Zeroizing<String>>,
}

/// A server, and the key of a project on it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub(in crate::commands) struct ProjectArgs {
    /// URL of the server [default: the one in <data>.env]
    #[arg(long, global = true, env = URL_NAME, value_parser = server_url)]
    pub(in crate::commands) url: Option<Url>,
    /// API key of the project [default: the one in <data>.env]
    #[arg(
        long,
        global = true,
        env = "TOOLHOST_API_KEY",
        hide_env_values = true,
        value_name = "KEY"
    )]
    pub(in crate::commands) api_key: Option<Zeroizing<String>>,
}

/// Parses the URL of a server.
fn server_url(text: &str) -> Result<Url, String> {
    match text.parse::<Url>() {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        // The name of a host before a port is read as a scheme.
        Ok(_) | Err(ParseError::RelativeUrlWithoutBase) => {
            Err("`http://` or `https://` is missing at the start".to_owned())
        }
        Err(cause) => Err(cause.to_string()),
    }
}

impl ProjectArgs {
    /// Returns a client for the server.
    pub(in crate::commands) fn reach(&self, config: &Config) -> Result<Running, Stop> {
        let key = self.api_key.as_ref();
        Ok(reach(config, self.url.as_ref(), PROJECT_KEY, key)?)
    }
}

impl ServerArgs {
    /// Returns true if a server is named and not known to be the one of the data directory.
    pub(in crate::commands) fn names_another(&self, config: &Config) -> bool {
        let Some(url) = &self.url else {
            return false;
        };
        let saved = EnvFile::read(config).get(URL_NAME);
        saved.as_deref() != Some(url.as_str().trim_end_matches('/'))
    }

    /// Returns a client for the server.
    pub(in crate::commands) fn reach(&self, config: &Config) -> Result<Running, Stop> {
        let key = self.org_key.as_ref();
        Ok(reach(config, self.url.as_ref(), ORGANIZATION_KEY, key)?)
    }
}

/// Creates a client for the server at this address, or for the one of the data directory.
fn reach(
    config: &Config,
    url: Option<&Url>,
    kind: Key,
    key: Option<&Zeroizing<String>>,
) -> anyhow::Result<Running> {
    let saved = EnvFile::read(config);
    let url = url
        .map(ToString::to_string)
        .or_else(|| saved.get(URL_NAME))
        .with_context(|| saved.missing(URL_NAME, "--url"))?
        .trim_end_matches('/')
        .to_owned();
    let key = key
        .cloned()
        .or_else(|| saved.get(kind.name).map(Zeroizing::new))
        .filter(|key| !key.is_empty())
        .with_context(|| saved.missing(kind.name, kind.flag))?;
    // The operator names the server, which is usually on this machine or in a private network.
    let client = net::Client::new(config.unrestricted_net()?);
    Ok(Running {
        client: client.map_err(|cause| anyhow!(cause.message))?,
        url,
        header: kind.header,
        key,
    })
}

/// `<data>.env`, with the address and the keys of the server of the data directory.
struct EnvFile {
    path: PathBuf,
    text: Zeroizing<String>,
}

impl EnvFile {
    /// Reads the file. It is empty if it cannot be read.
    fn read(config: &Config) -> Self {
        let path = config.env_file();
        let text = std::fs::read_to_string(&path).map(Zeroizing::new);
        Self {
            path,
            text: text.unwrap_or_default(),
        }
    }

    /// Returns a value of the file.
    fn get(&self, name: &str) -> Option<String> {
        let lines = self.text.lines();
        let mut pairs = lines
            .map(|line| line.strip_prefix("export ").unwrap_or(line))
            .filter_map(|line| line.split_once('='));
        pairs
            .find(|(own, value)| *own == name && !value.is_empty())
            .map(|(_, value)| value.to_owned())
    }

    /// Describes a value that neither the file nor an option has.
    fn missing(&self, name: &str, flag: &str) -> String {
        let shown = self.path.display();
        if self.path.exists() {
            return format!("{shown} does not contain {name}: set {flag} or {name}");
        }
        format!(
            "{shown}, which the first start of a server writes, does not exist: set {flag} or {name}, or --data to the directory of the server"
        )
    }
}
