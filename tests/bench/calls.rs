//! Calls of one tool: their number of connections, the size of their arguments, and the two stores.

use anyhow::Result;
use harness::postgres::Postgres;
use serde_json::{Value, json};

use crate::{
    Bench, call, echo,
    report::{Line, Verdict},
    serving_echo, setup, small,
};

/// Connections with the least ratio to the bare handler and the most processor time of a call in µs
/// that are aimed at.
const CONNECTION_GOALS: [(usize, Option<f64>, Option<f64>); 4] = [
    (1, None, None),
    (8, Some(0.55), None),
    (64, Some(0.6), Some(20.0)),
    (512, None, None),
];
/// Sizes of a call in KiB, with the least ratio to the bare handler.
const SIZE_GOALS: [(usize, Option<f64>); 5] = [
    (1, None),
    (16, None),
    (64, Some(0.5)),
    (256, None),
    (1_024, None),
];

impl Bench {
    /// Measures small calls, compared with the bare handler.
    pub(crate) async fn small_calls(&mut self) -> Result<()> {
        let host = serving_echo(setup()).await?;
        let bare = self.bare(&call(&small()))?;
        let ours = echo(&host, &small())?;
        ours.times(8, 5_000).await?;
        for (connections, ratio_goal, cpu_goal) in CONNECTION_GOALS {
            let (a, b) = self.beside(&bare, &ours, connections).await?;
            self.tell(Line::new("a", "bare axum, parse and echo", connections, &a));
            let ratio = Verdict::at_least("b/a", b.per_second / a.per_second, ratio_goal);
            self.tell(
                Line::new("b", "execute: key, schema, sandbox, log", connections, &b).with(ratio),
            );
            let cpu = b.cpu.as_nanos() as f64 / 1000.0;
            self.tell(Line::verdict(
                "b",
                format!("processor time, {connections} connections"),
                Verdict::at_most("µs", cpu, cpu_goal),
            ));
            if connections == 1 {
                let added = b.p50.saturating_sub(a.p50).as_nanos() as f64 / 1000.0;
                self.tell(Line::verdict(
                    "b",
                    "added to the median",
                    Verdict::at_most("µs", added, 30.0),
                ));
            }
        }
        Ok(())
    }

    /// Measures calls with large arguments, which the tool returns, compared with the bare handler.
    pub(crate) async fn large_calls(&mut self) -> Result<()> {
        let host = serving_echo(setup()).await?;
        for (kib, goal) in SIZE_GOALS {
            let arguments = records(kib << 10);
            let bare = self.bare(&call(&arguments))?;
            let ours = echo(&host, &arguments)?;
            ours.times(8, 200).await?;
            let (a, e) = self.beside(&bare, &ours, 8).await?;
            self.tell(Line::new("e", format!("bare axum, {kib} KiB"), 8, &a));
            let ratio = Verdict::at_least("e/bare", e.per_second / a.per_second, goal);
            self.tell(Line::new("e", format!("execute, {kib} KiB"), 8, &e).with(ratio));
        }
        Ok(())
    }

    /// Measures the same calls with the records in the data directory and in PostgreSQL.
    pub(crate) async fn both_stores(&mut self) -> Result<()> {
        let embedded = serving_echo(setup()).await?;
        let scaled = serving_echo(setup().on(Postgres::shared().database(None))).await?;
        let sled = echo(&embedded, &small())?;
        let postgres = echo(&scaled, &small())?;
        sled.times(8, 5_000).await?;
        postgres.times(8, 5_000).await?;
        for connections in [1, 8, 64] {
            let (a, g) = self.beside(&sled, &postgres, connections).await?;
            self.tell(Line::new("g", "execute, embedded store", connections, &a));
            let ratio = Verdict::at_least("of it", g.per_second / a.per_second, 0.8);
            self.tell(Line::new("g", "execute, PostgreSQL", connections, &g).with(ratio));
        }
        Ok(())
    }
}

/// Returns arguments in the shape of a list of records, with which a call has this size.
fn records(bytes: usize) -> Value {
    /// The most that a record takes.
    const MAX_RECORD_BYTES: usize = 72;
    let record = |number: usize| json!({ "id": number, "name": format!("record {number}"), "done": number.is_multiple_of(2), "tags": ["one", "two"] });
    let records: Vec<_> = (0..bytes / MAX_RECORD_BYTES).map(record).collect();
    let mut arguments = json!({ "text": "", "records": records });
    let rest = bytes.saturating_sub(call(&arguments).len());
    arguments["text"] = "x".repeat(rest).into();
    arguments
}
