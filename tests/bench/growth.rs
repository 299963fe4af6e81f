//! Cost of what a server has gathered, for a call, a start and memory: published toolkits, and the
//! execution log.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use harness::{Guest, Host, guest};

use crate::{
    Bench, echo,
    load::processor_time,
    report::{Line, Verdict},
    serving_echo, setup, small,
};

/// Callers that fill the execution log.
const LOG_WRITERS: usize = 32;
/// Time in which an idle server has used hardly any processor time. It is longer than the interval
/// at which the server returns memory.
const IDLE_DURATION: Duration = Duration::from_secs(6);
/// Most of these times to wait for.
const MAX_IDLE_WAITS: usize = 20;

/// The most that a start and the memory after it are aimed at.
struct StartGoals {
    seconds: f64,
    resident_mb: f64,
}

impl Bench {
    /// Measures the cost of many toolkits.
    pub(crate) async fn full_house(&mut self) -> Result<()> {
        let goals = StartGoals {
            seconds: 1.0,
            resident_mb: 80.0,
        };
        let mut host = serving_echo(setup()).await?;
        let mut published = 1;
        let most = self.options.toolkits;
        let mut steps = vec![1, 100, most];
        steps.dedup();
        for count in steps {
            let begun = Instant::now();
            publish(&host, published..count).await?;
            if count > published {
                let each = begun.elapsed() / u32::try_from(count - published)?;
                let what = format!("publishing, each of {}", count - published);
                self.tell(Line::verdict(
                    "d",
                    what,
                    Verdict::at_most("ms", each.as_secs_f64() * 1e3, 120.0),
                ));
            }
            published = published.max(count);
            let what = format!("{count} toolkits");
            host = self.start_again("d", host, &what, &goals).await?;
        }
        if self.wants("c") {
            self.crowded(&host, &format!("{most} toolkits")).await?;
        }
        Ok(())
    }

    /// Measures calls of a server with an almost empty execution log, compared with one with a
    /// large log.
    pub(crate) async fn large_log(&mut self) -> Result<()> {
        let goals = StartGoals {
            seconds: 0.5,
            resident_mb: 120.0,
        };
        let empty = serving_echo(setup()).await?;
        let full = serving_echo(setup()).await?;
        let what = format!("{} log records", self.options.logs);
        echo(&full, &small())?
            .times(LOG_WRITERS, self.options.logs)
            .await?;
        idle(&full).await?;
        let full = self.start_again("m", full, &what, &goals).await?;
        let none = echo(&empty, &small())?;
        let many = echo(&full, &small())?;
        none.times(8, 5_000).await?;
        many.times(8, 5_000).await?;
        let (none, many) = self.beside(&none, &many, 8).await?;
        self.tell(Line::new("m", "execute, hardly a log record", 8, &none));
        let ratio = many.cpu.div_duration_f64(none.cpu);
        let ratio = Verdict::at_most("processor time of it", ratio, 1.03);
        self.tell(Line::new("m", format!("execute, {what}"), 8, &many).with(ratio));
        Ok(())
    }

    /// Measures a start, and the memory of the server once it is idle.
    async fn start_again(
        &mut self,
        part: &'static str,
        host: Host,
        what: &str,
        goals: &StartGoals,
    ) -> Result<Host> {
        let (setup, _) = host.terminate().await;
        let begun = Instant::now();
        let host = setup.start().await;
        host.as_project().execute("ECHO_SAY", small()).await.data();
        let took = Verdict::at_most("s", begun.elapsed().as_secs_f64(), goals.seconds);
        self.tell(Line::verdict(
            part,
            format!("start to first answer, {what}"),
            took,
        ));
        idle(&host).await?;
        let resident = host.footprint().resident_kib as f64 / 1024.0;
        self.tell(Line::verdict(
            part,
            format!("resident memory, {what}"),
            Verdict::at_most("MB", resident, goals.resident_mb),
        ));
        Ok(host)
    }

    /// Measures calls of one of many toolkits, compared with a server with only this one. The speed
    /// of the machine varies, so both are measured at the same time.
    async fn crowded(&mut self, host: &Host, what: &str) -> Result<()> {
        let other = serving_echo(setup()).await?;
        let (alone, among) = self
            .beside(&echo(&other, &small())?, &echo(host, &small())?, 8)
            .await?;
        let ratio = among.per_second / alone.per_second;
        let ratio = Verdict::at_least("of one toolkit", ratio, 0.95);
        self.tell(Line::new("c", what, 8, &among).with(ratio));
        Ok(())
    }
}

/// Waits until the server is idle, or does not become so.
async fn idle(host: &Host) -> Result<()> {
    for _ in 0..MAX_IDLE_WAITS {
        let before = processor_time(host.pid())?;
        tokio::time::sleep(IDLE_DURATION).await;
        if processor_time(host.pid())? - before < IDLE_DURATION / 20 {
            break;
        }
    }
    Ok(())
}

/// Publishes toolkits that differ only in their manifest, two at a time. They are small, so that
/// compiling a thousand does not take minutes. A larger toolkit costs more disk space, and more
/// memory only once it is called.
pub(crate) async fn publish(host: &Host, numbers: Range<usize>) -> Result<()> {
    let component = Guest::echo().component();
    let org = host.as_org();
    let publishing = numbers.map(|number| {
        let manifest = guest::manifest(&format!("filler_{number}"));
        let bytes = guest::with_manifest(component.clone(), &manifest);
        let org = org.clone();
        let address = guest::address(&manifest);
        async move {
            let answer = org.put(&address, bytes).await;
            ensure!(answer.status == 201, "publish {address}: {answer:#?}");
            Ok(())
        }
    });
    stream::iter(publishing)
        .buffer_unordered(2)
        .try_collect()
        .await
}
