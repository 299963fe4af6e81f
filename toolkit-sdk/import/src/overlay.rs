//! Manual corrections of an imported API: the choice of operations, and their names, texts and
//! defaults.
//!
//! An overlay is a small file next to the import. It stays when the description is imported again.
//! All of its entries are optional. The names in it must exist: an overlay that refers to a removed
//! operation is an error and is not ignored.

mod change;
mod glob;

use std::collections::BTreeMap;

pub(crate) use change::merge;
use manifest::{AuthScheme, EgressRule, Limits, Version, did_you_mean};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Api, Error, Operation, Result, Server};

/// The overlay file, in TOML or JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overlay {
    /// Readable name of the toolkit.
    pub name: Option<String>,
    /// One or two sentences.
    pub description: Option<String>,
    /// Dated version. Without it the build stamps the day.
    pub version: Option<Version>,
    /// An `.svg` or `.png` file next to this file.
    pub logo: Option<String>,
    /// Lower-case words.
    pub categories: Vec<String>,
    /// Base address that replaces that of the description. It may have variables:
    /// `https://{site}.example.com`.
    pub server: Option<String>,
    /// Values of variables of the address that are the same for every account.
    pub variables: BTreeMap<String, String>,
    /// Hosts that may be reached in addition to those of the addresses, for example for files on
    /// another host.
    pub egress: Vec<EgressRule>,
    /// Ways to connect an account that replace those of the description.
    pub auth: Option<Vec<AuthScheme>>,
    /// Limits of calls that exceed the server's defaults.
    pub limits: Limits,
    /// Headers that are sent with every request.
    pub headers: BTreeMap<String, String>,
    /// Choice of the operations that become tools. Without it, all operations that are not
    /// deprecated.
    pub choose: Choose,
    /// Changes to operations, by id; `*` matches any letters. They are applied in alphabetical
    /// order, so `*` comes first.
    pub operations: BTreeMap<String, Change>,
    /// Changes to arguments with this name in every operation.
    pub arguments: BTreeMap<String, Argument>,
}

/// Choice of the operations that become tools. An operation is chosen if any of the lists matches
/// it, or if all lists are empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Choose {
    /// Patterns of ids, with `*`.
    pub operations: Vec<String>,
    /// Patterns of tags, with `*`.
    pub tags: Vec<String>,
    /// Patterns of paths: `*` matches a part of a segment, `**` any number of segments.
    pub paths: Vec<String>,
    /// Methods of the chosen operations; empty means all.
    pub methods: Vec<String>,
    /// Also chooses operations that the description advises against.
    pub deprecated: bool,
    /// Operations that are excluded again.
    pub except: Except,
}

/// Operations that are excluded although they were chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Except {
    /// Patterns of ids, with `*`.
    pub operations: Vec<String>,
    /// Patterns of tags, with `*`.
    pub tags: Vec<String>,
    /// Patterns of paths, with `*` and `**`.
    pub paths: Vec<String>,
}

/// Changes to one operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Change {
    /// Name of the tool without the toolkit's name: `LIST_ITEMS`.
    pub slug: Option<String>,
    /// Readable title.
    pub title: Option<String>,
    /// Description for agents.
    pub description: Option<String>,
    /// Tags that replace those of the description. `important` puts the tool among the few that are
    /// shown first.
    pub tags: Option<Vec<String>>,
    /// Other words for what the tool does, by which a search finds it.
    pub synonyms: Vec<String>,
    /// Scopes that replace those of the description.
    pub scopes: Option<Vec<String>>,
    /// True if the tool runs without an account.
    pub no_auth: Option<bool>,
    /// Corrections of the hints that follow from the method.
    pub hints: HintsChange,
    /// Arguments to hide from the agent; a required one needs `fixed`.
    pub hide: Vec<String>,
    /// Changes to arguments.
    pub arguments: BTreeMap<String, Argument>,
    /// Patch merged into the input schema (RFC 7396) after all other changes.
    pub input: Option<Value>,
    /// Patch merged into the output schema.
    pub output: Option<Value>,
    /// Examples of valid arguments.
    pub examples: Vec<Value>,
}

/// Changes to hints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HintsChange {
    /// True if the tool changes nothing outside.
    pub read_only: Option<bool>,
    /// True if the tool may delete or overwrite.
    pub destructive: Option<bool>,
    /// True if two calls have the same effect as one.
    pub idempotent: Option<bool>,
    /// True if the tool reaches an open set of things.
    pub open_world: Option<bool>,
}

/// Changes to one argument, by its name in the description.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Argument {
    /// New name of the argument.
    pub name: Option<String>,
    /// Description for agents.
    pub description: Option<String>,
    /// Value to send if the agent does not pass one.
    pub default: Option<Value>,
    /// Fixed value, always sent. The agent does not see the argument.
    pub fixed: Option<Value>,
    /// True if the agent is not asked for the argument.
    pub hide: bool,
    /// True if a call requires the argument.
    pub required: Option<bool>,
    /// True if the value is a path of several segments that keeps its `/`.
    pub segments: Option<bool>,
    /// Patch merged into the argument's schema (RFC 7396).
    pub schema: Option<Value>,
}

impl Overlay {
    /// Parses the file.
    ///
    /// # Errors
    /// The text is not TOML of this form; the message states the position.
    pub fn from_toml(text: &str) -> Result<Self> {
        toml::from_str(text)
            .map_err(|cause| Error::new(format!("the overlay cannot be read: {cause}")))
    }

    /// Parses the file as JSON.
    ///
    /// # Errors
    /// The text is not JSON of this form; the message states the position.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text)
            .map_err(|cause| Error::new(format!("the overlay cannot be read: {cause}")))
    }

    /// Applies the overlay. Returns the number of operations that were not chosen.
    ///
    /// # Errors
    /// All names in the overlay that the API does not have.
    pub(crate) fn apply(&self, api: &mut Api) -> std::result::Result<usize, Vec<String>> {
        let mut problems = self.choose.problems(&api.operations);
        let before = api.operations.len();
        api.operations
            .retain(|operation| self.choose.chooses(operation));
        let left_out = before - api.operations.len();
        if let Some(server) = &self.server {
            self.serve(api, server);
        }
        for server in api.servers.iter_mut().chain(
            api.operations
                .iter_mut()
                .filter_map(|it| it.server.as_mut()),
        ) {
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
        if problems.is_empty() {
            Ok(left_out)
        } else {
            Err(problems)
        }
    }

    /// Sets one address for all operations, with the known variables.
    fn serve(&self, api: &mut Api, url: &str) {
        let variables = api
            .servers
            .iter()
            .flat_map(|server| server.variables.clone())
            .collect();
        api.servers = vec![Server {
            url: url.trim_end_matches('/').to_owned(),
            variables,
        }];
        api.operations
            .iter_mut()
            .for_each(|operation| operation.server = None);
    }

    fn change(&self, api: &mut Api, problems: &mut Vec<String>) {
        for (name, argument) in &self.arguments {
            let shared = &api.schemas;
            let mut matched = false;
            for operation in &mut api.operations {
                matched |= change::argument(operation, name, argument, shared);
            }
            if !matched {
                let parameters = api.operations.iter().flat_map(|it| &it.parameters);
                let question = similar(name, parameters.map(|parameter| &parameter.name));
                problems.push(format!("no operation has an argument `{name}`{question}"));
            }
        }
        for (pattern, change) in &self.operations {
            let shared = &api.schemas;
            let mut matched = false;
            for operation in api
                .operations
                .iter_mut()
                .filter(|operation| glob::fits(pattern, &operation.id))
            {
                matched = true;
                change.apply(operation, shared, problems);
            }
            if !matched {
                let question = similar_id(pattern, &api.operations);
                problems.push(format!(
                    "no chosen operation has the id `{pattern}`{question}"
                ));
            }
        }
    }

    /// Returns the changes to one operation that concern its tool, in their order.
    pub(crate) fn changes_of(&self, id: &str) -> impl Iterator<Item = &Change> {
        self.operations
            .iter()
            .filter(move |(pattern, _)| glob::fits(pattern, id))
            .map(|(_, change)| change)
    }
}

fn fits_any(globs: &[String], text: &str) -> bool {
    globs.iter().any(|glob| glob::fits(glob, text))
}

impl Choose {
    fn chooses(&self, operation: &Operation) -> bool {
        let path = |globs: &[String]| {
            globs
                .iter()
                .any(|glob| glob::fits_path(glob, &operation.path))
        };
        let tag = |globs: &[String]| operation.tags.iter().any(|tag| fits_any(globs, tag));
        let all = self.operations.is_empty() && self.tags.is_empty() && self.paths.is_empty();
        let named = fits_any(&self.operations, &operation.id);
        let chosen = all || named || tag(&self.tags) || path(&self.paths);
        let method = self.methods.is_empty()
            || self
                .methods
                .iter()
                .any(|it| it.eq_ignore_ascii_case(&operation.method));
        let except = fits_any(&self.except.operations, &operation.id)
            || tag(&self.except.tags)
            || path(&self.except.paths);
        let wanted = !operation.deprecated || self.deprecated || named;
        chosen && method && wanted && !except
    }

    /// Returns the list entries that match nothing.
    fn problems(&self, operations: &[Operation]) -> Vec<String> {
        let mut problems = Vec::new();
        for glob in self
            .operations
            .iter()
            .filter(|glob| !operations.iter().any(|it| glob::fits(glob, &it.id)))
        {
            let question = similar_id(glob, operations);
            problems.push(format!(
                "choose: no operation has the id `{glob}`{question}"
            ));
        }
        let tags = operations.iter().flat_map(|operation| &operation.tags);
        for glob in self
            .tags
            .iter()
            .filter(|glob| !tags.clone().any(|tag| glob::fits(glob, tag)))
        {
            let question = similar(glob, tags.clone());
            problems.push(format!(
                "choose: no operation has the tag `{glob}`{question}"
            ));
        }
        for glob in self
            .paths
            .iter()
            .filter(|glob| !operations.iter().any(|it| glob::fits_path(glob, &it.path)))
        {
            let paths = operations.iter().map(|operation| &operation.path);
            let question = similar(glob, paths);
            problems.push(format!("choose: no path matches `{glob}`{question}"));
        }
        problems
    }
}

/// Returns the question whether another operation was meant; empty if no id is similar.
fn similar_id(id: &str, operations: &[Operation]) -> String {
    similar(id, operations.iter().map(|operation| &operation.id))
}

/// Returns the question whether another name was meant. A pattern resembles no name.
fn similar<'a>(glob: &str, names: impl Iterator<Item = &'a String>) -> String {
    if glob.contains('*') {
        String::new()
    } else {
        did_you_mean(glob, names)
    }
}

#[cfg(test)]
mod tests;
