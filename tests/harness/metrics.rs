//! Metrics of a server, read by the official Python library of Prometheus.

use std::collections::BTreeMap;

use reqwest::Method;
use serde::Deserialize;

use crate::{Finished, Host, wait_until};

/// Folder of the library.
const PARSER_FOLDER: &str = "descriptions/prometheus_client-0.26.0";

/// All metrics of one scrape.
#[derive(Debug)]
pub struct Metrics {
    /// The families, in the order of the text.
    pub families: Vec<Family>,
}

/// Metrics of one name.
#[derive(Debug, Deserialize)]
pub struct Family {
    /// Name, without the suffixes of histograms.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Description.
    pub help: String,
    /// The samples.
    pub samples: Vec<Sample>,
}

/// Name, labels and value of a sample.
#[derive(Debug, Deserialize)]
pub struct Sample(pub String, pub BTreeMap<String, String>, pub f64);

impl Metrics {
    /// Scrapes a server that was started with `metrics.listen` at port 0.
    pub async fn scrape(host: &Host) -> Self {
        let url = Self::url(host).await;
        let client = host.anonymous();
        let answer = client.exchange(Method::GET, &url, &[], Vec::new()).await;
        assert_eq!(answer.status, 200, "{url}");
        let format = "text/plain; version=0.0.4; charset=utf-8";
        assert_eq!(answer.header("content-type"), format);
        let (script, input) = ("python/metrics.py", &answer.bytes);
        let parsed = Finished::run_script("python3", script, &[PARSER_FOLDER], input);
        let families = serde_json::from_str(&parsed).expect("the library's families are JSON");
        Self { families }
    }

    /// Returns the address of a server's metrics, which the server prints when it has started.
    pub async fn url(host: &Host) -> String {
        let printed = || {
            let output = host.output();
            let line = output.lines().find(|line| line.ends_with("/metrics"))?;
            line.split_whitespace().last().map(str::to_owned)
        };
        wait_until("the address of metrics is printed", || async {
            printed().is_some()
        })
        .await;
        printed().unwrap_or_default()
    }

    /// Returns the value of the sample with exactly these labels, or `None` if it does not exist.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels: BTreeMap<_, _> = labels
            .iter()
            .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()))
            .collect();
        let samples = self.families.iter().flat_map(|family| &family.samples);
        let mut found = samples.filter(|sample| sample.0 == name && sample.1 == labels);
        found.next().map(|sample| sample.2)
    }
}
