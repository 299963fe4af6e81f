//! Measures the cost of one call inside the process: instantiation, result and teardown.
//!
//! ```text
//! cargo bench -p host-sandbox --bench call -- COMPONENT.wasm [TOOL [ARGUMENTS]]
//! ```
//!
//! Calls one tool repeatedly, first from one task and then from one task per processor. Prints a
//! table and, in the last line, the same figures as JSON. The component is compiled in this
//! process.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::{
    collections::BTreeMap,
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use host_sandbox::{Action, Allocator, Call, Context, Digest, Limits, Policy, Sandbox, Settings};

const WARM_UP: usize = 2_000;
const CALLS_PER_ROUND: usize = 20_000;

struct Figures {
    tasks: usize,
    per_second: f64,
    p50: Duration,
    p99: Duration,
    least: Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench");
    let path = arguments
        .next()
        .ok_or("name a component: cargo bench -p host-sandbox --bench call -- ECHO.wasm")?;
    let tool: Option<Arc<str>> = arguments.next().map(Into::into);
    let input: Bytes = arguments
        .next()
        .unwrap_or_else(|| r#"{"text":"hello","numbers":[1,2,3]}"#.to_owned())
        .into();
    let component: Bytes = std::fs::read(&path)?.into();
    let processors = std::thread::available_parallelism()?.get();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let mut table = Vec::new();
    for allocator in [Allocator::Pooling, Allocator::OnDemand] {
        let folder = tempfile::tempdir()?;
        let net = net::Client::new(net::Settings::default())?;
        let settings = Settings {
            allocator,
            ..Settings::new(folder.path().join("cache"), [0; 32], net)
        };
        let sandbox = Sandbox::open(settings)?;
        let installed = runtime.block_on(sandbox.install(component.clone()))?;
        let tool = tool
            .clone()
            .or_else(|| {
                installed
                    .manifest
                    .tools
                    .first()
                    .map(|tool| tool.slug.as_str().into())
            })
            .ok_or("the component has no tool")?;
        for tasks in [1, processors] {
            let figures =
                runtime.block_on(measure(&sandbox, installed.digest, &tool, &input, tasks))?;
            println!(
                "{:<9} {:>2} tasks  {:>9.0} calls/s  p50 {:>8.1?}  p99 {:>8.1?}  least {:>8.1?}",
                format!("{allocator:?}"),
                figures.tasks,
                figures.per_second,
                figures.p50,
                figures.p99,
                figures.least
            );
            table.push(json(allocator, &figures));
        }
    }
    println!("{}", serde_json::Value::from(table));
    Ok(())
}

async fn measure(
    sandbox: &Sandbox,
    component: Digest,
    tool: &Arc<str>,
    input: &Bytes,
    tasks: usize,
) -> Result<Figures, Box<dyn Error>> {
    one(sandbox, component, tool, input).await?;
    let mut running = tokio::task::JoinSet::new();
    let started = Instant::now();
    for _ in 0..tasks {
        let sandbox = sandbox.clone();
        let tool = tool.clone();
        let input = input.clone();
        running.spawn(async move {
            let mut times = Vec::with_capacity(CALLS_PER_ROUND);
            for number in 0..WARM_UP + CALLS_PER_ROUND {
                let began = Instant::now();
                one(&sandbox, component, &tool, &input).await?;
                if number >= WARM_UP {
                    times.push(began.elapsed());
                }
                // A call that never waits does not yield either; without this line all tasks may
                // share one thread.
                tokio::task::yield_now().await;
            }
            Ok::<_, String>(times)
        });
    }
    let mut times = Vec::new();
    while let Some(ended) = running.join_next().await {
        times.append(&mut ended??);
    }
    let all = started.elapsed();
    times.sort_unstable();
    Ok(Figures {
        tasks,
        per_second: ((WARM_UP + CALLS_PER_ROUND) * tasks) as f64 / all.as_secs_f64(),
        p50: times[times.len() / 2],
        p99: times[times.len() * 99 / 100],
        least: times[0],
    })
}

async fn one(
    sandbox: &Sandbox,
    component: Digest,
    tool: &Arc<str>,
    input: &Bytes,
) -> Result<(), String> {
    let call = Call {
        component,
        tenant: "bench".into(),
        action: Action::Execute {
            tool: tool.clone(),
            arguments: input.clone(),
        },
        context: Context::default(),
        policy: Arc::new(Policy::default()),
        grant: None,
        limits: Limits::default(),
        files: Vec::new(),
        files_memory: None,
        state: BTreeMap::new(),
        trace: None,
    };
    let outcome = sandbox
        .call(call)
        .await
        .map_err(|refused| refused.to_string())?;
    outcome
        .output
        .map(drop)
        .map_err(|failed| failed.to_string())
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1000.0
}

fn json(allocator: Allocator, figures: &Figures) -> serde_json::Value {
    serde_json::json!({
        "allocator": format!("{allocator:?}"),
        "tasks": figures.tasks,
        "calls_per_second": figures.per_second.round(),
        "p50_us": micros(figures.p50),
        "p99_us": micros(figures.p99),
        "least_us": micros(figures.least),
    })
}
