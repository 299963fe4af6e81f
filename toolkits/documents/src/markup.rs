//! Conversion between HTML and Markdown.

use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use htmd::element_handler::Handlers;
use htmd::options::{BulletListMarker, Options as Style};
use htmd::{Element, HtmlToMarkdown, Node};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, html};
use toolkit_sdk::prelude::*;

/// Max depth of nested elements. Real pages stay below, and the converter recurses once per level.
const MAX_DEPTH: usize = 64;
const IGNORED_ELEMENTS: [&str; 8] = [
    "script", "style", "template", "noscript", "iframe", "object", "svg", "canvas",
];
const NON_ARTICLE_ELEMENTS: [&str; 4] = ["nav", "aside", "footer", "form"];
const SAFE_SCHEMES: [&str; 4] = ["http", "https", "mailto", "tel"];

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Html {
    /// HTML of a whole page or a fragment.
    html: String,
    /// Leaves out navigation, sidebars, footers and forms.
    #[serde(default)]
    article_only: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Markdown {
    /// Content in Markdown.
    markdown: String,
    /// Title of the page, if it has one.
    title: Option<String>,
}

/// Converts HTML to Markdown, which is shorter and easier to read. Headings, lists, links, images,
/// tables, quotes and code are kept; scripts, styles and embedded frames are dropped. Use it on a
/// fetched web page or an HTML email.
#[tool(
    read_only,
    idempotent,
    important,
    example = r#"{"html": "<h1>Hello</h1><p>A <b>page</b>.</p>"}"#
)]
pub(crate) fn html_to_markdown(input: Html) -> Result<Markdown> {
    let mut skip = IGNORED_ELEMENTS.to_vec();
    if input.article_only {
        skip.extend(NON_ARTICLE_ELEMENTS);
    }
    let title = Arc::new(OnceLock::new());
    let found = Arc::clone(&title);
    let style = Style {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Style::default()
    };
    let converter = HtmlToMarkdown::builder()
        .options(style)
        .skip_tags(skip)
        .add_handler(
            vec!["title"],
            move |handlers: &dyn Handlers, element: Element<'_>| {
                let text = handlers.walk_children(element.node).content;
                found.get_or_init(|| text.trim().to_owned());
                None
            },
        )
        .build();
    let tree = converter
        .html_to_tree(&input.html)
        .map_err(|error| ToolError::invalid_input(format!("cannot read the HTML: {error}")))?;
    check_depth(&tree)?;
    let markdown = converter.tree_to_markdown(&tree);
    Ok(Markdown {
        markdown,
        title: title.get().filter(|title| !title.is_empty()).cloned(),
    })
}

fn check_depth(tree: &Rc<Node>) -> Result<()> {
    let mut open = vec![(Rc::clone(tree), 0)];
    while let Some((node, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            let message = format!(
                "the HTML nests more than {MAX_DEPTH} elements; convert an inner part of it"
            );
            return Err(ToolError::invalid_input(message));
        }
        open.extend(
            node.children
                .borrow()
                .iter()
                .map(|child| (Rc::clone(child), depth + 1)),
        );
    }
    Ok(())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct MarkdownSource {
    /// Text in CommonMark, with tables, task lists, footnotes and strikethrough.
    markdown: String,
    /// Shows HTML in the Markdown as text, instead of leaving it out.
    #[serde(default)]
    show_raw_html: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct SafeHtml {
    /// HTML fragment without `html` and `body`.
    html: String,
}

/// Converts Markdown to HTML that is safe to show or to mail: HTML inside the Markdown is not
/// passed through, and links and images use only http, https, mailto, tel or relative URLs.
#[tool(
    read_only,
    idempotent,
    important,
    example = r##"{"markdown": "# Hello\n\n- one\n- two"}"##
)]
pub(crate) fn markdown_to_html(input: MarkdownSource) -> Result<SafeHtml> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    let events = Parser::new_ext(&input.markdown, options).filter_map(|event| match event {
        Event::Html(raw) | Event::InlineHtml(raw) => {
            input.show_raw_html.then_some(Event::Text(raw))
        }
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => Some(Event::Start(Tag::Link {
            link_type,
            dest_url: safe(dest_url),
            title,
            id,
        })),
        Event::Start(Tag::Image {
            link_type,
            dest_url,
            title,
            id,
        }) => Some(Event::Start(Tag::Image {
            link_type,
            dest_url: safe(dest_url),
            title,
            id,
        })),
        other => Some(other),
    });
    let mut html = String::with_capacity(input.markdown.len() * 3 / 2);
    html::push_html(&mut html, events);
    Ok(SafeHtml { html })
}

/// Returns the URL, or an empty one if its scheme is not known to be safe. Browsers ignore white
/// space and control characters in a scheme, so these are ignored here too.
fn safe(address: CowStr<'_>) -> CowStr<'_> {
    let seen = address
        .chars()
        .filter(|letter| !letter.is_whitespace() && !letter.is_control());
    let head: String = seen
        .take_while(|letter| !matches!(letter, '/' | '?' | '#'))
        .collect();
    match head.split_once(':') {
        Some((scheme, _))
            if !SAFE_SCHEMES
                .iter()
                .any(|safe| scheme.eq_ignore_ascii_case(safe)) =>
        {
            CowStr::Borrowed("")
        }
        _ => address,
    }
}
