//! `telemetry.*`: traces and metrics for a collector of OpenTelemetry.

use anyhow::{Context, Result, ensure};
use app::core::trace::Settings as TraceSettings;
use net::header::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::{Config, problems::Problems, setting::settings, values::Secret};

/// The operator's collector.
pub struct Collector {
    /// HTTP client, which may reach private addresses.
    pub client: net::Client,
    /// Address, below which each signal has a path.
    pub endpoint: Url,
    /// Headers of every export.
    pub headers: HeaderMap,
}

settings! {
    /// Traces and metrics for a collector of OpenTelemetry.
    pub struct Telemetry {
        /// Address of a collector that takes OTLP by HTTP, without `/v1/traces`. It may be on this
        /// machine. Without it nothing is traced, and the other settings have no effect.
        #[setting(unset = "no export", example = "http://127.0.0.1:4318")]
        pub otlp_endpoint: Option<Url>,
        /// Headers of every export, for a key of the collector: `name=value`, separated by commas.
        #[setting(example = "authorization=Bearer secret")] pub otlp_headers: Option<Secret>,
        /// Share of recorded traces, from 0 to 1. A caller that sends `traceparent` decides for its
        /// own trace. Lower it if the collector gets more than it should store.
        pub sample_ratio: f64 = 1.0,
        /// Requests of tools to their providers have a `traceparent`, so that providers can
        /// continue the trace. Set it if you trace a provider yourself.
        pub propagate: bool = false,
    }
}

impl Telemetry {
    pub(super) fn check(&self, problems: &mut Problems) {
        problems.of("telemetry.otlp_endpoint", self.check_endpoint());
        problems.of("telemetry.otlp_headers", self.headers());
        let ratio = self.sample_ratio;
        problems.unless(
            (0.0..=1.0).contains(&ratio),
            "telemetry.sample_ratio",
            format!("is {ratio}: it must be 0 to 1"),
        );
    }

    fn check_endpoint(&self) -> Result<()> {
        let is_plain = self.otlp_endpoint.as_ref().is_none_or(|url| {
            let has_user = !url.username().is_empty() || url.password().is_some();
            matches!(url.scheme(), "http" | "https") && url.query().is_none() && !has_user
        });
        // The address is not shown, because it may contain a password.
        ensure!(
            is_plain,
            "`telemetry.otlp_endpoint` must be `http://host:4318` or `https://…`, without a user and \
             a query: set a key of the collector in `telemetry.otlp_headers`"
        );
        Ok(())
    }

    /// Reads the headers. Errors do not contain their values.
    fn headers(&self) -> Result<HeaderMap> {
        let form = "`telemetry.otlp_headers` must be `name=value`, separated by commas";
        let mut headers = HeaderMap::new();
        let text = self.otlp_headers.as_ref();
        let text = text.map_or("", |headers| headers.expose().as_str());
        for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (name, value) = pair.split_once('=').context(form)?;
            let name: HeaderName = name.trim().parse().ok().context(form)?;
            let mut value: HeaderValue = value.trim().parse().ok().context(form)?;
            value.set_sensitive(true);
            headers.append(name, value);
        }
        Ok(headers)
    }
}

impl Config {
    /// Returns the settings of traces; `None` without a collector.
    pub fn traces(&self) -> Option<TraceSettings> {
        let Telemetry {
            sample_ratio,
            propagate,
            ..
        } = self.telemetry;
        self.telemetry.otlp_endpoint.as_ref()?;
        Some(TraceSettings {
            sample_ratio,
            propagates: propagate,
        })
    }

    /// Returns the collector and its HTTP client; `None` without a collector. The operator chose
    /// its address, so it may be on this machine.
    ///
    /// # Errors
    /// If the client cannot be built.
    pub fn collector(&self) -> Result<Option<Collector>> {
        let telemetry = &self.telemetry;
        let Some(endpoint) = &telemetry.otlp_endpoint else {
            return Ok(None);
        };
        Ok(Some(Collector {
            client: self.unrestricted_client("the collector")?,
            endpoint: endpoint.clone(),
            headers: telemetry.headers()?,
        }))
    }
}
