//! Metrics of a server, read by the official Python library of Prometheus.

use std::{collections::BTreeMap, io::Write as _, path::Path, process::Command};

use reqwest::Method;
use serde::Deserialize;
use tempfile::NamedTempFile;

use crate::{Finished, Host, wait_until};

/// Folder of the library, which `tests/setup` fetches.
const PARSER_FOLDER: &str = "../target/descriptions/prometheus_client-0.26.0";

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
    ///
    /// # Panics
    /// If the server does not answer with metrics that the library can read.
    pub async fn scrape(host: &Host) -> Self {
        let url = Self::url(host).await;
        let client = host.anonymous();
        let answer = client.exchange(Method::GET, &url, &[], Vec::new()).await;
        assert_eq!(answer.status, 200, "{url}");
        let format = "text/plain; version=0.0.4; charset=utf-8";
        assert_eq!(answer.header("content-type"), format);
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let library = tests.join(PARSER_FOLDER);
        assert!(
            library.is_dir(),
            "{} is missing: `tests/setup` fetches it",
            library.display()
        );
        let mut file = NamedTempFile::new().expect("a temporary file can be made");
        let written = file.write_all(&answer.bytes);
        written.expect("a temporary file can be written");
        let mut command = Command::new("python3");
        command
            .arg(tests.join("python/metrics.py"))
            .arg(library)
            .arg(file.path());
        let parsed = Finished::run(command).succeeded();
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
    #[must_use]
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
