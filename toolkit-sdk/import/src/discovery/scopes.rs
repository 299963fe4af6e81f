//! Which scope a tool asks for.
//!
//! A document lists scopes of which any one suffices, from the one that opens everything to some that open a part of a
//! person's things only. A tool names one, since those of a manifest are all needed. It is
//! 1. none of those that open only a part ([`PARTIAL`]), as long as there is another;
//! 2. not the one that opens the whole cloud, as long as there is another;
//! 3. for a tool that changes nothing one that only reads, if there is one;
//! 4. of what is left the one that opens the fewest methods of the document;
//! 5. of those the one with the shortest name.
//!
//! Where this is not what is wanted, the overlay says so.

use std::collections::BTreeMap;

use super::document::{Document, Method, Resource};

/// Words in the names of scopes that open only some things of a person: those that the app made itself, that are public, of
/// which little is told, or that an add-on has before it.
const PARTIAL: [&str; 14] = [
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

/// How many methods each scope opens.
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

/// The one scope that a tool asks for; none where none is needed.
pub(super) fn chosen(scopes: &[String], read_only: bool, counts: &Counts<'_>) -> Option<String> {
    let rank = |scope: &&String| {
        let name = name(scope);
        let words: Vec<&str> = name.split(['.', '-', '_']).collect();
        let partial = words.iter().any(|word| PARTIAL.contains(word));
        let widest = name.starts_with("cloud-platform");
        let reads = ["readonly", "read-only", "read_only"].iter().any(|end| name.ends_with(end));
        let count = counts.get(scope.as_str()).copied().unwrap_or_default();
        (partial, widest, read_only && !reads, count, scope.len(), (*scope).clone())
    };
    scopes.iter().min_by_key(rank).cloned()
}

/// The end of `https://www.googleapis.com/auth/calendar.events`.
fn name(scope: &str) -> &str {
    scope.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scope of a method, out of scopes with the number of methods that each opens.
    fn chosen_of(read_only: bool, scopes: &[(&'static str, usize)]) -> String {
        let all: Vec<String> = scopes.iter().map(|(scope, _)| (*scope).to_owned()).collect();
        chosen(&all, read_only, &scopes.iter().copied().collect()).unwrap_or_default()
    }

    #[test]
    fn the_narrowest_scope_that_opens_all_of_a_persons_things_is_asked_for() {
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
        let drive = [("a/drive", 50), ("a/drive.file", 30), ("a/drive.appdata", 20), ("a/drive.metadata.readonly", 9)];
        assert_eq!(chosen_of(false, &drive), "a/drive");
        assert_eq!(chosen_of(true, &drive), "a/drive");
        let mail = [("https://mail.example.com/", 70), ("a/gmail.compose", 12), ("a/gmail.send", 2)];
        assert_eq!(chosen_of(false, &mail), "a/gmail.send");
        let cloud = [("a/cloud-platform", 40), ("a/cloud-platform.read-only", 10), ("a/cloud-language-models", 40)];
        assert_eq!(chosen_of(true, &cloud), "a/cloud-language-models");
        assert_eq!(chosen_of(false, &[("a/drive.file", 3)]), "a/drive.file");
        assert_eq!(chosen_of(true, &[]), "");
    }
}
