//! Paths and tests that documents name.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use super::{files, read, root};

/// Guides whose paths are checked. They may leave out the folders `src`, and the folders that the
/// text before a path names.
const CHECKED_GUIDES: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];
/// Endings of the paths that are checked.
const PATH_ENDINGS: [&str; 8] = [".rs", ".json", ".wit", ".sql", ".js", ".ts", ".py", "/"];
/// Folders that builds create.
const GENERATED_FOLDERS: [&str; 2] = ["target/", "dist/"];

fn without_src(path: &str) -> String {
    let parts = path.split('/').filter(|part| *part != "src");
    parts.map(|part| format!("/{part}")).collect()
}

fn is_checked(code: &str) -> bool {
    PATH_ENDINGS.iter().any(|ending| code.ends_with(ending))
        && !code.contains(['<', '*', ' '])
        && !GENERATED_FOLDERS.contains(&code)
}

#[test]
fn guides_name_existing_paths() {
    let known: Vec<_> = files()
        .iter()
        .map(|path| without_src(&path.to_string_lossy()))
        .collect();
    let mut missing = Vec::new();
    for guide in CHECKED_GUIDES {
        let text = read(&root().join(guide));
        let codes = text
            .lines()
            .flat_map(|line| line.split('`').skip(1).step_by(2));
        for code in codes.filter(|code| is_checked(code)) {
            let end = without_src(code);
            let exists = root().join(code).exists()
                || known
                    .iter()
                    .any(|path| path.ends_with(&end) || code.ends_with('/') && path.contains(&end));
            if !exists {
                missing.push(format!("{guide}: {code}"));
            }
        }
    }
    assert!(missing.is_empty(), "no such paths: {missing:#?}");
}

/// Returns the tests that a cell of a table names after the file of each.
fn tests_named(cell: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut file = None;
    cell.split('`').skip(1).step_by(2).filter_map(move |code| {
        if code.ends_with(".rs") {
            file = Some(code);
        }
        let is_name = code.contains('_')
            && code
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        is_name.then_some((file?, code))
    })
}

/// Returns the names of the tests in a file of `tests/e2e`.
fn tests_in(file: &str) -> BTreeSet<String> {
    let text = read(&root().join("tests/e2e").join(file));
    let items = syn::parse_file(&text).expect("the file compiles").items;
    let tests = items.into_iter().filter_map(|item| {
        let syn::Item::Fn(function) = item else {
            return None;
        };
        let mut attributes = function.attrs.iter();
        let is_test = attributes.any(|attribute| {
            let last = attribute.path().segments.last();
            last.is_some_and(|segment| segment.ident == "test")
        });
        is_test.then(|| function.sig.ident.to_string())
    });
    tests.collect()
}

#[test]
fn documents_name_existing_tests() {
    let mut tests = BTreeMap::new();
    let mut missing = Vec::new();
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let page = read(&path);
        let rows = page.lines().filter(|line| line.starts_with('|'));
        for (file, name) in rows.flat_map(|row| row.split('|')).flat_map(tests_named) {
            let known = tests
                .entry(file.to_owned())
                .or_insert_with(|| tests_in(file));
            if !known.contains(name) {
                missing.push(format!("{}: {name} in {file}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
}
