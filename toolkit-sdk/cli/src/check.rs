//! `toolkit check`: reports all problems of a toolkit in one run.
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

pub(crate) use case::folder_name;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::Args;
use manifest::{Manifest, Version, is_python_keyword};
use serde::Serialize;
use serde_json::Value;

use crate::{
    build::{self, BuildTarget},
    outcome,
    progress::counted,
    schema,
};

/// Check a toolkit: manifest, schemas, examples, and every case.
///
/// PATH may also be a component; its cases are then named with --cases. A failing case shows the
/// observed result next to the expected one; with --bless the observed result is written into it.
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
    /// Write the observed result into the cases that expect another one. A success that became a
    /// failure is not written.
    #[arg(long)]
    bless: bool,
    /// Print a JSON array.
    #[arg(long)]
    json: bool,
}

/// Check results of one toolkit.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
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
    let cases = options.cases.as_deref();
    let mut reports = Vec::new();
    for subject in subjects(&options.target, None, cases)? {
        reports.push(check(&subject, options.bless).await?);
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&reports)?);
    } else {
        reports.iter().for_each(|report| print!("{report}"));
    }
    Ok(outcome::exit_code(reports.iter().all(Report::is_clean)))
}

/// A component and the folder of its cases, if one is known.
pub(crate) struct Subject {
    pub(crate) file: PathBuf,
    pub(crate) cases: Option<PathBuf>,
    /// True if neither the author nor an argument chose the version.
    pub(crate) is_dated: bool,
}

/// Returns the named component, or builds the named crates and returns their components.
pub(crate) fn subjects(
    target: &BuildTarget,
    version: Option<&Version>,
    cases: Option<&Path>,
) -> Result<Vec<Subject>> {
    if let Some(folder) = cases
        && !folder.is_dir()
    {
        bail!(
            "{} is not a folder; name the folder of the cases with --cases",
            folder.display()
        );
    }
    if target.file().is_some() {
        let files = target.components(version)?;
        return Ok(files
            .into_iter()
            .map(|file| Subject {
                file,
                cases: cases.map(Path::to_owned),
                is_dated: false,
            })
            .collect());
    }
    let built = build::build(target, version, None)?;
    Ok(built
        .into_iter()
        .map(|built| Subject {
            cases: Some(cases.map_or_else(|| built.folder.join("cases"), Path::to_owned)),
            file: built.file,
            is_dated: built.is_dated,
        })
        .collect())
}

/// Checks one component.
pub(crate) async fn check(subject: &Subject, bless: bool) -> Result<Report> {
    let file = &subject.file;
    let component: Bytes = fs::read(file)
        .with_context(|| format!("cannot read {}", file.display()))?
        .into();
    let manifest =
        manifest::extract(&component).with_context(|| format!("cannot read {}", file.display()))?;
    let mut problems = manifest.problems();
    let refused = !problems.is_empty();
    problems.extend(schema_problems(&manifest));
    let files = match &subject.cases {
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
    Ok(Report {
        slug: manifest.slug,
        version: manifest.version.to_string(),
        tools: manifest.tools.len(),
        cases: ran,
        problems,
    })
}

/// Reports invalid schemas, examples that do not match their schema, and arguments that cannot be
/// parameters of a function in Python.
fn schema_problems(manifest: &Manifest) -> Vec<String> {
    let mut problems = Vec::new();
    for tool in &manifest.tools {
        compiled(&tool.slug, "output schema", &tool.output, &mut problems);
        let arguments = tool.input["properties"].as_object().into_iter().flatten();
        for (name, _) in arguments.filter(|(name, _)| is_python_keyword(name)) {
            problems.push(format!(
                "{}: input schema: `{name}` is a keyword of Python: frameworks that make a function of a tool refuse it; \
                 rename the argument, for example to `{name}_`",
                tool.slug
            ));
        }
        let input = compiled(&tool.slug, "input schema", &tool.input, &mut problems);
        let Some(input) = input else { continue };
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
        for (what, schema) in [
            ("configuration schema", &trigger.config),
            ("payload schema", &trigger.payload),
        ] {
            compiled(&trigger.slug, what, schema, &mut problems);
        }
    }
    problems
}

fn compiled(
    slug: &str,
    what: &str,
    schema: &Value,
    problems: &mut Vec<String>,
) -> Option<jsonschema::Validator> {
    schema::compile(schema)
        .map_err(|cause| problems.push(format!("{slug}: {what}: {cause}")))
        .ok()
}

impl Report {
    pub(crate) fn is_clean(&self) -> bool {
        self.problems.is_empty() && self.cases.iter().all(|case| case.passed)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{} {}", self.slug, self.version)?;
        for problem in &self.problems {
            writeln!(out, "  ✗ {}", indent(problem))?;
        }
        for case in &self.cases {
            if let Some(difference) = &case.blessed {
                writeln!(
                    out,
                    "  ✎ cases/{}.json is corrected:\n{difference}",
                    case.case
                )?;
            }
        }
        for case in self.cases.iter().filter(|case| !case.passed) {
            writeln!(out, "  ✗ cases/{}.json", case.case)?;
            for problem in &case.problems {
                writeln!(out, "    {}", indent(&indent(problem)))?;
            }
        }
        if self.cases.is_empty() && !self.problems.is_empty() {
            return writeln!(out, "  ✗ no case was run");
        }
        let passed = self.cases.iter().filter(|case| case.passed).count();
        let sign = if passed == self.cases.len() {
            '✓'
        } else {
            '✗'
        };
        writeln!(
            out,
            "  {sign} {passed} of {} of {}",
            counted(self.cases.len(), "case"),
            counted(self.tools, "tool")
        )
    }
}

/// Indents all lines except the first.
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
        for (problem, start) in problems.iter().zip([
            "HELLO_GREET: output schema: ",
            "HELLO_GREET: example 2: name: ",
            "HELLO_GREET: example 3: ",
        ]) {
            assert!(problem.starts_with(start), "{problem}");
        }
    }

    #[test]
    fn arguments_named_like_python_keywords_are_reported() {
        let manifest: Manifest = serde_json::from_value(json!({
            "abi": "1.0.0", "sdk": "toolkit-sdk 0.1.0", "slug": "mail", "name": "Mail", "description": "Sends.",
            "version": "20261121_00",
            "tools": [{
                "slug": "MAIL_SEND", "name": "n", "description": "d", "output": { "type": "object" },
                "input": { "type": "object", "properties": {
                    "from": { "type": "string" }, "from_email": { "type": "string" },
                    "filter": { "type": "object", "properties": { "from": { "type": "string" } } },
                } },
            }],
        }))
        .unwrap();
        let problems = schema_problems(&manifest);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].starts_with("MAIL_SEND: input schema: `from` is a keyword of Python: "),
            "{problems:?}"
        );
    }
}
