//! A scripted host for native tests: what the toolkit may ask, and what it is answered.
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
//! Each thread has its own host; a request that was not scripted panics with what was expected and what came.

mod case;
pub(crate) mod mock;

use std::path::Path;

use serde_json::Value;

pub use case::run_case;
pub use manifest::cases::{Case, Exchange, ExpectedRequest, GivenFile, GivenResponse};
pub use mock::{Host, Line};

use crate::{Result, ToolError, rt};

/// A host without a script: time stands at 2026-01-01T00:00:00Z, randomness counts upwards, any request panics.
pub fn host() -> Host {
    Host::default()
}

/// Runs a tool of a toolkit by its slug or function, as the platform would.
///
/// # Errors
/// What the tool answers.
pub fn call(toolkit: &rt::Toolkit, tool: &str, arguments: &Value) -> Result<Value> {
    let slug = match toolkit.tools.iter().find(|known| known.function == tool) {
        Some(known) => format!("{}_{}", toolkit.slug.to_ascii_uppercase(), known.suffix),
        None => tool.to_owned(),
    };
    let data = rt::execute(toolkit, &slug, arguments.to_string().into_bytes())?;
    serde_json::from_slice(&data).map_err(|error| ToolError::internal(format!("the answer is not JSON: {error}")))
}

/// The manifest of a toolkit.
#[must_use]
pub fn manifest(toolkit: &rt::Toolkit) -> manifest::Manifest {
    (toolkit.describe)()
}

/// Checks the manifest.
///
/// # Panics
/// With every problem there is.
pub fn check_manifest(toolkit: &rt::Toolkit) {
    let problems = manifest(toolkit).problems();
    assert!(problems.is_empty(), "the manifest of `{}` has problems:\n  {}", toolkit.slug, problems.join("\n  "));
}

/// Runs every case file below a folder.
///
/// # Panics
/// With everything that went wrong in any of them.
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

/// Runs one case file of a toolkit: the folder names the tool.
///
/// # Panics
/// With what went wrong.
pub fn case(toolkit: &rt::Toolkit, file: &Path) {
    if let Err(problem) = case::run_file(toolkit, file) {
        panic!("{problem}");
    }
}
