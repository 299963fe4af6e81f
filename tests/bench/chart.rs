//! Chart of the results: an SVG image that suits light and dark pages.

use anyhow::{Result, ensure};
use serde_json::Value;

/// Position of the bars' baseline, and the height of the highest bar.
const BASELINE_Y: f64 = 230.0;
const MAX_BAR_HEIGHT: f64 = 140.0;
const BAR_WIDTH: f64 = 44.0;
const COLUMN_WIDTH: f64 = 84.0;
const PANEL_WIDTH: f64 = 4.0 * COLUMN_WIDTH;

/// Frame and styles, for a width of 800 pixels.
const IMAGE_HEAD: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" width="800" height="290" viewBox="0 0 800 290" role="img">
<title>Speed of toolhost</title>
<style>
text { font: 13px -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #59636e; text-anchor: middle }
.title { font-size: 15px; font-weight: 600; text-anchor: start }
.start { text-anchor: start }
.end { text-anchor: end }
.title, .value { fill: #1f2328 }
.value { font-weight: 600 }
.page { fill: #ffffff; stroke: #d1d9e0 }
.bar { fill: #0969da }
.base { stroke: #818b98 }
.bare { stroke: #59636e; stroke-dasharray: 4 4 }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1 }
.title, .value { fill: #f0f6fc }
.page { fill: #0d1117; stroke: #3d444d }
.bar { fill: #4493f8 }
.base { stroke: #656c76 }
.bare { stroke: #9198a1 }
}
</style>
<rect class="page" x="0.5" y="0.5" width="799" height="289" rx="6"/>
"##;

/// One of the two halves of the chart.
struct Panel<'a> {
    x: f64,
    title: &'a str,
    subtitle: &'a str,
    axis: &'a str,
    /// Names below the bars, and their values.
    bars: Vec<(String, f64)>,
    decimals: usize,
    /// Value of the bare handler, drawn as a line.
    bare: Option<f64>,
}

/// Draws the lines of parts b and l.
pub(crate) fn svg(lines: &Value) -> Result<String> {
    let of = |part: &'static str| {
        let lines = lines.as_array().into_iter().flatten();
        lines.filter(move |line| line["part"] == part)
    };
    let time = |line: &Value| {
        let (count, _) = line["what"].as_str()?.split_once(' ')?;
        Some((count.to_owned(), line["cpu_us"].as_f64()?))
    };
    let panels = [
        Panel {
            x: 40.0,
            title: "Calls per second, where a bare echo has 1",
            subtitle: "tools/execute: key, schema, sandbox and log",
            axis: "connections",
            bars: of("b")
                .filter_map(|line| {
                    let ratio = line["result"].as_object();
                    let ratio = ratio.filter(|result| result["name"] == "b/a")?;
                    Some((line["connections"].to_string(), ratio["value"].as_f64()?))
                })
                .collect(),
            decimals: 2,
            bare: Some(1.0),
        },
        Panel {
            x: 424.0,
            title: "Processor time of a call, in µs",
            subtitle: "8 connections",
            axis: "toolkits, called in turn",
            bars: of("l").filter_map(time).collect(),
            decimals: 0,
            bare: None,
        },
    ];
    let complete = panels.iter().all(|panel| !panel.bars.is_empty());
    ensure!(complete, "the chart needs the results of parts b and l");
    Ok(format!(
        "{IMAGE_HEAD}{}</svg>\n",
        panels.map(|panel| panel.svg()).concat()
    ))
}

impl Panel<'_> {
    fn svg(&self) -> String {
        let Self {
            x,
            title,
            subtitle,
            axis,
            ..
        } = self;
        let most = self.bars.iter().map(|(_, value)| *value);
        let most = most.fold(self.bare.unwrap_or(0.0), f64::max);
        let top = |value: f64| BASELINE_Y - MAX_BAR_HEIGHT * value / most;
        let right = x + PANEL_WIDTH;
        let middle = x + PANEL_WIDTH / 2.0;
        let mut svg = format!(
            "<text class=\"title\" x=\"{x}\" y=\"34\">{title}</text>\n\
             <text class=\"start\" x=\"{x}\" y=\"54\">{subtitle}</text>\n\
             <text x=\"{middle}\" y=\"272\">{axis}</text>\n"
        );
        if let Some(bare) = self.bare {
            let y = top(bare);
            let above = y - 6.0;
            svg += &format!(
                "<line class=\"bare\" x1=\"{x}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\n\
                 <text class=\"end\" x=\"{right}\" y=\"{above:.1}\">bare HTTP echo</text>\n"
            );
        }
        for (number, (name, value)) in self.bars.iter().enumerate() {
            let middle = x + COLUMN_WIDTH * (number as f64 + 0.5);
            let left = middle - BAR_WIDTH / 2.0;
            let y = top(*value);
            let height = BASELINE_Y - y;
            let above = y - 8.0;
            let decimals = self.decimals;
            svg += &format!(
                "<rect class=\"bar\" x=\"{left}\" y=\"{y:.1}\" width=\"{BAR_WIDTH}\" height=\"{height:.1}\" rx=\"3\"/>\n\
                 <text class=\"value\" x=\"{middle}\" y=\"{above:.1}\">{value:.decimals$}</text>\n\
                 <text x=\"{middle}\" y=\"250\">{name}</text>\n"
            );
        }
        svg + &format!(
            "<line class=\"base\" x1=\"{x}\" x2=\"{right}\" y1=\"{BASELINE_Y}\" y2=\"{BASELINE_Y}\"/>\n"
        )
    }
}
