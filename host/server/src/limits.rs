//! Table of every limit: its value, its setting, and the effect of exceeding it.
//!
//! The values are defined where they are enforced and are read from there. `docs/limits.md` is this
//! table, printed. Every row names the test that exercises it.

mod records;
mod rows;
mod shared;
mod work;

use std::time::Duration;

use settings::Setting;

const PAGE_INTRODUCTION: &str = "# Limits

Everything has a limit. A request or a value that exceeds a limit is refused or cut, as the column *Past the limit* says. A refused
request changes nothing. Every refusal uses the error envelope, with its slug and a `suggested_fix`, unless the request line or the headers
cannot be read: then it is a status without a body. Responses with status 429 or 503 say in `Retry-After` when to retry. A failed
execution is a response with status 200 and `successful: false`; its kind is in `data.kind`. If a limit has a setting,
the value in the table is the default of the setting.
Capacity that projects [share](#shared-among-projects) has a table of its own.

Each server counts requests, executions and rates for itself: several servers on one database allow a multiple of these limits.
Files are counted for all servers together. The bytes that a project writes in a day are also counted for all servers together,
except for those of the last minute of each server.
";

/// One row of the table.
struct Row {
    name: &'static str,
    value: String,
    /// Name of the setting; empty for a limit without a setting.
    setting: &'static str,
    /// Allowed values of the setting; empty without a setting, or if it takes any value.
    range: String,
    past: &'static str,
    /// Source file and function of the test for this limit.
    test: &'static str,
}

impl Row {
    /// Marks a minimum.
    fn at_least(mut self) -> Self {
        self.value.insert_str(0, "at least ");
        self
    }

    fn line(&self) -> String {
        let Self {
            name,
            value,
            setting,
            range,
            past,
            test,
        } = self;
        let quote = if setting.is_empty() { "" } else { "`" };
        format!("| {name} | {value} | {quote}{setting}{quote} | {range} | {past} | `{test}` |\n")
    }
}

fn row(name: &'static str, value: impl ToString, past: &'static str, test: &'static str) -> Row {
    Row {
        name,
        value: value.to_string(),
        setting: "",
        range: String::new(),
        past,
        test,
    }
}

/// Function that makes the row of a limit from its name, its setting, the effect of exceeding it and
/// its test.
type Set<'a> = &'a dyn Fn(&'static str, &'static str, &'static str, &'static str) -> Row;

/// Makes the row of a limit that a setting changes, from the declaration of the setting.
fn setting_row(
    settings: &[Setting],
    name: &'static str,
    key: &'static str,
    past: &'static str,
    test: &'static str,
) -> Row {
    let setting = settings.iter().find(|setting| setting.key == key);
    Row {
        setting: key,
        range: setting.map(Setting::range_text).unwrap_or_default(),
        ..row(name, setting.map(amount).unwrap_or_default(), past, test)
    }
}

/// Formats the default of a setting as an amount.
fn amount(setting: &Setting) -> String {
    let Some(number) = setting.default.as_u64() else {
        return setting.default_text();
    };
    match (number, setting.zero, setting.unit) {
        (0, Some(meaning), _) => meaning.to_owned(),
        (kib, _, Some("KiB")) => size(kib << 10),
        (mib, _, Some("MiB")) => size(mib << 20),
        (number, _, Some(unit)) => format!("{number} {unit}"),
        (number, _, None) => number.to_string(),
    }
}

/// Returns the whole page.
pub(crate) fn page() -> String {
    let settings = settings::all();
    let set = |name, key, past, test| setting_row(&settings, name, key, past, test);
    let groups = [
        ("Requests", rows::requests(&set)),
        ("Callers", rows::callers(&set)),
        ("Executions", rows::executions(&set)),
        (
            "Resources of one execution",
            rows::execution_resources(sandbox::Limits::default(), sandbox::Limits::CEILING),
        ),
        ("Components", rows::components(&set)),
        ("Files, records and accounts", rows::storage(&set)),
        ("Prompts", rows::prompts(&set)),
        ("Webhooks", rows::webhooks(&set)),
    ];
    let mut page = PAGE_INTRODUCTION.to_owned();
    for (group, rows) in groups {
        page.push_str(&format!("\n## {group}\n"));
        add_table(&mut page, &rows);
    }
    shared::write(&mut page);
    work::write(&mut page);
    records::write(&mut page);
    page
}

/// Adds a table to the page.
fn add_table(page: &mut String, rows: &[Row]) {
    page.push_str("\n| Limit | Value | Setting | Range | Past the limit | Test |\n|---|---|---|---|---|---|\n");
    page.extend(rows.iter().map(Row::line));
}

fn size(bytes: u64) -> String {
    match bytes {
        whole if whole >= 1 << 20 && whole.is_multiple_of(1 << 20) => {
            format!("{} MiB", whole >> 20)
        }
        other => format!("{} KiB", other >> 10),
    }
}

fn time(duration: Duration) -> String {
    format!("{} s", duration.as_secs())
}
