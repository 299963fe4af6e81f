//! Files bundled with this command, and the source files of a toolkit.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::Language;

/// Path and text of a file.
pub(crate) type File = (&'static str, &'static str);

/// Pairs the names of files with their texts, from a folder of this repository into one of a
/// toolkit.
macro_rules! files {
    ($to:literal from $folder:literal: $($name:literal)*) => {
        [$((concat!($to, $name), include_str!(concat!("../../../", $folder, $name)))),*]
    };
}

const WIT_FILE: File = (
    "wit/toolkit.wit",
    include_str!("../../../wit/v1/toolkit.wit"),
);

const JS_LIBRARY: [File; 12] = files!(
    "toolkit-sdk/" from "js/sdk/":
    "bytes.js"
    "context.js"
    "declare.js"
    "error.js"
    "failure.js"
    "file.js"
    "http.js"
    "index.d.ts"
    "index.js"
    "platform.js"
    "runtime.js"
    "trigger.js"
);
const JS_COMPILER: [File; 4] = [
    WIT_FILE,
    ("build.mjs", include_str!("../../../js/build.mjs")),
    (
        "package-lock.json",
        include_str!("../../../js/package-lock.json"),
    ),
    ("package.json", include_str!("../../../js/package.json")),
];

const PYTHON_LIBRARY: [File; 12] = files!(
    "" from "python/":
    "toolkit_entry.py"
    "toolkit_sdk/__init__.py"
    "toolkit_sdk/context.py"
    "toolkit_sdk/declare.py"
    "toolkit_sdk/error.py"
    "toolkit_sdk/failure.py"
    "toolkit_sdk/file.py"
    "toolkit_sdk/http.py"
    "toolkit_sdk/loading.py"
    "toolkit_sdk/runtime.py"
    "toolkit_sdk/trigger.py"
    "toolkit_sdk/types.py"
);
const PYTHON_COMPILER: [File; 2] = [
    WIT_FILE,
    (
        "requirements.txt",
        include_str!("../../../python/requirements.txt"),
    ),
];

impl Language {
    /// Returns the files of the compiler.
    pub(super) fn compiler(self) -> &'static [File] {
        match self {
            Self::Js => &JS_COMPILER,
            Self::Python => &PYTHON_COMPILER,
        }
    }

    /// Returns the files of the library compiled into a toolkit.
    fn library(self) -> &'static [File] {
        match self {
            Self::Js => &JS_LIBRARY,
            Self::Python => &PYTHON_LIBRARY,
        }
    }
}

/// Writes the library into a toolkit's own folder, where the compiler and the author's editor find
/// it.
pub(crate) fn unpack(folder: &Path, language: Language) -> Result<()> {
    write(folder, language.library())
}

/// Writes files below a folder.
pub(crate) fn write(folder: &Path, files: &[File]) -> Result<()> {
    files
        .iter()
        .try_for_each(|(path, text)| write_file(&folder.join(path), text))
}

/// Writes a file and makes its folder.
pub(crate) fn write_file(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Returns a digest of texts, in order.
pub(crate) fn digest_of<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut all = Vec::new();
    for (path, text) in files {
        for part in [path.as_bytes(), text] {
            all.extend((part.len() as u64).to_le_bytes());
            all.extend(part);
        }
    }
    sandbox::Digest::compute(&all).to_string()
}

/// Returns a digest of all inputs of a toolkit's compilation: its own files, the library, and the
/// compiler's version. The packages of package managers are determined by files among them.
pub(super) fn digest(folder: &Path, language: Language) -> Result<String> {
    let mut own = Vec::new();
    collect(folder, &mut own)?;
    own.sort();
    let mut texts = Vec::new();
    for file in &own {
        let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        texts.push((file.to_string_lossy().into_owned(), bytes));
    }
    let ours = language
        .library()
        .iter()
        .chain(language.compiler())
        .map(|(path, text)| (*path, text.as_bytes()));
    Ok(digest_of(
        texts
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
            .chain(ours),
    ))
}

/// Collects the author's files, without hidden ones, generated ones, and cases.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    const IGNORED_FOLDERS: [&str; 5] = ["__pycache__", "cases", "dist", "node_modules", "target"];
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries.flatten() {
        let file_name = entry.file_name();
        let name = file_name.to_string_lossy();
        if name.starts_with('.') || IGNORED_FOLDERS.contains(&&*name) {
            continue;
        }
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found)?
        } else {
            found.push(path)
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_changes_only_with_own_files() {
        let folder = tempfile::tempdir().unwrap();
        let digest = || digest(folder.path(), Language::Js).unwrap();
        let put = |path: &str, text: &str| {
            let file = folder.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        put("tools.js", "1");
        let first = digest();
        for made in [
            "dist/hello.wasm",
            "node_modules/zod/index.js",
            ".toolkit/component.wasm",
            "cases/greet/a.json",
        ] {
            put(made, "x");
        }
        assert_eq!(digest(), first);
        put("lib/more.js", "2");
        let second = digest();
        assert_ne!(second, first);
        put("lib/more.js", "3");
        assert_ne!(digest(), second);
        assert_ne!(
            super::digest(folder.path(), Language::Python).unwrap(),
            digest()
        );
    }
}
