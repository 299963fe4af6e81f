//! Errors for slugs of meta tools that are misspelled, or sent where only other tools can be called.

use manifest::{is_same, nearest};

use super::MetaTool;
use crate::{App, Error, agents::errors, core::shown_slug};

/// Returns the slug of a meta tool with the word of this installation.
pub(super) fn own_slug(app: &App, tool: MetaTool) -> String {
    let word = app.sessions.operator_word.to_ascii_uppercase();
    format!("{word}_{}", tool.name())
}

/// Returns the error for the slug of a meta tool with another word than that of this installation, or
/// `None` for any other slug.
#[must_use]
pub fn other_word_error(app: &App, slug: &str) -> Option<Error> {
    let (sent_word, name) = slug.trim().split_once('_')?;
    let own_word = app.sessions.operator_word.as_str();
    let tool = MetaTool::all().find(|tool| tool.name().eq_ignore_ascii_case(name))?;
    let is_of_toolkit = app.catalog.snapshot().toolkit(sent_word).is_some();
    if is_of_toolkit || sent_word.eq_ignore_ascii_case(own_word) {
        return None;
    }
    let [own, sent] = [own_word, shown_slug(sent_word)].map(str::to_ascii_uppercase);
    Some(errors::meta_tool_meant(format!(
        "slugs of meta tools start with `{own}_` on this server, not with `{sent}_`; send {}",
        own_slug(app, tool)
    )))
}

/// Returns the error for the slug of a meta tool, or a similar one, in a call of a tool of a toolkit. `None`
/// if no meta tool was meant.
pub(in crate::agents) fn meta_tool_error(app: &App, slug: &str) -> Option<Error> {
    if let Some(error) = other_word_error(app, slug) {
        return Some(error);
    }
    let (sent_word, name) = slug.trim().split_once(['_', '-'])?;
    let own_word = app.sessions.operator_word.as_str();
    let similar = nearest(name, MetaTool::all().map(MetaTool::name))?;
    if !is_same(sent_word, own_word) {
        return None;
    }
    let meant = format!("{}_{similar}", own_word.to_ascii_uppercase());
    Some(errors::meta_tool_meant(
        if similar.eq_ignore_ascii_case(name) {
            format!("{meant} is a meta tool, which other tools, scripts and recipes cannot call")
        } else {
            format!("did you mean the meta tool `{meant}`?")
        },
    ))
}
