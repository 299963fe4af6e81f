//! Memory of calls that wait for a slow provider.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use harness::Host;
use serde_json::json;

use crate::{
    Bench,
    report::{Line, Verdict},
    setup, tool_call,
};

impl Bench {
    pub(crate) async fn waiting_calls(&mut self) -> Result<()> {
        let host = setup()
            .with(
                "net.rewrite",
                format!("https://api.example.com={}", self.bare.url),
            )
            .start()
            .await;
        let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/components/abi-v1.wasm");
        let component = std::fs::read(kept).with_context(|| format!("read {kept}"))?;
        host.as_org()
            .put("/toolkits/abi/versions/20261121_00", component)
            .await
            .expect(201);
        host.as_project()
            .connect(
                "abi",
                "API_KEY",
                "default",
                json!({ "api_key": "k-0123456789" }),
            )
            .await;
        for (milliseconds, goal) in [(20, 300.0), (1_000, 300.0)] {
            let arguments =
                json!({ "url": format!("https://api.example.com/slow/{milliseconds}") });
            let target = tool_call(&host, &host.project_key, "ABI_FETCH", &arguments)?;
            target.times(1, 20.min(2_000 / milliseconds)).await?;
            let before = host.footprint().resident_kib;
            let time = Duration::from_millis(3_000);
            let (round, peak) = futures::join!(target.round(500, time), peak(&host, time));
            let each = peak.saturating_sub(before) as f64 / 500.0;
            let what = format!("500 in flight over {milliseconds} ms");
            self.tell(Line::new("f", what, 500, &round?).with(Verdict::at_most(
                "KiB a call",
                each,
                goal,
            )));
        }
        Ok(())
    }
}

/// Returns the largest resident memory observed during this time, in KiB.
async fn peak(host: &Host, time: Duration) -> u64 {
    let end = Instant::now() + time;
    let mut most = 0;
    while Instant::now() < end {
        most = most.max(host.footprint().resident_kib);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    most
}
