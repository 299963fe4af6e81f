//! Template rendering.
//!
//! The engine's parser and compiler recurse for each operator of an expression and each open block,
//! on a small stack. [`check`] inspects the tokens first, so that a malicious template causes an
//! error and not a crash.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, ErrorKind, Template as Jinja, UndefinedBehavior};
use serde_json::Map;
use toolkit_sdk::prelude::*;

const TEMPLATE_NAME: &str = "template";
const MAX_OPERATORS: usize = 64;
const MAX_BLOCKS: usize = 24;
/// Max number of assignments. Each may nest the previous value in a list.
const MAX_ASSIGNMENTS: usize = 64;
/// Max number of engine steps. Two nested loops over a thousand items each stay below.
const MAX_STEPS: u64 = 10_000_000;
const OPERATOR_WORDS: [&str; 7] = ["and", "or", "not", "if", "else", "is", "in"];
const BLOCK_WORDS: [&str; 5] = ["for", "if", "with", "filter", "autoescape"];

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Template {
    /// Template in Jinja syntax: `{{ name }}`, `{% for item in items %}…{% endfor %}`,
    /// `{% if paid %}…{% endif %}`, filters such as `{{ names|join(", ") }}`, `|upper`,
    /// `|default("none")`, `|round(2)`, `|tojson`.
    template: String,
    /// Values for the names in the template.
    data: Map<String, Value>,
    /// Escapes values for HTML; leave it off for plain text and Markdown.
    #[serde(default)]
    html: bool,
    /// Treats missing values as empty, instead of failing.
    #[serde(default)]
    allow_missing: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Rendered {
    text: String,
}

/// Renders a Jinja template with values: emails, reports, lists. A value that the template uses and
/// `data` does not have is an error, unless `allow_missing`.
#[tool(
    read_only,
    idempotent,
    example = r#"{"template": "Dear {{ name }}, you owe {{ total|round(2) }}.", "data": {"name": "Ada", "total": 17.5}}"#
)]
pub(crate) fn render_template(input: Template) -> Result<Rendered> {
    check(&input.template).map_err(failed)?;
    let mut environment = Environment::new();
    environment.set_syntax(
        SyntaxConfig::builder()
            .keep_trailing_newline(true)
            .build()
            .map_err(failed)?,
    );
    environment.set_auto_escape_callback(move |_| {
        if input.html {
            AutoEscape::Html
        } else {
            AutoEscape::None
        }
    });
    // `namespace` carries values between loop iterations, which could nest them without limit.
    environment.remove_global("namespace");
    let missing = if input.allow_missing {
        UndefinedBehavior::Chainable
    } else {
        UndefinedBehavior::SemiStrict
    };
    environment.set_undefined_behavior(missing);
    environment.set_fuel(Some(MAX_STEPS));
    let template = environment
        .template_from_named_str(TEMPLATE_NAME, &input.template)
        .map_err(failed)?;
    let rendered = template.render(minijinja::Value::from(Serde(&input.data)));
    let text = rendered.map_err(|error| match missing_names(&environment, &template, &input.data) {
        names if error.kind() == ErrorKind::UndefinedError && !names.is_empty() => ToolError::invalid_input(format!(
            "`data` has no {names}, which the template names; add it, or set `allow_missing`"
        )),
        _ => failed(error),
    })?;
    Ok(Rendered { text })
}

fn failed(error: minijinja::Error) -> ToolError {
    ToolError::invalid_input(format!("cannot render the template: {error}"))
}

/// Returns the names that the template uses and `data` does not have, for the error message.
fn missing_names(
    environment: &Environment<'_>,
    template: &Jinja<'_, '_>,
    data: &Map<String, Value>,
) -> String {
    let built_in: Vec<&str> = environment.globals().map(|(name, _)| name).collect();
    let mut missing: Vec<String> = template
        .undeclared_variables(false)
        .into_iter()
        .filter(|name| !data.contains_key(name) && !built_in.contains(&name.as_str()))
        .map(|name| format!("`{name}`"))
        .collect();
    missing.sort();
    missing.join(", ")
}

/// Refuses a template that would nest too deep. Syntax errors are left to the engine, whose message
/// is better.
fn check(template: &str) -> std::result::Result<(), minijinja::Error> {
    let mut blocks: Vec<usize> = Vec::new();
    let mut assignments = 0;
    let mut tag = Tag::default();
    for token in tokenize(template, false, SyntaxConfig::default()) {
        let Ok((token, _)) = token else { return Ok(()) };
        match token {
            Token::VariableStart | Token::BlockStart => tag = Tag::default(),
            Token::BlockEnd => {
                assignments += usize::from(tag.word == Some("set"));
                tag.nest(&mut blocks);
            }
            other => tag.add(&other),
        }
        let open: usize = blocks.iter().sum();
        if tag.operators > MAX_OPERATORS || open > MAX_BLOCKS || assignments > MAX_ASSIGNMENTS {
            let limits = format!("{MAX_OPERATORS} operators in one tag, {MAX_BLOCKS} open blocks");
            let message =
                format!("too complex: at most {limits} and {MAX_ASSIGNMENTS} times `set`");
            return Err(minijinja::Error::new(ErrorKind::SyntaxError, message));
        }
    }
    Ok(())
}

/// State of the current tag.
#[derive(Default)]
struct Tag<'source> {
    word: Option<&'source str>,
    operators: usize,
    assigns: bool,
}

impl<'source> Tag<'source> {
    fn add(&mut self, token: &Token<'source>) {
        match token {
            Token::Ident(word) => {
                self.operators += usize::from(OPERATOR_WORDS.contains(word));
                self.word.get_or_insert(word);
            }
            Token::Assign => self.assigns = true,
            Token::TemplateData(_) | Token::VariableEnd | Token::Comma | Token::Colon => {}
            Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_) => {}
            _ => self.operators += 1,
        }
    }

    /// Opens or closes a block. `elif` nests in the `if` before it.
    fn nest(&self, blocks: &mut Vec<usize>) {
        match self.word {
            Some("elif") => blocks
                .iter_mut()
                .last()
                .into_iter()
                .for_each(|levels| *levels += 1),
            Some("set") if !self.assigns => blocks.push(1),
            Some(word) if BLOCK_WORDS.contains(&word) => blocks.push(1),
            Some(word) if word.starts_with("end") => drop(blocks.pop()),
            _ => {}
        }
    }
}
