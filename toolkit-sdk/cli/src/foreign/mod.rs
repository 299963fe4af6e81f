//! Toolkits in languages other than Rust, compiled from a folder to a component.
//!
//! Problem: an engine for such a language is a separate program with its own compiler from its own
//! registry, and it imports more than a toolkit may have. An author should need only the package
//! manager of the language.
//!
//! Guarantee: this command pins the compiler's version and contains the library. The component
//! imports only interfaces that the host provides. The toolkit's code never runs outside of
//! WebAssembly. A toolkit whose files did not change is not compiled again.
//!
//! Basis: [`compiler`], [`stub_imports`], [`declaration`].

mod compiler;
mod declaration;
pub(crate) mod files;
mod stub_imports;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::Value;

use crate::progress;

pub(crate) use {compiler::prepare, files::unpack};

/// Name and version of the library, as stated in manifests.
const SDK_VERSION: &str = concat!("toolkit-sdk ", env!("CARGO_PKG_VERSION"));
/// Interface that every toolkit exports.
const ENTRY_INTERFACE: &str = "toolhost:toolkit/entry@1.0.0";
/// Name, without its version, of the interface that verifies webhook requests.
const WEBHOOK_PREFIX: &str = "toolhost:toolkit/webhook@";
/// Folder inside a toolkit's folder for files of this command.
pub(crate) const WORK_FOLDER: &str = ".toolkit";

/// A language that toolkits are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// JavaScript or TypeScript, `tools.js` or `tools.ts`.
    Js,
    /// Python, `tools.py`.
    Python,
}

/// Folder of a toolkit in another language.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) folder: PathBuf,
    language: Language,
    entry: &'static str,
}

/// A toolkit as a component without a manifest.
pub(crate) struct Compiled {
    pub(crate) component: Vec<u8>,
    /// The manifest, without a version if the author did not specify one.
    pub(crate) described: Value,
}

impl Language {
    /// Returns the language's name in lower case.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Js => "javascript",
            Self::Python => "python",
        }
    }
}

impl Source {
    /// Returns the toolkit in this folder if it is in another language.
    pub(crate) fn at(folder: &Path) -> Option<Self> {
        if folder.join("Cargo.toml").is_file() {
            return None;
        }
        let entries = [
            ("tools.js", Language::Js),
            ("tools.ts", Language::Js),
            ("tools.py", Language::Python),
        ];
        let (entry, language) = entries
            .into_iter()
            .find(|(entry, _)| folder.join(entry).is_file())?;
        Some(Self {
            folder: folder.to_owned(),
            language,
            entry,
        })
    }

    /// Compiles the toolkit, unless nothing has changed since the last compilation.
    pub(crate) fn compile(&self) -> Result<Compiled> {
        let place = self.folder.display();
        let folder = self
            .folder
            .canonicalize()
            .with_context(|| format!("cannot read {place}"))?;
        let kept = folder.join(WORK_FOLDER);
        let stamp = files::digest(&folder, self.language)?;
        let component_file = kept.join("component.wasm");
        let stamped = kept.join("component.from");
        let fresh = match fs::read_to_string(&stamped) {
            Ok(last) if last == stamp => fs::read(&component_file).ok(),
            _ => None,
        };
        let component = match fresh {
            Some(bytes) => bytes,
            None => {
                let compiler = compiler::prepare(self.language)?;
                files::unpack(&kept, self.language)?;
                let _spinner =
                    progress::spinner(&format!("compiling {place}, which takes a while"));
                let raw = kept.join("compiled.wasm");
                compiler.compile(&folder, self.entry, &kept, &raw)?;
                let bytes =
                    fs::read(&raw).with_context(|| format!("cannot read {}", raw.display()))?;
                let closed =
                    stub_imports::stub_imports(&bytes, ENTRY_INTERFACE, is_import_provided)?;
                fs::remove_file(&raw)
                    .with_context(|| format!("cannot remove {}", raw.display()))?;
                fs::write(&component_file, &closed)
                    .with_context(|| format!("cannot write {}", component_file.display()))?;
                fs::write(&stamped, stamp)
                    .with_context(|| format!("cannot write {}", stamped.display()))?;
                closed
            }
        };
        let sdk = format!("{SDK_VERSION} ({})", self.language.name());
        let described = declaration::find(&component)?.manifest(&folder, &sdk)?;
        Ok(Compiled {
            component,
            described,
        })
    }
}

/// Returns true if the component may keep an import. Engines import the whole contract, used or
/// not, but a component that imports `webhook` does not get the secrets that the libraries of these
/// languages verify with.
fn is_import_provided(name: &str) -> bool {
    sandbox::is_import_available(name) && !name.starts_with(WEBHOOK_PREFIX)
}
