//! Checks of the repository's structure.
//!
//! The checks here read files as text: allowed dependencies between crates, the layout of a toolkit's
//! folder, workflows, the header of each module, and what documents name ([`documents`]). Imports
//! ([`floors`]), language and sizes ([`language`]) are read from the syntax tree. The length of a file is
//! printed and never fails, because a long file with one clear subject is fine.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on ends where it stands"
)]

mod documents;
mod floors;
mod language;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use language::is_of_tests;
use syn::spanned::Spanned;
use toml::{Table, Value};

/// Workspace crates that each crate depends on. A crate outside this list depends on none.
const WORKSPACE_DEPENDENCIES: [(&str, &str); 18] = [
    (
        "host-server",
        "api mcp web http settings app gate store sandbox workbench net manifest registry",
    ),
    ("host-web", "mcp http app"),
    ("host-mcp", "http app sandbox net manifest"),
    ("host-api", "http app manifest"),
    ("host-http", "settings app gate sandbox store net"),
    ("host-settings", "app sandbox store workbench net manifest"),
    (
        "host-app",
        "gate oauth sandbox search workbench store net manifest",
    ),
    ("host-oauth", "sandbox net manifest"),
    ("host-gate", ""),
    ("host-sandbox", "gate net manifest"),
    ("host-search", ""),
    ("host-workbench", "gate sandbox net"),
    ("host-store", ""),
    ("host-net", "gate"),
    ("toolkit-sdk-cli", "import sandbox net manifest registry"),
    ("toolkit-sdk-import", "manifest"),
    ("toolkit-sdk", "toolkit-sdk-macros manifest"),
    ("e2e", ""),
];

/// Crate of the toolkits' workspace that contains no toolkit: code shared by the tests of several
/// toolkits.
const TEST_SUPPORT_TOOLKIT: &str = "discovery";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
}

/// Returns all files below the source folders, as paths relative to the root.
fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders: Vec<_> = ["host", "toolkit-sdk", "toolkits", "tests"]
        .map(|name| root().join(name))
        .into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name == "target" || name == "dist" || name.starts_with('.') {
                continue;
            }
            if path.is_dir() {
                folders.push(path)
            } else {
                found.push(path)
            }
        }
    }
    found.sort();
    found
        .into_iter()
        .map(|path| path.strip_prefix(root()).unwrap().to_owned())
        .collect()
}

fn sources() -> Vec<(PathBuf, String)> {
    let files = files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files
        .map(|path| (path.clone(), read(&root().join(path))))
        .collect()
}

/// Returns a manifest.
fn manifest(path: &str) -> Table {
    read(&root().join(path)).parse().unwrap()
}

/// Returns the names under which the workspace's crates appear as dependencies.
fn workspace_crates() -> BTreeSet<String> {
    let workspace = manifest("Cargo.toml");
    let dependencies = workspace["workspace"]["dependencies"].as_table().unwrap();
    let own = dependencies
        .iter()
        .filter(|(_, value)| value.get("path").is_some());
    own.map(|(name, _)| name.clone()).collect()
}

/// Returns the manifests of the workspace's members.
fn crates() -> BTreeMap<String, (PathBuf, Table)> {
    let workspace = manifest("Cargo.toml");
    let members = workspace["workspace"]["members"].as_array().unwrap();
    let mut crates = BTreeMap::new();
    for member in members {
        let member = root().join(member.as_str().unwrap());
        let folders = match member.file_name().unwrap().to_str() {
            Some("*") => fs::read_dir(member.parent().unwrap())
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .collect(),
            _ => vec![member],
        };
        for folder in folders
            .into_iter()
            .filter(|folder| folder.join("Cargo.toml").is_file())
        {
            let manifest: Table = read(&folder.join("Cargo.toml")).parse().unwrap();
            let name = manifest["package"]["name"].as_str().unwrap().to_owned();
            crates.insert(name, (folder, manifest));
        }
    }
    crates
}

/// Returns the dependencies of every kind and target.
fn dependencies(manifest: &Table) -> BTreeSet<String> {
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let of = |table: &Table| -> Vec<String> {
        let tables = kinds.iter().filter_map(|kind| table.get(*kind)?.as_table());
        tables.flat_map(|table| table.keys().cloned()).collect()
    };
    let targets = manifest
        .get("target")
        .and_then(Value::as_table)
        .into_iter()
        .flat_map(Table::values);
    of(manifest)
        .into_iter()
        .chain(targets.filter_map(Value::as_table).flat_map(of))
        .collect()
}

#[test]
fn dependencies_point_down() {
    let workspace_crates = workspace_crates();
    for (name, (_, manifest)) in crates() {
        let listed = WORKSPACE_DEPENDENCIES.iter().find(|(own, _)| *own == name);
        let listed: BTreeSet<_> = listed
            .into_iter()
            .flat_map(|(_, crates)| crates.split_whitespace().map(str::to_owned))
            .collect();
        let mut used = dependencies(&manifest);
        // A crate that depends on itself selects the features of its own tests.
        used.retain(|own| workspace_crates.contains(own) && *own != name);
        assert_eq!(used, listed, "dependencies of {name} on other crates");
    }
}

#[test]
fn only_crates_that_serve_depend_on_http() {
    for (name, (_, mut manifest)) in crates()
        .into_iter()
        .filter(|(name, _)| name.starts_with("host-"))
    {
        // The tests of a crate may run a real service.
        manifest.remove("dev-dependencies");
        let wire = ["axum", "tower-http", "hyper"];
        let found: Vec<_> = dependencies(&manifest)
            .into_iter()
            .filter(|own| wire.contains(&own.as_str()))
            .collect();
        let serves = [
            "host-api",
            "host-http",
            "host-mcp",
            "host-server",
            "host-web",
        ];
        assert!(
            serves.contains(&name.as_str()) || found.is_empty(),
            "{name} depends on {found:?}"
        );
    }
}

#[test]
fn app_names_no_status_and_no_header() {
    // Messages quote a name in quotation marks or backticks.
    let words = ["StatusCode", "Idempotency-Key", "\"x-", "`x-"];
    let mut found = Vec::new();
    // Webhooks are requests to other servers, whose responses have a status.
    let client = Path::new("host/app/src/events/sending.rs");
    for (path, text) in sources() {
        let code = without_tests(&text);
        let named = words.into_iter().filter(|word| code.contains(word));
        if path.starts_with("host/app") && path != client {
            found.extend(named.map(|word| format!("{}: {word}", path.display())));
        }
    }
    assert!(found.is_empty(), "these belong to the server: {found:#?}");
}

#[test]
fn features_and_versions_stand_in_one_place() {
    for (name, (_, manifest)) in crates() {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for (dependency, value) in manifest
                .get(kind)
                .and_then(Value::as_table)
                .into_iter()
                .flatten()
            {
                let inherits = value.get("workspace").and_then(Value::as_bool) == Some(true);
                assert!(
                    inherits,
                    "{name}: {dependency} must say `workspace = true` and nothing else"
                );
                assert!(
                    value.get("features").is_none(),
                    "{name}: features of {dependency} belong to the workspace"
                );
            }
        }
        assert_eq!(
            manifest["lints"]["workspace"].as_bool(),
            Some(true),
            "{name} takes the workspace's lints"
        );
    }
}

/// Returns the languages of the code blocks in the doc comments of a source file.
fn documented_languages(text: &str) -> Vec<&str> {
    let fences = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let doc = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"))?;
        doc.trim().strip_prefix("```")
    });
    // Every other fence ends a block.
    fences.step_by(2).collect()
}

#[test]
fn examples_in_docs_are_tested() {
    let sources = sources();
    let mut found = Vec::new();
    for (folder, manifest) in crates().into_values() {
        let library = manifest.get("lib").and_then(|lib| lib.get("doctest"));
        if library.and_then(Value::as_bool) != Some(false) {
            continue;
        }
        let folder = folder.strip_prefix(root()).unwrap().to_owned();
        let own = sources.iter().filter(|(path, _)| path.starts_with(&folder));
        for (path, text) in own {
            let languages = documented_languages(text);
            if languages.iter().any(|name| ["", "rust"].contains(name)) {
                found.push(path.display().to_string());
            }
        }
    }
    assert!(
        found.is_empty(),
        "`doctest = false` in the crates of these examples: {found:#?}"
    );
}

#[test]
fn every_module_has_a_header() {
    let written_for_a_test = |path: &Path| path.components().any(|part| part.as_os_str() == "ui");
    let silent: Vec<_> = sources()
        .into_iter()
        .filter(|(path, text)| !text.starts_with("//!") && !written_for_a_test(path))
        .map(|(path, _)| path)
        .collect();
    assert!(
        silent.is_empty(),
        "these must begin with `//!` and say what they are for: {silent:#?}"
    );
}

#[test]
fn leftovers_are_refused() {
    // The words are split, so that this file does not match itself.
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("unimpl", "emented!"),
        concat!("dbg", "!("),
        concat!("#[", "allow("),
        concat!("#[", "ignore"),
    ];
    let names = ["utils", "util", "common", "helpers", "models", "misc"];
    let mut found = Vec::new();
    for (path, text) in sources() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if names.contains(&name.as_str()) {
            found.push(format!(
                "{}: the name says nothing about what is in it",
                path.display()
            ));
        }
        found.extend(
            words
                .iter()
                .filter(|word| text.contains(**word))
                .map(|word| format!("{}: {word}", path.display())),
        );
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Constants that are understood as one word, with the reason.
const KNOWN_CONSTANTS: [(&str, &str); 7] = [
    (
        "API",
        "client of a toolkit's provider, as the guide for toolkit authors has it",
    ),
    ("BASE", "version selector of the public API"),
    (
        "COLLECTION",
        "collection of a module's records, written with the module",
    ),
    (
        "COLLECTIONS",
        "list of all of them, which a store is opened with",
    ),
    ("LATEST", "version selector of the public API"),
    (
        "REGISTRATION",
        "made by the macro of a tool, in a module with its name",
    ),
    ("TOOLKIT", "made by `toolkit!` for the tests of authors"),
];

/// Returns the constants whose names are one word. Constants of types, traits and inline modules
/// are left out, because they are written with the name of their owner.
fn one_word_constants(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut has_owner = false;
    for line in text.lines() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let code = code.strip_prefix("pub").map_or(code, |rest| {
            rest.strip_prefix('(')
                .and_then(|rest| rest.split_once(')'))
                .map_or(rest, |(_, rest)| rest)
                .trim_start()
        });
        if indent == 0 && code.starts_with(|first: char| first.is_ascii_lowercase()) {
            let owners = ["impl", "unsafe impl", "trait ", "mod "];
            has_owner = code == "where" && has_owner
                || owners.iter().any(|owner| code.starts_with(owner))
                    && !code.starts_with("mod tests");
        }
        let declared = code
            .strip_prefix("const ")
            .or_else(|| code.strip_prefix("static "));
        let Some((name, rest)) = declared.and_then(|declared| declared.split_once(':')) else {
            continue;
        };
        let is_word = name
            .chars()
            .all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit());
        let is_owned =
            indent == 4 && has_owner || rest.split('=').next().unwrap_or_default().contains("Self");
        if is_word && !is_owned && !KNOWN_CONSTANTS.iter().any(|(known, _)| *known == name) {
            found.push(name);
        }
    }
    found
}

#[test]
fn constants_say_more_than_one_word() {
    let mut found = Vec::new();
    for (path, text) in sources() {
        let names = one_word_constants(&text).into_iter();
        found.extend(names.map(|name| format!("{}: {name}", path.display())));
    }
    assert!(
        found.is_empty(),
        "a constant says what it is and in which unit: {found:#?}"
    );
}

/// Returns the text of a source file without its modules of unit tests.
fn without_tests(text: &str) -> String {
    let file = syn::parse_file(text).expect("the file compiles");
    let mut lines: Vec<_> = text.lines().collect();
    for item in file.items {
        if let syn::Item::Mod(module) = item
            && is_of_tests(&module.attrs)
        {
            let span = module.span();
            lines[span.start().line - 1..span.end().line].fill("");
        }
    }
    lines.join("\n")
}

#[test]
fn code_below_unit_tests_is_checked() {
    let text = "#[cfg(test)]\nmod tests {\n    use super::*;\n}\nfn after() {}";
    assert_eq!(without_tests(text).trim(), "fn after() {}");
}

#[test]
fn requests_and_views_are_types() {
    let requests = ["host/api/", "host/http/", "host/web/"];
    let mut found = Vec::new();
    for (path, text) in sources() {
        let path = path.to_string_lossy();
        if path.contains("/shapes/") {
            found.push(format!(
                "{path}: a view is described by the type that is sent"
            ));
        }
        let code = without_tests(&text);
        if requests.iter().any(|folder| path.starts_with(folder)) && code.contains("json!") {
            found.push(format!("{path}: a view is a struct, not `json!`"));
        }
        let by_path = ["contains(\"/", "starts_with(\"/", "ends_with(\"/"];
        let serves = requests.iter().any(|folder| path.starts_with(folder))
            || path.starts_with("host/mcp/")
            || path.starts_with("host/server/");
        if serves && by_path.iter().any(|test| code.contains(test)) {
            found.push(format!("{path}: a rule stands in the row of its operation"));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn the_app_uses_the_sandbox_in_one_place() {
    let calls = [
        "sandbox.call",
        "sandbox.record(",
        "sandbox.replay(",
        "sandbox.run_program(",
        "send_proxy_request(",
    ];
    for (path, text) in sources() {
        let path = path.to_string_lossy();
        let code: String = without_tests(&text).split_whitespace().collect();
        let elsewhere = path.starts_with("host/app/") && path != "host/app/src/runs/run.rs";
        assert!(
            !(elsewhere && calls.iter().any(|call| code.contains(call))),
            "{path}: only `runs::run` runs something in the sandbox"
        );
        // An outcome may be taken apart anywhere. The words are split, so that this file does not
        // match itself.
        let count = |text| code.matches(text).count();
        let named = count(concat!("Outcome{", "output"));
        let taken_apart = count(concat!("let", "Outcome{", "output"));
        assert!(
            named == taken_apart || path.starts_with("host/sandbox/"),
            "{path}: only the sandbox builds an outcome"
        );
    }
}

/// Returns the actions that a job of a workflow uses.
fn actions(job: &serde_json::Value) -> impl Iterator<Item = &str> {
    let steps = job["steps"].as_array().into_iter().flatten();
    steps.filter_map(|step| step["uses"].as_str())
}

#[test]
fn workflows_have_limits_and_pinned_actions() {
    for entry in fs::read_dir(root().join(".github/workflows")).unwrap() {
        let path = entry.unwrap().path();
        let text = read(&path);
        // In YAML 1.2, the key `on` is a word.
        let options = serde_saphyr::options! { strict_booleans: true };
        let workflow: serde_json::Value = serde_saphyr::from_str_with_options(&text, options)
            .unwrap_or_else(|cause| panic!("{}: {cause}", path.display()));
        let path = path.display();
        assert!(workflow["on"].is_object(), "{path}: events are missing");
        assert_eq!(
            workflow["permissions"],
            serde_json::json!({ "contents": "read" }),
            "{path}: a job that needs more permissions names them itself"
        );
        let jobs = workflow["jobs"].as_object().unwrap();
        for (name, job) in jobs {
            assert!(
                job["timeout-minutes"].is_u64(),
                "{path}: {name} needs a timeout"
            );
            for action in actions(job) {
                let version = action.strip_prefix("actions/").and_then(|rest| {
                    let (_, version) = rest.split_once("@v")?;
                    version.parse::<u32>().ok()
                });
                assert!(
                    version.is_some(),
                    "{path}: {action} is not an action of GitHub at a major version"
                );
            }
        }
    }
}

#[test]
fn every_toolkit_has_the_same_shape() {
    let workspace = manifest("toolkits/Cargo.toml");
    let members = workspace["workspace"]["members"].as_array().unwrap();
    let members: Vec<_> = members.iter().map(|m| m.as_str().unwrap()).collect();
    let folders = fs::read_dir(root().join("toolkits"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut seen = 0;
    for folder in folders.filter(|folder| folder.join("Cargo.toml").is_file()) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        assert!(
            members
                .iter()
                .any(|member| *member == name || *member == "*"),
            "{name} is no member of the workspace"
        );
        if name == TEST_SUPPORT_TOOLKIT {
            continue;
        }
        check_toolkit(&name, &folder);
        seen += 1;
    }
    assert!(seen >= 3, "{seen} toolkits");
}

fn check_toolkit(name: &str, folder: &Path) {
    let manifest: Table = read(&folder.join("Cargo.toml")).parse().unwrap();
    assert_eq!(
        manifest["package"]["name"].as_str(),
        Some(name),
        "the crate is named as its folder"
    );
    assert_eq!(
        manifest["lib"]["crate-type"][0].as_str(),
        Some("cdylib"),
        "{name}"
    );
    let (used, ours) = (dependencies(&manifest), workspace_crates());
    let own: Vec<_> = used.intersection(&ours).collect();
    assert_eq!(
        own,
        ["toolkit-sdk"],
        "{name} may use the SDK and nothing else of ours"
    );
    let library = read(&folder.join("src/lib.rs"));
    assert!(
        library.contains("toolkit! {"),
        "{name}: `toolkit!` stands in src/lib.rs"
    );
    let glance = library
        .lines()
        .filter(|line| !line.starts_with("mod "))
        .count();
    assert!(
        glance <= 60,
        "{name}: src/lib.rs is the toolkit at a glance, at most 60 lines beside its modules"
    );
    assert!(folder.join("logo.svg").is_file(), "{name} has a logo.svg");
    let sources = fs::read_dir(folder.join("src"))
        .unwrap()
        .map(|entry| read(&entry.unwrap().path()));
    let tools: BTreeSet<String> = sources.flat_map(|text| tools_in(&text)).collect();
    assert!(!tools.is_empty(), "{name} has tools");
    for tool in tools {
        let cases = folder.join("cases").join(&tool);
        let count = fs::read_dir(&cases).map_or(0, |entries| entries.count());
        assert!(
            count >= 2,
            "{name}: {tool} needs a success and a failure case in cases/{tool}"
        );
    }
}

/// Returns the names of functions under `#[tool…]`.
fn tools_in(text: &str) -> Vec<String> {
    let after = text.split("\n#[tool").skip(1);
    after
        .filter_map(|rest| {
            let (_, from) = rest.split_once("fn ")?;
            from.split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .map(str::to_owned)
        })
        .collect()
}
