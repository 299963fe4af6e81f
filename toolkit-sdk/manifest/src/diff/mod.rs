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
        report.add("limits", "has other limits".to_owned(), &[]);
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
        (true, false) => report.add(
            "no_auth",
            "now needs a connected account".to_owned(),
            &[Callers],
        ),
        (false, true) => report.add(
            "no_auth",
            "no longer needs a connected account".to_owned(),
            &[],
        ),
        _ => report.reworded("no_auth", old.no_auth != new.no_auth),
    }
    report.schema("input", &old.input, &new.input, schema::Direction::In);
    report.schema("output", &old.output, &new.output, schema::Direction::Out);
    match (old.loose_output, new.loose_output) {
        (false, true) => report.add(
            "loose_output",
            "its output may now differ from the schema".to_owned(),
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
        (None, Some(_)) => report.add(
            "subscription",
            "now subscribes at the provider".to_owned(),
            &[],
        ),
        (Some(_), None) => report.add(
            "subscription",
            "no longer subscribes at the provider".to_owned(),
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
            "now reaches only some of the toolkit's hosts".to_owned(),
            &[],
        ),
        (Some(_), None) => report.add(
            "egress",
            "now reaches every host of the toolkit".to_owned(),
            &[],
        ),
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
            change.to_owned(),
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
    fn add(&mut self, part: &str, change: String, breaks: &[Party]) {
        let place = if self.place.is_empty() {
            part.to_owned()
        } else {
            format!("{}.{part}", self.place)
        };
        self.changes.push(Change {
            place,
            change,
            breaks: breaks.to_vec(),
        });
    }

    /// Adds a change of the current path itself.
    fn add_here(&mut self, change: String, breaks: &[Party]) {
        self.changes.push(Change {
            place: self.place.clone(),
            change,
            breaks: breaks.to_vec(),
        });
    }

    /// Runs `compare` below a part.
    fn at(&mut self, part: &str, compare: impl FnOnce(&mut Self)) {
        let before = self.place.clone();
        self.place = if before.is_empty() {
            part.to_owned()
        } else {
            format!("{before}.{part}")
        };
        compare(self);
        self.place = before;
    }

    fn reworded(&mut self, part: &str, differs: bool) {
        if differs {
            self.add(part, "is changed".to_owned(), &[]);
        }
    }

    /// Compares two lists. Added values break `breaks`. Removed values break no party.
    fn lists(&mut self, part: &str, old: &[String], new: &[String], breaks: &[Party]) {
        let added: Vec<_> = new
            .iter()
            .filter(|one| !old.contains(one))
            .map(String::as_str)
            .collect();
        let gone: Vec<_> = old
            .iter()
            .filter(|one| !new.contains(one))
            .map(String::as_str)
            .collect();
        if !added.is_empty() {
            self.add(
                part,
                format!(
                    "{} new: {}",
                    if added.len() == 1 { "is" } else { "are" },
                    added.join(", ")
                ),
                breaks,
            );
        }
        if !gone.is_empty() {
            self.add(
                part,
                format!(
                    "{} gone: {}",
                    if gone.len() == 1 { "is" } else { "are" },
                    gone.join(", ")
                ),
                &[],
            );
        }
        if added.is_empty() && gone.is_empty() && old != new {
            self.add(part, "are in another order".to_owned(), &[]);
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
            self.add(part, "is in another order".to_owned(), &[]);
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
                    None => report.add(name(one), "is gone".to_owned(), &[Callers]),
                }
            }
            for other in new
                .iter()
                .filter(|other| old.iter().all(|one| name(one) != name(other)))
            {
                report.add(name(other), "is new".to_owned(), &[]);
            }
            let mut before: Vec<_> = old.iter().map(&name).collect();
            let mut after: Vec<_> = new.iter().map(&name).collect();
            let moved = before != after;
            before.sort();
            after.sort();
            if moved && before == after {
                report.add_here("are in another order".to_owned(), &[]);
            }
        });
    }
}

#[cfg(test)]
mod tests;
