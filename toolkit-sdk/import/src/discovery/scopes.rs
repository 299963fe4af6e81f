//! Selects the scope that a tool requests.
//!
//! A document lists scopes, any one of which suffices. They range from one that grants access to
//! everything to some that grant access to only a part of a user's data. A tool names exactly one
//! scope, since all scopes of a manifest are required. It is chosen by these rules:
//! 1. not one of those that grant only a part ([`PARTIAL_SCOPE_SUFFIXES`]), as long as another
//!    exists;
//! 2. not the one that grants the whole cloud, as long as another exists;
//! 3. for a read-only tool, one that only grants reading, if it exists;
//! 4. of the remaining ones, the one that grants the fewest methods of the document;
//! 5. of those, the one with the shortest name.
//!
//! The overlay replaces the scope where this choice is wrong.

use std::collections::BTreeMap;

use super::document::{Document, Method, Resource};

/// Words in the names of scopes that grant access to only some of a user's data: data that the app
/// created itself, public data, reduced data, or the data that an add-on currently works on.
const PARTIAL_SCOPE_SUFFIXES: [&str; 14] = [
    "addons",
    "app",
    "appcreateddata",
    "appdata",
    "apps",
    "created",
    "currentonly",
    "file",
    "freebusy",
    "meet",
    "metadata",
    "owned",
    "photos",
    "public",
];

/// Number of methods that each scope grants.
pub(super) type Counts<'a> = BTreeMap<&'a str, usize>;

pub(super) fn count(document: &Document) -> Counts<'_> {
    let mut open: Vec<&Resource> = document.resources.values().collect();
    let mut methods: Vec<&Method> = document.methods.values().collect();
    while let Some(resource) = open.pop() {
        methods.extend(resource.methods.values());
        open.extend(resource.resources.values());
    }
    let mut counts = Counts::new();
    for scope in methods.into_iter().flat_map(|method| &method.scopes) {
        *counts.entry(scope.as_str()).or_insert(0) += 1;
    }
    counts
}

/// Returns the one scope that a tool requests, or `None` if the method lists no scopes.
pub(super) fn chosen(scopes: &[String], read_only: bool, counts: &Counts<'_>) -> Option<String> {
    scopes
        .iter()
        .min_by_key(|scope| {
            let name = name(scope);
            let words: Vec<&str> = name.split(['.', '-', '_']).collect();
            let partial = words
                .iter()
                .any(|word| PARTIAL_SCOPE_SUFFIXES.contains(word));
            let widest = name.starts_with("cloud-platform");
            let reads = ["readonly", "read-only", "read_only"]
                .iter()
                .any(|end| name.ends_with(end));
            let count = counts.get(scope.as_str()).copied().unwrap_or_default();
            (
                partial,
                widest,
                read_only && !reads,
                count,
                scope.len(),
                (*scope).clone(),
            )
        })
        .cloned()
}

/// Returns the last part of `https://www.googleapis.com/auth/calendar.events`.
fn name(scope: &str) -> &str {
    scope
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the scope of a method, given scopes with the number of methods that each grants.
    fn chosen_of(read_only: bool, scopes: &[(&'static str, usize)]) -> String {
        let all: Vec<String> = scopes
            .iter()
            .map(|(scope, _)| (*scope).to_owned())
            .collect();
        chosen(&all, read_only, &scopes.iter().copied().collect()).unwrap_or_default()
    }

    #[test]
    fn narrowest_scope_with_full_access_is_chosen() {
        let events = [
            ("a/calendar", 37),
            ("a/calendar.events", 11),
            ("a/calendar.events.freebusy", 4),
            ("a/calendar.events.public.readonly", 4),
            ("a/calendar.events.readonly", 4),
            ("a/calendar.readonly", 9),
        ];
        assert_eq!(chosen_of(true, &events), "a/calendar.events.readonly");
        assert_eq!(chosen_of(false, &events[..2]), "a/calendar.events");
        let drive = [
            ("a/drive", 50),
            ("a/drive.file", 30),
            ("a/drive.appdata", 20),
            ("a/drive.metadata.readonly", 9),
        ];
        assert_eq!(chosen_of(false, &drive), "a/drive");
        assert_eq!(chosen_of(true, &drive), "a/drive");
        let mail = [
            ("https://mail.example.com/", 70),
            ("a/gmail.compose", 12),
            ("a/gmail.send", 2),
        ];
        assert_eq!(chosen_of(false, &mail), "a/gmail.send");
        let cloud = [
            ("a/cloud-platform", 40),
            ("a/cloud-platform.read-only", 10),
            ("a/cloud-language-models", 40),
        ];
        assert_eq!(chosen_of(true, &cloud), "a/cloud-language-models");
        assert_eq!(chosen_of(false, &[("a/drive.file", 3)]), "a/drive.file");
        assert_eq!(chosen_of(true, &[]), "");
    }
}
