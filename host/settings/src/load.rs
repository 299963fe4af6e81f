//! Reading of values from flags, the environment and the file.

use std::{
    collections::HashMap,
    ffi::OsString,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use config::{ConfigError, Environment, File, FileFormat, Source as _};

use super::{
    Config, Flags, Setting, all,
    problems::Problems,
    s3,
    setting::numbers_text,
    sources::{SettingsFile, Sources},
    types, value_at,
};

/// Settings file of the working directory.
const WORKING_FILE: &str = "toolhost.toml";
/// Settings file of the machine.
const MACHINE_FILE: &str = "/etc/toolhost/toolhost.toml";
/// Name in the environment of the settings file.
const FILE_VARIABLE: &str = "TOOLHOST_CONFIG";
/// Names in the environment that are no settings: that of the settings file, those that
/// `<data>.env` gives to clients, and those that replace a flag of a command.
const OTHER_VARIABLES: [&str; 6] = [
    FILE_VARIABLE,
    "TOOLHOST_URL",
    "TOOLHOST_API_KEY",
    "TOOLHOST_ORG_API_KEY",
    "TOOLHOST_PROJECT_ID",
    "TOOLHOST_PASSPHRASE",
];

/// The settings and the origin of each.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    pub sources: Sources,
    /// Warnings of settings that were removed.
    pub warnings: Vec<String>,
    /// True if the environment has `NO_COLOR`.
    pub no_color: bool,
}

/// Reads the settings.
///
/// # Errors
/// If the named file cannot be read, or with every key that is unknown or has a value that is not valid.
pub fn load(flags: &Flags) -> Result<Loaded> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads settings"
    )]
    let named = flags
        .config
        .clone()
        .or_else(|| std::env::var_os(FILE_VARIABLE).map(PathBuf::from));
    let file = match named {
        Some(named) => SettingsFile::Read(named),
        None => default_file(Path::new(WORKING_FILE), Path::new(MACHINE_FILE)),
    };
    read(flags, file, std::env::vars_os())
}

/// Returns the settings file of the working directory, else that of the machine. Commands of users
/// who may not read the latter work with their own settings: it belongs to a service, and may
/// contain secrets.
pub(super) fn default_file(working: &Path, machine: &Path) -> SettingsFile {
    if working.exists() {
        return SettingsFile::Read(working.to_owned());
    }
    match std::fs::File::open(machine).map_err(|cause| cause.kind()) {
        Err(ErrorKind::NotFound) => SettingsFile::Missing,
        Err(ErrorKind::PermissionDenied) => SettingsFile::Unreadable(machine.to_owned()),
        _ => SettingsFile::Read(machine.to_owned()),
    }
}

pub(super) fn read(
    flags: &Flags,
    file: SettingsFile,
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Loaded> {
    let variables: HashMap<String, String> = environment
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !OTHER_VARIABLES.contains(&name.as_str()))
        .collect();
    let mut sources = Sources::default();
    let mut builder = config::Config::builder();
    if let SettingsFile::Read(path) = &file {
        // The library ignores an optional file that exists but cannot be read.
        let source = File::from(path.as_path()).format(FileFormat::Toml);
        let in_file = source.collect().map_err(|cause| unreadable(path, cause))?;
        sources.add_file(path, &in_file);
        builder = builder.add_source(source);
    }
    sources.file = file;
    // Values stay texts until a key needs another type: a key that consists of digits is not a
    // number.
    let environment = Environment::with_prefix("TOOLHOST")
        .prefix_separator("_")
        .separator("__")
        .ignore_empty(true)
        .source(Some(variables.clone()));

    sources.add_environment(&variables);
    let settings = all();
    let mut problems = Problems::default();
    sources.check_known(&settings, &mut problems);
    for (key, name) in s3::AWS_VARIABLES {
        let value = variables.get(name).filter(|value| !value.is_empty());
        if let Some(value) = value.filter(|_| !sources.contains(key)) {
            builder = builder.set_default(key, value.as_str())?;
            sources.set_variable(key, name);
        }
    }
    let built = builder.add_source(environment).build();
    let values = built.context("read the settings")?.cache;
    let mut config = types::read(values, &settings, &mut problems)?;
    check_ranges(&config, &settings, &mut problems)?;
    for (key, flag) in flags.apply(&mut config) {
        sources.set_flag(key, flag);
    }
    config.check(&mut problems);
    sources.refuse(&problems)?;
    let no_color = variables.get("NO_COLOR");
    Ok(Loaded {
        warnings: sources.warnings(),
        no_color: no_color.is_some_and(|value| !value.is_empty()),
        config,
        sources,
    })
}

/// Checks every number against the range of its setting.
fn check_ranges(config: &Config, settings: &[Setting], problems: &mut Problems) -> Result<()> {
    let values = serde_json::to_value(config)?;
    for setting in settings {
        let number = value_at(&values, &setting.key).as_u64();
        if let (Some(range), Some(number)) = (&setting.range, number) {
            let text = format!("is {number}: it must be {}", numbers_text(range));
            problems.unless(range.contains(&number), &setting.key, text);
        }
    }
    Ok(())
}

/// Describes a file that cannot be read. The lines of the file are not shown, because they may
/// contain secrets.
fn unreadable(path: &Path, error: ConfigError) -> anyhow::Error {
    let shown = path.display();
    let ConfigError::FileParse { cause, .. } = &error else {
        // The library reports every file that it cannot read as not found.
        let cause = std::fs::read(path).map_or_else(anyhow::Error::new, |_| error.into());
        return cause.context(format!("cannot read the settings file {shown}"));
    };
    match cause.downcast_ref::<toml::de::Error>() {
        Some(cause) => {
            let bytes = cause.span().map_or(0, |span| span.start);
            let text = std::fs::read(path).unwrap_or_default();
            let before = text.iter().take(bytes);
            let line = before.filter(|byte| **byte == b'\n').count() + 1;
            anyhow::anyhow!(
                "the settings file {shown} is not valid TOML: line {line}: {}",
                cause.message()
            )
        }
        None => anyhow::anyhow!("the settings file {shown} is not valid: {cause}"),
    }
}
