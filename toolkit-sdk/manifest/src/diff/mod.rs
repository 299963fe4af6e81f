//! Differences between two versions of a toolkit, and the parties that each difference breaks.
//!
//! Problem: programs that call a tool and connected accounts both outlive the version they were
//! made for. Guarantee: everything that worked with the old version and may fail with the new one
//! has a line marked as breaking. Parts that cannot be compared are marked as breaking. Equal
//! manifests have no differences. Manifests that differ in more than their version have some.
//!
//! The guarantee rests on one assumption: callers send the arguments that a schema declares, and
//! read the data that it declares. Therefore a new optional argument breaks no caller, although an
//! open schema let callers send anything under its name before.

mod auth;
mod schema;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{EgressRule, Hints, Manifest, Tool, Trigger};

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Path of the change, for example `tools.EXAMPLE_GET_ITEM.input.id`.
    pub place: String,
    /// Description of the change.
    pub change: String,
    /// Parties that the change breaks. Empty for a compatible change.
    pub breaks: Vec<Party>,
}

/// A party that a change can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// Programs and agents that call tools and listen to triggers.
    Callers,
    /// Accounts that are already connected, and their owners.
    Accounts,
}

use Party::{Accounts, Callers};

impl Change {
    /// Returns true if the change breaks any party.
    #[must_use]
    pub fn is_breaking(&self) -> bool {
        !self.breaks.is_empty()
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.change)?;
        match self.breaks.as_slice() {
            [] => Ok(()),
            [Callers] => f.write_str(" (breaks callers)"),
            [Accounts] => f.write_str(" (breaks connected accounts)"),
            _ => f.write_str(" (breaks callers and connected accounts)"),
        }
    }
}

/// Returns every difference between two versions of a toolkit, in the order of a manifest. The
/// version itself and the SDK that built it do not count.
#[must_use]
pub fn diff(old: &Manifest, new: &Manifest) -> Vec<Change> {
    let mut report = Report::default();
    if old.slug != new.slug {
        let change = format!(
            "is `{}` instead of `{}`: another toolkit",
            new.slug, old.slug
        );
        report.add("slug", change, &[Callers, Accounts]);
    }
    let texts = [("abi", &old.abi, &new.abi), ("name", &old.name, &new.name)];
    for (place, old, new) in texts.into_iter().filter(|(_, old, new)| old != new) {
        report.add(place, format!("is `{new}` instead of `{old}`"), &[]);
    }
    report.reworded("description", old.description != new.description);
    report.reworded("logo", old.logo != new.logo);
    report.lists("categories", &old.categories, &new.categories, &[]);
    auth::compare(old, new, &mut report);
    report.egress("egress", &old.egress, &new.egress, !old.no_auth());
    if old.limits != new.limits {
        report.add("limits", "has other limits", &[]);
    }
    report.by_name(
        "tools",
        (&old.tools, &new.tools),
        |tool| &tool.slug,
        |report, one, other| tool(report, (old, one), (new, other)),
    );
    report.by_name(
        "triggers",
        (&old.triggers, &new.triggers),
        |trigger| &trigger.slug,
        trigger,
    );
    report.changes
}

fn tool(report: &mut Report, (before, old): (&Manifest, &Tool), (after, new): (&Manifest, &Tool)) {
    report.reworded("name", old.name != new.name);
    report.reworded("description", old.description != new.description);
    let anonymous = old.no_auth || before.no_auth();
    let anonymous_now = new.no_auth || after.no_auth();
    match (anonymous, anonymous_now) {
        (true, false) => report.add("no_auth", "now needs a connected account", &[Callers]),
        (false, true) => report.add("no_auth", "no longer needs a connected account", &[]),
        _ => report.reworded("no_auth", old.no_auth != new.no_auth),
    }
    report.schema("input", &old.input, &new.input, schema::Direction::In);
    report.schema("output", &old.output, &new.output, schema::Direction::Out);
    match (old.loose_output, new.loose_output) {
        (false, true) => report.add(
            "loose_output",
            "its output may now differ from the schema",
            &[Callers],
        ),
        (old, new) => report.reworded("loose_output", old != new),
    }
    hints(report, old.hints, new.hints);
    report.lists("tags", &old.tags, &new.tags, &[]);
    report.lists("synonyms", &old.synonyms, &new.synonyms, &[]);
    report.lists("scopes", &old.scopes, &new.scopes, &[Accounts]);
    own_egress(report, old.egress.as_deref(), new.egress.as_deref());
    report.reworded("examples", old.examples != new.examples);
}

fn trigger(report: &mut Report, old: &Trigger, new: &Trigger) {
    report.reworded("name", old.name != new.name);
    report.reworded("description", old.description != new.description);
    if old.kind != new.kind {
        report.add(
            "kind",
            format!("is {:?} instead of {:?}", new.kind, old.kind),
            &[Callers, Accounts],
        );
    }
    report.schema("config", &old.config, &new.config, schema::Direction::In);
    report.schema(
        "payload",
        &old.payload,
        &new.payload,
        schema::Direction::Out,
    );
    report.lists("scopes", &old.scopes, &new.scopes, &[Accounts]);
    own_egress(report, old.egress.as_deref(), new.egress.as_deref());
    match (&old.subscription, &new.subscription) {
        (None, Some(_)) => report.add("subscription", "now subscribes at the provider", &[]),
        (Some(_), None) => report.add(
            "subscription",
            "no longer subscribes at the provider",
            &[Callers],
        ),
        (old, new) => report.reworded("subscription", old != new),
    }
}

/// Compares the egress rules of one tool or trigger. They lie within the toolkit's rules, whose
/// widening is reported separately.
fn own_egress(report: &mut Report, old: Option<&[EgressRule]>, new: Option<&[EgressRule]>) {
    match (old, new) {
        (None, None) => {}
        (Some(old), Some(new)) => report.egress("egress", old, new, false),
        (None, Some(_)) => report.add(
            "egress",
            "now reaches only some of the toolkit's hosts",
            &[],
        ),
        (Some(_), None) => report.add("egress", "now reaches every host of the toolkit", &[]),
    }
}

/// Compares hints. A promise to callers that no longer holds breaks them.
fn hints(report: &mut Report, old: Hints, new: Hints) {
    let words = [
        ("read_only", old.read_only, new.read_only, true),
        ("destructive", old.destructive, new.destructive, false),
        ("idempotent", old.idempotent, new.idempotent, true),
        ("open_world", old.open_world, new.open_world, false),
    ];
    for (name, _, new, promise) in words.into_iter().filter(|(_, old, new, _)| old != new) {
        let kept = new == promise;
        let change = if new { "holds now" } else { "no longer holds" };
        report.add(
            &format!("hints.{name}"),
            change,
            if kept { &[] } else { &[Callers] },
        );
    }
}

/// The changes so far, and the path of the next ones.
struct Report {
    place: String,
    changes: Vec<Change>,
    /// Steps left for comparing schemas.
    steps: usize,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            place: String::new(),
            changes: Vec::new(),
            steps: schema::MAX_COMPARE_STEPS,
        }
    }
}

impl Report {
    fn add(&mut self, part: &str, change: impl Into<String>, breaks: &[Party]) {
        self.at(part, |report| report.add_here(change, breaks));
    }

    /// Adds a change of the current path itself.
    fn add_here(&mut self, change: impl Into<String>, breaks: &[Party]) {
        self.changes.push(Change {
            place: self.place.clone(),
            change: change.into(),
            breaks: breaks.to_vec(),
        });
    }

    /// Runs `compare` below a part.
    fn at(&mut self, part: &str, compare: impl FnOnce(&mut Self)) {
        let before = self.place.clone();
        self.place = schema::below(&before, part);
        compare(self);
        self.place = before;
    }

    fn reworded(&mut self, part: &str, differs: bool) {
        if differs {
            self.add(part, "is changed", &[]);
        }
    }

    /// Compares two lists. Added values break `breaks`. Removed values break no party.
    fn lists(&mut self, part: &str, old: &[String], new: &[String], breaks: &[Party]) {
        let reported = self.changes.len();
        for (word, these, others, breaks) in
            [("new", new, old, breaks), ("gone", old, new, &[][..])]
        {
            let only_these: Vec<_> = these
                .iter()
                .filter(|one| !others.contains(one))
                .map(String::as_str)
                .collect();
            let verb = if only_these.len() == 1 { "is" } else { "are" };
            if !only_these.is_empty() {
                let change = format!("{verb} {word}: {}", only_these.join(", "));
                self.add(part, change, breaks);
            }
        }
        if self.changes.len() == reported && old != new {
            self.add(part, "are in another order", &[]);
        }
    }

    /// Compares egress rules. A credential may go wherever a toolkit may, so an added host is one
    /// that the owners of accounts did not know about.
    fn egress(&mut self, part: &str, old: &[EgressRule], new: &[EgressRule], credentials: bool) {
        for rule in new.iter().filter(|rule| !old.contains(rule)) {
            let is_known = old
                .iter()
                .any(|old| crate::problems::covers(&old.host, &rule.host));
            let breaks: &[Party] = if credentials && !is_known {
                &[Accounts]
            } else {
                &[]
            };
            self.add(part, format!("may reach {rule}"), breaks);
        }
        for rule in old.iter().filter(|rule| !new.contains(rule)) {
            self.add(part, format!("may no longer reach {rule}"), &[]);
        }
        if old != new && old.len() == new.len() && old.iter().all(|rule| new.contains(rule)) {
            self.add(part, "is in another order", &[]);
        }
    }

    fn schema(
        &mut self,
        part: &str,
        old: &serde_json::Value,
        new: &serde_json::Value,
        flow: schema::Direction,
    ) {
        self.at(part, |report| schema::compare(old, new, flow, report));
    }

    /// Compares items by name. A removed item breaks callers.
    fn by_name<T>(
        &mut self,
        part: &str,
        (old, new): (&[T], &[T]),
        name: impl Fn(&T) -> &String,
        compare: impl Fn(&mut Self, &T, &T),
    ) {
        self.at(part, |report| {
            for one in old {
                match new.iter().find(|other| name(other) == name(one)) {
                    Some(other) => report.at(name(one), |report| compare(report, one, other)),
                    None => report.add(name(one), "is gone", &[Callers]),
                }
            }
            for other in new
                .iter()
                .filter(|other| old.iter().all(|one| name(one) != name(other)))
            {
                report.add(name(other), "is new", &[]);
            }
            let mut before: Vec<_> = old.iter().map(&name).collect();
            let mut after: Vec<_> = new.iter().map(&name).collect();
            let moved = before != after;
            before.sort();
            after.sort();
            if moved && before == after {
                report.add_here("are in another order", &[]);
            }
        });
    }
}

#[cfg(test)]
mod tests;
