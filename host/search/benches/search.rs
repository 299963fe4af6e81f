//! Measures the quality, the time and the memory of tool search.
//!
//! ```text
//! cargo bench -p host-search --bench search -- FIGURES QUERIES TUNING MANIFEST...
//! ```
//!
//! `QUERIES` has labelled queries, one a line: `intent => acceptable tools`. The manifests are those
//! that `toolkit inspect --json` prints; all their tools are in one index. Queries with the same
//! first tool are in the same half: the tuning half if the sum of the bytes of its slug is even,
//! the held-out half if it is odd. The queries of `TUNING` are all for tuning. Time and memory are measured with copies of the tools, of which
//! each has words of its own. Prints a table, and writes the same figures as JSON to `FIGURES`.
//!
//! With `--misses` it prints only the queries of the tuning half whose first tool is wrong, and
//! writes nothing.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::{
    error::Error,
    fs,
    hint::black_box,
    time::{Duration, Instant},
};

use host_search::{Document, Index};
use serde_json::{Value, json};

/// Number of tools that time and memory are measured with.
const TOOL_COUNT: usize = 20_000;
/// One word of this many is changed in a copy, so that the vocabulary grows with the tools.
const CHANGED_WORD: usize = 12;
/// Number of tools that are asked for.
const RESULT_LIMIT: usize = 10;
/// Number of times that every query is measured.
const QUERY_ROUNDS: usize = 5;
const BYTES_PER_MIB: f64 = 1_048_576.0;

struct Labelled {
    text: String,
    acceptable: Vec<String>,
}

/// A tool's texts.
#[derive(Clone)]
struct Tool {
    slug: String,
    name: String,
    description: String,
    toolkit: String,
    toolkit_name: String,
    parameters: Vec<String>,
    tags: Vec<String>,
    synonyms: Vec<String>,
}

struct Quality {
    queries: usize,
    first: f64,
    among_five: f64,
    reciprocal: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<_> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let shows_misses = arguments.iter().any(|argument| argument == "--misses");
    arguments.retain(|argument| argument != "--misses");
    let [figures, queries, further, manifests @ ..] = &arguments[..] else {
        return Err("name files of figures, queries and further queries, and manifests".into());
    };
    let queries = read_queries(&fs::read_to_string(queries)?);
    let further = read_queries(&fs::read_to_string(further)?);
    let mut tools = Vec::new();
    for path in manifests {
        tools.extend(read_tools(&serde_json::from_str(&fs::read_to_string(
            path,
        )?)?));
    }
    let index = build(&tools);
    let (held_out, mut tuning): (Vec<_>, Vec<_>) = queries.iter().partition(|query| {
        let first = query.acceptable[0].bytes();
        first.map(usize::from).sum::<usize>() % 2 == 1
    });
    tuning.extend(&further);
    if shows_misses {
        print_misses(&index, &tools, &tuning);
        print_quality("tuning", &quality(&index, &tools, &tuning));
        return Ok(());
    }
    let tuning = quality(&index, &tools, &tuning);
    let held_out = quality(&index, &tools, &held_out);
    let labelled = queries.len() + further.len();
    println!("{} tools, {labelled} queries", tools.len());
    print_quality("tuning", &tuning);
    print_quality("held out", &held_out);
    let [build_time, p50, p99, mib] = speed(&tools, &queries);
    println!(
        "{TOOL_COUNT} tools: built in {build_time:.0} ms; {mib:.1} MiB; a query p50 {p50:.2} ms, p99 {p99:.2} ms"
    );
    let written = json!({
        "recall_at_1": held_out.first, "recall_at_5": held_out.among_five, "mrr": held_out.reciprocal,
        "p50_ms": p50, "p99_ms": p99, "mib": mib,
    });
    fs::write(figures, written.to_string())?;
    Ok(())
}

fn print_quality(half: &str, figures: &Quality) {
    println!(
        "{half}: {} queries, recall@1 {:.3}, recall@5 {:.3}, MRR {:.3}",
        figures.queries, figures.first, figures.among_five, figures.reciprocal
    );
}

fn read_queries(text: &str) -> Vec<Labelled> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let labelled = lines.filter_map(|line| {
        let (text, slugs) = line.split_once(" => ")?;
        Some(Labelled {
            text: text.to_owned(),
            acceptable: slugs.split(' ').map(str::to_uppercase).collect(),
        })
    });
    labelled.collect()
}

fn read_tools(inspected: &Value) -> Vec<Tool> {
    let manifest = inspected.get("manifest").unwrap_or(inspected);
    let values = manifest["tools"].as_array().into_iter().flatten();
    let tools = values.map(|tool| {
        let properties = tool["input"]["properties"].as_object();
        Tool {
            slug: text(&tool["slug"]).to_uppercase(),
            name: text(&tool["name"]),
            description: text(&tool["description"]),
            toolkit: text(&manifest["slug"]),
            toolkit_name: text(&manifest["name"]),
            parameters: properties
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .collect(),
            tags: [texts(&tool["tags"]), texts(&manifest["categories"])].concat(),
            synonyms: texts(&tool["synonyms"]),
        }
    });
    tools.collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    let all = value.as_array().into_iter().flatten();
    all.map(text).collect()
}

fn build(tools: &[Tool]) -> Index {
    Index::build(tools.iter().map(|tool| Document {
        slug: &tool.slug,
        name: &tool.name,
        description: &tool.description,
        toolkit: &tool.toolkit,
        toolkit_name: &tool.toolkit_name,
        parameters: tool.parameters.iter().map(String::as_str).collect(),
        tags: tool.tags.iter().map(String::as_str).collect(),
        synonyms: tool.synonyms.iter().map(String::as_str).collect(),
    }))
}

/// Returns the rank of the first acceptable tool, starting with 1.
fn place(index: &Index, tools: &[Tool], query: &Labelled) -> Option<usize> {
    let hits = index.search(&query.text, RESULT_LIMIT, |_| true);
    let mut slugs = hits.iter().map(|hit| &tools[hit.tool].slug);
    let position = slugs.position(|slug| query.acceptable.contains(slug));
    position.map(|position| position + 1)
}

#[expect(clippy::cast_precision_loss, reason = "some hundred queries")]
fn quality(index: &Index, tools: &[Tool], queries: &[&Labelled]) -> Quality {
    let places: Vec<_> = queries
        .iter()
        .map(|query| place(index, tools, query))
        .collect();
    let within = |most: usize| {
        let found = places.iter().flatten().filter(|place| **place <= most);
        found.count() as f64 / places.len() as f64
    };
    let reciprocals = places.iter().flatten().map(|place| 1.0 / *place as f64);
    Quality {
        queries: places.len(),
        first: within(1),
        among_five: within(5),
        reciprocal: reciprocals.sum::<f64>() / places.len() as f64,
    }
}

fn print_misses(index: &Index, tools: &[Tool], queries: &[&Labelled]) {
    for query in queries {
        let place = place(index, tools, query);
        if place == Some(1) {
            continue;
        }
        let hits = index.search(&query.text, 3, |_| true);
        let found: Vec<_> = hits
            .iter()
            .map(|hit| format!("{} {:.1}", tools[hit.tool].slug, hit.score))
            .collect();
        println!(
            "{place:?} {}\n    wanted {}\n    found {}",
            query.text,
            query.acceptable[0],
            found.join(", ")
        );
    }
}

/// Returns the milliseconds that the index is built in, those of a query (median and 99th
/// percentile), and the memory of the index in MiB.
fn speed(tools: &[Tool], queries: &[Labelled]) -> [f64; 4] {
    let many = copies(tools);
    let begun = Instant::now();
    let index = build(&many);
    let build_time = begun.elapsed();
    let mut times = Vec::new();
    for _ in 0..QUERY_ROUNDS {
        for query in queries {
            let begun = Instant::now();
            black_box(index.search(&query.text, RESULT_LIMIT, |_| true));
            times.push(begun.elapsed());
        }
    }
    times.sort_unstable();
    let percentile = |percent: usize| millis(times[(times.len() - 1) * percent / 100]);
    [
        millis(build_time),
        percentile(50),
        percentile(99),
        mebibytes(index.size_bytes()),
    ]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// Copies tools as those of other toolkits, until there are enough.
fn copies(tools: &[Tool]) -> Vec<Tool> {
    let copied = (0..TOOL_COUNT).map(|number| {
        let (tool, copy) = (&tools[number % tools.len()], number / tools.len());
        let toolkit = format!("{}{}", tool.toolkit, letters(copy));
        Tool {
            slug: tool
                .slug
                .replacen(&tool.toolkit.to_uppercase(), &toolkit.to_uppercase(), 1),
            description: changed(&tool.description, copy),
            toolkit,
            ..tool.clone()
        }
    });
    copied.collect()
}

/// Changes some words, so that those of each copy differ.
fn changed(text: &str, copy: usize) -> String {
    let words = text.split(' ').enumerate().map(|(position, word)| {
        if position % CHANGED_WORD == CHANGED_WORD - 1 {
            format!("{word}{}", letters(copy))
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns a number as letters, which no stemmer removes.
fn letters(number: usize) -> String {
    number
        .to_string()
        .bytes()
        .map(|digit| char::from(b'k' + digit - b'0'))
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "memory below a petabyte")]
fn mebibytes(bytes: usize) -> f64 {
    bytes as f64 / BYTES_PER_MIB
}
