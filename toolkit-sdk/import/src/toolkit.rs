//! Converts an API to a toolkit: a manifest, and the calls of its tools.

use std::collections::{BTreeMap, BTreeSet};

use manifest::plan::{self, Call};
use manifest::{ABI_VERSION, EgressRule, Manifest, Tool, Version};
use serde_json::{Value, json};

use crate::{
    Api, Change, Error, Media, Operation, Overlay, Result, Server, Unsupported, address,
    address::Address,
    arguments::{self, Arguments},
    names,
    overlay::merge,
    schema::{self, Direction, Shared},
    text,
};

/// Name and version of the toolkit's generator, as manifests state it.
const SDK_VERSION: &str = concat!("toolkit-sdk ", env!("CARGO_PKG_VERSION"));
/// Placeholder for the version until the build stamps one.
const UNSTAMPED_VERSION: &str = "19700101_00";
/// Largest size in bytes of a tool's description. A manifest allows more, but an agent reads the
/// descriptions of all tools, and some providers of models refuse one of more than 1,024 characters.
const MAX_DESCRIPTION_BYTES: usize = 1024;
const MAX_NAME_BYTES: usize = 100;
/// Largest size in bytes of an output schema. It helps an agent to plan and checks nothing.
const MAX_OUTPUT_SCHEMA_BYTES: usize = 4 << 10;
const MAX_LABEL_BYTES: usize = 256;
const MAX_LABELS: usize = 20;

/// A toolkit without code.
#[derive(Debug, Clone)]
pub struct Imported {
    /// Valid manifest. Its version is a placeholder unless `stamped`.
    pub manifest: Manifest,
    /// True if the overlay gives a version.
    pub stamped: bool,
    /// Calls of the tools, by slug.
    pub calls: BTreeMap<String, Call>,
    /// Outcome of the import.
    pub report: Report,
}

/// Outcome of an import.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Operations that became tools: ids with the tools' slugs.
    pub taken: BTreeMap<String, String>,
    /// Number of operations that the overlay did not choose, or that are deprecated.
    pub not_chosen: usize,
    /// Parts that are not carried over.
    pub unsupported: Vec<Unsupported>,
}

/// Makes a toolkit of an API.
///
/// # Errors
/// No toolkit can be made: the overlay names something that does not exist, no server is known, or
/// no operation is left. The message states the remedy.
pub fn toolkit(mut api: Api, slug: &str, overlay: &Overlay) -> Result<Imported> {
    let not_chosen = overlay
        .apply(&mut api)
        .map_err(|problems| Error::new(problems.join("\n")))?;
    let mut builder = Builder {
        slug,
        overlay,
        shared: std::mem::take(&mut api.schemas),
        unsupported: std::mem::take(&mut api.unsupported),
        egress: overlay.egress.clone(),
        fields: Vec::new(),
        no_server: String::new(),
    };
    let main = match api.servers.first() {
        Some(server) => builder.address(server, None),
        None => {
            builder.no_server =
                "the description names no server; name one with --server".to_owned();
            None
        }
    };
    let operations = builder.usable(std::mem::take(&mut api.operations));
    let (tools, calls, taken) = builder.tools(&operations, main.as_ref());
    let manifest = builder.manifest(api, tools);
    builder.finish(
        manifest,
        calls,
        Report {
            taken,
            not_chosen,
            unsupported: Vec::new(),
        },
    )
}

struct Builder<'a> {
    slug: &'a str,
    overlay: &'a Overlay,
    shared: Shared,
    unsupported: Vec<Unsupported>,
    egress: Vec<EgressRule>,
    fields: Vec<manifest::Field>,
    /// Reason why the API's own server cannot be called.
    no_server: String,
}

impl Builder<'_> {
    /// Adds a server to the toolkit.
    fn address(&mut self, server: &Server, operation: Option<&str>) -> Option<Address> {
        match address::parse(server) {
            Ok(address) => {
                for note in &address.notes {
                    let note = Unsupported::whole(note.clone());
                    if !self.unsupported.contains(&note) {
                        self.unsupported.push(note);
                    }
                }
                self.egress.extend(address.egress.iter().cloned());
                for field in &address.fields {
                    if self.fields.iter().all(|known| known.name != field.name) {
                        self.fields.push(field.clone());
                    }
                }
                Some(address)
            }
            Err(why) => {
                match operation {
                    Some(id) => self.unsupported.push(Unsupported::unusable(id, why)),
                    None => self.no_server = why,
                }
                None
            }
        }
    }

    /// Returns the operations that the reader did not mark as unusable.
    fn usable(&self, operations: Vec<Operation>) -> Vec<Operation> {
        let unusable: BTreeSet<&str> = self
            .unsupported
            .iter()
            .filter(|it| it.unusable)
            .filter_map(|it| it.operation.as_deref())
            .collect();
        operations
            .into_iter()
            .filter(|operation| !unusable.contains(operation.id.as_str()))
            .collect()
    }

    fn tools(
        &mut self,
        operations: &[Operation],
        main: Option<&Address>,
    ) -> (Vec<Tool>, BTreeMap<String, Call>, BTreeMap<String, String>) {
        let renamed = operations.iter().filter_map(|operation| {
            let slug = self
                .overlay
                .changes_of(&operation.id)
                .filter_map(|change| change.slug.clone())
                .last()?;
            Some((operation.id.clone(), slug))
        });
        let slugs = names::slugs(self.slug, operations, &renamed.collect());
        let mut tools = Vec::new();
        let mut calls = BTreeMap::new();
        let mut taken = BTreeMap::new();
        for (operation, slug) in operations.iter().zip(slugs) {
            let own = operation
                .server
                .as_ref()
                .map(|server| self.address(server, Some(&operation.id)));
            let address = match (own, main) {
                (Some(own), _) => own,
                (None, Some(main)) => Some(main.clone()),
                (None, None) => {
                    self.unsupported
                        .push(Unsupported::unusable(&operation.id, self.no_server.clone()));
                    None
                }
            };
            let Some(address) = address else { continue };
            let arguments = arguments::build(operation, &self.shared);
            if arguments.cut {
                self.unsupported.push(Unsupported::part(
                    &operation.id,
                    "parts of the argument schemas, which are too large",
                ));
            }
            tools.push(self.tool(operation, &slug, &arguments, &address));
            calls.insert(slug.clone(), self.call(operation, arguments, address));
            taken.insert(operation.id.clone(), slug);
        }
        (tools, calls, taken)
    }

    fn tool(
        &self,
        operation: &Operation,
        slug: &str,
        arguments: &Arguments,
        address: &Address,
    ) -> Tool {
        let name = title(operation);
        let mut tool = Tool {
            slug: slug.to_owned(),
            description: description(operation, &name, &arguments.choices),
            name,
            input: arguments.schema.clone(),
            output: output(operation, &self.shared),
            loose_output: true,
            hints: operation.hints,
            tags: labels(&operation.tags),
            synonyms: operation.synonyms.clone(),
            scopes: labels(&operation.scopes),
            egress: None,
            no_auth: operation.no_auth,
            examples: operation.examples.clone(),
        };
        let changes: Vec<&Change> = self.overlay.changes_of(&operation.id).collect();
        for change in changes {
            change
                .input
                .iter()
                .for_each(|patch| merge(&mut tool.input, patch));
            change
                .output
                .iter()
                .for_each(|patch| merge(&mut tool.output, patch));
        }
        // A read-only tool may send other methods only if a rule names them.
        if tool.hints.read_only && !matches!(operation.method.as_str(), "GET" | "HEAD") {
            let mut methods = vec![operation.method.clone()];
            // Ends the session with the server.
            let mcp = operation
                .body
                .as_ref()
                .is_some_and(|body| matches!(body.media, Media::Mcp { .. }));
            methods.extend(mcp.then(|| "DELETE".to_owned()));
            tool.egress = Some(
                address
                    .egress
                    .iter()
                    .map(|rule| EgressRule {
                        methods: methods.clone(),
                        ..rule.clone()
                    })
                    .collect(),
            );
        }
        tool
    }

    fn call(&self, operation: &Operation, arguments: Arguments, address: Address) -> Call {
        let pages = operation.pages.clone().zip(arguments.pages);
        let fixed = self
            .overlay
            .headers
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
        Call {
            method: operation.method.clone(),
            url: format!("{}{}", address.url, operation.path),
            fields: address.defaults,
            headers: operation.headers.iter().cloned().chain(fixed).collect(),
            parameters: arguments.parameters,
            body: arguments.body,
            answer: plan::ResponseRule {
                file: operation.answer.file,
                pick: operation.answer.pick.clone(),
            },
            pages: pages.map(|(pages, argument)| plan::Pages { argument, ..pages }),
            anonymous: false,
        }
    }

    fn manifest(&mut self, api: Api, tools: Vec<Tool>) -> Manifest {
        let mut egress = Vec::new();
        for rule in std::mem::take(&mut self.egress) {
            if !egress.contains(&rule) {
                egress.push(rule);
            }
        }
        let mut auth = api.auth;
        for scheme in &mut auth {
            let missing: Vec<_> = self
                .fields
                .iter()
                .filter(|field| scheme.fields.iter().all(|known| known.name != field.name))
                .cloned()
                .collect();
            scheme.fields.extend(missing);
        }
        let mut name = text::line(&api.name, MAX_NAME_BYTES);
        if name.is_empty() {
            name.push_str(self.slug);
        }
        let description = text::block(&api.description, 1000);
        Manifest {
            abi: ABI_VERSION.to_owned(),
            sdk: SDK_VERSION.to_owned(),
            slug: self.slug.to_owned(),
            description: if description.is_empty() {
                format!("Tools of {name}.")
            } else {
                description
            },
            name,
            logo: None,
            categories: self.overlay.categories.clone(),
            version: self.overlay.version.clone().unwrap_or_else(unstamped),
            auth,
            egress,
            tools,
            triggers: Vec::new(),
            limits: self.overlay.limits,
        }
    }

    /// Removes the tools that a manifest refuses, until no refused tool is left.
    fn finish(
        self,
        mut manifest: Manifest,
        mut calls: BTreeMap<String, Call>,
        mut report: Report,
    ) -> Result<Imported> {
        let mut unsupported = self.unsupported;
        loop {
            if manifest.tools.is_empty() {
                let why: BTreeSet<String> = unsupported
                    .iter()
                    .filter(|it| it.unusable)
                    .take(5)
                    .map(|it| format!("\n  {}", it.what))
                    .collect();
                let not_chosen = match report.not_chosen {
                    0 => String::new(),
                    count => {
                        format!(
                            "; {count} were not chosen or are deprecated: add them with `choose` in the overlay"
                        )
                    }
                };
                return Err(Error::new(format!(
                    "no operation can become a tool{not_chosen}{}",
                    why.into_iter().collect::<String>()
                )));
            }
            let problems = manifest.problems();
            let mut refused: BTreeMap<&str, &str> = BTreeMap::new();
            for problem in &problems {
                let named = problem
                    .strip_prefix("tools.")
                    .and_then(|rest| rest.split_once(['.', ':']));
                if let Some((slug, what)) = named {
                    refused.entry(slug).or_insert(what);
                }
            }
            if refused.is_empty() {
                if !problems.is_empty() {
                    return Err(Error::new(problems.join("\n")));
                }
                break;
            }
            let ids = report
                .taken
                .iter()
                .filter_map(|(id, slug)| Some((id, *refused.get(slug.as_str())?)));
            unsupported.extend(ids.map(|(id, what)| Unsupported::unusable(id, what.trim())));
            let slugs: BTreeSet<String> = refused.into_keys().map(str::to_owned).collect();
            manifest.tools.retain(|tool| !slugs.contains(&tool.slug));
            report.taken.retain(|_, slug| !slugs.contains(slug));
            calls.retain(|slug, _| !slugs.contains(slug));
        }
        unsupported.sort();
        unsupported.dedup();
        report.unsupported = unsupported;
        Ok(Imported {
            manifest,
            stamped: self.overlay.version.is_some(),
            calls,
            report,
        })
    }
}

fn unstamped() -> Version {
    #[expect(clippy::expect_used, reason = "a constant that a test reads")]
    UNSTAMPED_VERSION.parse().expect("a version")
}

/// Returns the readable title: that of the operation, or the words of its id.
fn title(operation: &Operation) -> String {
    use heck::ToTitleCase;
    let title = text::line(operation.title.trim_end_matches('.'), MAX_NAME_BYTES);
    if !title.is_empty() {
        return title;
    }
    let title_case = operation.id.replace(['{', '}', '/'], " ").to_title_case();
    let words = text::line(&title_case, MAX_NAME_BYTES);
    if words.is_empty() {
        operation.method.clone()
    } else {
        words
    }
}

/// Returns the description, or the name of the tool, followed by a sentence about alternatives: arguments
/// of which one set must be given.
fn description(operation: &Operation, name: &str, choices: &[Vec<String>]) -> String {
    let sets: Vec<_> = choices
        .iter()
        .map(|choice| {
            let names: Vec<_> = choice.iter().map(|name| format!("`{name}`")).collect();
            names.join(" and ")
        })
        .collect();
    let note = match sets.iter().any(String::is_empty) || sets.len() < 2 {
        true => String::new(),
        false => text::cut(
            &format!("\n\nGive either {}.", sets.join(", or ")),
            MAX_DESCRIPTION_BYTES / 2,
        ),
    };
    let left = MAX_DESCRIPTION_BYTES - note.len();
    let description = text::block(&operation.description, left);
    if description.is_empty() {
        return format!("{name}.{note}");
    }
    description + &note
}

fn labels(given: &[String]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for label in given
        .iter()
        .map(|label| text::line(label, MAX_LABEL_BYTES))
        .filter(|label| !label.is_empty())
    {
        if labels.len() < MAX_LABELS && !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

/// Returns the schema of the guest's output, which is always an object.
fn output(operation: &Operation, shared: &Shared) -> Value {
    let file = json!({
        "type": "object",
        "file_downloadable": true,
        "properties": {
            "name": { "type": "string" },
            "mimetype": { "type": "string" },
            "s3url": { "type": "string", "description": "Where the file is." },
        },
    });
    if operation.answer.file {
        return json!({ "type": "object", "properties": { "file": file } });
    }
    let Some(schema) = &operation.answer.schema else {
        return json!({ "type": "object" });
    };
    let closed = schema::inline(schema, shared, Direction::Out, MAX_OUTPUT_SCHEMA_BYTES).schema;
    let kind = match closed.get("type") {
        Some(Value::Array(kinds)) => kinds
            .iter()
            .find(|kind| *kind != "null")
            .and_then(Value::as_str),
        kind => kind.and_then(Value::as_str),
    };
    match kind {
        Some("object") => {
            let mut closed = closed;
            closed["type"] = "object".into();
            closed
        }
        Some("array") => json!({ "type": "object", "properties": { "items": closed } }),
        Some(_) => json!({ "type": "object", "properties": { "value": closed } }),
        None => closed,
    }
}
