//! Conversion of mail texts from Markdown to HTML and from HTML to Markdown.

use std::collections::HashMap;
use std::rc::Rc;

use htmd::options::{BulletListMarker, Options as Style};
use htmd::{HtmlToMarkdown, Node};
use pulldown_cmark::{Options, Parser, html};

/// Max height of a tree converted in one call. Real mails stay below, and the converter recurses
/// once per level.
const MAX_DEPTH: usize = 64;
const IGNORED_ELEMENTS: [&str; 9] = [
    "head", "script", "style", "template", "noscript", "iframe", "object", "svg", "title",
];

/// Converts Markdown to HTML. HTML inside stays as it is, since the sender writes it.
pub(crate) fn to_html(markdown: &str) -> String {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut out = String::with_capacity(markdown.len() * 3 / 2);
    html::push_html(&mut out, Parser::new_ext(markdown, options));
    out
}

/// Escapes plain text as HTML with the same appearance.
pub(crate) fn escaped(text: &str) -> String {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    text.replace("\r\n", "\n").replace('\n', "<br>\n")
}

/// Converts HTML to Markdown, which is shorter and easier to read. If the tree is too high,
/// converts each part of it that fits.
pub(crate) fn to_markdown(html: &str) -> String {
    let style = Style {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ..Style::default()
    };
    let converter = HtmlToMarkdown::builder()
        .options(style)
        .skip_tags(IGNORED_ELEMENTS.to_vec())
        .build();
    let Ok(tree) = converter.html_to_tree(html) else {
        return String::new();
    };
    let heights = heights(&tree);
    let mut parts = Vec::new();
    // `tree` stays alive: dropping a node would take its subtree apart.
    let mut open = vec![Rc::clone(&tree)];
    while let Some(node) = open.pop() {
        if heights
            .get(&Rc::as_ptr(&node))
            .is_none_or(|height| *height <= MAX_DEPTH)
        {
            parts.push(converter.tree_to_markdown(&node));
        } else {
            open.extend(node.children.borrow().iter().rev().cloned());
        }
    }
    tidy(&parts.join("\n"))
}

/// Computes the number of levels below each node.
fn heights(tree: &Rc<Node>) -> HashMap<*const Node, usize> {
    let mut order = vec![Rc::clone(tree)];
    let mut next = 0;
    while let Some(node) = order.get(next).cloned() {
        order.extend(node.children.borrow().iter().cloned());
        next += 1;
    }
    let mut heights = HashMap::new();
    // In reverse order, children come before their parents.
    for node in order.iter().rev() {
        let children = node.children.borrow();
        let below = children
            .iter()
            .filter_map(|child| heights.get(&Rc::as_ptr(child)))
            .max();
        heights.insert(
            Rc::as_ptr(node),
            below.map_or(0, |height: &usize| height + 1),
        );
    }
    heights
}

/// Removes invisible characters, repeated empty lines and spaces at line ends, which come from the
/// table layout of mails.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.lines() {
        let visible = line.replace(is_invisible, "").replace('\u{a0}', " ");
        let line = visible.trim_end();
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            out.push_str(line);
            out.push('\n');
        }
    }
    out.trim().to_owned()
}

fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{200b}'..='\u{200f}' | '\u{034f}' | '\u{00ad}' | '\u{feff}'
    )
}

/// Cuts a string to at most `most` bytes, at the end of a line unless that drops half of it.
/// Returns true if it was cut.
pub(crate) fn cut(mut text: String, most: usize) -> (String, bool) {
    if text.len() <= most {
        return (text, false);
    }
    let end = text.floor_char_boundary(most);
    let line = text[..end].rfind('\n').filter(|line| *line > end / 2);
    text.truncate(line.map_or(end, |line| line + 1));
    (text, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_mail_becomes_markdown_with_links() {
        let html = "<html><head><title>T</title><style>p{}</style></head><body><table><tr><td><p>Hello&nbsp;Ada,</p>\
            <p>please <a href=\"https://example.com/x\">confirm</a>.\u{200b}</p></td></tr></table><script>x</script></body></html>";
        let markdown = to_markdown(html);
        assert!(
            markdown.contains("Hello Ada,")
                && markdown.contains("[confirm](https://example.com/x)"),
            "{markdown}"
        );
        assert!(
            !markdown.contains("p{}") && !markdown.contains('\u{200b}'),
            "{markdown}"
        );
    }

    #[test]
    fn deeply_nested_html_keeps_its_text() {
        let html = format!(
            "{}one<style>x</style> two{}",
            "<div>".repeat(5000),
            "</div>".repeat(5000)
        );
        assert_eq!(to_markdown(&html), "one two");
    }
}
