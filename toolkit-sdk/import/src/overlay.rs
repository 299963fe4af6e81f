//! What a person says about an imported API: which operations, under which names, with which words and defaults.
//!
//! It is a small file next to the import, and stays when the description is read again. Everything in it is optional. What it
//! names must be there: an overlay that speaks of an operation that is gone is told so, not ignored.

mod change;
mod glob;

use std::collections::BTreeMap;

pub(crate) use change::merge;
use manifest::{AuthScheme, EgressRule, Limits, Version};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Api, Error, Operation, Result, Server};

/// The file, in TOML or JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overlay {
    /// Name of the toolkit, for people.
    pub name: Option<String>,
    /// One or two sentences.
    pub description: Option<String>,
    /// Dated version; without it the build stamps the day.
    pub version: Option<Version>,
    /// An `.svg` or `.png` next to this file.
    pub logo: Option<String>,
    /// Lower-case words.
    pub categories: Vec<String>,
    /// Base address, instead of the description's. Variables stay possible: `https://{site}.example.com`.
    pub server: Option<String>,
    /// Values of variables of the address that are the same for every account.
    pub variables: BTreeMap<String, String>,
    /// Hosts that may be reached beside those of the addresses: for files that live elsewhere, for example.
    pub egress: Vec<EgressRule>,
    /// Ways to connect an account, instead of the description's.
    pub auth: Option<Vec<AuthScheme>>,
    /// What calls need beyond the server's defaults.
    pub limits: Limits,
    /// Sent with every request.
    pub headers: BTreeMap<String, String>,
    /// Which operations become tools. Without it all that are not deprecated.
    pub choose: Choose,
    /// Changes to operations, by id; `*` stands for any letters. The order is that of the alphabet, so `*` comes first.
    pub operations: BTreeMap<String, Change>,
    /// Changes to arguments of this name in every operation.
    pub arguments: BTreeMap<String, Argument>,
}

/// Which operations become tools. An operation is taken when any of the lists names it, or all lists are empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Choose {
    /// By id, with `*`.
    pub operations: Vec<String>,
    /// By tag, with `*`.
    pub tags: Vec<String>,
    /// By path: `*` stands for a part of a segment, `**` for any number of segments.
    pub paths: Vec<String>,
    /// Only these methods; empty means all.
    pub methods: Vec<String>,
    /// Also those that the description advises against.
    pub deprecated: bool,
    /// Taken out again.
    pub except: Except,
}

/// What is not taken although it was chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Except {
    /// By id, with `*`.
    pub operations: Vec<String>,
    /// By tag, with `*`.
    pub tags: Vec<String>,
    /// By path, with `*` and `**`.
    pub paths: Vec<String>,
}

/// Changes to one operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Change {
    /// Name of the tool, without the toolkit's: `LIST_ITEMS`.
    pub slug: Option<String>,
    /// For people.
    pub title: Option<String>,
    /// What an agent reads.
    pub description: Option<String>,
    /// Labels instead of the description's; `important` puts the tool among the few that are shown first.
    pub tags: Option<Vec<String>>,
    /// Scopes instead of the description's.
    pub scopes: Option<Vec<String>>,
    /// Runs without an account.
    pub no_auth: Option<bool>,
    /// What the tool does to the outside world, where the method says it wrong.
    pub hints: HintsChange,
    /// Arguments that are not asked for; a required one needs `fixed`.
    pub hide: Vec<String>,
    /// Changes to arguments.
    pub arguments: BTreeMap<String, Argument>,
    /// Merged into the input schema (RFC 7396), after everything else.
    pub input: Option<Value>,
    /// Merged into the output schema.
    pub output: Option<Value>,
    /// Arguments that work.
    pub examples: Vec<Value>,
}

/// Hints that are said otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HintsChange {
    /// Changes nothing outside.
    pub read_only: Option<bool>,
    /// May delete or overwrite.
    pub destructive: Option<bool>,
    /// Twice is the same as once.
    pub idempotent: Option<bool>,
    /// Reaches an open set of things.
    pub open_world: Option<bool>,
}

/// Changes to one argument, by the name that the description has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Argument {
    /// What it is called instead.
    pub name: Option<String>,
    /// What an agent reads.
    pub description: Option<String>,
    /// Sent when the agent says nothing.
    pub default: Option<Value>,
    /// Always sent, and not asked for.
    pub fixed: Option<Value>,
    /// Not asked for.
    pub hide: bool,
    /// Whether a call needs it.
    pub required: Option<bool>,
    /// A path of several segments, `/` and all.
    pub segments: Option<bool>,
    /// Merged into its schema (RFC 7396).
    pub schema: Option<Value>,
}

impl Overlay {
    /// Reads the file.
    ///
    /// # Errors
    /// When it is not TOML of this shape; the message names the place.
    pub fn from_toml(text: &str) -> Result<Self> {
        toml::from_str(text).map_err(|cause| Error::new(format!("the overlay cannot be read: {cause}")))
    }

    /// Reads the file as JSON.
    ///
    /// # Errors
    /// When it is not JSON of this shape; the message names the place.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|cause| Error::new(format!("the overlay cannot be read: {cause}")))
    }

    /// Chooses and corrects. Answers how many operations were not chosen.
    ///
    /// # Errors
    /// Everything that the overlay names and the API does not have.
    pub(crate) fn apply(&self, api: &mut Api) -> std::result::Result<usize, Vec<String>> {
        let mut problems = self.choose.problems(&api.operations);
        let before = api.operations.len();
        api.operations.retain(|operation| self.choose.takes(operation));
        let left_out = before - api.operations.len();
        if let Some(server) = &self.server {
            self.serve(api, server);
        }
        for server in api.servers.iter_mut().chain(api.operations.iter_mut().filter_map(|it| it.server.as_mut())) {
            for (name, value) in &self.variables {
                server.url = server.url.replace(&format!("{{{name}}}"), value);
            }
        }
        if let Some(name) = &self.name {
            api.name.clone_from(name);
        }
        if let Some(description) = &self.description {
            api.description.clone_from(description);
        }
        if let Some(auth) = &self.auth {
            api.auth.clone_from(auth);
        }
        self.change(api, &mut problems);
        if problems.is_empty() { Ok(left_out) } else { Err(problems) }
    }

    /// One address for all, with what is known about its variables.
    fn serve(&self, api: &mut Api, url: &str) {
        let variables = api.servers.iter().flat_map(|server| server.variables.clone()).collect();
        api.servers = vec![Server { url: url.trim_end_matches('/').to_owned(), variables }];
        api.operations.iter_mut().for_each(|operation| operation.server = None);
    }

    fn change(&self, api: &mut Api, problems: &mut Vec<String>) {
        for (name, argument) in &self.arguments {
            let shared = &api.schemas;
            let mut found = false;
            for operation in &mut api.operations {
                found |= change::argument(operation, name, argument, shared);
            }
            if !found {
                problems.push(format!("no operation has an argument `{name}`"));
            }
        }
        for (pattern, change) in &self.operations {
            let shared = &api.schemas;
            let mut found = false;
            for operation in api.operations.iter_mut().filter(|operation| glob::fits(pattern, &operation.id)) {
                found = true;
                change.apply(operation, shared, problems);
            }
            if !found {
                problems.push(format!("no operation that was chosen is called `{pattern}`"));
            }
        }
    }

    /// The changes to one operation that concern its tool, in their order.
    pub(crate) fn of(&self, id: &str) -> impl Iterator<Item = &Change> {
        self.operations.iter().filter(move |(pattern, _)| glob::fits(pattern, id)).map(|(_, change)| change)
    }
}

impl Choose {
    fn takes(&self, operation: &Operation) -> bool {
        let any = |globs: &[String], text: &str| globs.iter().any(|glob| glob::fits(glob, text));
        let path = |globs: &[String]| globs.iter().any(|glob| glob::fits_path(glob, &operation.path));
        let tag = |globs: &[String]| operation.tags.iter().any(|tag| any(globs, tag));
        let all = self.operations.is_empty() && self.tags.is_empty() && self.paths.is_empty();
        let named = any(&self.operations, &operation.id);
        let chosen = all || named || tag(&self.tags) || path(&self.paths);
        let method =
            self.methods.is_empty() || self.methods.iter().any(|it| it.eq_ignore_ascii_case(&operation.method));
        let except = any(&self.except.operations, &operation.id) || tag(&self.except.tags) || path(&self.except.paths);
        let wanted = !operation.deprecated || self.deprecated || named;
        chosen && method && wanted && !except
    }

    /// What stands in a list and fits nothing.
    fn problems(&self, operations: &[Operation]) -> Vec<String> {
        let mut problems = Vec::new();
        for glob in self.operations.iter().filter(|glob| !operations.iter().any(|it| glob::fits(glob, &it.id))) {
            problems.push(format!("choose: no operation is called `{glob}`"));
        }
        let tagged = |glob: &str| operations.iter().any(|it| it.tags.iter().any(|tag| glob::fits(glob, tag)));
        for glob in self.tags.iter().filter(|glob| !tagged(glob)) {
            problems.push(format!("choose: no operation has the tag `{glob}`"));
        }
        for glob in self.paths.iter().filter(|glob| !operations.iter().any(|it| glob::fits_path(glob, &it.path))) {
            problems.push(format!("choose: no path fits `{glob}`"));
        }
        problems
    }
}

#[cfg(test)]
mod tests;
