//! Copies the files of the Python interpreter from the package that `interpreter/Cargo.lock` pins.
//!
//! Cargo fetches the package as it fetches any other, and checks its digest.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const PACKAGE_NAME: &str = "bashkit-cpython-wasm";
const PACKAGE_FILES: [&str; 2] = ["python.wasm.xz", "python314.zip"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=interpreter/Cargo.lock");
    let output = output_folder()?;
    let artifacts = package_folder()?.join("artifacts");
    for file in PACKAGE_FILES {
        fs::copy(artifacts.join(file), output.join(file))?;
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "cargo passes the folder of a build script in its environment"
)]
fn output_folder() -> Result<PathBuf, Box<dyn Error>> {
    Ok(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?.into())
}

/// Fetches the package if it is missing and returns its folder.
fn package_folder() -> Result<PathBuf, Box<dyn Error>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--manifest-path", "interpreter/Cargo.toml"])
        .output()?;
    if !output.status.success() {
        let problem = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo cannot fetch {PACKAGE_NAME}: {problem}").into());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().ok_or("no packages")?;
    let package = packages
        .iter()
        .find(|package| package["name"] == PACKAGE_NAME);
    let manifest = package
        .and_then(|package| package["manifest_path"].as_str())
        .ok_or("the package is not in the lock file")?;
    Ok(Path::new(manifest)
        .parent()
        .ok_or("the package has no folder")?
        .to_owned())
}
