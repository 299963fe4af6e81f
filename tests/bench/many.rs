//! Calls of many toolkits in rotation, as on a server with many customers.

use anyhow::{Context, Result};
use harness::{Host, guest};
use serde_json::json;

use crate::{
    Bench, ROUND_DURATION,
    compare::better,
    growth::publish,
    load::{Target, round_robin},
    report::{Line, Verdict},
    setup, tool_call,
};

/// Number of toolkits called in rotation, and the most that a call may cost then, as a multiple of
/// a call of one toolkit.
const TOOLKIT_GOALS: [(usize, Option<f64>); 4] = [
    (1, None),
    (10, Some(1.3)),
    (100, Some(1.3)),
    (1_000, Some(2.0)),
];
/// Calls at the same time.
const CONCURRENT_CALLS: usize = 8;

impl Bench {
    /// Measures the processor time of a call while the calls go to more and more toolkits.
    pub(crate) async fn many_toolkits(&mut self) -> Result<()> {
        let host = setup().start().await;
        let mut targets: Vec<Target> = Vec::new();
        let mut alone = None;
        for (count, goal) in TOOLKIT_GOALS {
            if count > self.options.toolkits.max(1) {
                break;
            }
            publish(&host, targets.len()..count).await?;
            for number in targets.len()..count {
                targets.push(run_of(&host, number)?);
            }
            // The first round loads the components and fills the pool.
            round_robin(&targets, CONCURRENT_CALLS, 2 * ROUND_DURATION).await?;
            let mut best = None;
            for _ in 0..self.options.rounds {
                let round = round_robin(&targets, CONCURRENT_CALLS, ROUND_DURATION).await?;
                best = better(best, round);
            }
            let best = best.context("no round")?;
            let cpu = best.cpu.as_secs_f64();
            let ratio = cpu / *alone.get_or_insert(cpu);
            let what = format!("{count} toolkits called in turn");
            let ratio = Verdict::at_most("of one", ratio, goal);
            self.tell(Line::new("l", what, CONCURRENT_CALLS, &best).with(ratio));
        }
        Ok(())
    }
}

/// Returns a call of the tool of a toolkit that [`publish`] published.
fn run_of(host: &Host, number: usize) -> Result<Target> {
    let tool = guest::tool(&format!("filler_{number}"));
    tool_call(host, &host.project_key, &tool, &json!({}))
}
