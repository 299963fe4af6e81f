//! Tests of reading and printing settings.

mod groups;
mod printing;
mod reading;

use anyhow::Result;

use super::{Config, Flags, load, sources::SettingsFile};

fn read(pairs: &[(&str, &str)]) -> Result<Config> {
    read_with(pairs, &Flags::default())
}

fn read_with(pairs: &[(&str, &str)], flags: &Flags) -> Result<Config> {
    let variables = pairs
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()));
    Ok(load::read(flags, SettingsFile::Missing, variables)?.config)
}
