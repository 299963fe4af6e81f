//! Imports between the modules of a crate, and between its files.
//!
//! The modules of a host crate are on floors: a module imports only from those below. Files that import
//! each other, directly or through others, are a circle, which can be read and changed only as a whole.
//! An import of a name that a module only re-exports counts as one from the file with the definition.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    path::Path,
};

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    ItemFn, ItemMod, ItemUse, Macro, UseTree,
    visit::{self, Visit},
};

use super::{language::is_of_tests, sources};

/// Modules of the host crates, from bottom to top.
const MODULE_FLOORS: [(&str, &str); 3] = [
    (
        "host/app",
        "core work projects catalog files accounts runs events agents lifecycle",
    ),
    (
        "host/server",
        "installed memory terminal metrics telemetry router limits open control commands",
    ),
    (
        "host/sandbox",
        "digest limits refusal secret sign grant trace_context settings schedule child redact \
         contract input outcome trace failure files webhook_signature cassette observer toolkit \
         engine call program",
    ),
];
/// Crates whose files may not form circles, below `host`.
const CHECKED_CRATES: &str =
    "api app gate http mcp net oauth sandbox search server settings store web workbench";

/// Path of a module or of an item in its crate.
type ModulePath = Vec<String>;

/// Modules of a crate with their imports.
#[derive(Default)]
struct Modules {
    files: BTreeSet<ModulePath>,
    /// Paths that each file names.
    named: BTreeMap<ModulePath, BTreeSet<ModulePath>>,
    /// Names that each module imports, with their paths.
    imports: BTreeMap<(ModulePath, String), ModulePath>,
}

impl Modules {
    fn of(folder: &str) -> Self {
        let folder = Path::new(folder).join("src");
        let texts = sources().into_iter().filter_map(|(path, text)| {
            let module = module_path(path.strip_prefix(&folder).ok()?);
            (!module.iter().any(|part| part == "tests")).then_some((module, text))
        });
        Self::read(texts.collect())
    }

    /// Reads the files of a crate.
    fn read(texts: Vec<(ModulePath, String)>) -> Self {
        let mut modules = Self {
            files: texts.iter().map(|(module, _)| module.clone()).collect(),
            ..Self::default()
        };
        for (module, text) in texts {
            let mut reader = Reader {
                modules: &modules,
                children: modules.children(&module),
                file: module.clone(),
                module: module.clone(),
                named: BTreeSet::new(),
                imports: BTreeMap::new(),
            };
            reader.visit_file(&syn::parse_file(&text).expect("the file compiles"));
            let Reader { named, imports, .. } = reader;
            modules.named.insert(module.clone(), named);
            let imports = imports
                .into_iter()
                .map(|(name, path)| ((module.clone(), name), path));
            modules.imports.extend(imports);
        }
        modules
    }

    fn children(&self, module: &[String]) -> BTreeSet<String> {
        let children = self.files.iter().filter_map(|path| {
            let (last, parent) = path.split_last()?;
            (parent == module).then(|| last.clone())
        });
        children.collect()
    }

    /// Returns the module whose file defines what a path names.
    fn defining(&self, path: &[String], depth: usize) -> ModulePath {
        let length = (0..=path.len())
            .rev()
            .find(|length| self.files.contains(&path[..*length]))
            .unwrap_or_default();
        let (module, rest) = path.split_at(length);
        let imported = rest
            .first()
            .and_then(|name| self.imports.get(&(module.to_vec(), name.clone())));
        match imported {
            Some(imported) if depth > 0 => {
                let path = [&imported[..], &rest[1..]].concat();
                self.defining(&path, depth - 1)
            }
            _ => module.to_vec(),
        }
    }

    /// Returns the modules from which each module imports.
    fn edges(&self) -> BTreeMap<ModulePath, BTreeSet<ModulePath>> {
        const MAX_REEXPORTS: usize = 8;
        let edges = self.named.iter().map(|(module, named)| {
            let targets = named.iter().map(|path| self.defining(path, MAX_REEXPORTS));
            // A module and those inside it are read together, and the root of a crate holds all.
            let others =
                targets.filter(|target| !target.starts_with(module) && !module.starts_with(target));
            (module.clone(), others.collect())
        });
        edges.collect()
    }
}

/// Collects the paths that a file names.
struct Reader<'a> {
    modules: &'a Modules,
    children: BTreeSet<String>,
    file: ModulePath,
    /// Module at the current position: that of the file, or one inside it.
    module: ModulePath,
    named: BTreeSet<ModulePath>,
    imports: BTreeMap<String, ModulePath>,
}

impl Reader<'_> {
    /// Returns a path relative to the crate; `None` for one into another crate, or of a local name.
    fn absolute(&self, path: &[String]) -> Option<ModulePath> {
        let (first, mut rest) = path.split_first()?;
        let mut base = match first.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.module.clone(),
            child if self.children.contains(child) => {
                return Some([&self.file[..], path].concat());
            }
            _ => return None,
        };
        if first == "super" {
            base.pop();
            while let Some(("super", after)) = rest.split_first().map(|(f, r)| (f.as_str(), r)) {
                base.pop();
                rest = after;
            }
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    fn add(&mut self, path: &[String]) {
        if path.len() > 1 {
            self.named.extend(self.absolute(path));
        }
    }

    /// Reads the paths in the tokens of a macro call.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let mut path = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) if colons == 2 => {
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    self.add(&mem::take(&mut path));
                    colons = 0;
                    match other {
                        TokenTree::Ident(name) => path.push(name.to_string()),
                        TokenTree::Group(group) => self.read_tokens(group.stream()),
                        TokenTree::Punct(_) | TokenTree::Literal(_) => {}
                    }
                }
            }
        }
        self.add(&path);
    }

    fn read_use(&mut self, tree: &UseTree, prefix: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.read_use(&path.tree, prefix);
                prefix.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.read_use(tree, prefix);
                }
            }
            UseTree::Name(name) => self.import(prefix, &name.ident, &name.ident),
            UseTree::Rename(rename) => self.import(prefix, &rename.ident, &rename.rename),
            UseTree::Glob(_) => self.named.extend(self.absolute(prefix)),
        }
    }

    fn import(&mut self, prefix: &[String], name: &syn::Ident, local: &syn::Ident) {
        let mut path = prefix.to_vec();
        if name != "self" {
            path.push(name.to_string());
        }
        let local = if name == "self" {
            prefix.last().cloned().unwrap_or_default()
        } else {
            local.to_string()
        };
        if let Some(path) = self.absolute(&path) {
            self.named.insert(path.clone());
            if self.module == self.file
                && !self
                    .modules
                    .files
                    .contains(&[&self.file[..], std::slice::from_ref(&local)].concat())
            {
                self.imports.insert(local, path);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_of_tests(&module.attrs) && module.content.is_some() {
            self.module.push(module.ident.to_string());
            visit::visit_item_mod(self, module);
            self.module.pop();
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if !is_of_tests(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_of_tests(&item.attrs) {
            self.read_use(&item.tree, &mut Vec::new());
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<_> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        self.add(&segments);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.read_tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}

/// Returns the path of the module in a file below `src`.
fn module_path(file: &Path) -> ModulePath {
    let mut path: Vec<_> = file
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if path.last().is_some_and(|last| last == "mod") || path == ["lib"] || path == ["main"] {
        path.pop();
    }
    path
}

/// Returns the circles of a graph: its strongly connected components of several nodes.
fn circles(edges: &BTreeMap<ModulePath, BTreeSet<ModulePath>>) -> Vec<Vec<ModulePath>> {
    let reachable = |from: &ModulePath| {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            for next in edges.get(node).into_iter().flatten() {
                if reached.insert(next) {
                    open.push(next);
                }
            }
        }
        reached
    };
    let reached: BTreeMap<_, _> = edges.keys().map(|node| (node, reachable(node))).collect();
    let mut circles = Vec::new();
    let mut known = BTreeSet::new();
    for (node, targets) in &reached {
        if targets.contains(node) && !known.contains(node) {
            let circle: Vec<_> = targets
                .iter()
                .filter(|target| reached.get(*target).is_some_and(|back| back.contains(node)))
                .map(|target| (*target).clone())
                .collect();
            known.extend(
                circle
                    .iter()
                    .filter_map(|member| edges.get_key_value(member))
                    .map(|(member, _)| member),
            );
            circles.push(circle);
        }
    }
    circles
}

#[test]
fn macros_and_reexports_import() {
    let texts = [
        (
            "a",
            "fn f() { tokio::join!(g(), async { crate::b::h(1).await }) }",
        ),
        ("b", "pub(crate) use crate::c::X;"),
        ("c", "#[cfg(test)] mod tests { use crate::a::f; }"),
    ];
    let texts = texts.map(|(module, text)| (vec![module.to_owned()], text.to_owned()));
    let edges = Modules::read(texts.into()).edges();
    let imported = ["a", "b", "c"].map(|module| {
        let targets = edges[[module.to_owned()].as_slice()].iter();
        targets.map(|target| target.join("::")).collect::<Vec<_>>()
    });
    assert_eq!(imported, [vec!["b"], vec!["c"], vec![]]);
}

#[test]
fn modules_import_downwards() {
    let mut upward = Vec::new();
    for (folder, floors) in MODULE_FLOORS {
        let floor = |module: &ModulePath| {
            let name = module.first()?;
            let floor = floors.split_whitespace().position(|floor| floor == name);
            Some(floor.unwrap_or_else(|| panic!("{folder}: {name} has no floor")))
        };
        for (module, targets) in Modules::of(folder).edges() {
            let Some(own) = floor(&module) else { continue };
            for target in targets {
                if floor(&target).is_some_and(|floor| floor > own) {
                    upward.push(format!(
                        "{folder}: {} imports {}",
                        module.join("::"),
                        target.join("::")
                    ));
                }
            }
        }
    }
    assert!(
        upward.is_empty(),
        "a lower floor imports a higher one: {upward:#?}"
    );
}

#[test]
fn files_form_no_circles() {
    let mut found = Vec::new();
    for name in CHECKED_CRATES.split_whitespace() {
        let folder = format!("host/{name}");
        let edges = Modules::of(&folder).edges();
        for circle in circles(&edges) {
            let mut lines = vec![format!("{folder}: {} files", circle.len())];
            for module in &circle {
                let inside = edges[module]
                    .iter()
                    .filter(|target| circle.contains(target));
                let targets: Vec<_> = inside.map(|target| target.join("::")).collect();
                lines.push(format!("  {} → {}", module.join("::"), targets.join(", ")));
            }
            found.push(lines.join("\n"));
        }
    }
    println!("{} circles of files", found.len());
    assert!(found.is_empty(), "{}", found.join("\n"));
}
