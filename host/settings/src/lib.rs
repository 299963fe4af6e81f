//! Settings: each is declared once, with its type, default, range, unit and doc comment.
//!
//! The value of a key comes from a flag, else from the environment (`TOOLHOST_NET__ALLOW` is
//! `net.allow`, lists are comma-separated), else from the file (the one that `--config` names, or
//! `toolhost.toml`, or `/etc/toolhost/toolhost.toml`), else from the declaration. An unknown key is an
//! error, so that a typing mistake does not pass as a setting; a removed one (`removed.rs`) is a
//! warning. This module is the only one that reads the environment, except for variables that replace
//! arguments of commands.
//!
//! The files of groups declare settings. `setting.rs` makes the structs and the descriptions,
//! `load.rs` reads the values, which `types.rs` converts to the types of their settings. `sources.rs`
//! records the origin of each value, `problems.rs` collects those that are not valid, and `print.rs`
//! formats help, tables and TOML from the descriptions.

mod connections;
mod events;
mod files;
mod flags;
mod keys;
mod limits;
mod llm;
mod load;
mod log_filter;
mod logs;
mod mcp;
mod metrics;
mod net;
mod oauth_apps;
mod print;
mod problems;
mod publish;
mod removed;
mod s3;
mod sandbox;
mod sessions;
mod setting;
mod sink;
mod sources;
mod telemetry;
#[cfg(test)]
mod tests;
mod triggers;
mod types;
mod values;
mod webhooks;
mod workbench;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

pub use self::{
    connections::Connections,
    flags::Flags,
    limits::{
        BODIES_PER_ADDRESS, BODIES_PER_PROJECT, IN_FLIGHT_WAIT, Limits, MAX_BODY_BYTES,
        MAX_EXECUTE_BODY_BYTES, PACE_WINDOW,
    },
    llm::MAX_COMPLETION_TOKENS,
    load::{Loaded, load},
    log_filter::WARNING_TARGET,
    logs::{MAX_CASSETTE_BYTES, MAX_PAYLOAD_BYTES},
    print::{effective, example, help, table},
    sandbox::{Allocator, MAX_BUSY_CALLS_PER_PROJECT, QUEUE_TIMEOUT, Sandbox},
    sessions::UnknownMembers,
    setting::Setting,
    sources::Sources,
    telemetry::Collector,
    webhooks::DELIVERIES_PER_ENDPOINT,
    workbench::{SCRIPT_MEMORY_BYTES, SCRIPTS_PER_PROJECT, Workbench},
};
use self::{
    events::Events,
    files::Files,
    keys::Keys,
    llm::Llm,
    logs::Logs,
    mcp::Mcp,
    metrics::Metrics,
    net::Net,
    oauth_apps::OauthApp,
    problems::Problems,
    publish::Publish,
    s3::S3,
    sessions::Sessions,
    setting::{Group, settings},
    sink::Sink,
    telemetry::Telemetry,
    triggers::Triggers,
    values::Secret,
    webhooks::Webhooks,
};

settings! {
    /// The server.
    pub struct Config {
        /// Data directory: the store, the components and the compiled artifacts. Set it to a folder
        /// on the disk that has space for them. It is created with mode 0700, and refused (exit code
        /// 78) when group or others have access.
        pub data: PathBuf = PathBuf::from("toolhost-data"),
        /// Database of the records: `postgres://user:password@host/database`. PostgreSQL 14 or
        /// newer, which several servers may share; `sslmode` and its options are part of the
        /// address.
        #[setting(
            unset = "in the data directory",
            example = "postgres://user:password@host/database?sslmode=verify-full",
        )]
        pub store: Option<Secret>,
        /// Bucket of components, files and other large values: `s3://bucket/prefix`. Several servers
        /// on one database need one.
        #[setting(unset = "in the data directory", example = "s3://bucket/prefix")]
        pub blobs: Option<String>,
        /// Master key file. It has mode 0600 and lies outside the data directory. **Back it up
        /// separately from the data.**
        #[setting(unset = "`<data>.key`", example = "/etc/toolhost/master.key")]
        pub key_file: Option<PathBuf>,
        /// Address and port to listen on. Name a public address if no proxy on this machine is in
        /// front of the server. Port 0 takes a free one.
        pub listen: String = "127.0.0.1:8080".into(),
        /// Address under which clients and browsers reach this server, if it differs from the one
        /// listened on, for example behind a proxy. OAuth callbacks and file links use it.
        #[setting(unset = "from `listen`", example = "https://tools.example.com")]
        pub public_url: Option<Url>,
        /// A folder of `*.wasm` components, published at each start, for toolkits of your own. With
        /// an empty folder, no toolkit of the release is published.
        #[setting(unset = "those of the release that the store lacks", example = "./toolkits")]
        pub toolkits: Option<PathBuf>,
        /// The operator word in identifiers such as `is_service_managed`, for client SDKs that
        /// carry another word: 1 to 32 lower-case letters and digits.
        pub operator_word: String = "service".into(),
        /// Filter of the log: a level, and `target=level` for other modules, in the syntax of
        /// `tracing-subscriber`'s `EnvFilter`. Targets without a level are at `warn`. `info` adds a line
        /// for each request, execution and change of keys and settings; `debug` helps to find the
        /// cause of a problem.
        pub log: String = "warn".into(),
        /// Form of the log: `text`, or `json` with one object per line for programs that collect
        /// logs.
        pub log_format: LogFormat = LogFormat::Text,
        groups {
            pub s3: S3,
            pub net: Net,
            pub sandbox: Sandbox,
            pub limits: Limits,
            pub logs: Logs,
            pub metrics: Metrics,
            pub telemetry: Telemetry,
            pub files: Files,
            pub connections: Connections,
            pub events: Events,
            pub webhooks: Webhooks,
            pub sink: Sink,
            pub triggers: Triggers,
            pub mcp: Mcp,
            pub sessions: Sessions,
            pub workbench: Workbench,
            pub keys: Keys,
            pub publish: Publish,
            pub llm: Llm,
            pub oauth_apps: BTreeMap<String, OauthApp>,
        }
    }
}

/// `log_format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Lists all settings with their defaults.
pub fn all() -> Vec<Setting> {
    // Only a non-text path could fail, and no default contains one.
    let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
    Config::settings()
        .into_iter()
        .map(|setting| Setting {
            default: value_at(&defaults, &setting.key),
            ..setting
        })
        .collect()
}

/// Returns true if an address has a host, which may be a name, and a port.
fn has_port(address: &str) -> bool {
    let parts = address.rsplit_once(':');
    parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// Returns the value at a key; null if it is missing.
fn value_at(values: &Value, key: &str) -> Value {
    let found = key
        .split('.')
        .try_fold(values, |value, name| value.get(name));
    found.cloned().unwrap_or_default()
}

impl Config {
    /// Returns the path of `public_url` without its final slash: empty, unless a proxy serves this server
    /// below a path of its host.
    pub fn public_path(&self) -> &str {
        let path = self.public_url.as_ref().map(Url::path);
        path.unwrap_or_default().trim_end_matches('/')
    }

    /// Checks rules that are not the range of one number.
    fn check(&self, problems: &mut Problems) {
        let word = &self.operator_word;
        problems.unless(
            (1..=32).contains(&word.len())
                && word
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()),
            "operator_word",
            format!("is `{word}`: it must be 1 to 32 lower-case letters and digits"),
        );
        problems.unless(
            self.public_url.as_ref().is_none_or(|url| {
                matches!(url.scheme(), "http" | "https")
                    && url.query().is_none()
                    && url.fragment().is_none()
            }),
            "public_url",
            "must be an `http` or `https` URL without a query and a fragment",
        );
        let addresses = [
            ("listen", Some(&self.listen)),
            ("metrics.listen", self.metrics.listen.as_ref()),
        ];
        for (name, address) in addresses {
            problems.unless(
                address.is_none_or(|address| has_port(address)),
                name,
                "must be an address and a port, for example `127.0.0.1:8080`",
            );
        }
        self.check_store(problems);
        self.llm.check(problems);
        self.telemetry.check(problems);
        self.check_oauth_apps(problems);
        self.check_net(problems);
        problems.of("webhooks.retry_delays_s", self.retry_delays());
        problems.of("sink.url", self.sink_url());
        problems.of("blobs", self.bucket());
        problems.of("publish.trusted_keys", self.trusted_keys());
        problems.of("log", self.log_filter(""));
    }

    fn check_store(&self, problems: &mut Problems) {
        problems.unless(
            self.database().is_none_or(|address| {
                let schemes = ["postgres://", "postgresql://"];
                schemes.iter().any(|scheme| address.starts_with(scheme))
            }),
            "store",
            "must be `postgres://user:password@host/database`; without it records lie in the data directory",
        );
        let key = absolute(&self.key_file());
        problems.unless(
            !key.starts_with(self.data_path()),
            "key_file",
            format!(
                "is {}, inside the data directory; a thief of one would have both: set `key_file` elsewhere",
                key.display()
            ),
        );
    }

    /// Returns the address of the database; `None` if records are in the data directory. The
    /// address may contain a password.
    pub fn database(&self) -> Option<&str> {
        self.store.as_ref().map(|store| store.expose().as_str())
    }

    /// Returns the path of the master key.
    pub fn key_file(&self) -> PathBuf {
        self.key_file.clone().unwrap_or_else(|| self.beside("key"))
    }

    /// Returns the path of the file with address and keys for clients, written on the first start.
    pub fn env_file(&self) -> PathBuf {
        self.beside("env")
    }

    /// Returns the absolute path of the data directory.
    pub fn data_path(&self) -> PathBuf {
        absolute(&self.data)
    }

    fn beside(&self, extension: &str) -> PathBuf {
        let mut name = self.data_path().into_os_string();
        name.push(".");
        name.push(extension);
        PathBuf::from(name)
    }
}

/// Returns three quarters of a number, at least 1.
const fn three_quarters(number: usize) -> usize {
    let part = number / 4 * 3 + number % 4 * 3 / 4;
    if part == 0 { 1 } else { part }
}

/// Converts a quota to bytes; returns `None` without a limit.
fn mib(quota: u64) -> Option<u64> {
    (quota > 0).then_some(quota << 20)
}

/// Converts days to a duration.
const fn days(number: u64) -> Duration {
    Duration::from_secs(number * 86_400)
}

/// Converts the days for which something is kept; returns `None` if it is kept forever.
fn retention(keep_days: u32) -> Option<Duration> {
    (keep_days > 0).then_some(days(keep_days.into()))
}

/// Returns the absolute path without `.`, `..` and a trailing slash. The file system is not
/// accessed.
fn absolute(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut out = PathBuf::new();
    for part in absolute.components() {
        match part {
            std::path::Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}
