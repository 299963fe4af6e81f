//! The production sandbox on the author's machine.
//!
//! Limits, policy and credentials of a call have the same meaning as on a server. Only two things
//! differ. Components are compiled in this process, because they are the author's own. The key that
//! seals compiled components is stored next to them, because both belong to the same user.

use std::{
    collections::BTreeMap,
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use manifest::{EgressRule, Manifest, cases::GivenFile};
use net::Rewrite;
use sandbox::{
    Action, Allocator, Call, Clock, Compiler, Context, File, InstallError, Installed, Limits,
    Outcome, Policy, Sandbox, Settings, cassette::Cassette,
};

use crate::account::Account;

const KEY_FILE: &str = "seal.key";

/// A sandbox with one installed toolkit.
pub(crate) struct Host {
    sandbox: Sandbox,
    pub(crate) installed: Installed,
}

/// Input of a call beyond the toolkit's manifest.
#[derive(Default)]
pub(crate) struct CallInput {
    pub(crate) account: Account,
    pub(crate) run_id: String,
    pub(crate) user_id: String,
    pub(crate) files: Vec<File>,
    /// Function that tightens the limits of the manifest.
    pub(crate) limits: Option<fn(Limits) -> Limits>,
}

/// Action and policy of a call, derived from the manifest.
pub(crate) struct Entry {
    pub(crate) action: Action,
    pub(crate) policy: Policy,
}

impl Host {
    /// Opens a sandbox and installs the component. Fails with all problems of the component.
    pub(crate) async fn open(component: Bytes, net: net::Settings, clock: Clock) -> Result<Self> {
        let cache = cache()?;
        let net = net::Client::new(net)
            .map_err(|cause| anyhow!("cannot set up outgoing requests: {cause}"))?;
        let mut settings = Settings::new(cache.join("components"), seal_key(&cache)?, net);
        settings.compiler = Compiler::InProcess;
        settings.allocator = Allocator::OnDemand;
        settings.clock = clock;
        let sandbox = Sandbox::open(settings)?;
        match sandbox.install(component).await {
            Ok(installed) => Ok(Self { sandbox, installed }),
            Err(InstallError::Refused(problems) | InstallError::PastLimit(problems)) => {
                bail!("the component is not valid:\n  {}", problems.join("\n  "))
            }
            Err(cause) => Err(cause.into()),
        }
    }

    /// Runs one call as a server would.
    pub(crate) async fn call(&self, entry: Entry, input: CallInput) -> Result<Outcome> {
        Ok(self.sandbox.call(self.prepare(entry, input)).await?)
    }

    /// Runs one call and records it, up to `max_bytes` bytes.
    pub(crate) async fn record(
        &self,
        entry: Entry,
        input: CallInput,
        max_bytes: usize,
    ) -> Result<(Outcome, Option<Box<Cassette>>)> {
        Ok(self
            .sandbox
            .record(self.prepare(entry, input), max_bytes)
            .await?)
    }

    /// Replays a recorded call.
    pub(crate) async fn replay(&self, cassette: &Cassette) -> Result<Outcome> {
        let limits = Limits::default().with_requested(self.installed.manifest.limits);
        Ok(self
            .sandbox
            .replay(self.installed.digest, limits, cassette)
            .await?)
    }

    fn prepare(&self, entry: Entry, input: CallInput) -> Call {
        let limits = Limits::default().with_requested(self.installed.manifest.limits);
        Call {
            component: self.installed.digest,
            tenant: Arc::from("author"),
            action: entry.action,
            context: Context {
                run_id: input.run_id,
                user_id: input.user_id,
                fields: input.account.fields,
            },
            policy: Arc::new(entry.policy),
            grant: input.account.grant,
            limits: input.limits.map_or(limits, |tighten| tighten(limits)),
            files: input.files,
            files_memory: None,
            state: BTreeMap::new(),
            trace: None,
        }
    }
}

impl Entry {
    /// Creates a tool execution.
    pub(crate) fn tool(manifest: &Manifest, tool: &manifest::Tool, arguments: Bytes) -> Self {
        let action = Action::Execute {
            tool: Arc::from(tool.slug.as_str()),
            arguments,
        };
        Self {
            action,
            policy: Policy {
                egress: egress(manifest, tool.egress.as_ref()),
                read_only: tool.hints.read_only,
                ..Policy::default()
            },
        }
    }

    /// Creates a poll of a trigger.
    pub(crate) fn poll(
        manifest: &Manifest,
        trigger: &manifest::Trigger,
        config: Bytes,
        cursor: Bytes,
    ) -> Self {
        let action = Action::Poll {
            trigger: Arc::from(trigger.slug.as_str()),
            config,
            cursor,
        };
        Self::of_trigger(manifest, trigger, action)
    }

    /// Creates a call that subscribes at the provider, or unsubscribes.
    pub(crate) fn subscription(
        manifest: &Manifest,
        trigger: &manifest::Trigger,
        call: Bytes,
    ) -> Self {
        let action = Action::Execute {
            tool: Arc::from(trigger.slug.as_str()),
            arguments: call,
        };
        Self::of_trigger(manifest, trigger, action)
    }

    /// Creates the handling of a webhook request.
    pub(crate) fn receive(
        manifest: &Manifest,
        trigger: &manifest::Trigger,
        config: Bytes,
        request: sandbox::Inbound,
    ) -> Self {
        let action = Action::Receive {
            trigger: Arc::from(trigger.slug.as_str()),
            config,
            request,
        };
        Self::of_trigger(manifest, trigger, action)
    }

    fn of_trigger(manifest: &Manifest, trigger: &manifest::Trigger, action: Action) -> Self {
        let policy = Policy {
            egress: egress(manifest, trigger.egress.as_ref()),
            read_only: false,
            write_only: manifest::write_only_names(&trigger.config),
            webhook_secret: None,
        };
        Self { action, policy }
    }
}

/// Returns the settings for outgoing requests of this command.
pub(crate) fn network(rewrite: Vec<Rewrite>, allow: Vec<ipnet::IpNet>) -> net::Settings {
    net::Settings {
        rewrite,
        allow,
        user_agent: concat!("toolkit/", env!("CARGO_PKG_VERSION")).to_owned(),
    }
}

/// Returns a file of a case.
pub(crate) fn given_file(file: &GivenFile) -> File {
    File {
        id: file.id.clone(),
        name: file.name.clone(),
        media_type: file.mimetype.clone(),
        bytes: file.text.clone().into(),
    }
}

fn egress(manifest: &Manifest, own: Option<&Vec<EgressRule>>) -> Vec<EgressRule> {
    own.unwrap_or(&manifest.egress).clone()
}

/// Returns this command's folder in the user's cache.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment alone determines the user's cache folder"
)]
pub(crate) fn cache() -> Result<PathBuf> {
    let from = |name: &str| {
        env::var_os(name)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    };
    let caches = from("XDG_CACHE_HOME").or_else(|| Some(from("HOME")?.join(".cache")));
    let folder = caches
        .context("neither HOME nor XDG_CACHE_HOME is set; set one of them to a writable folder")?
        .join("toolkit");
    fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    Ok(folder)
}

/// Returns the key of earlier runs, so that their compiled components can be used again, or a new
/// key.
fn seal_key(folder: &Path) -> Result<[u8; 32]> {
    let file = folder.join(KEY_FILE);
    if let Ok(bytes) = fs::read(&file)
        && let Ok(key) = bytes.try_into()
    {
        return Ok(key);
    }
    let mut key = [0; 32];
    getrandom::fill(&mut key)
        .map_err(|cause| anyhow!("the operating system returned no random bytes: {cause}"))?;
    write_key(&file, &key).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(key)
}

/// Writes the file atomically, because another run may read it at the same time.
fn write_key(file: &Path, key: &[u8]) -> Result<()> {
    let fresh = file.with_extension(format!("{}.new", std::process::id()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&fresh)?.write_all(key)?;
    Ok(fs::rename(&fresh, file)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seal_key_is_reused_unless_broken() {
        let folder = tempfile::tempdir().unwrap();
        let first = seal_key(folder.path()).unwrap();
        assert_eq!(seal_key(folder.path()).unwrap(), first);
        fs::write(folder.path().join(KEY_FILE), b"short").unwrap();
        assert_ne!(seal_key(folder.path()).unwrap(), first);
    }
}
