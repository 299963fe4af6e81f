//! Paths in the guides for contributors.

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
