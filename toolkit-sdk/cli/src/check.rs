//! `toolkit check`: reports all problems of a toolkit at once.
//!
//! The manifest is validated as on a server, schemas are compiled, and examples are validated
//! against them. Each case runs through the real component in the production sandbox, with the
//! provider replaced by a server on loopback. A request to a host that the manifest does not
//! declare is refused as on a server.

mod case;
mod cases;
mod compare;
mod multipart;
mod observed;
mod upstream;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use bytes::Bytes;
use clap::Args;
use manifest::Manifest;
use serde::Serialize;
use serde_json::Value;

use crate::{
    build::{self, BuildTarget},
    schema,
};

/// Check a toolkit: manifest, schemas, examples, and every case in the production sandbox.
///
/// PATH may also be a component; its cases are then named with --cases. A failing case shows the
/// observed result beside the expected one; with --bless the observed result is written into it.
///
/// Examples:
///   toolkit check
///   toolkit check dist/example.wasm --cases cases
///   toolkit check --bless && git diff cases
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Check {
    #[command(flatten)]
    target: BuildTarget,
    /// Folder of the cases [default: `cases` in the toolkit's folder].
    #[arg(long, value_name = "DIR")]
    cases: Option<PathBuf>,
    /// Write the observed result into the cases that expect another one.
    #[arg(long)]
    bless: bool,
    /// Print a JSON array.
    #[arg(long)]
    json: bool,
}

/// Check results of one toolkit.
#[derive(Debug, Serialize)]
struct Report {
    slug: String,
    version: String,
    tools: usize,
    cases: Vec<CaseReport>,
    /// All problems outside the cases.
    problems: Vec<String>,
}

/// Result of one case.
#[derive(Debug, Serialize)]
struct CaseReport {
    /// Name of the case, for example `list_stories/success`.
    case: String,
    passed: bool,
    /// Difference that was written into the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    blessed: Option<String>,
    problems: Vec<String>,
}

/// Runs the command. Returns exit code 1 if there is any problem.
pub(crate) async fn run(options: &Check) -> Result<ExitCode> {
    let mut reports = Vec::new();
    if let Some(file) = options.target.file() {
        reports.push(check(file, options.cases.as_deref(), options.bless).await?);
    } else {
        for built in build::build(&options.target, None, None)? {
            let cases = options
                .cases
                .clone()
                .unwrap_or_else(|| built.folder.join("cases"));
            reports.push(check(&built.file, Some(&cases), options.bless).await?);
        }
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&reports)?);
    } else {
        reports.iter().for_each(Report::print);
    }
    Ok(if reports.iter().all(Report::is_clean) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Checks one component.
async fn check(file: &Path, cases: Option<&Path>, bless: bool) -> Result<Report> {
    let component: Bytes = fs::read(file)
        .with_context(|| format!("cannot read {}", file.display()))?
        .into();
    let manifest =
        manifest::extract(&component).with_context(|| format!("cannot read {}", file.display()))?;
    let mut problems = manifest.problems();
    let refused = !problems.is_empty();
    problems.extend(schema_problems(&manifest));
    let files = match cases {
        Some(folder) => case::load(&manifest, folder, &mut problems),
        None => Vec::new(),
    };
    let ran = match cases::run(&manifest, component, files, bless).await {
        Ok(ran) => ran,
        // A server rejects the component for the same reasons, which are already reported.
        Err(_) if refused => Vec::new(),
        Err(cause) => {
            problems.push(format!("{cause:#}"));
            Vec::new()
        }
    };
    let Manifest {
        slug,
        version,
        tools,
        ..
    } = manifest;
    Ok(Report {
        slug,
        version: version.to_string(),
        tools: tools.len(),
        cases: ran,
        problems,
    })
}

/// Reports invalid schemas and examples that do not match their schema.
fn schema_problems(manifest: &Manifest) -> Vec<String> {
    let mut problems = Vec::new();
    for tool in &manifest.tools {
        compiled(
            &tool.output,
            &format!("{}: output schema", tool.slug),
            &mut problems,
        );
        let Some(input) = compiled(
            &tool.input,
            &format!("{}: input schema", tool.slug),
            &mut problems,
        ) else {
            continue;
        };
        for (index, example) in tool.examples.iter().enumerate() {
            let place = format!("{}: example {}", tool.slug, index + 1);
            problems.extend(
                schema::problems(&input, example)
                    .into_iter()
                    .map(|problem| format!("{place}: {problem}")),
            );
        }
    }
    for trigger in &manifest.triggers {
        compiled(
            &trigger.config,
            &format!("{}: configuration schema", trigger.slug),
            &mut problems,
        );
        compiled(
            &trigger.payload,
            &format!("{}: payload schema", trigger.slug),
            &mut problems,
        );
    }
    problems
}

fn compiled(
    schema: &Value,
    place: &str,
    problems: &mut Vec<String>,
) -> Option<jsonschema::Validator> {
    schema::compile(schema)
        .map_err(|cause| problems.push(format!("{place}: {cause}")))
        .ok()
}

impl Report {
    fn is_clean(&self) -> bool {
        self.problems.is_empty() && self.cases.iter().all(|case| case.passed)
    }

    fn print(&self) {
        println!("{} {}", self.slug, self.version);
        for problem in &self.problems {
            println!("  ✗ {}", indent(problem));
        }
        for case in &self.cases {
            if let Some(difference) = &case.blessed {
                println!("  ✎ cases/{}.json is corrected:\n{difference}", case.case);
            }
        }
        for case in self.cases.iter().filter(|case| !case.passed) {
            println!("  ✗ cases/{}.json", case.case);
            for problem in &case.problems {
                println!("    {}", indent(&indent(problem)));
            }
        }
        let passed = self.cases.iter().filter(|case| case.passed).count();
        let sign = if passed == self.cases.len() {
            '✓'
        } else {
            '✗'
        };
        println!(
            "  {sign} {passed} of {} cases of {} tools",
            self.cases.len(),
            self.tools
        );
    }
}

/// Indents all lines of a text but the first.
fn indent(text: &str) -> String {
    text.replace('\n', "\n  ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_schemas_and_examples_are_reported() {
        let manifest: Manifest = serde_json::from_value(json!({
            "abi": "1.0.0", "sdk": "toolkit-sdk 0.1.0", "slug": "hello", "name": "Hello", "description": "Greets.",
            "version": "20261121_00",
            "tools": [{
                "slug": "HELLO_GREET", "name": "n", "description": "d", "output": { "type": "invented" },
                "input": { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] },
                "examples": [{ "name": "Ada" }, { "name": 1 }, {}],
            }],
        }))
        .unwrap();
        let problems = schema_problems(&manifest);
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(
            problems[0].starts_with("HELLO_GREET: output schema: "),
            "{problems:?}"
        );
        assert!(
            problems[1].starts_with("HELLO_GREET: example 2: name: "),
            "{problems:?}"
        );
        assert!(
            problems[2].starts_with("HELLO_GREET: example 3: "),
            "{problems:?}"
        );
    }
}
