//! Settings: every key, its default and its unit.
//!
//! The value of a key comes from a flag, else from the environment (`TOOLHOST_NET__ALLOW` is
//! `net.allow`, lists are comma-separated), else from the file (`toolhost.toml`, or the one that
//! `--config` names), else from the defaults below. An unknown key is an error, so that a typing
//! mistake does not pass as a setting. This module is the only one that reads the environment,
//! except for secrets that replace flags of commands.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use app::catalog::TrustedKeys;
use app::connections::{Settings as ConnectionSettings, apps::NewOauthApp};
use app::files::Settings as FileSettings;
use app::quotas::Settings as QuotaSettings;
use app::tools::log::{CassettePolicy, Retention};
use config::{Environment, File, FileFormat};
use net::ipnet::IpNet;
use serde::Deserialize;
use store::BucketSettings;
use url::Url;
use zeroize::Zeroizing;

const FILE: &str = "toolhost.toml";
/// Names in the environment that are no settings: those that `<data>.env` gives to clients, and
/// those that replace a flag of a command.
const OTHER_NAMES: [&str; 5] = [
    "TOOLHOST_URL",
    "TOOLHOST_API_KEY",
    "TOOLHOST_ORG_API_KEY",
    "TOOLHOST_PROJECT_ID",
    "TOOLHOST_PASSPHRASE",
];

/// Time over which `limits.min_rate_kib` is measured.
pub(crate) const PACE_WINDOW: Duration = Duration::from_secs(5);

/// Headers of a request to a language model that describe its body and its destination. Clients
/// cannot set them.
const OURS: [&str; 8] = [
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "accept-encoding",
    "expect",
    "upgrade",
];

/// Defines structs of settings with a list of their keys. The doc comment of a field is also its
/// text in `toolhost serve --help`.
macro_rules! settings {
    ($(#[$attribute:meta])* pub(crate) struct $name:ident { $($(#[doc = $text:literal])+ pub $key:ident: $type:ty,)+ }) => {
        $(#[$attribute])* pub(crate) struct $name { $($(#[doc = $text])+ pub $key: $type,)+ }

        impl $name {
            const KEYS: &[(&str, &str)] = &[$((stringify!($key), concat!($($text),+)),)+];
        }
    };
}

settings! {
/// All settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Folder of the store and of the compiled components. Default `./toolhost-data`.
    pub data: PathBuf,
    /// Database of the records: `postgres://user:password@host/database`, which several servers may
    /// share. `sslmode` and its options are part of the address. Default: in the data directory.
    pub store: Option<Secret>,
    /// Bucket of components and other large values: `s3://bucket/prefix`. Default: in the data
    /// directory.
    pub blobs: Option<String>,
    /// The service that has the bucket.
    pub s3: S3,
    /// The master key. Default `<data>.key`, beside the data directory and never inside it.
    pub key_file: Option<PathBuf>,
    /// Address and port to listen on. Port 0 takes a free one. Default `127.0.0.1:8080`.
    pub listen: String,
    /// The address that clients use, if it differs from the one listened on, for example behind a
    /// proxy.
    pub public_url: Option<Url>,
    /// A folder of `*.wasm` components, published at start.
    pub toolkits: Option<PathBuf>,
    /// The operator word in identifiers such as `is_service_managed`: lower case. Default
    /// `service`.
    pub operator_word: String,
    /// Filter of the log, in the syntax of `tracing-subscriber`'s `EnvFilter`. Default `warn`.
    pub log: String,
    /// `text` or `json`. Default `text`.
    pub log_format: LogFormat,
    /// No colors, as when `NO_COLOR` is set. Default false.
    pub plain: bool,
    /// Outgoing requests, and the proxies in front of the server.
    pub net: Net,
    /// Execution of toolkits.
    pub sandbox: Sandbox,
    /// Limits on the requests of clients.
    pub limits: Limits,
    /// The execution log.
    pub logs: Logs,
    /// Files.
    pub files: Files,
    /// Connecting accounts, and refreshing their tokens.
    pub connections: Connections,
    /// OAuth apps of the operator at providers, by toolkit: `oauth_apps.SLUG.client_id`,
    /// `oauth_apps.SLUG.client_secret`, and `oauth_apps.SLUG.scopes`, a list. They replace those of
    /// `toolhost oauth-apps` at each start. Default none.
    pub oauth_apps: BTreeMap<String, OauthApp>,
    /// API keys.
    pub keys: Keys,
    /// Publishing toolkits.
    pub publish: Publish,
    /// The language model that turns prompts into arguments.
    pub llm: Llm,
}
}

/// `log_format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
}

settings! {
/// `s3.*`. Keys that are not set here are read from the environment names that other programs use,
/// too.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct S3 {
    /// The service, if it is not Amazon's. Only one that is named may use plain `http`. Default
    /// `AWS_ENDPOINT_URL`.
    pub endpoint: Option<Url>,
    /// Region. Default `AWS_REGION`, else `us-east-1`.
    pub region: Option<String>,
    /// Access key id of the bucket. Default `AWS_ACCESS_KEY_ID`.
    pub access_key_id: Option<String>,
    /// Secret of the access key. Default `AWS_SECRET_ACCESS_KEY`.
    pub secret_access_key: Option<Secret>,
    /// Token of a temporary access key. Default `AWS_SESSION_TOKEN`.
    pub session_token: Option<Secret>,
    /// Clients download files from the bucket itself, and upload them to it, by presigned links;
    /// they must reach its endpoint, and send with an upload the headers that the response lists.
    /// Otherwise files pass through this server. Default false.
    pub presigned: bool,
}
}

/// A setting whose value is never shown.
#[derive(Clone, Deserialize)]
#[serde(from = "String")]
pub(crate) struct Secret(Zeroizing<String>);

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// List of texts. In the environment it is one text with commas.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "Listed")]
pub(crate) struct List(Vec<String>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "a list of texts, or one text with commas")]
enum Listed {
    Joined(String),
    Parts(Vec<String>),
}

impl From<Listed> for List {
    fn from(listed: Listed) -> Self {
        match listed {
            Listed::Joined(text) => {
                Self(text.split(',').map(|part| part.trim().to_owned()).collect())
            }
            Listed::Parts(parts) => Self(parts),
        }
    }
}

impl std::ops::Deref for List {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.0
    }
}

settings! {
/// `net.*`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Net {
    /// Private ranges that toolkits may reach although they are private, for example `10.1.0.0/16`.
    /// Default none.
    pub allow: List,
    /// `from=to` pairs of origins, for example `https://api.example.com=http://127.0.0.1:9000`.
    /// Default none.
    pub rewrite: List,
    /// Ranges of the reverse proxies in front of this server, for example `10.0.0.0/8`. A request
    /// from one of them counts for the address that its `Forwarded` or `X-Forwarded-For` header
    /// names; from any other address these headers are ignored. Default none.
    pub trusted_proxies: List,
}
}

settings! {
/// `sandbox.*`
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sandbox {
    /// `pooling` or `on_demand`. Default `pooling`.
    pub allocator: Allocator,
    /// Calls that run at once, including those that wait for a provider. Default 512.
    pub live: usize,
    /// Of them, calls of one project. Default 64.
    pub live_per_project: usize,
    /// Calls of one project that have used enough processor time to be moved to threads of their
    /// own. Default 8.
    pub busy_per_project: usize,
    /// Calls that wait in the queue. Default 128.
    pub queue: usize,
    /// Of them, calls of one project. Default 16.
    pub queue_per_project: usize,
    /// Timeout of a call in the queue, in milliseconds. Default 2000.
    pub queue_wait_ms: u64,
    /// Memory of all calls together, in MiB. Default 1024.
    pub memory_mib: u64,
    /// Threads for calls that need much processor time. Default: one per core.
    pub threads: Option<usize>,
    /// Components kept loaded. Default 256.
    pub resident: Option<usize>,
    /// Processor time for compiling one component, in seconds. Default 60, at most 600.
    pub compile_cpu_s: u64,
    /// Wall-clock time for compiling it, in seconds. Default 120, at most 1200.
    pub compile_wall_s: u64,
    /// Memory for compiling it, in MiB. Default 2048, at least 64, at most 16384.
    pub compile_memory_mib: u64,
}
}

/// `sandbox.allocator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Allocator {
    /// Instances are taken from a pool made at start: fast, but reserves address space.
    Pooling,
    /// Instances are made when needed.
    #[serde(alias = "on-demand")]
    OnDemand,
}

settings! {
/// `limits.*`
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    /// Body of an execution, in KiB. Default 4096, at most 16384.
    pub execute_body_kib: usize,
    /// Any other JSON body, in KiB. Default 1024, at most 16384.
    pub body_kib: usize,
    /// Requests answered at once. Default 512.
    pub in_flight: usize,
    /// Of them, requests of one project. Default 64.
    pub in_flight_per_project: usize,
    /// Timeout of a request that waits because of these limits, in milliseconds. Default 250, at
    /// most 5000.
    pub in_flight_wait_ms: u64,
    /// Timeout for the arrival of a body, in seconds. Default 30, at most 300; files have
    /// `files.transfer_s`.
    pub body_s: u64,
    /// Minimum speed at which a body arrives and a response is read, in KiB per second over five
    /// seconds; 0 for any. Default 1, at most 1024.
    pub min_rate_kib: u64,
    /// Arriving bodies from one address. Default 128.
    pub bodies_per_address: usize,
    /// Arriving bodies of one project. Default 64.
    pub bodies_per_project: usize,
    /// Memory of all arriving bodies, in MiB: a quarter of it for one project, a sixteenth for one
    /// address without a key. Default 256, at most 65536.
    pub bodies_mib: usize,
    /// Deadline of an operation, including the arrival of its body, in seconds; executions,
    /// publications and files have limits of their own. Default 30, at most 300.
    pub deadline_s: u64,
    /// Timeout of a connection for the next request, or for the whole head of one, in seconds.
    /// Default 75, at most 600.
    pub idle_s: u64,
    /// Requests of one organization in ten minutes; 0 for no limit. Default 20000.
    pub rate: u32,
    /// Of them, requests of one project; 0 for no limit of its own. Default 10000.
    pub rate_per_project: u32,
    /// Of them, requests with one key; 0 for no limit of its own. Default 0.
    pub rate_per_key: u32,
    /// Failed authentications from one address in a minute, counted separately for keys, links and
    /// callbacks; 0 for no limit. An IPv6 address counts as its /64. Default 30.
    pub failed_auth: u32,
    /// Open connections. Default 4096.
    pub connections: usize,
    /// Of them, from one address that is not a trusted proxy. Default 256.
    pub connections_per_address: usize,
    /// Time that a stopping server waits for running requests, in seconds. Default 30.
    pub drain_s: u64,
    /// Responses that are stored for the Idempotency-Keys of one project in a day, in MiB, at most
    /// 1048576; 0 for no limit. Requests beyond it are performed, but their responses are not
    /// stored. Default 256.
    pub answers_mib: u64,
}
}

settings! {
/// `logs.*`
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Logs {
    /// An execution is answered only when its record is durable. Default false: the record trails
    /// by at most 20 ms.
    pub wait: bool,
    /// Records that may wait to be written; when this many wait, new executions wait too. Default
    /// 4096.
    pub buffer: usize,
    /// Arguments and result kept in a record, in KiB each; larger ones are left out and marked as
    /// such. Default 64.
    pub payload_kib: usize,
    /// Days that an execution stays in the log after it ended; 0 for ever. Default 30, at most
    /// 36500.
    pub keep_days: u32,
    /// Newest executions of each project that stay in the log; up to 63 more do. 0 for any number.
    /// Default 0.
    pub keep_count: u64,
    /// Executions that leave a cassette, with which an author can replay them on another machine:
    /// `off`, `failed` or `all`. A cassette holds the responses of the provider, encrypted.
    /// Projects that store no data have none. Default `off`.
    pub cassettes: CassettePolicy,
    /// Content of a cassette, in KiB, at most 8192; a larger execution leaves none. Default 256.
    pub cassette_kib: usize,
    /// Records and cassettes that may wait to be written, in MiB, at most 65536; when no more fits,
    /// new executions wait. An execution reserves twice `logs.payload_kib` before it starts.
    /// Default 256.
    pub buffer_mib: usize,
    /// Bytes that the log of one project takes in a day, in MiB, at most 1048576; 0 for no limit.
    /// Beyond it records have neither arguments nor result, and say so. Default 2048.
    pub quota_mib: u64,
}
}

settings! {
/// `files.*`
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Files {
    /// One file that a client uploads, and all files of one call together, in MiB. Default 100, at
    /// most 1024.
    pub size_mib: u64,
    /// Days that a file is kept; 0 for ever. Default 30, at most 36500.
    pub keep_days: u32,
    /// Files that are uploaded or downloaded by links at once; each is held in memory. Default 16,
    /// at most 1024.
    pub transfers: usize,
    /// Of them, files of one project. Default 4.
    pub transfers_per_project: usize,
    /// Timeout for the upload or download of a file, in seconds. Default 600, at most 3600.
    pub transfer_s: u64,
    /// All files of one project together, in MiB, at most 1073741824; 0 for no limit. Default
    /// 10240.
    pub quota_mib: u64,
}
}

settings! {
/// `connections.*`
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Connections {
    /// Seconds that an account waits for its user to connect it. Default 600, at most 3600.
    pub pending_s: u64,
    /// Seconds that a user may take at a provider before the callback is refused. Default 3600, at
    /// most 3600.
    pub away_s: u64,
    /// Seconds before its expiry at which a token is refreshed, or the last quarter of its life if
    /// that is shorter. Default 300, at most 3600.
    pub refresh_margin_s: u64,
    /// Seconds that a server has for refreshing a token before another one may try. Default 90, at
    /// most 600; token endpoints get 30 of them.
    pub refresh_lease_s: u64,
    /// Seconds that a call waits for a token that is being refreshed, or for a client that is being
    /// registered. Default 20, at most 60.
    pub refresh_wait_s: u64,
    /// Seconds after its last refresh in which an unused account is refreshed, so that its refresh
    /// token does not expire. Default 86400, at most 2592000.
    pub idle_refresh_s: u64,
}
}

/// `oauth_apps.SLUG.*`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OauthApp {
    /// Client id that the provider issued.
    pub client_id: String,
    /// Client secret that the provider issued; left out for a client without one.
    pub client_secret: Option<Secret>,
    /// Scopes requested for every connection, in addition to those of the toolkit.
    pub scopes: List,
}

settings! {
/// `keys.*`
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Keys {
    /// Project detail, read with the organization key, shows project keys in full. Default true.
    pub reveal: bool,
}
}

settings! {
/// `publish.*`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Publish {
    /// Public minisign keys. If there are any, only components signed with one of them are
    /// published. Default none.
    pub trusted_keys: List,
}
}

settings! {
/// `llm.*`
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Llm {
    /// An endpoint of chat completions, without `/chat/completions`: `https://api.example.com/v1`,
    /// or one on this machine. The `text` of users is sent to it. Default none.
    pub base_url: Option<Url>,
    /// The name of the model at the endpoint. Default none.
    pub model: Option<String>,
    /// The key for the endpoint, sent as a bearer token. Default none.
    pub key: Option<Secret>,
    /// Headers of `x-llm-gateway-headers` that are forwarded; others are left out. Default none.
    pub headers: List,
    /// Timeout for making arguments, in seconds, at most 300. Default 30.
    pub timeout_s: u64,
    /// Tokens of a completion, at most 65536. Default 2048.
    pub max_tokens: u32,
    /// Prompts that are processed at once, at most 1024. Default 16.
    pub at_once: usize,
    /// Of them, prompts of one project, at most 1024. Default 8.
    pub at_once_per_project: usize,
}
}

impl Default for Llm {
    fn default() -> Self {
        Self {
            base_url: None,
            model: None,
            key: None,
            headers: List::default(),
            timeout_s: 30,
            max_tokens: 2_048,
            at_once: 16,
            at_once_per_project: 8,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data: PathBuf::from("toolhost-data"),
            store: None,
            blobs: None,
            s3: S3::default(),
            key_file: None,
            listen: "127.0.0.1:8080".into(),
            public_url: None,
            toolkits: None,
            operator_word: "service".into(),
            log: "warn".into(),
            log_format: LogFormat::Text,
            plain: false,
            net: Net::default(),
            sandbox: Sandbox::default(),
            limits: Limits::default(),
            logs: Logs::default(),
            files: Files::default(),
            connections: Connections::default(),
            oauth_apps: BTreeMap::new(),
            keys: Keys::default(),
            publish: Publish::default(),
            llm: Llm::default(),
        }
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self {
            allocator: Allocator::Pooling,
            live: 512,
            live_per_project: 64,
            busy_per_project: 8,
            queue: 128,
            queue_per_project: 16,
            queue_wait_ms: 2_000,
            memory_mib: 1_024,
            threads: None,
            resident: None,
            compile_cpu_s: 60,
            compile_wall_s: 120,
            compile_memory_mib: 2_048,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            execute_body_kib: 4_096,
            body_kib: 1_024,
            in_flight: 512,
            in_flight_per_project: 64,
            in_flight_wait_ms: 250,
            body_s: 30,
            min_rate_kib: 1,
            bodies_per_address: 128,
            bodies_per_project: 64,
            bodies_mib: 256,
            deadline_s: 30,
            idle_s: 75,
            rate: 20_000,
            rate_per_project: 10_000,
            rate_per_key: 0,
            failed_auth: 30,
            connections: 4_096,
            connections_per_address: 256,
            drain_s: 30,
            answers_mib: 256,
        }
    }
}

impl Default for Logs {
    fn default() -> Self {
        Self {
            wait: false,
            buffer: 4_096,
            payload_kib: 64,
            keep_days: 30,
            keep_count: 0,
            cassettes: CassettePolicy::Off,
            cassette_kib: 256,
            buffer_mib: 256,
            quota_mib: 2_048,
        }
    }
}

impl Default for Files {
    fn default() -> Self {
        Self {
            size_mib: 100,
            keep_days: 30,
            transfers: 16,
            transfers_per_project: 4,
            transfer_s: 600,
            quota_mib: 10_240,
        }
    }
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            pending_s: 600,
            away_s: 3_600,
            refresh_margin_s: 300,
            refresh_lease_s: 90,
            refresh_wait_s: 20,
            idle_refresh_s: 86_400,
        }
    }
}

impl Default for Keys {
    fn default() -> Self {
        Self { reveal: true }
    }
}

/// Flags of the command line. Each takes precedence over the environment and the file.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Flags {
    /// Settings file [default: toolhost.toml, if there is one]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Database of the records: postgres://user:password@host/database [default: the data
    /// directory]
    #[arg(long, global = true, value_name = "URL", hide_env_values = true)]
    pub store: Option<Secret>,
    /// Data directory [default: toolhost-data]
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Master key file [default: <data>.key]
    #[arg(long, global = true, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Address and port to listen on [default: 127.0.0.1:8080]
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub listen: Option<String>,
}

impl Files {
    /// Returns the timeout for the upload or download of a file.
    pub(crate) fn transfer(&self) -> Duration {
        Duration::from_secs(self.transfer_s)
    }
}

impl Limits {
    /// Returns the timeout for the arrival of a body.
    pub(crate) fn body(&self) -> Duration {
        Duration::from_secs(self.body_s)
    }

    /// Returns the deadline of an operation.
    pub(crate) fn deadline(&self) -> Duration {
        Duration::from_secs(self.deadline_s)
    }

    /// Returns the bytes that must be transferred within each [`PACE_WINDOW`].
    pub(crate) fn pace(&self) -> usize {
        usize::try_from(self.min_rate_kib * 1024 * PACE_WINDOW.as_secs()).unwrap_or(usize::MAX)
    }

    /// Returns the timeout of a connection for a request, or for its head.
    pub(crate) fn idle(&self) -> Duration {
        Duration::from_secs(self.idle_s)
    }
}

impl Config {
    /// Reads the settings.
    ///
    /// # Errors
    /// If the named file cannot be read, a key is unknown, or a value is not valid for its key.
    pub(crate) fn load(flags: &Flags) -> Result<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the one place that reads settings"
        )]
        let named = flags
            .config
            .clone()
            .or_else(|| std::env::var_os("TOOLHOST_CONFIG").map(PathBuf::from));
        Self::read(flags, named.as_deref(), std::env::vars_os())
    }

    fn read(
        flags: &Flags,
        named: Option<&Path>,
        environment: impl Iterator<Item = (std::ffi::OsString, std::ffi::OsString)>,
    ) -> Result<Self> {
        let file = match named {
            Some(path) => File::from(path).format(FileFormat::Toml).required(true),
            None => File::from(Path::new(FILE))
                .format(FileFormat::Toml)
                .required(false),
        };
        let variables: HashMap<String, String> = environment
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name != "TOOLHOST_CONFIG" && !OTHER_NAMES.contains(&name.as_str()))
            .collect();
        // Values stay texts until a key needs another type: a key that consists of digits is not a
        // number.
        let environment = Environment::with_prefix("TOOLHOST")
            .prefix_separator("_")
            .separator("__")
            .ignore_empty(true)
            .source(Some(variables.clone()));
        let mut settings: Self = config::Config::builder()
            .add_source(file)
            .add_source(environment)
            .build()
            .and_then(config::Config::try_deserialize)
            .context("read the settings")?;
        settings.plain |= variables
            .get("NO_COLOR")
            .is_some_and(|value| !value.is_empty());
        settings.s3.complete(&variables)?;
        settings.apply(flags);
        settings.check()?;
        Ok(settings)
    }

    fn apply(&mut self, flags: &Flags) {
        if let Some(data) = &flags.data {
            self.data.clone_from(data);
        }
        if let Some(listen) = &flags.listen {
            self.listen.clone_from(listen);
        }
        if flags.store.is_some() {
            self.store.clone_from(&flags.store);
        }
        if flags.key_file.is_some() {
            self.key_file.clone_from(&flags.key_file);
        }
    }

    fn check(&self) -> Result<()> {
        let word = &self.operator_word;
        ensure!(
            !word.is_empty()
                && word.len() <= 32
                && word
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()),
            "`operator_word` is `{word}`: it must be 1 to 32 lower-case letters and digits"
        );
        for (key, kib) in [
            ("limits.execute_body_kib", self.limits.execute_body_kib),
            ("limits.body_kib", self.limits.body_kib),
        ] {
            ensure!(
                (1..=16_384).contains(&kib),
                "`{key}` is {kib}: it must be 1 to 16384"
            );
        }
        let sandbox = &self.sandbox;
        for (key, value, range) in [
            ("compile_cpu_s", sandbox.compile_cpu_s, 1..=600),
            ("compile_wall_s", sandbox.compile_wall_s, 1..=1_200),
            (
                "compile_memory_mib",
                sandbox.compile_memory_mib,
                64..=16_384,
            ),
        ] {
            let (least, most) = (range.start(), range.end());
            ensure!(
                range.contains(&value),
                "`sandbox.{key}` is {value}: it must be {least} to {most}"
            );
        }
        ensure!(
            self.limits.in_flight_wait_ms <= 5_000,
            "`limits.in_flight_wait_ms` must be at most 5000"
        );
        let limits = &self.limits;
        for (key, value, most) in [
            ("body_s", limits.body_s, 300),
            ("deadline_s", limits.deadline_s, 300),
            ("idle_s", limits.idle_s, 600),
        ] {
            ensure!(
                (1..=most).contains(&value),
                "`limits.{key}` is {value}: it must be 1 to {most}"
            );
        }
        ensure!(
            limits.min_rate_kib <= 1_024,
            "`limits.min_rate_kib` must be at most 1024"
        );
        ensure!(
            limits.bodies_per_address > 0 && limits.bodies_per_project > 0,
            "`limits.bodies_per_address` and `limits.bodies_per_project` must not be 0"
        );
        ensure!(
            (1..=65_536).contains(&limits.bodies_mib),
            "`limits.bodies_mib` must be 1 to 65536"
        );
        ensure!(
            self.limits.in_flight > 0 && self.limits.in_flight_per_project > 0,
            "`limits.in_flight` must not be 0"
        );
        ensure!(
            (1..=1_000_000).contains(&self.logs.buffer),
            "`logs.buffer` must be 1 to 1000000"
        );
        ensure!(
            self.logs.keep_days <= 36_500,
            "`logs.keep_days` must be at most 36500"
        );
        ensure!(
            (1..=8_192).contains(&self.logs.cassette_kib),
            "`logs.cassette_kib` must be 1 to 8192"
        );
        let Logs {
            buffer_mib,
            payload_kib,
            quota_mib,
            ..
        } = self.logs;
        ensure!(
            (1..=65_536).contains(&buffer_mib),
            "`logs.buffer_mib` must be 1 to 65536"
        );
        ensure!(
            buffer_mib.saturating_mul(1024) > payload_kib.saturating_mul(2).saturating_add(16),
            "`logs.buffer_mib` is {buffer_mib}: a record with twice `logs.payload_kib` must fit, which is {payload_kib}"
        );
        for (key, mib, most) in [
            ("limits.answers_mib", self.limits.answers_mib, 1 << 20),
            ("logs.quota_mib", quota_mib, 1 << 20),
            ("files.quota_mib", self.files.quota_mib, 1 << 30),
        ] {
            ensure!(mib <= most, "`{key}` is {mib}: it must be at most {most}");
        }
        let llm = &self.llm;
        ensure!(
            llm.base_url.is_some() == llm.model.is_some(),
            "`llm.base_url` and `llm.model` belong together: set both or neither"
        );
        if let Some(url) = &llm.base_url {
            ensure!(
                matches!(url.scheme(), "http" | "https") && url.query().is_none(),
                "`llm.base_url` is {url}: it must be an http address without a query"
            );
        }
        for name in llm.headers.iter() {
            let known = name.parse::<net::header::HeaderName>();
            ensure!(
                known.is_ok_and(|name| !OURS.contains(&name.as_str())),
                "`llm.headers`: `{name}` is not the name of a header that a caller may set"
            );
        }
        ensure!(
            (1..=300).contains(&llm.timeout_s),
            "`llm.timeout_s` must be 1 to 300"
        );
        ensure!(
            (1..=65_536).contains(&llm.max_tokens),
            "`llm.max_tokens` must be 1 to 65536"
        );
        ensure!(
            (1..=1_024).contains(&llm.at_once),
            "`llm.at_once` must be 1 to 1024"
        );
        ensure!(
            (1..=1_024).contains(&llm.at_once_per_project),
            "`llm.at_once_per_project` must be 1 to 1024"
        );
        let connections = &self.connections;
        for (key, value, most) in [
            ("pending_s", connections.pending_s, 3_600),
            ("away_s", connections.away_s, 3_600),
            ("refresh_margin_s", connections.refresh_margin_s, 3_600),
            ("refresh_lease_s", connections.refresh_lease_s, 600),
            ("refresh_wait_s", connections.refresh_wait_s, 60),
            ("idle_refresh_s", connections.idle_refresh_s, 2_592_000),
        ] {
            ensure!(
                (1..=most).contains(&value),
                "`connections.{key}` is {value}: it must be 1 to {most}"
            );
        }
        for (slug, app) in &self.oauth_apps {
            ensure!(
                !app.client_id.is_empty(),
                "`oauth_apps.{slug}.client_id` is missing"
            );
        }
        ensure!(
            (1..=1_024).contains(&self.files.size_mib),
            "`files.size_mib` must be 1 to 1024"
        );
        ensure!(
            self.files.keep_days <= 36_500,
            "`files.keep_days` must be at most 36500"
        );
        ensure!(
            (1..=1_024).contains(&self.files.transfers),
            "`files.transfers` must be 1 to 1024"
        );
        ensure!(
            self.files.transfers_per_project > 0,
            "`files.transfers_per_project` must not be 0"
        );
        ensure!(
            (1..=3_600).contains(&self.files.transfer_s),
            "`files.transfer_s` must be 1 to 3600"
        );
        self.trusted_proxies()?;
        self.bucket()?;
        if let Some(store) = &self.store {
            let known = ["postgres://", "postgresql://"]
                .iter()
                .any(|scheme| store.0.starts_with(scheme));
            ensure!(
                known,
                "`store` must be `postgres://user:password@host/database`; without it records lie in `data`"
            );
        }
        let (key, data) = (normal(&self.key_file()), normal(&self.data));
        ensure!(
            !key.starts_with(&data),
            "the key file {} lies inside the data directory; a thief of one would have both: set `key_file` elsewhere",
            key.display()
        );
        Ok(())
    }

    /// Returns the address of the database; none if records are in the data directory. The address
    /// may contain a password.
    pub(crate) fn database(&self) -> Option<&str> {
        self.store.as_ref().map(|store| store.0.as_str())
    }

    /// Returns the bucket of the blobs; none if they are in the data directory.
    ///
    /// # Errors
    /// If the address is not a bucket, or a required setting is missing.
    pub(crate) fn bucket(&self) -> Result<Option<BucketSettings>> {
        let Some(address) = &self.blobs else {
            return Ok(None);
        };
        let place = address
            .strip_prefix("s3://")
            .unwrap_or_default()
            .trim_end_matches('/');
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        ensure!(
            !bucket.is_empty(),
            "`blobs` is `{address}`: it must be `s3://bucket` or `s3://bucket/prefix`"
        );
        let s3 = &self.s3;
        let (Some(access_key_id), Some(secret)) = (&s3.access_key_id, &s3.secret_access_key) else {
            anyhow::bail!(
                "`blobs` is {address}, and no key to it: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        };
        if let Some(endpoint) = &s3.endpoint {
            ensure!(
                matches!(endpoint.scheme(), "http" | "https"),
                "`s3.endpoint` is {endpoint}: it must be an http address"
            );
        }
        Ok(Some(BucketSettings {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            endpoint: s3
                .endpoint
                .as_ref()
                .map(|endpoint| endpoint.as_str().trim_end_matches('/').to_owned()),
            region: s3.region.clone().unwrap_or_else(|| "us-east-1".to_owned()),
            access_key_id: access_key_id.clone(),
            secret_access_key: secret.0.to_string(),
            session_token: s3.session_token.as_ref().map(|token| token.0.to_string()),
            presigned: s3.presigned,
        }))
    }

    /// Returns the retention of the execution log.
    pub(crate) fn retention(&self) -> Retention {
        let Logs {
            keep_days,
            keep_count,
            ..
        } = self.logs;
        let age = Duration::from_secs(u64::from(keep_days) * 86_400);
        Retention {
            age: (keep_days > 0).then_some(age),
            runs: (keep_count > 0).then_some(keep_count),
        }
    }

    /// Returns the limits on files.
    pub(crate) fn files(&self) -> FileSettings {
        let Files {
            size_mib,
            keep_days,
            transfers,
            transfers_per_project,
            quota_mib,
            ..
        } = self.files;
        let keep = Duration::from_secs(u64::from(keep_days) * 86_400);
        FileSettings {
            size: size_mib << 20,
            retention: (keep_days > 0).then_some(keep),
            transfers,
            transfers_per_project,
            transfer: self.files.transfer(),
            quota: quota(quota_mib),
        }
    }

    /// Returns the daily storage quotas of each project.
    pub(crate) fn quotas(&self) -> QuotaSettings {
        QuotaSettings {
            log: quota(self.logs.quota_mib),
            responses: quota(self.limits.answers_mib),
        }
    }

    /// Returns the settings for connecting accounts and refreshing their tokens.
    pub(crate) fn connections(&self, net: net::Client) -> ConnectionSettings {
        let Connections {
            pending_s,
            away_s,
            refresh_margin_s,
            refresh_lease_s,
            refresh_wait_s,
            idle_refresh_s,
        } = self.connections;
        let [
            pending_ttl,
            authorization_ttl,
            refresh_margin,
            lease_ttl,
            wait_timeout,
            idle_refresh_after,
        ] = [
            pending_s,
            away_s,
            refresh_margin_s,
            refresh_lease_s,
            refresh_wait_s,
            idle_refresh_s,
        ]
        .map(Duration::from_secs);
        ConnectionSettings {
            net,
            pending_ttl,
            authorization_ttl,
            refresh_margin,
            lease_ttl,
            wait_timeout,
            idle_refresh_after,
        }
    }

    /// Returns the OAuth apps of the operator at providers.
    pub(crate) fn oauth_apps(&self) -> impl Iterator<Item = NewOauthApp> {
        self.oauth_apps.iter().map(|(slug, app)| NewOauthApp {
            toolkit: slug.to_lowercase(),
            client_id: app.client_id.clone(),
            client_secret: app
                .client_secret
                .as_ref()
                .map(|secret| secret.0.to_string())
                .unwrap_or_default(),
            scopes: app.scopes.to_vec(),
        })
    }

    /// Returns the public keys that may sign publications.
    ///
    /// # Errors
    /// If one is not a minisign public key; the message contains it.
    pub(crate) fn trusted_keys(&self) -> Result<TrustedKeys> {
        TrustedKeys::read(&self.publish.trusted_keys).map_err(|text| {
            anyhow::anyhow!("`publish.trusted_keys`: `{text}` is not a minisign public key")
        })
    }

    /// Returns the language model and its HTTP client. The operator chose its address, so it may be
    /// on this machine; the client is used for nothing else.
    ///
    /// # Errors
    /// If the client cannot be built.
    pub(crate) fn model(&self) -> Result<Option<app::tools::prompt::Settings>> {
        let llm = &self.llm;
        let (Some(base), Some(model)) = (&llm.base_url, &llm.model) else {
            return Ok(None);
        };
        let address = format!("{}/chat/completions", base.as_str().trim_end_matches('/'));
        let anywhere = ["0.0.0.0/0", "::/0"]
            .map(str::parse)
            .into_iter()
            .collect::<Result<_, _>>()?;
        let client = net::Client::new(net::Settings {
            allow: anywhere,
            ..self.net()?
        });
        Ok(Some(app::tools::prompt::Settings {
            client: client.map_err(|cause| {
                anyhow::anyhow!("prepare the way to the language model: {}", cause.message)
            })?,
            url: address
                .parse()
                .with_context(|| format!("`llm.base_url`: {address}"))?,
            model: model.clone(),
            key: llm.key.as_ref().map(|key| key.0.clone()),
            headers: llm
                .headers
                .iter()
                .map(|name| name.to_ascii_lowercase())
                .collect(),
            timeout: Duration::from_secs(llm.timeout_s),
            max_tokens: llm.max_tokens,
            max_concurrent: llm.at_once,
            max_concurrent_per_project: llm.at_once_per_project,
        }))
    }

    /// Returns the path of the master key.
    pub(crate) fn key_file(&self) -> PathBuf {
        self.key_file.clone().unwrap_or_else(|| self.beside("key"))
    }

    /// Returns the path of the file with address and keys for clients, written on the first start.
    pub(crate) fn env_file(&self) -> PathBuf {
        self.beside("env")
    }

    fn beside(&self, extension: &str) -> PathBuf {
        let mut name = normal(&self.data).into_os_string();
        name.push(".");
        name.push(extension);
        PathBuf::from(name)
    }

    /// Reads the ranges of the proxies whose forwarding headers are trusted.
    ///
    /// # Errors
    /// If a range cannot be read; the message contains it.
    pub(crate) fn trusted_proxies(&self) -> Result<Vec<IpNet>> {
        ranges("net.trusted_proxies", &self.net.trusted_proxies)
    }

    /// Returns the settings of outgoing requests.
    ///
    /// # Errors
    /// If a range or a pair of origins cannot be read; the message contains it.
    pub(crate) fn net(&self) -> Result<net::Settings> {
        let rewrite = self.net.rewrite.iter().map(|pair| {
            let (from, to) = pair
                .split_once('=')
                .with_context(|| format!("`net.rewrite`: `{pair}` is not `from=to`"))?;
            let origin = |text: &str| {
                text.trim()
                    .parse()
                    .map_err(|cause| anyhow::anyhow!("`net.rewrite`: `{text}`: {cause}"))
            };
            Ok(net::Rewrite {
                from: origin(from)?,
                to: origin(to)?,
            })
        });
        Ok(net::Settings {
            rewrite: rewrite.collect::<Result<_>>()?,
            allow: ranges("net.allow", &self.net.allow)?,
            user_agent: concat!("toolhost/", env!("CARGO_PKG_VERSION")).into(),
        })
    }
}

/// Reads a list of addresses and address ranges.
fn ranges(key: &str, list: &[String]) -> Result<Vec<IpNet>> {
    let range = |text: &String| {
        let address = text.parse::<IpAddr>().map(IpNet::from);
        address
            .or_else(|_| text.parse())
            .with_context(|| format!("`{key}`: `{text}` is not an address range"))
    };
    list.iter().map(range).collect()
}

impl S3 {
    /// Fills in unset values from the environment names that other programs use, too.
    fn complete(&mut self, variables: &HashMap<String, String>) -> Result<()> {
        let get = |name: &str| {
            variables
                .get(name)
                .filter(|value| !value.is_empty())
                .cloned()
        };
        if self.endpoint.is_none() {
            let endpoint = get("AWS_ENDPOINT_URL");
            let endpoint = endpoint.map(|text| {
                text.parse()
                    .with_context(|| format!("`AWS_ENDPOINT_URL`: `{text}`"))
            });
            self.endpoint = endpoint.transpose()?;
        }
        let fill = |own: &mut Option<String>, name: &str| *own = own.take().or_else(|| get(name));
        fill(&mut self.region, "AWS_REGION");
        fill(&mut self.region, "AWS_DEFAULT_REGION");
        fill(&mut self.access_key_id, "AWS_ACCESS_KEY_ID");
        let fill = |own: &mut Option<Secret>, name: &str| {
            *own = own.take().or_else(|| get(name).map(Secret::from))
        };
        fill(&mut self.secret_access_key, "AWS_SECRET_ACCESS_KEY");
        fill(&mut self.session_token, "AWS_SESSION_TOKEN");
        Ok(())
    }
}

/// Formats every setting with its doc comment, as the help shows it.
pub(crate) fn help() -> String {
    let groups = [
        ("s3", S3::KEYS),
        ("net", Net::KEYS),
        ("sandbox", Sandbox::KEYS),
        ("limits", Limits::KEYS),
        ("logs", Logs::KEYS),
        ("files", Files::KEYS),
        ("connections", Connections::KEYS),
        ("keys", Keys::KEYS),
        ("publish", Publish::KEYS),
        ("llm", Llm::KEYS),
    ];
    let alone = Config::KEYS
        .iter()
        .filter(|(key, _)| groups.iter().all(|(group, _)| group != key));
    let alone = alone.map(|(key, text)| ((*key).to_owned(), *text));
    let grouped = groups.into_iter().flat_map(|(group, keys)| {
        keys.iter()
            .map(move |(key, text)| (format!("{group}.{key}"), *text))
    });
    let lines = alone
        .chain(grouped)
        .map(|(key, text)| format!("  {key:<32}{}\n", text.trim().replace('`', "")));
    let about = "Settings, in toolhost.toml or in the environment (net.allow is TOOLHOST_NET__ALLOW, lists have commas):\n";
    about.to_owned() + &lines.collect::<String>()
}

/// Converts a quota to bytes; returns none if there is no limit.
fn quota(mib: u64) -> Option<u64> {
    (mib > 0).then_some(mib << 20)
}

/// Returns the absolute path without `.`, `..` and a trailing slash. The file system is not
/// accessed.
fn normal(path: &Path) -> PathBuf {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)], flags: &Flags) -> Result<Config> {
        Config::read(
            flags,
            None,
            pairs
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into())),
        )
    }

    #[test]
    fn the_environment_sets_nested_keys_and_lists() {
        let config = read(
            &[
                ("TOOLHOST_LISTEN", "127.0.0.1:0"),
                ("TOOLHOST_NET__ALLOW", "127.0.0.0/8,10.0.0.7"),
                (
                    "TOOLHOST_NET__REWRITE",
                    "https://api.example.com=http://127.0.0.1:1234",
                ),
                ("TOOLHOST_LIMITS__RATE", "0"),
                ("TOOLHOST_LOGS__WAIT", "true"),
                ("TOOLHOST_SANDBOX__ALLOCATOR", "on_demand"),
                ("TOOLHOST_SANDBOX__THREADS", "3"),
                ("TOOLHOST_DATA", "0012"),
                ("HOME", "/root"),
            ],
            &Flags::default(),
        )
        .unwrap();
        assert_eq!(config.listen, "127.0.0.1:0");
        assert_eq!(config.limits.rate, 0);
        assert!(config.logs.wait);
        assert_eq!(config.sandbox.allocator, Allocator::OnDemand);
        assert_eq!(config.sandbox.threads, Some(3));
        assert_eq!(
            config.data,
            Path::new("0012"),
            "a name of digits is no number"
        );
        let net = config.net().unwrap();
        assert_eq!(net.allow.len(), 2);
        assert_eq!(net.rewrite.len(), 1);
    }

    #[test]
    fn a_flag_stands_above_the_environment() {
        let flags = Flags {
            data: Some("/srv/a".into()),
            ..Flags::default()
        };
        let config = read(&[("TOOLHOST_DATA", "/srv/b")], &flags).unwrap();
        assert_eq!(config.data, Path::new("/srv/a"));
        assert_eq!(config.key_file(), Path::new("/srv/a.key"));
        assert_eq!(config.env_file(), Path::new("/srv/a.env"));
    }

    #[test]
    fn unknown_key_is_refused_but_client_names_pass() {
        let error = read(&[("TOOLHOST_LIMITS__RATES", "1")], &Flags::default()).unwrap_err();
        assert!(format!("{error:#}").contains("rates"), "{error:#}");
        read(
            &[("TOOLHOST_API_KEY", "ak_x"), ("TOOLHOST_URL", "http://x")],
            &Flags::default(),
        )
        .unwrap();
    }

    #[test]
    fn key_file_inside_data_directory_is_refused() {
        let flags = Flags {
            data: Some("/srv/a".into()),
            key_file: Some("/srv/b/../a/k".into()),
            ..Flags::default()
        };
        assert!(
            read(&[], &flags)
                .unwrap_err()
                .to_string()
                .contains("inside the data directory")
        );
    }

    #[test]
    fn bucket_keys_come_from_environment_and_stay_hidden() {
        let keys = [
            ("AWS_ACCESS_KEY_ID", "AKID"),
            ("AWS_SECRET_ACCESS_KEY", "0012e7"),
            ("AWS_REGION", "eu-west-1"),
        ];
        let with = |more: &[(&'static str, &'static str)]| {
            read(
                &[
                    keys.as_slice(),
                    &[("TOOLHOST_BLOBS", "s3://bucket/a/b/")],
                    more,
                ]
                .concat(),
                &Flags::default(),
            )
        };
        let config = with(&[("TOOLHOST_S3__ENDPOINT", "http://127.0.0.1:9000")]).unwrap();
        assert!(!format!("{config:?}").contains("0012e7"), "{config:?}");
        let bucket = config.bucket().unwrap().unwrap();
        assert_eq!(
            (&*bucket.bucket, &*bucket.prefix, &*bucket.region),
            ("bucket", "a/b", "eu-west-1")
        );
        assert_eq!(bucket.endpoint.as_deref(), Some("http://127.0.0.1:9000"));
        assert_eq!(
            (&*bucket.access_key_id, &*bucket.secret_access_key),
            ("AKID", "0012e7")
        );
        let own = with(&[("TOOLHOST_S3__SECRET_ACCESS_KEY", "00042")])
            .unwrap()
            .bucket()
            .unwrap()
            .unwrap();
        assert_eq!((&*own.secret_access_key, own.endpoint), ("00042", None));
        for blobs in ["bucket", "s3://", "https://bucket"] {
            let error = read(
                &[keys.as_slice(), &[("TOOLHOST_BLOBS", blobs)]].concat(),
                &Flags::default(),
            )
            .unwrap_err();
            assert!(error.to_string().contains("s3://bucket/prefix"), "{error}");
        }
        let error = read(&[("TOOLHOST_BLOBS", "s3://bucket")], &Flags::default()).unwrap_err();
        assert!(
            error.to_string().contains("AWS_SECRET_ACCESS_KEY"),
            "{error}"
        );
    }

    #[test]
    fn language_model_settings_hide_the_key() {
        let pairs = [
            ("TOOLHOST_LLM__BASE_URL", "http://127.0.0.1:9/v1/"),
            ("TOOLHOST_LLM__MODEL", "small"),
            ("TOOLHOST_LLM__KEY", "0012"),
            ("TOOLHOST_LLM__HEADERS", "X-Trace,x-team"),
        ];
        let config = read(&pairs, &Flags::default()).unwrap();
        assert!(!format!("{config:?}").contains("0012"), "{config:?}");
        let model = config.model().unwrap().unwrap();
        assert_eq!(model.url.as_str(), "http://127.0.0.1:9/v1/chat/completions");
        assert_eq!(model.key.unwrap().as_str(), "0012");
        assert_eq!(model.headers, ["x-trace", "x-team"]);
        assert!(
            read(&[], &Flags::default())
                .unwrap()
                .model()
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn oauth_apps_from_environment_hide_secrets() {
        let pairs = [
            ("TOOLHOST_OAUTH_APPS__GITHUB__CLIENT_ID", "007"),
            ("TOOLHOST_OAUTH_APPS__GITHUB__CLIENT_SECRET", "0012e7"),
            ("TOOLHOST_OAUTH_APPS__GITHUB__SCOPES", "repo, user"),
            ("TOOLHOST_OAUTH_APPS__GOOGLE_DRIVE__CLIENT_ID", "public"),
        ];
        let config = read(&pairs, &Flags::default()).unwrap();
        assert!(!format!("{config:?}").contains("0012e7"), "{config:?}");
        let [github, drive] = &config.oauth_apps().collect::<Vec<_>>()[..] else {
            panic!("{config:?}")
        };
        assert_eq!(
            (&*drive.toolkit, &*drive.client_id, &*drive.client_secret),
            ("google_drive", "public", "")
        );
        assert_eq!(
            (&*github.toolkit, &*github.client_id, &*github.client_secret),
            ("github", "007", "0012e7")
        );
        assert_eq!(github.scopes, ["repo", "user"]);
        for (name, wrong) in [
            ("TOOLHOST_OAUTH_APPS__GITHUB__SECRET", "`secret`"),
            ("TOOLHOST_OAUTH_APPS__GITHUB__SCOPES", "client_id"),
        ] {
            let error = read(&[(name, "x")], &Flags::default()).unwrap_err();
            assert!(format!("{error:#}").contains(wrong), "{error:#}");
        }
    }

    #[test]
    fn the_environment_stands_above_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("toolhost.toml");
        let text = "net.allow = ['10.0.0.0/8']\ns3 = { access_key_id = 'old', secret_access_key = 'old' }\n[oauth_apps.github]\nclient_id = 'old'\nscopes = ['repo']";
        std::fs::write(&file, text).unwrap();
        let pairs = [
            ("TOOLHOST_S3__ACCESS_KEY_ID", "07"),
            ("TOOLHOST_OAUTH_APPS__GITHUB__CLIENT_ID", "new"),
            ("AWS_SECRET_ACCESS_KEY", "other"),
        ];
        let pairs = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        let config = Config::read(&Flags::default(), Some(&file), pairs).unwrap();
        assert_eq!(config.s3.access_key_id.as_deref(), Some("07"));
        assert_eq!(
            config.s3.secret_access_key.unwrap().0.as_str(),
            "old",
            "names of others only fill in"
        );
        assert_eq!(
            (&*config.net.allow[0], config.net.allow.len()),
            ("10.0.0.0/8", 1)
        );
        let github = &config.oauth_apps["github"];
        assert_eq!(
            (&*github.client_id, &github.scopes[..]),
            ("new", &["repo".to_owned()][..])
        );
    }

    #[test]
    fn a_bad_value_names_what_is_wrong() {
        for (name, value) in [
            ("TOOLHOST_OPERATOR_WORD", "No Good"),
            ("TOOLHOST_LIMITS__BODY_KIB", "99999"),
            ("TOOLHOST_LIMITS__IN_FLIGHT", "many"),
            ("TOOLHOST_LLM__MODEL", "alone"),
            ("TOOLHOST_LLM__TIMEOUT_S", "0"),
            ("TOOLHOST_LLM__HEADERS", "x-team,Host"),
            ("TOOLHOST_LLM__AT_ONCE_PER_PROJECT", "0"),
            ("TOOLHOST_LOGS__BUFFER_MIB", "0"),
            ("TOOLHOST_LOGS__PAYLOAD_KIB", "999999"),
            ("TOOLHOST_LOGS__QUOTA_MIB", "1048577"),
            ("TOOLHOST_FILES__QUOTA_MIB", "-1"),
        ] {
            read(&[(name, value)], &Flags::default()).unwrap_err();
        }
        let config = read(&[("TOOLHOST_NET__ALLOW", "nowhere")], &Flags::default()).unwrap();
        assert!(config.net().unwrap_err().to_string().contains("nowhere"));
    }
}
