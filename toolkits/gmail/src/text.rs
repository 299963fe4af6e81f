//! Texts of mails, in both directions: Markdown that becomes HTML, and HTML that becomes Markdown.

use std::collections::HashMap;
use std::rc::Rc;

use htmd::options::{BulletListMarker, Options as Style};
use htmd::{HtmlToMarkdown, Node};
use pulldown_cmark::{Options, Parser, html};

/// Higher than mails that people write; the converter calls itself once per level.
const HIGHEST: usize = 64;
const NOT_CONTENT: [&str; 9] = ["head", "script", "style", "template", "noscript", "iframe", "object", "svg", "title"];

/// Markdown as HTML. HTML in it stays as it is: the sender writes it.
pub(crate) fn to_html(markdown: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut out = String::with_capacity(markdown.len() * 3 / 2);
    html::push_html(&mut out, Parser::new_ext(markdown, options));
    out
}

/// Text as HTML that looks like it.
pub(crate) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace("\r\n", "\n").replace('\n', "<br>\n")
}

/// HTML as Markdown, which is shorter and easier to read. Of HTML that nests too deep each part that does not is told by itself.
pub(crate) fn to_markdown(html: &str) -> String {
    let style = Style { bullet_list_marker: BulletListMarker::Dash, ul_bullet_spacing: 1, ..Style::default() };
    let converter = HtmlToMarkdown::builder().options(style).skip_tags(NOT_CONTENT.to_vec()).build();
    let Ok(tree) = converter.html_to_tree(html) else { return String::new() };
    let heights = heights(&tree);
    let mut parts = Vec::new();
    // A node that is dropped takes all below it apart: the tree stays.
    let mut open = vec![Rc::clone(&tree)];
    while let Some(node) = open.pop() {
        if heights.get(&Rc::as_ptr(&node)).is_none_or(|height| *height <= HIGHEST) {
            parts.push(converter.tree_to_markdown(&node));
        } else {
            open.extend(node.children.borrow().iter().rev().cloned());
        }
    }
    tidy(&parts.join("\n"))
}

/// How many levels each node has below it.
fn heights(tree: &Rc<Node>) -> HashMap<*const Node, usize> {
    let mut order = vec![Rc::clone(tree)];
    let mut next = 0;
    while let Some(node) = order.get(next).cloned() {
        order.extend(node.children.borrow().iter().cloned());
        next += 1;
    }
    let mut heights = HashMap::new();
    // Children stand behind their parents.
    for node in order.iter().rev() {
        let children = node.children.borrow();
        let below = children.iter().filter_map(|child| heights.get(&Rc::as_ptr(child))).max();
        heights.insert(Rc::as_ptr(node), below.map_or(0, |height: &usize| height + 1));
    }
    heights
}

/// Mails are laid out with tables and invisible letters: without empty lines in a row and spaces at the end of lines.
fn tidy(text: &str) -> String {
    let invisible = |letter: char| matches!(letter, '\u{200b}'..='\u{200f}' | '\u{034f}' | '\u{00ad}' | '\u{feff}');
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.lines() {
        let line: String = line.replace(invisible, "").replace('\u{a0}', " ");
        let line = line.trim_end();
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            out.push_str(line);
            out.push('\n');
        }
    }
    out.trim().to_owned()
}

/// Cuts a text to at most so many bytes, at the end of a line unless that is far away; says whether it did.
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
    fn a_mail_is_read_as_markdown_with_its_links_and_without_its_layout() {
        let html = "<html><head><title>T</title><style>p{}</style></head><body><table><tr><td><p>Hello&nbsp;Ada,</p>\
            <p>please <a href=\"https://example.com/x\">confirm</a>.\u{200b}</p></td></tr></table><script>x</script></body></html>";
        let markdown = to_markdown(html);
        assert!(markdown.contains("Hello Ada,") && markdown.contains("[confirm](https://example.com/x)"), "{markdown}");
        assert!(!markdown.contains("p{}") && !markdown.contains('\u{200b}'), "{markdown}");
    }

    #[test]
    fn html_that_nests_without_end_still_tells_its_words() {
        let html = format!("{}one<style>x</style> two{}", "<div>".repeat(5000), "</div>".repeat(5000));
        assert_eq!(to_markdown(&html), "one two");
    }
}
