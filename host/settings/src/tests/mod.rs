//! Tests of reading and printing settings.

mod groups;
mod printing;
mod reading;

use std::{ffi::OsString, path::Path};

use anyhow::Result;

use super::{Config, Flags, load, load::Loaded, sources::SettingsFile};

fn read(pairs: &[(&str, &str)]) -> Result<Config> {
    read_with(pairs, &Flags::default())
}

fn read_with(pairs: &[(&str, &str)], flags: &Flags) -> Result<Config> {
    Ok(load::read(flags, SettingsFile::Missing, variables(pairs))?.config)
}

/// Reads a settings file, and variables of the environment.
fn read_file(file: &Path, pairs: &[(&str, &str)]) -> Result<Loaded> {
    let file = SettingsFile::Read(file.to_owned());
    load::read(&Flags::default(), file, variables(pairs))
}

fn variables(pairs: &[(&str, &str)]) -> impl Iterator<Item = (OsString, OsString)> {
    let pairs = pairs.iter();
    pairs.map(|(name, value)| ((*name).into(), (*value).into()))
}
