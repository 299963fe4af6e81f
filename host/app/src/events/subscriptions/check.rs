//! Checks of the URL, the events and the message version of a subscription.

use url::Url;

use crate::{
    App, Result,
    core::{is_loopback, spelling::other_word_meant},
    events::{
        errors,
        event::{EventKind, MessageVersion},
    },
    projects::Project,
};

/// Maximum characters of a URL.
pub const MAX_URL_CHARS: usize = 2_048;

pub(super) fn parse_events(app: &App, names: &[String]) -> Result<Vec<EventKind>> {
    let word = &app.webhooks.operator_word;
    let mut kinds = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let Some(kind) = EventKind::parse(name, word) else {
            let known = EventKind::SUBSCRIBABLE_KINDS.map(|kind| kind.name(word));
            let question = other_word_meant(name, word, known.iter().map(|known| &**known));
            let known = known.join(", ");
            return Err(errors::invalid(format!(
                "enabled_events[{index}]: must be one of {known}{question}"
            )));
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        return Err(errors::invalid("enabled_events: must name an event"));
    }
    Ok(kinds)
}

pub(super) fn check_versions(
    app: &App,
    events: &[EventKind],
    version: MessageVersion,
) -> Result<()> {
    let mut events = events.iter();
    let Some(kind) = events.find(|kind| !kind.versions().contains(&version)) else {
        return Ok(());
    };
    Err(errors::invalid(format!(
        "version: {} is not sent in {}; choose V3",
        kind.name(&app.webhooks.operator_word),
        version.into_str()
    )))
}

/// Checks that a URL may be reached. A name without an address passes, because its zone may not be
/// published yet.
pub(in crate::events) async fn check_url(app: &App, project: &Project, text: &str) -> Result<()> {
    if text.chars().count() > MAX_URL_CHARS {
        return Err(invalid_url(&format_args!(
            "at most {MAX_URL_CHARS} characters"
        )));
    }
    let url = Url::parse(text).map_err(|_| invalid_url(&"must be a complete https URL"))?;
    match url.scheme() {
        "https" => {}
        "http" if is_loopback(&url) => {}
        _ => return Err(invalid_url(&"must be an https URL")),
    }
    let net = app.webhooks.net.clone().for_tenant(project.tenant.clone());
    let checked = net.check(&url).await;
    checked.map_err(|refused| invalid_url(&refused))
}

fn invalid_url(why: &dyn std::fmt::Display) -> crate::Error {
    errors::invalid(format!("webhook_url: {why}"))
}
