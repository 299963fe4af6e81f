//! Flags of the command line that are settings.

use std::path::PathBuf;

use super::{Config, all, values::Secret};

/// Flags of the command line. Each takes precedence over the environment and the file.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Settings")]
pub struct Flags {
    /// Settings file [default: toolhost.toml, or else that in /etc/toolhost]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[arg(long, global = true, value_name = "URL", hide_env_values = true, help = help("store"))]
    pub store: Option<Secret>,
    #[arg(long, global = true, value_name = "DIR", help = help("data"))]
    pub data: Option<PathBuf>,
    #[arg(long, global = true, value_name = "FILE", help = help("key_file"))]
    pub key_file: Option<PathBuf>,
    #[arg(long, global = true, value_name = "ADDRESS", help = help("listen"))]
    pub listen: Option<String>,
}

impl Flags {
    /// Replaces the settings for which there is a flag, and returns their keys and flags.
    pub(super) fn apply(&self, config: &mut Config) -> Vec<(&'static str, &'static str)> {
        let mut applied = Vec::new();
        if let Some(data) = &self.data {
            config.data.clone_from(data);
            applied.push(("data", "--data"));
        }
        if let Some(listen) = &self.listen {
            config.listen.clone_from(listen);
            applied.push(("listen", "--listen"));
        }
        if self.store.is_some() {
            config.store.clone_from(&self.store);
            applied.push(("store", "--store"));
        }
        if self.key_file.is_some() {
            config.key_file.clone_from(&self.key_file);
            applied.push(("key_file", "--key-file"));
        }
        applied
    }
}

/// Returns the first sentence about a setting, with its default.
fn help(key: &str) -> String {
    let Some(setting) = all().into_iter().find(|setting| setting.key == key) else {
        return String::new();
    };
    let sentence = setting.doc.split(". ").next().unwrap_or_default();
    let text = format!(
        "{} [default: {}]",
        sentence.trim_end_matches('.'),
        setting.default_text()
    );
    text.replace('`', "")
}
