//! A scripted host for native tests: the requests a toolkit may send, and their responses.
//!
//! ```
//! use toolkit_sdk::prelude::*;
//! use toolkit_sdk::testing;
//!
//! let host = testing::host().exchange("GET", "https://api.example.com/items/7", 200, json!({ "name": "seven" }));
//! host.run(|| {
//!     let item: Value = http::get("https://api.example.com/items/{id}").path("id", 7).send().unwrap().json().unwrap();
//!     assert_eq!(item["name"], "seven");
//! });
//! ```
//!
//! Each thread has its own host. A request that differs from the script panics and shows the
//! expected and the actual request.

mod case;
pub(crate) mod mock;

use std::path::Path;

use serde_json::Value;

pub use case::run_case;
pub use manifest::cases::{Case, Exchange, ExpectedRequest, GivenFile, GivenResponse};
pub use mock::{Host, Line};

use crate::{Result, ToolError, rt};

/// Creates a host without a script: the time is fixed at 2026-01-01T00:00:00Z, random bytes count
/// upwards, and any request panics.
pub fn host() -> Host {
    Host::default()
}

/// Runs a tool of a toolkit by its slug or function name, as the platform would.
///
/// # Errors
/// The error that the tool returns.
pub fn call(toolkit: &rt::Toolkit, tool: &str, arguments: &Value) -> Result<Value> {
    let slug = match toolkit.tools.iter().find(|known| known.function == tool) {
        Some(known) => format!("{}_{}", toolkit.slug.to_ascii_uppercase(), known.suffix),
        None => tool.to_owned(),
    };
    let data = rt::execute(toolkit, &slug, arguments.to_string().into_bytes())?;
    serde_json::from_slice(&data)
        .map_err(|error| ToolError::internal(format!("the result is not JSON: {error}")))
}

/// Returns the manifest of a toolkit.
#[must_use]
pub fn manifest(toolkit: &rt::Toolkit) -> manifest::Manifest {
    (toolkit.describe)()
}

/// Checks the manifest.
///
/// # Panics
/// The manifest has problems; the message lists all of them.
pub fn check_manifest(toolkit: &rt::Toolkit) {
    let problems = manifest(toolkit).problems();
    assert!(
        problems.is_empty(),
        "the manifest of `{}` has problems:\n  {}",
        toolkit.slug,
        problems.join("\n  ")
    );
}

/// Runs every case file below a folder.
///
/// # Panics
/// At least one case fails; the message lists all problems.
pub fn run_cases(toolkit: &rt::Toolkit, folder: &Path) {
    let problems = case::run_all(toolkit, folder);
    assert!(
        problems.is_empty(),
        "{} of the cases of `{}` fail:\n\n{}",
        problems.len(),
        toolkit.slug,
        problems.join("\n\n")
    );
}

/// Runs one case file of a toolkit. The folder names the tool.
///
/// # Panics
/// The case fails; the message says why.
pub fn case(toolkit: &rt::Toolkit, file: &Path) {
    if let Err(problem) = case::run_file(toolkit, file) {
        panic!("{problem}");
    }
}
