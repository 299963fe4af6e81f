//! `sink.*`: a queue of the operator that gets the events of all projects.

use anyhow::{Context, Result, ensure};
use app::events::{SinkSettings, event::EventKind};
use url::Url;

use super::{
    Config,
    setting::settings,
    values::{List, Secret},
};

settings! {
    /// A queue of the operator that gets the events of all projects.
    pub(crate) struct Sink {
        /// Address of a NATS server with JetStream: `nats://user:password@host:4222`, or with TLS
        /// `tls://…`. A user without a password is a token. The address may be private.
        #[setting(unset = "no sink", example = "nats://user:password@nats.example.com:4222")]
        pub url: Option<Secret>,
        /// Kinds of events that it gets, separated by commas.
        #[setting(unset = "every kind", example = ["service.trigger.message"])] pub events: List,
    }
}

impl Config {
    /// Reads the settings of the sink; none if there is no sink.
    pub(crate) fn sink(&self) -> Result<Option<SinkSettings>> {
        let Some(url) = self.sink_url()? else {
            return Ok(None);
        };
        let kind = |name: &String| {
            let kind = |kind: &EventKind| kind.name(&self.operator_word) == *name;
            let kinds = EventKind::SUBSCRIBABLE_KINDS.into_iter();
            let kind = kinds.chain([EventKind::SubscriptionDisabled]).find(kind);
            kind.with_context(|| format!("`sink.events`: `{name}` is no kind of event"))
        };
        let events = self.sink.events.iter().map(kind);
        let events = events.collect::<Result<Vec<_>>>()?;
        Ok(Some(SinkSettings { url, events }))
    }

    /// Reads the address of the sink; none if there is no sink.
    pub(super) fn sink_url(&self) -> Result<Option<Url>> {
        let Some(url) = &self.sink.url else {
            return Ok(None);
        };
        let form = "`sink.url` must be `nats://user:password@host:4222` or `tls://…`";
        // The cause may contain the password.
        let url = Url::parse(url.expose()).ok().context(form)?;
        ensure!(
            !matches!(url.scheme(), "amqp" | "amqps"),
            "{form}: events cannot be published to an AMQP server. Forward them to it from NATS \
             with a bridge, or receive them by webhook or event stream"
        );
        ensure!(
            matches!(url.scheme(), "nats" | "tls") && url.has_host(),
            form
        );
        Ok(Some(url))
    }
}
