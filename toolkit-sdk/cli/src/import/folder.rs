//! Folder of an import: the parsed description, `import.json`, and the author's corrections,
//! `overlay.toml`.
//!
//! `toolkit import` writes the first file, which is never edited. The author writes the second
//! file, which is never overwritten. A folder may also be a crate, whose own tools are then
//! combined with those of the import.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use import::{Api, Imported, Overlay, Report};
use manifest::Manifest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Kind, module};

const IMPORT_FILE: &str = "import.json";
/// File names of the overlay, the default one first.
const OVERLAY_FILES: [&str; 2] = ["overlay.toml", "overlay.json"];

/// Content of `import.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    /// Kind of the description.
    pub(crate) kind: Kind,
    /// Slug of the toolkit.
    pub(crate) slug: String,
    pub(crate) api: Api,
}

/// Returns true if a folder is an import and not a crate.
pub(crate) fn is_alone(folder: &Path) -> bool {
    folder.join(IMPORT_FILE).is_file() && !folder.join("Cargo.toml").is_file()
}

impl Source {
    /// Writes the import into a folder.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let file = folder.join(IMPORT_FILE);
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Reads the import of a folder, if it has one.
    fn read(folder: &Path) -> Result<Option<Self>> {
        let file = folder.join(IMPORT_FILE);
        if !file.is_file() {
            return Ok(None);
        }
        let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let source = serde_json::from_slice(&bytes);
        source.map(Some).with_context(|| {
            format!(
                "{} was written by another release of this command; run `toolkit import` again",
                file.display()
            )
        })
    }

    /// Builds the toolkit with the overlay of the folder.
    fn made(self, folder: &Path) -> Result<Imported> {
        let overlay = overlay(folder)?;
        let slug = self.slug.clone();
        let mut made = import::toolkit(self.api, &slug, &overlay).with_context(|| {
            format!(
                "cannot make a toolkit of {}",
                folder.join(IMPORT_FILE).display()
            )
        })?;
        made.manifest.logo = overlay
            .logo
            .as_deref()
            .map(|logo| read_logo(&folder.join(logo)))
            .transpose()?;
        Ok(made)
    }
}

/// Reads the overlay of a folder. Returns an empty one if the file does not exist.
fn overlay(folder: &Path) -> Result<Overlay> {
    let Some(file) = OVERLAY_FILES
        .iter()
        .map(|name| folder.join(name))
        .find(|file| file.is_file())
    else {
        return Ok(Overlay::default());
    };
    read_overlay(&file)
}

/// Reads an overlay: JSON if the file extension says so, otherwise TOML.
pub(crate) fn read_overlay(file: &Path) -> Result<Overlay> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let json = file.extension().is_some_and(|end| end == "json");
    let overlay = if json {
        Overlay::from_json(&text)
    } else {
        Overlay::from_toml(&text)
    };
    overlay.with_context(|| format!("in {}", file.display()))
}

/// Returns the path of a folder's overlay in the same format as the given one.
pub(crate) fn overlay_like(folder: &Path, given: &Path) -> PathBuf {
    let json = given.extension().is_some_and(|end| end == "json");
    folder.join(OVERLAY_FILES[usize::from(json)])
}

/// Reads the logo: an SVG document unchanged, a PNG as a `data:` URL.
fn read_logo(file: &Path) -> Result<String> {
    let bytes =
        fs::read(file).with_context(|| format!("cannot read the logo {}", file.display()))?;
    match file.extension().and_then(|end| end.to_str()) {
        Some("svg") => {
            String::from_utf8(bytes).with_context(|| format!("{} is not text", file.display()))
        }
        Some("png") => Ok(format!("data:image/png;base64,{}", BASE64.encode(bytes))),
        _ => bail!("the logo {} must be an .svg or .png file", file.display()),
    }
}

/// A guest, its description, and the report of the import in its folder.
pub(crate) struct Guest {
    pub(crate) core: Vec<u8>,
    pub(crate) described: Value,
    pub(crate) report: Option<Report>,
}

/// Adds the import of a folder to a guest. The guest stays unchanged if the folder does not contain
/// an import.
pub(crate) fn added(folder: &Path, core: Vec<u8>, described: Value) -> Result<Guest> {
    let Some(source) = Source::read(folder)? else {
        return Ok(Guest {
            core,
            described,
            report: None,
        });
    };
    let made = source.made(folder)?;
    let plan = manifest::plan::write(&made.calls).context("the plan is too large")?;
    let core = module::with_plan(&core, &plan)?;
    let report = Some(made.report.clone());
    let described = if is_alone(folder) {
        described_alone(made)?
    } else {
        joined(described, made.manifest)?
    };
    Ok(Guest {
        core,
        described,
        report,
    })
}

/// Returns the description of a toolkit that consists only of its import. It has a version only if
/// the overlay specifies one.
fn described_alone(made: Imported) -> Result<Value> {
    let mut described = serde_json::to_value(made.manifest)?;
    if let Some(described) = described.as_object_mut().filter(|_| !made.stamped) {
        described.shift_remove("version");
    }
    Ok(described)
}

/// Merges the tools of an import into the description of a crate. The crate's own values take
/// precedence.
fn joined(mut described: Value, imported: Manifest) -> Result<Value> {
    if described["slug"] != *imported.slug {
        bail!(
            "the crate's slug is {}, but its import's slug is `{}`; use one slug for both",
            described["slug"],
            imported.slug
        );
    }
    let taken: Vec<String> = names(&described["tools"]);
    let tools = imported
        .tools
        .iter()
        .filter(|tool| !taken.contains(&tool.slug))
        .map(serde_json::to_value)
        .collect::<Result<Vec<_>, _>>()?;
    extend(&mut described["tools"], tools);
    // For a host that the crate names, only the crate's rules apply.
    let rules = imported
        .egress
        .iter()
        .filter(|added| {
            !described["egress"]
                .as_array()
                .is_some_and(|own| own.iter().any(|rule| rule["host"] == *added.host))
        })
        .map(serde_json::to_value)
        .collect::<Result<Vec<_>, _>>()?;
    extend(&mut described["egress"], rules);
    if described["auth"].as_array().is_none_or(Vec::is_empty) {
        described["auth"] = serde_json::to_value(imported.auth)?;
    }
    Ok(described)
}

fn names(tools: &Value) -> Vec<String> {
    tools
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["slug"].as_str().map(str::to_owned))
        .collect()
}

fn extend(list: &mut Value, more: Vec<Value>) {
    match list {
        Value::Array(list) => list.extend(more),
        other => *other = Value::Array(more),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn imported() -> Manifest {
        serde_json::from_value(json!({
            "abi": "1.0.0", "sdk": "s", "slug": "acme", "name": "n", "description": "d", "version": "20260101_00",
            "auth": [{ "mode": "NO_AUTH", "name": "n" }], "egress": [{ "host": "a.example" }, { "host": "b.example" }],
            "tools": [
                { "slug": "ACME_A", "name": "imported", "description": "d", "input": {}, "output": {} },
                { "slug": "ACME_B", "name": "imported", "description": "d", "input": {}, "output": {} },
            ],
        }))
        .unwrap()
    }

    #[test]
    fn crate_tools_precede_imported_tools() {
        let own = json!({ "slug": "acme", "egress": [{ "host": "a.example", "path_prefix": "/v1/" }], "tools": [{ "slug": "ACME_B", "name": "own" }] });
        let joined = joined(own, imported()).unwrap();
        assert_eq!(names(&joined["tools"]), ["ACME_B", "ACME_A"]);
        assert_eq!(joined["tools"][0]["name"], "own");
        assert_eq!(
            joined["egress"],
            json!([{ "host": "a.example", "path_prefix": "/v1/" }, { "host": "b.example" }])
        );
        assert_eq!(joined["auth"][0]["mode"], "NO_AUTH");
        let refused = super::joined(json!({ "slug": "other" }), imported()).unwrap_err();
        assert!(refused.to_string().contains("one slug"));
    }
}
