//! `toolkit new`: creates a toolkit that builds and passes `toolkit check` without changes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use heck::{ToSnakeCase, ToTitleCase};

use crate::{
    foreign::{self, Language, files::write_file as write},
    sdk, slug, toolchain,
};

const CARGO_TOML: &str = include_str!("../template/Cargo.toml.template");
const WORKSPACE_TOML: &str = include_str!("../template/workspace.template");
/// Files of a new toolkit in every language.
const COMMON_FILES: [(&str, &str); 3] = [
    (
        "cases/greet/failure.json",
        include_str!("../template/failure.json"),
    ),
    (
        "cases/greet/success.json",
        include_str!("../template/success.json"),
    ),
    ("logo.svg", include_str!("../template/logo.svg")),
];
const RUST_FILES: [(&str, &str); 2] = [
    (".gitignore", include_str!("../template/gitignore")),
    ("src/lib.rs", include_str!("../template/lib.rs.template")),
];
const JS_FILES: [(&str, &str); 6] = [
    (".gitignore", include_str!("../template/js/gitignore")),
    (
        "cases/get_item/failure.json",
        include_str!("../template/item_failure.json"),
    ),
    (
        "cases/get_item/success.json",
        include_str!("../template/item_success.json"),
    ),
    (
        "jsconfig.json",
        include_str!("../template/js/jsconfig.json"),
    ),
    ("package.json", include_str!("../template/js/package.json")),
    ("tools.js", include_str!("../template/js/tools.js")),
];
const PYTHON_FILES: [(&str, &str); 5] = [
    (".gitignore", include_str!("../template/python/gitignore")),
    (
        "cases/get_item/failure.json",
        include_str!("../template/item_failure.json"),
    ),
    (
        "cases/get_item/success.json",
        include_str!("../template/item_success.json"),
    ),
    (
        "pyrightconfig.json",
        include_str!("../template/python/pyrightconfig.json"),
    ),
    ("tools.py", include_str!("../template/python/tools.py")),
];

/// Path of the SDK in its repository.
const SDK_FOLDER: &str = "toolkit-sdk/sdk";

/// Make a new toolkit.
#[derive(Debug, Args)]
pub(crate) struct New {
    /// Name of the toolkit, or a path that ends in it, for example `hacker-news`.
    name: PathBuf,
    /// Language of its tools.
    #[arg(long, value_enum, default_value_t = TemplateLanguage::Rust)]
    lang: TemplateLanguage,
    /// Folder of the Rust SDK, or its version [default: the SDK of the surrounding repository,
    /// else the one in this command].
    #[arg(long, env = "TOOLKIT_SDK_PATH", value_name = "PATH|VERSION")]
    sdk: Option<String>,
}

/// A language of the templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TemplateLanguage {
    /// Rust, `src/lib.rs`.
    Rust,
    /// JavaScript, `tools.js`.
    Js,
    /// Python, `tools.py`.
    Python,
}

/// Runs the command.
pub(crate) fn run(options: &New) -> Result<()> {
    let folder = &options.name;
    let names = Names::from_folder(folder)?;
    if folder.exists() {
        bail!(
            "{} already exists; choose another name, or remove it",
            folder.display()
        );
    }
    match options.lang {
        TemplateLanguage::Rust => new_crate(folder, &names, options.sdk.as_deref())?,
        TemplateLanguage::Js => names.write_foreign(folder, &JS_FILES, Language::Js)?,
        TemplateLanguage::Python => names.write_foreign(folder, &PYTHON_FILES, Language::Python)?,
    }
    names.write(folder, &COMMON_FILES)?;
    println!("made {}\n\nnext:", folder.display());
    println!("  cd {}", shell_word(folder));
    println!("  toolkit check                         # build it, run its cases in the sandbox");
    println!(
        "  toolkit dev                           # serve it on the real API, swap it at every change"
    );
    println!("  toolkit run . greet --arg name=Ada    # run a tool");
    Ok(())
}

/// Returns a path as a word of a shell command, in quotation marks if it needs them.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

fn new_crate(folder: &Path, names: &Names, requested: Option<&str>) -> Result<()> {
    let dependency = dependency(requested, folder)?;
    let is_packed = dependency == packed();
    let cargo = names.fill(CARGO_TOML).replace("{{sdk}}", &dependency);
    write(&folder.join("Cargo.toml"), &cargo)?;
    names.write(folder, &RUST_FILES)?;
    if belongs_to_a_workspace(folder)? {
        return Ok(());
    }
    write(
        &folder.join("Cargo.toml"),
        &format!("{cargo}{WORKSPACE_TOML}"),
    )?;
    if is_packed {
        write(&folder.join("Cargo.lock"), &sdk::lock_file(&names.name))?;
        sdk::link(folder)?;
    }
    Ok(())
}

/// Spellings of the toolkit's name.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    name: String,
    slug: String,
    title: String,
}

impl Names {
    fn from_folder(folder: &Path) -> Result<Self> {
        let name = folder.file_name().and_then(|name| name.to_str()).context(
            "the path has no name for the toolkit; write for example `toolkit new hacker-news`",
        )?;
        let slug = name.to_snake_case();
        slug::check(&slug)?;
        Ok(Self {
            name: slug.replace('_', "-"),
            title: slug.to_title_case(),
            slug,
        })
    }

    /// Writes the files of a toolkit in another language than Rust, and the library for it.
    fn write_foreign(
        &self,
        folder: &Path,
        templates: &[(&str, &str)],
        language: Language,
    ) -> Result<()> {
        self.write(folder, templates)?;
        foreign::unpack(&folder.join(foreign::WORK_FOLDER), language)
    }

    fn write(&self, folder: &Path, templates: &[(&str, &str)]) -> Result<()> {
        templates
            .iter()
            .try_for_each(|(path, template)| write(&folder.join(path), &self.fill(template)))
    }

    fn fill(&self, template: &str) -> String {
        template
            .replace("{{name}}", &self.name)
            .replace("{{slug}}", &self.slug)
            .replace("{{title}}", &self.title)
    }
}

/// Returns the dependency on the SDK for the `Cargo.toml` of a toolkit in `folder`.
fn dependency(requested: Option<&str>, folder: &Path) -> Result<String> {
    let path = match requested {
        Some(requested) if Path::new(requested).is_dir() => Some(PathBuf::from(requested)),
        Some(version) if version.starts_with(|first: char| first.is_ascii_digit()) => {
            return Ok(format!("\"{version}\""));
        }
        Some(other) => bail!("`{other}` is neither the folder of the SDK nor a version of it"),
        None => surrounding_repository(folder)?,
    };
    let Some(path) = path else {
        return Ok(packed());
    };
    if !path.join("Cargo.toml").is_file() {
        bail!(
            "{} has no Cargo.toml; name the folder `{SDK_FOLDER}` of the repository",
            path.display()
        );
    }
    let absolute = path
        .canonicalize()
        .with_context(|| format!("cannot read {}", path.display()))?;
    // TOML basic strings and Rust strings have the same escapes for all common characters of a
    // path.
    Ok(format!("{{ path = {:?} }}", absolute.to_string_lossy()))
}

/// Returns the dependency on the SDK of this command.
fn packed() -> String {
    format!("\"{}\"", sdk::LIBRARY_VERSION)
}

/// Finds the SDK of the repository that contains a folder.
fn surrounding_repository(folder: &Path) -> Result<Option<PathBuf>> {
    let place =
        std::path::absolute(folder).with_context(|| format!("cannot find {}", folder.display()))?;
    let mut candidates = place.ancestors().map(|root| root.join(SDK_FOLDER));
    Ok(candidates.find(|sdk| sdk.join("Cargo.toml").is_file()))
}

/// Returns true if cargo adds the new crate to a workspace above it.
fn belongs_to_a_workspace(folder: &Path) -> Result<bool> {
    let mut command = toolchain::clean_command("cargo");
    command
        .args(["locate-project", "--workspace", "--message-format", "plain"])
        .current_dir(folder);
    let Ok(output) = command.output() else {
        return Ok(false);
    };
    let manifest = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let folder = folder
        .canonicalize()
        .with_context(|| format!("cannot read {}", folder.display()))?;
    Ok(output.status.success() && manifest.parent().is_some_and(|root| root != folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_yields_crate_slug_and_title() {
        let expected = Names {
            name: "hacker-news".into(),
            slug: "hacker_news".into(),
            title: "Hacker News".into(),
        };
        for name in [
            "hacker-news",
            "hacker_news",
            "HackerNews",
            "/somewhere/else/Hacker News",
        ] {
            assert_eq!(
                Names::from_folder(Path::new(name)).unwrap(),
                expected,
                "{name}"
            );
        }
        for name in ["", "7zip", "a", "größe", ".."] {
            assert!(Names::from_folder(Path::new(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn folder_is_quoted_for_the_shell() {
        for (folder, word) in [
            ("toolkits/hacker-news", "toolkits/hacker-news"),
            ("My Toolkit!", "'My Toolkit!'"),
            ("Ada's", r"'Ada'\''s'"),
        ] {
            assert_eq!(shell_word(Path::new(folder)), word);
        }
    }

    #[test]
    fn every_language_is_accepted() {
        for lang in ["rust", "js", "python"] {
            let command = New::augment_args(clap::Command::new("new"));
            let parsed = command.try_get_matches_from(["new", "x", "--lang", lang]);
            assert!(parsed.is_ok(), "{lang}");
        }
    }

    #[test]
    fn the_sdk_is_a_folder_or_a_version() {
        let outside = tempfile::tempdir().unwrap();
        let dependency = |requested| dependency(requested, outside.path());
        assert_eq!(dependency(None).unwrap(), packed());
        assert_eq!(dependency(Some("0.1")).unwrap(), "\"0.1\"");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        for (wrong, part) in [("nowhere", "nowhere"), (path, "no Cargo.toml")] {
            let refused = dependency(Some(wrong)).unwrap_err().to_string();
            assert!(refused.contains(part), "{refused}");
        }
        std::fs::write(folder.path().join("Cargo.toml"), "").unwrap();
        assert!(dependency(Some(path)).unwrap().starts_with("{ path = \"/"));
    }

    #[test]
    fn nothing_of_a_template_is_left_unfilled() {
        let names = Names::from_folder(Path::new("hello")).unwrap();
        for (path, template) in COMMON_FILES
            .iter()
            .chain(&RUST_FILES)
            .chain(&JS_FILES)
            .chain(&PYTHON_FILES)
        {
            assert!(!names.fill(template).contains("{{"), "{path}");
        }
        assert_eq!(
            names.fill(CARGO_TOML).matches("{{").count(),
            1,
            "only the SDK is filled later"
        );
        // Otherwise the first build of a toolkit would ask the registry.
        let lock = sdk::lock_file("hello");
        let entry = lock
            .split("[[package]]\n")
            .find(|entry| entry.starts_with("name = \"hello\"\n"));
        let dependencies = entry.unwrap().matches("\n \"").count();
        let named = CARGO_TOML
            .split("[dependencies]\n")
            .nth(1)
            .unwrap()
            .lines()
            .count();
        assert_eq!(dependencies, named, "{lock}");
    }
}
