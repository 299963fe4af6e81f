//! Packs the sources of the guest library into this command, with the part of the workspace that
//! they inherit from.

use std::{
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// Crates of the library, by their folder in the repository.
const LIBRARY_CRATES: [&str; 3] = [
    "toolkit-sdk/macros",
    "toolkit-sdk/manifest",
    "toolkit-sdk/sdk",
];
/// Folder of the contract that the library is generated from.
const CONTRACT_FOLDER: &str = "toolkit-sdk/wit/v1";
const MANIFEST_FILE: &str = "Cargo.toml";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()?;
    let output = output_folder()?;
    let mut files = Vec::new();
    let mut folders = vec![root.join(CONTRACT_FOLDER)];
    let mut manifests = String::new();
    for folder in LIBRARY_CRATES.map(|folder| root.join(folder)) {
        folders.push(folder.join("src"));
        manifests.push_str(&fs::read_to_string(folder.join(MANIFEST_FILE))?);
        files.push(folder.join(MANIFEST_FILE));
    }
    for file in folders
        .iter()
        .chain(&files)
        .chain([&root.join(MANIFEST_FILE)])
    {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    for folder in &folders {
        collect(folder, &mut files)?;
    }
    files.sort();
    let workspace = output.join("workspace.toml");
    let whole = fs::read_to_string(root.join(MANIFEST_FILE))?;
    fs::write(&workspace, inherited(&whole, &manifests))?;

    let mut list = format!("&[({MANIFEST_FILE:?}, include_str!({workspace:?})),\n");
    for file in files {
        let path = file.strip_prefix(&root)?;
        writeln!(list, "({path:?}, include_str!({file:?})),")?;
    }
    fs::write(output.join("sdk_sources.rs"), list + "]")?;
    Ok(())
}

/// Collects the files below a folder. Tests are left out, because the library is not tested where
/// it is unpacked.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns the manifest of a workspace of the packed crates: the repository's, without the members
/// and dependencies of other crates. Each dependency takes one line.
fn inherited(workspace: &str, manifests: &str) -> String {
    let mut kept = format!("[workspace]\nresolver = \"3\"\nmembers = {LIBRARY_CRATES:?}\n");
    let mut section = "";
    for line in workspace
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if line.starts_with('[') {
            section = line;
        }
        let is_kept = match section {
            "[workspace.package]" => true,
            "[workspace.dependencies]" => line == section || is_inherited(line, manifests),
            _ => section.starts_with("[workspace.lints"),
        };
        if is_kept {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Returns true if one of the manifests inherits the dependency in this line of the workspace.
fn is_inherited(line: &str, manifests: &str) -> bool {
    let name = line.split(' ').next().unwrap_or_default();
    manifests.lines().any(|line| {
        line.strip_prefix(name).is_some_and(|rest| {
            rest.starts_with(".workspace") || rest.starts_with(" = { workspace")
        })
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "cargo passes the folder of a build script in its environment"
)]
fn output_folder() -> Result<PathBuf, Box<dyn Error>> {
    Ok(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?.into())
}
