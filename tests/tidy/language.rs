//! Counts of language and size, with bounds.
//!
//! The bounds of words are those of well-known code bases of the same language. A count above its
//! bound is printed with the files that have most of it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use syn::{
    Attribute, Block, Expr, ImplItemFn, ItemFn, ItemMod, Local, Pat, Stmt, TraitItemFn,
    spanned::Spanned,
    visit::{self, Visit},
};

use super::{files, read, root, sources};

/// Phrases, and how often each may occur in 10,000 words of comments and documents.
const PHRASE_BOUNDS: [(&[&str], f64); 17] = [
    (&["a text"], 0.3),
    (&["place"], 2.1),
    (&["turn"], 2.1),
    (&["room"], 0.5),
    (&["has no", "is no"], 8.0),
    (&["none"], 15.7),
    (&["that is"], 8.0),
    (&["member", "members"], 8.0),
    (&["begin", "begins", "began", "begun"], 0.9),
    (&["at once"], 0.5),
    (&["beside", "besides"], 0.1),
    (&["stands"], 0.1),
    (&["seldom"], 0.1),
    (&["all the same"], 0.1),
    (&["again and again"], 0.1),
    (&["goes on"], 0.1),
    (&["one after the other"], 0.1),
];
/// Named closures in 1,000 lines of product code.
const MAX_NAMED_CLOSURES: f64 = 1.5;
/// Repeated bindings of one name in one block, in 1,000 lines of product code.
const MAX_REPEATED_BINDINGS: f64 = 2.0;
/// First words of doc comments that are clauses instead of statements.
const QUESTION_WORDS: [&str; 11] = [
    "What", "Whether", "Who", "Whose", "How", "When", "Where", "Which", "So", "Then", "Why",
];

/// Counts of one file of product code.
#[derive(Default)]
struct Counts {
    code_lines: usize,
    code_characters: usize,
    doc_comments: usize,
    question_words: usize,
    named_closures: usize,
    repeated_bindings: usize,
    /// Length and name of each function.
    functions: Vec<(usize, String)>,
}

impl Counts {
    fn of(text: &str) -> Self {
        let mut counts = Self::default();
        let mut in_comment = false;
        for line in text.lines().map(str::trim) {
            let doc = line
                .strip_prefix("///")
                .or_else(|| line.strip_prefix("//!"));
            if let Some(doc) = doc.filter(|_| !in_comment) {
                counts.doc_comments += 1;
                let first = doc.split_whitespace().next().unwrap_or_default();
                counts.question_words += usize::from(QUESTION_WORDS.contains(&first));
            }
            in_comment = doc.is_some();
            if !line.is_empty() && !line.starts_with("//") {
                counts.code_lines += 1;
                counts.code_characters += line.chars().count();
            }
        }
        counts.visit_file(&syn::parse_file(text).expect("the file compiles"));
        counts
    }

    fn add_function(&mut self, name: &syn::Ident, span: proc_macro2::Span) {
        let length = span.end().line - span.start().line + 1;
        self.functions.push((length, name.to_string()));
    }
}

impl<'ast> Visit<'ast> for Counts {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_of_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if !is_of_tests(&function.attrs) {
            self.add_function(&function.sig.ident, function.span());
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.add_function(&function.sig.ident, function.span());
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        self.add_function(&function.sig.ident, function.span());
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_block(&mut self, block: &'ast Block) {
        let mut bindings: BTreeMap<String, usize> = BTreeMap::new();
        for statement in &block.stmts {
            if let Stmt::Local(local) = statement
                && let Some(name) = bound_name(&local.pat)
            {
                *bindings.entry(name).or_default() += 1;
            }
        }
        self.repeated_bindings += bindings.values().map(|count| count - 1).sum::<usize>();
        visit::visit_block(self, block);
    }

    fn visit_local(&mut self, local: &'ast Local) {
        if let Some(initial) = &local.init
            && matches!(*initial.expr, Expr::Closure(_))
        {
            self.named_closures += 1;
        }
        visit::visit_local(self, local);
    }
}

/// Returns true for `#[cfg(test)]` and `#[test]`.
pub(super) fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.meta.require_list().is_ok_and(|list| {
                    let condition = list.tokens.to_string();
                    condition == "test"
                })
    })
}

fn bound_name(pattern: &Pat) -> Option<String> {
    match pattern {
        Pat::Ident(bound) => Some(bound.ident.to_string()),
        Pat::Type(typed) => bound_name(&typed.pat),
        _ => None,
    }
}

/// Returns the sources without those that hold tests alone.
fn product() -> Vec<(PathBuf, String)> {
    let of_tests = |path: &Path| {
        path.starts_with("tests")
            || path
                .iter()
                .any(|part| part == "tests" || part == "tests.rs")
    };
    let mut product = sources();
    product.retain(|(path, _)| !of_tests(path));
    product
}

/// Returns the words of the comments of a source or of a document, in lower case. Code is left out.
fn words(path: &Path, text: &str) -> Vec<String> {
    let prose: String = if path.extension().is_some_and(|extension| extension == "rs") {
        text.lines()
            .filter_map(|line| line.trim().strip_prefix("//"))
            .map(|line| format!("{}\n", line.trim_start_matches(['/', '!'])))
            .collect()
    } else {
        text.split("```").step_by(2).collect()
    };
    let without_code: String = prose.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    without_code
        .split(|character: char| !character.is_alphabetic() && character != '\'')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Returns the number of times that a phrase occurs in words.
fn occurrences(words: &[String], phrase: &str) -> usize {
    let phrase: Vec<_> = phrase.split(' ').collect();
    words
        .windows(phrase.len())
        .filter(|window| window.iter().eq(phrase.iter()))
        .count()
}

/// Returns the documents of the repository as paths relative to the root.
fn documents() -> impl Iterator<Item = PathBuf> {
    let folders = ["", "docs", "docs/decisions"].map(Path::new);
    let entries = folders.into_iter().flat_map(|folder| {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        entries.map(move |entry| folder.join(entry.unwrap().file_name()))
    });
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "md"))
}

#[test]
fn words_of_the_field_are_used() {
    let mut texts = Vec::new();
    for path in files().into_iter().chain(documents()) {
        let is_text = |extension: &std::ffi::OsStr| extension == "rs" || extension == "md";
        // The glossary names the words that it replaces.
        if path.extension().is_some_and(is_text) && !path.ends_with("glossary.md") {
            let words = words(&path, &read(&root().join(&path)));
            texts.push((path, words));
        }
    }
    let total: usize = texts.iter().map(|(_, words)| words.len()).sum();
    let mut above = Vec::new();
    for (phrases, bound) in PHRASE_BOUNDS {
        let mut counts: Vec<(usize, &PathBuf)> = texts
            .iter()
            .map(|(path, words)| {
                let counts = phrases.iter().map(|phrase| occurrences(words, phrase));
                (counts.sum(), path)
            })
            .collect();
        let count: usize = counts.iter().map(|(count, _)| count).sum();
        let share = 1e4 * count as f64 / total as f64;
        println!("{phrases:?}: {share:.1} in 10,000 words (at most {bound})");
        if share > bound {
            counts.sort();
            let most = counts.iter().rev().take(5);
            above.push(format!(
                "{phrases:?}: {share:.1}, above {bound}: {:?}",
                most.collect::<Vec<_>>()
            ));
        }
    }
    assert!(above.is_empty(), "{}", above.join("\n"));
}

#[test]
fn figures_of_language_and_size_are_bounded() {
    let mut sum = Counts::default();
    let mut sizes = Vec::new();
    let mut closures = Vec::new();
    for (path, text) in product() {
        let mut counts = Counts::of(&text);
        sum.code_lines += counts.code_lines;
        sum.code_characters += counts.code_characters;
        sum.doc_comments += counts.doc_comments;
        sum.question_words += counts.question_words;
        sum.named_closures += counts.named_closures;
        sum.repeated_bindings += counts.repeated_bindings;
        sum.functions.append(&mut counts.functions);
        closures.push((
            counts.named_closures + counts.repeated_bindings,
            path.clone(),
        ));
        sizes.push((counts.code_lines, path));
    }
    let in_1000_lines = |count: usize| 1e3 * count as f64 / sum.code_lines as f64;
    let named_closures = in_1000_lines(sum.named_closures);
    let repeated_bindings = in_1000_lines(sum.repeated_bindings);
    println!(
        "doc comments that start with a question word: {:.1} % (goal below 4); characters per line of code: {:.1} (goal below 30)",
        100.0 * sum.question_words as f64 / sum.doc_comments as f64,
        sum.code_characters as f64 / sum.code_lines as f64,
    );
    println!(
        "in 1,000 lines: {named_closures:.1} named closures (at most {MAX_NAMED_CLOSURES}), \
         {repeated_bindings:.1} repeated bindings (at most {MAX_REPEATED_BINDINGS})"
    );
    sizes.sort();
    let total: usize = sizes.iter().map(|(lines, _)| lines).sum();
    let (median, high) = (quantile(&sizes, 50), quantile(&sizes, 90));
    println!(
        "{} files, {total} lines of code; median {median} (aim 130), p90 {high} (aim 280); longest:{}",
        sizes.len(),
        longest(&sizes)
    );
    sum.functions.sort();
    let (median, high) = (quantile(&sum.functions, 50), quantile(&sum.functions, 90));
    println!(
        "functions: median {median}, p90 {high} (aim 28); longest:{}",
        longest(&sum.functions)
    );
    closures.sort();
    println!(
        "most named closures and repeated bindings:{}",
        longest(&closures)
    );
    assert!(named_closures <= MAX_NAMED_CLOSURES, "{named_closures:.2}");
    assert!(
        repeated_bindings <= MAX_REPEATED_BINDINGS,
        "{repeated_bindings:.2}"
    );
}

/// Returns the size below which a percentage of the sorted entries is.
fn quantile<T>(sorted: &[(usize, T)], percentage: usize) -> usize {
    sorted[(sorted.len() - 1) * percentage / 100].0
}

/// Returns the largest entries, a line each.
fn longest<T: std::fmt::Debug>(sorted: &[(usize, T)]) -> String {
    sorted
        .iter()
        .rev()
        .take(8)
        .map(|(size, name)| format!("\n{size:6}  {name:?}"))
        .collect()
}
