//! `log`: the filter of the log.

use tracing_subscriber::{EnvFilter, filter::LevelFilter};

use super::Config;

/// Target of warnings about settings, which every filter lets pass.
pub const WARNING_TARGET: &str = "toolhost::settings";
/// Level of the targets that the filter does not name.
const DEFAULT_LEVEL: &str = "warn";

impl Config {
    /// Returns the filter of the log. Its directives replace those of `defaults` for the same target.
    ///
    /// # Errors
    /// If a directive is invalid, or would match nothing.
    pub fn log_filter(&self, defaults: &str) -> Result<EnvFilter, String> {
        let refused = |problem: String| format!("`log` is `{}`: {problem}", self.log);
        let mut directives = format!("{DEFAULT_LEVEL},{defaults}");
        // A space would become a part of the target.
        for directive in self.log.split(',').map(str::trim) {
            check(directive).map_err(refused)?;
            directives.push(',');
            directives.push_str(directive);
        }
        directives.push_str(&format!(",{WARNING_TARGET}=warn"));
        EnvFilter::try_new(directives).map_err(|cause| refused(cause.to_string()))
    }
}

/// Refuses a directive that `EnvFilter` accepts although it would match nothing: a misspelled level is a
/// target there.
fn check(directive: &str) -> Result<(), String> {
    let Some(end) = directive.find(['=', '[']) else {
        return match directive.parse::<LevelFilter>() {
            Ok(_) => Ok(()),
            Err(_) => Err(format!(
                "`{directive}` is not one of the levels off, error, warn, info, debug and trace; the level of one target is `TARGET=LEVEL`"
            )),
        };
    };
    let target = &directive[..end];
    if target
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'))
    {
        return Ok(());
    }
    Err(format!(
        "`{target}` is not the path of a module, in which a crate has `_` for each `-` of its name"
    ))
}
