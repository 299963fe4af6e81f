//! Webhooks of providers.
//!
//! A request is received by every enabled trigger instance of its address: of the endpoint's project
//! and toolkit. It is acknowledged only when the events of all of them are stored. If one of them
//! could not store its events, the provider is asked to send the request again, and those that have
//! theirs ignore the repetition.

use std::{collections::BTreeSet, time::Duration};

use futures::future;
pub use sandbox::Inbound;
use store::Window;
use tokio::time::timeout;

use super::{
    endpoints::{self, Endpoint, Values},
    errors,
    triggers::{Answer, Receiver, receivers, subscribing},
};
use crate::{
    App, Error, Result,
    core::{
        ids::{EndpointId, ProjectId, TriggerInstanceId},
        shown_slug,
    },
    projects::{self, Project},
};

/// Maximum time for which a provider waits until its request is received.
pub const RECEPTION_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum characters of a reply to a provider. A handshake returns a short one.
pub const MAX_ANSWER_CHARS: usize = 256;
/// Number of trigger instances that are read at a time.
const RECEIVERS_PER_PAGE: u64 = 64;
/// Number of trigger instances that receive one request at a time.
const CONCURRENT_RECEIVERS: usize = 4;

/// An address to which providers send requests.
pub struct Address {
    /// Text that no other address has. Requests are counted by it.
    pub key: String,
    /// The project.
    pub project: Project,
    /// Slug of the toolkit.
    pub toolkit: String,
    /// Values that take precedence over the configurations of trigger instances.
    values: Values,
    /// Only trigger instance that receives there; absent for those that have no address of their own.
    instance: Option<TriggerInstanceId>,
}

/// Response to a provider whose request was received.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// Text of a handshake; empty for other requests.
    pub text: String,
}

/// Finds the address of an endpoint, or that of a trigger instance. Fails if the endpoint does not
/// exist or is of another toolkit.
pub async fn endpoint(app: &App, toolkit: &str, id: &str) -> Result<Address> {
    let unknown = || errors::endpoint_not_found(shown_slug(id));
    let id = EndpointId::parse(id).map_err(|_| unknown())?;
    if let Some(own) = subscribing::receiving_address(app, &id).await? {
        if !own.toolkit.eq_ignore_ascii_case(toolkit) {
            return Err(unknown());
        }
        return Ok(Address {
            key: id.to_string(),
            project: projects::lookup(app, &ProjectId::parse(&own.project)?).await?,
            toolkit: own.toolkit,
            values: own.values,
            instance: Some(own.instance),
        });
    }
    let found = app.store.lookup::<Endpoint>(id.as_str()).await?;
    let found = found.filter(|found| found.body.toolkit.eq_ignore_ascii_case(toolkit));
    let endpoint = found.ok_or_else(unknown)?;
    let values = endpoints::open_values(app, &endpoint).await?;
    Ok(Address {
        key: endpoint.id,
        project: projects::lookup(app, &ProjectId::parse(&endpoint.project)?).await?,
        toolkit: endpoint.body.toolkit,
        values: values.unwrap_or_default(),
        instance: None,
    })
}

/// Finds the older address of a project and a toolkit, which lacks values of its own. Fails if the
/// project or the toolkit does not exist.
pub async fn of_project(app: &App, toolkit: &str, project: &str) -> Result<Address> {
    let catalog = app.catalog.snapshot();
    let found = catalog.toolkit(toolkit);
    let toolkit = found.ok_or_else(|| catalog.unknown_toolkit(toolkit))?;
    let id = ProjectId::parse(project);
    let id = id.map_err(|_| errors::project_not_found(shown_slug(project)))?;
    Ok(Address {
        key: format!("{id} {}", toolkit.slug),
        project: projects::lookup(app, &id).await?,
        toolkit: toolkit.slug.to_string(),
        values: Values::new(),
        instance: None,
    })
}

/// Receives a request. Fails if no trigger instance accepts the signature or the body, or if the
/// request cannot be received now. A request that no trigger instance waits for is accepted and
/// ignored.
pub async fn receive(app: &App, address: &Address, request: &Inbound) -> Result<Response> {
    let mut verdicts = Verdicts::default();
    let received = async {
        if let Err(cause) = ask_all(app, address, request, &mut verdicts).await {
            verdicts.failure = Some(cause);
        }
    };
    if timeout(RECEPTION_TIMEOUT, received).await.is_err() {
        verdicts.failure = Some(errors::deadline(RECEPTION_TIMEOUT.as_secs()));
    }
    verdicts.decide(address)
}

/// Has every trigger instance of an address receive a request.
async fn ask_all(
    app: &App,
    address: &Address,
    request: &Inbound,
    verdicts: &mut Verdicts,
) -> Result<()> {
    let catalog = app.catalog.snapshot();
    let releases = catalog.releases_of(&address.toolkit)?;
    let declared = releases.iter().flat_map(|release| &release.triggers);
    let slugs: BTreeSet<_> = declared
        .filter(|trigger| trigger.kind.receives_webhooks())
        .map(|trigger| &*trigger.slug)
        .collect();
    let triggers: Vec<_> = slugs.into_iter().collect();
    let own = address.instance.as_ref();
    let mut window = Some(Window::first(RECEIVERS_PER_PAGE));
    while let Some(next) = window.take() {
        let page = receivers(app, &address.project, &triggers, own, next.clone()).await?;
        let receivers: Vec<_> = page
            .items
            .into_iter()
            .map(|instance| Receiver {
                project: &address.project,
                instance,
                values: &address.values,
            })
            .collect();
        for some in receivers.chunks(CONCURRENT_RECEIVERS) {
            let outcomes = some.iter().map(|receiver| receiver.receive(app, request));
            for outcome in future::join_all(outcomes).await {
                verdicts.add(outcome);
            }
        }
        window = page.next.map(|cursor| next.after(cursor));
    }
    Ok(())
}

/// Results of the trigger instances that received one request.
#[derive(Debug, Default)]
struct Verdicts {
    response: Option<Response>,
    /// First refusal of the signature or of the body.
    refusal: Option<Error>,
    /// First failure that a repetition may mend.
    failure: Option<Error>,
}

impl Verdicts {
    fn add(&mut self, outcome: Result<Option<Answer>>) {
        match outcome {
            Ok(Some(answer)) => {
                let response = Response {
                    status: answer.status,
                    text: handshake(&answer),
                };
                self.response = Some(match self.response.take() {
                    Some(earlier) if !earlier.text.is_empty() || response.text.is_empty() => {
                        earlier
                    }
                    _ => response,
                });
            }
            Ok(None) => {}
            Err(cause)
                if cause.is(&errors::WEBHOOK_NOT_SIGNED) || cause.is(&errors::WEBHOOK_INVALID) =>
            {
                self.refusal.get_or_insert(cause);
            }
            Err(cause) => {
                self.failure.get_or_insert(cause);
            }
        }
    }

    /// Returns the response to the provider. A failure comes first, because only a repetition of the
    /// request can store what is missing.
    fn decide(self, address: &Address) -> Result<Response> {
        if let Some(cause) = self.failure {
            let (project, toolkit) = (&address.project.id, &address.toolkit);
            tracing::warn!(%cause, %project, toolkit, "a webhook of a provider was not received");
            return Err(errors::webhook_failed());
        }
        match (self.response, self.refusal) {
            (Some(response), _) => Ok(response),
            (None, Some(refusal)) => Err(refusal),
            (None, None) => Ok(Response {
                status: 200,
                text: String::new(),
            }),
        }
    }
}

/// Returns the text of a handshake. Only a short text of plain characters is returned to a provider,
/// because it repeats a request whose sender is not verified.
fn handshake(answer: &Answer) -> String {
    let mut bytes = answer.body.iter();
    let is_handshake = answer.media_type.starts_with("text/plain")
        && answer.body.len() <= MAX_ANSWER_CHARS
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_handshake {
        String::from_utf8_lossy(&answer.body).into_owned()
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use gate::Capacity;

    use super::*;

    fn answer(media_type: &str, body: &str) -> Answer {
        Answer {
            status: 200,
            media_type: media_type.to_owned(),
            body: body.to_owned().into(),
        }
    }

    #[test]
    fn only_short_plain_texts_are_returned() {
        let most = "x".repeat(MAX_ANSWER_CHARS);
        for text in ["3eZbrw1a-B_9", &most] {
            assert_eq!(handshake(&answer("text/plain; charset=utf-8", text)), text);
        }
        for (media_type, text) in [
            ("text/html", "x"),
            ("text/plain", "<script>"),
            ("text/plain", "a b"),
            ("text/plain", &format!("{most}x")),
        ] {
            assert_eq!(handshake(&answer(media_type, text)), "", "{text}");
        }
    }

    #[test]
    fn failure_outweighs_acceptance_and_acceptance_refusal() {
        let mut verdicts = Verdicts::default();
        verdicts.add(Ok(None));
        verdicts.add(Err(errors::webhook_not_signed("no signature")));
        verdicts.add(Ok(Some(answer("text/plain", ""))));
        verdicts.add(Ok(Some(answer("text/plain", "challenge"))));
        let response = verdicts.response.as_ref();
        assert_eq!(response.map(|response| &*response.text), Some("challenge"));
        assert!(verdicts.refusal.is_some() && verdicts.failure.is_none());
        verdicts.add(Err(errors::node_busy(Capacity::Calls)));
        assert!(verdicts.failure.is_some());
    }
}
