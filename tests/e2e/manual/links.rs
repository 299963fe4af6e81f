//! Links between documents lead to files and headings that exist.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::REPOSITORY_ROOT;

/// Lines of the first screen of a page.
const SCREEN_LINES: usize = 20;

fn documents(root: &Path) -> Vec<PathBuf> {
    let folders = ["", "docs", "docs/decisions", "toolkit-sdk"];
    let files = folders
        .iter()
        .flat_map(|folder| fs::read_dir(root.join(folder)).unwrap());
    files
        .map(|entry| entry.unwrap().path())
        .filter(|file| file.extension().is_some_and(|extension| extension == "md"))
        .collect()
}

/// Returns the anchors of a page's headings.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|character| {
                character.is_alphanumeric() || [' ', '-', '_'].contains(character)
            });
            kept.collect::<String>().replace(' ', "-")
        })
        .collect()
}

/// Returns the targets of a page's links that lead to other documents or headings.
fn targets(text: &str) -> Vec<&str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target)
        .filter(|target| !target.contains("://") && !target.contains(char::is_whitespace))
        .collect()
}

/// Asserts that every link between the documents below a folder leads to a file and a heading.
pub(crate) fn check(root: &Path) {
    let mut checked = 0;
    for page in documents(root) {
        let text = fs::read_to_string(&page).unwrap();
        for target in targets(&text) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = match file {
                "" => page.clone(),
                file => page.with_file_name("").join(file),
            };
            assert!(file.exists(), "{}: {target}", page.display());
            if !heading.is_empty() {
                let found = anchors(&fs::read_to_string(&file).unwrap());
                let exists = found.iter().any(|anchor| anchor == heading);
                assert!(exists, "{}: {target} is none of {found:?}", page.display());
            }
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}

#[test]
fn links_lead_to_files_and_headings() {
    check(Path::new(REPOSITORY_ROOT));
}

#[test]
fn page_of_each_role_begins_with_a_quickstart() {
    for page in ["operator", "developer", "author", "javascript", "python"] {
        let file = Path::new(REPOSITORY_ROOT).join(format!("docs/{page}.md"));
        let text = fs::read_to_string(&file).unwrap();
        let first = text.lines().position(|line| line == "```sh");
        assert!(
            first.is_some_and(|line| line < SCREEN_LINES),
            "{}: no commands in the first {SCREEN_LINES} lines",
            file.display()
        );
    }
}
