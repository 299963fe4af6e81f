//! Validation of a manifest, which lists all errors.
//!
//! A manifest comes from the toolkit's author, and other parts rely on it later: agents read its
//! texts, requests go to its hosts, credentials go into its templates. Therefore a manifest that
//! could deceive or leak is refused here. Checks that need a JSON Schema validator (examples
//! against schemas) are left to programs that have one.

mod auth;
mod cost;
mod flow;
mod hosts;
mod logo;
mod oauth1;
mod schema;
mod sign;
mod template;
mod text;
mod tools;

use std::collections::BTreeSet;
use std::fmt::Display;

pub use auth::template_matches_host;
pub use cost::{
    MAX_PATTERNS_PER_SCHEMA, MAX_SCHEMA_CHAIN, MAX_SCHEMAS_PER_VALUE, SchemaCost, schema_cost,
};
pub(crate) use hosts::covers;
pub use hosts::host_problem;
pub use logo::sanitized_logo;
pub use schema::{MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH};
pub use text::{cleaned, is_hidden, is_python_keyword, joined_lines};

use serde_json::Value;

use crate::{ABI_VERSION, Manifest};

/// Maximum size of a manifest, in bytes. A description of an API with 1,200 operations results in
/// one of 3 MiB.
pub const MAX_MANIFEST_BYTES: usize = 8 * 1024 * 1024;
/// Maximum size of a description, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 4 * 1024;
const MAX_NAME_BYTES: usize = 100;
const MAX_SLUG_BYTES: usize = 48;
/// Maximum number of tools of a toolkit. The largest descriptions of APIs have about 1,200
/// operations.
pub const MAX_TOOLS: usize = 2000;
const MAX_TRIGGERS: usize = 100;
const MAX_CATEGORIES: usize = 20;
/// Maximum number of problems that are listed in full. Readers do not use more.
const MAX_PROBLEMS: usize = 200;

impl Manifest {
    /// Returns every problem, each with its path. An empty list means that the manifest is valid.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut report = Report::default();
        identity(self, &mut report);
        categories(self, &mut report);
        if let Some(logo) = &self.logo {
            logo::check(logo, &mut report.at("logo"));
        }
        hosts::check_rules(&self.egress, &mut report.at("egress"));
        auth::check(self, &mut report.at("auth"));
        counts(self, &mut report);
        tools::check(self, &mut report);
        report.finish()
    }
}

/// Returns every problem of a schema outside a manifest, under the same rules. Each line starts
/// with the name of the schema. An empty list means that the schema is valid.
#[must_use]
pub fn schema_problems(name: &str, schema: &Value) -> Vec<String> {
    let mut report = Report::default();
    schema::check(schema, &mut report.at(name));
    report.finish()
}

fn identity(manifest: &Manifest, report: &mut Report) {
    if manifest.abi != ABI_VERSION {
        let hint = "build the toolkit with the SDK of this server, or update the server";
        report.at("abi").add(format_args!(
            "`{}` is not supported; the supported version is {ABI_VERSION}; {hint}",
            manifest.abi
        ));
    }
    text::line(&manifest.sdk, MAX_NAME_BYTES, &mut report.at("sdk"));
    if !is_slug(&manifest.slug) {
        let rule = "write 2 to 48 of a-z, 0-9 and _, beginning with a letter, not ending with _";
        report
            .at("slug")
            .add(format_args!("`{}` is not a slug; {rule}", manifest.slug));
    }
    if !manifest.version.is_on_calendar() {
        report.at("version").add(format_args!(
            "`{}` has a date that does not exist",
            manifest.version
        ));
    }
    text::line(&manifest.name, MAX_NAME_BYTES, &mut report.at("name"));
    text::block(
        &manifest.description,
        MAX_DESCRIPTION_BYTES,
        &mut report.at("description"),
    );
    let limits = [
        ("memory_mib", manifest.limits.memory_mib),
        ("cpu_ms", manifest.limits.cpu_ms),
        ("wall_ms", manifest.limits.wall_ms),
    ];
    for (name, _) in limits.iter().filter(|(_, limit)| *limit == Some(0)) {
        report
            .at("limits")
            .at(name)
            .add("cannot be 0; remove it for the server's default");
    }
}

fn categories(manifest: &Manifest, report: &mut Report) {
    let mut report = report.at("categories");
    report.limit(manifest.categories.len(), MAX_CATEGORIES);
    for category in manifest
        .categories
        .iter()
        .filter(|category| !is_category(category))
    {
        report.add(format_args!(
            "`{category}` is not a category; write lower-case words, for example developer-tools"
        ));
    }
    unique(&manifest.categories, &mut report);
}

fn is_category(text: &str) -> bool {
    (1..=MAX_SLUG_BYTES).contains(&text.len())
        && text.split('-').all(|part| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        })
}

fn counts(manifest: &Manifest, report: &mut Report) {
    report.at("tools").limit(manifest.tools.len(), MAX_TOOLS);
    report
        .at("triggers")
        .limit(manifest.triggers.len(), MAX_TRIGGERS);
    if manifest.tools.is_empty() && manifest.triggers.is_empty() {
        report
            .at("tools")
            .add("has neither tools nor triggers; add one");
    }
    let size = serde_json::to_vec(manifest).map_or(0, |json| json.len());
    if size > MAX_MANIFEST_BYTES {
        report.at("manifest").add(format_args!(
            "{size} bytes are too many; at most {MAX_MANIFEST_BYTES}"
        ));
    }
}

/// Returns true if a string may be the slug of a toolkit, and thereby a part of file names and
/// addresses.
#[must_use]
pub fn is_slug(text: &str) -> bool {
    (2..=MAX_SLUG_BYTES).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !text.ends_with('_')
}

/// Reports values that a list contains more than once.
fn unique<T: AsRef<str>>(values: &[T], report: &mut Report) {
    let mut seen = BTreeSet::new();
    for value in values
        .iter()
        .map(AsRef::as_ref)
        .filter(|value| !seen.insert(*value))
    {
        report.add(format_args!("`{value}` is listed twice"));
    }
}

/// The problems so far below one path. When a child report is dropped, its problems go to its
/// parent.
#[derive(Default)]
struct Report<'a> {
    place: String,
    problems: Vec<String>,
    parent: Option<&'a mut Vec<String>>,
}

impl Report<'_> {
    /// Creates a report on a part.
    fn at(&mut self, part: impl Display) -> Report<'_> {
        let place = if self.place.is_empty() {
            part.to_string()
        } else {
            format!("{}.{part}", self.place)
        };
        Report {
            place,
            problems: Vec::new(),
            parent: Some(&mut self.problems),
        }
    }

    fn add(&mut self, problem: impl Display) {
        self.problems.push(format!("{}: {problem}", self.place));
    }

    /// Reports a list with more values than allowed.
    fn limit(&mut self, count: usize, max: usize) {
        if count > max {
            self.add(format_args!("{count} are too many; at most {max}"));
        }
    }

    /// Reports a secret field in a URL, which logs and other servers see.
    fn secret_in_url(&mut self, field: &str) {
        self.add(format_args!(
            "`{{{field}}}` is secret; a URL may contain only non-secret fields"
        ));
    }

    /// Returns the number of problems of this path so far.
    fn count(&self) -> usize {
        self.problems.len()
    }

    fn finish(mut self) -> Vec<String> {
        let mut problems = std::mem::take(&mut self.problems);
        if problems.len() > MAX_PROBLEMS {
            let more = problems.len() - MAX_PROBLEMS;
            problems.truncate(MAX_PROBLEMS);
            problems.push(format!("and {more} more problems"));
        }
        problems
    }
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        if let Some(parent) = self.parent.take() {
            parent.append(&mut self.problems);
        }
    }
}

#[cfg(test)]
mod tests;
