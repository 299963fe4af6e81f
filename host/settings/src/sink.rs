//! `sink.*`: a queue of the operator that gets the events of all projects.

use anyhow::{Context, Result, ensure};
use url::Url;

use super::{Config, setting::settings, values::Secret};

settings! {
    /// A queue of the operator that gets the events of all projects.
    pub struct Sink {
        /// Address of a NATS server with JetStream: `nats://user:password@host:4222`, or with TLS
        /// `tls://…`. A user without a password is a token. The address may be private. Set it to
        /// process the events of all projects in one place.
        #[setting(unset = "no sink", example = "nats://user:password@nats.example.com:4222")]
        pub url: Option<Secret>,
    }
}

impl Config {
    /// Reads the address of the sink, with the credential; `None` if there is no sink.
    ///
    /// # Errors
    /// If it is not the address of a NATS server.
    pub fn sink_url(&self) -> Result<Option<Url>> {
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
