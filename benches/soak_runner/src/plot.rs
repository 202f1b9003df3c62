//! The plot of a run, as SVG: one panel below the other, with a common axis of time.

mod axis;

use std::fmt::{self, Write};

use crate::series::{Sample, Series};
use axis::{Scale, step};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 54.0;
const PANEL: f64 = 120.0;
const GAP: f64 = 46.0;
/// The maximum number of points of a line, of which each is the largest of its values.
const POINTS: usize = 900;

/// Colors that can be read on light and on dark backgrounds.
const STYLE: &str = "\
.page { fill: #fff } .frame { fill: none; stroke: #8a929c } .grid { stroke: #e3e6ea }
.failing { fill: #f2c14e; fill-opacity: .35 } .warm { fill: #8a929c; fill-opacity: .18 }
text { font: 12px system-ui, sans-serif; fill: #1c2024 } .title { font-weight: 600 }
.a { stroke: #1d4fd7 } .b { stroke: #b3261e } .line { fill: none; stroke-width: 1.5 }
text.a { fill: #1d4fd7; stroke: none } text.b { fill: #b3261e; stroke: none }
@media (prefers-color-scheme: dark) {
.page { fill: #14171b } .grid { stroke: #2b3138 } text { fill: #e6e8eb }
.a { stroke: #8ab4ff } .b { stroke: #ff9a8f } text.a { fill: #8ab4ff } text.b { fill: #ff9a8f }
}";

type Value = fn(&Sample) -> f64;

/// A panel with one or two lines.
struct Panel {
    title: &'static str,
    scale: Scale,
    lines: Vec<(&'static str, Vec<f64>)>,
}

/// The plot of a run.
pub(crate) fn plot(series: &Series) -> Result<String, fmt::Error> {
    let panels = panels(&series.samples);
    #[expect(clippy::cast_precision_loss, reason = "a few panels")]
    let height = TOP + (PANEL + GAP) * panels.len() as f64 + 30.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n\
         <title>Memory, descriptors, requests and wrong answers over time</title>\n\
         <style>{STYLE}</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n"
    );
    let times: Vec<_> = series
        .samples
        .iter()
        .map(|it| it.at.as_secs_f64() / 60.0)
        .collect();
    let end = times.last().copied().unwrap_or(1.0);
    legend(&mut svg)?;
    let mut top = TOP;
    for panel in &panels {
        shade(&mut svg, series, end, top)?;
        draw(&mut svg, panel, &times, end, top)?;
        top += PANEL + GAP;
    }
    writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">time in minutes</text>\n</svg>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        top - 6.0
    )?;
    Ok(svg)
}

fn panels(samples: &[Sample]) -> Vec<Panel> {
    #[expect(clippy::cast_precision_loss, reason = "pixels")]
    let of = |value: fn(&Sample) -> u64| samples.iter().map(move |it| value(it) as f64);
    let megabytes = |value: fn(&Sample) -> u64| of(value).map(|it| it / 1_048_576.0).collect();
    let values = |value: Value| samples.iter().map(value).collect();
    let mut previous = (0.0, 0.0);
    let rates = samples
        .iter()
        .zip(of(|it| it.requests))
        .map(|(sample, requests)| {
            let at = sample.at.as_secs_f64();
            let rate = (requests - previous.1) / (at - previous.0).max(0.5);
            previous = (at, requests);
            rate
        });
    let rates = rates.collect();
    vec![
        Panel {
            title: "memory in MiB",
            scale: Scale::Linear,
            lines: vec![
                ("resident (VmRSS)", megabytes(|it| it.resources.resident)),
                (
                    "anonymous (RssAnon)",
                    megabytes(|it| it.resources.anonymous),
                ),
            ],
        },
        Panel {
            title: "open descriptors, threads",
            scale: Scale::Linear,
            lines: vec![
                ("descriptors", of(|it| it.resources.descriptors).collect()),
                ("threads", of(|it| it.resources.threads).collect()),
            ],
        },
        Panel {
            title: "requests per second",
            scale: Scale::Linear,
            lines: vec![("", rates)],
        },
        Panel {
            scale: Scale::Logarithmic,
            title: "function's time for a request in ms, per second",
            lines: vec![
                ("p99", values(|it| f64::from(it.latencies.p99) / 1000.0)),
                ("p50", values(|it| f64::from(it.latencies.p50) / 1000.0)),
            ],
        },
        Panel {
            title: "wrong answers so far",
            scale: Scale::Linear,
            lines: vec![("", of(|it| it.wrong).collect())],
        },
    ]
}

fn legend(svg: &mut String) -> fmt::Result {
    let entry = |svg: &mut String, x: f64, class: &str, text: &str| {
        writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{x}\" y=\"8\" width=\"16\" height=\"12\"/>\
             <text x=\"{:.1}\" y=\"18\">{text}</text>",
            x + 22.0
        )
    };
    entry(svg, LEFT, "failing", "the store fails")?;
    entry(
        svg,
        LEFT + 150.0,
        "warm",
        "warm-up, before the limits apply",
    )
}

/// Marks the warm-up and the periods in which the store fails.
fn shade(svg: &mut String, series: &Series, end: f64, top: f64) -> fmt::Result {
    let mut rectangle = |class: &str, from: f64, to: f64| {
        let (x, width) = (x_of(from, end), x_of(to, end) - x_of(from, end));
        writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{PANEL}\"/>"
        )
    };
    rectangle("warm", 0.0, (series.warm_up.as_secs_f64() / 60.0).min(end))?;
    for period in series
        .samples
        .chunk_by(|a, b| a.store_fails == b.store_fails)
    {
        if let [first, .., last] = period
            && first.store_fails
        {
            let minutes = |sample: &Sample| sample.at.as_secs_f64() / 60.0;
            rectangle("failing", minutes(first), minutes(last))?;
        }
    }
    Ok(())
}

fn x_of(minutes: f64, end: f64) -> f64 {
    LEFT + (WIDTH - LEFT - RIGHT) * minutes / end
}

fn draw(svg: &mut String, panel: &Panel, times: &[f64], end: f64, top: f64) -> fmt::Result {
    let all = panel.lines.iter().flat_map(|(_, values)| values);
    let largest = all.copied().fold(0.0, f64::max);
    let labels = panel.scale.labels(largest);
    let y_of = |value: f64| top + PANEL * (1.0 - panel.scale.place(value, &labels));
    for value in &labels {
        let y = y_of(*value);
        writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            y + 4.0
        )?;
    }
    ticks(svg, end, top + PANEL)?;
    writeln!(
        svg,
        "<rect class=\"frame\" x=\"{LEFT}\" y=\"{top}\" width=\"{}\" height=\"{PANEL}\"/>\
         <text class=\"title\" x=\"{LEFT}\" y=\"{:.1}\">{}</text>",
        WIDTH - LEFT - RIGHT,
        top - 6.0,
        panel.title
    )?;
    for ((name, values), (class, x)) in panel.lines.iter().zip([("a", 270.0), ("b", 130.0)]) {
        let points = thinned(times, values);
        let points = points
            .iter()
            .map(|(at, value)| format!("{:.1},{:.1}", x_of(*at, end), y_of(*value)));
        let points = points.collect::<Vec<_>>().join(" ");
        writeln!(
            svg,
            "<polyline class=\"line {class}\" points=\"{points}\"/>\
             <text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
            WIDTH - RIGHT - x - 10.0,
            top - 6.0
        )?;
    }
    Ok(())
}

/// The labels of the axis of time.
fn ticks(svg: &mut String, end: f64, bottom: f64) -> fmt::Result {
    let step = step(end / 12.0);
    let mut at = 0.0;
    while at <= end + step / 100.0 {
        let x = x_of(at, end);
        writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{at}</text>",
            bottom + 16.0
        )?;
        at += step;
    }
    Ok(())
}

/// At most [`POINTS`] points, which show every peak.
fn thinned(times: &[f64], values: &[f64]) -> Vec<(f64, f64)> {
    let size = values.len().div_ceil(POINTS).max(1);
    let chunks = times.chunks(size).zip(values.chunks(size));
    let points = chunks.filter_map(|(times, values)| {
        let largest = values.iter().copied().fold(f64::MIN, f64::max);
        Some((*times.first()?, largest))
    });
    points.collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{process::Resources, recorder::Latencies};

    #[test]
    fn a_peak_of_one_second_is_visible() {
        let times: Vec<_> = (0..3600).map(f64::from).collect();
        let mut values = vec![1.0; 3600];
        values[1801] = 9.0;
        let points = thinned(&times, &values);
        assert_eq!(points.len(), POINTS);
        assert!(points.iter().any(|(_, value)| *value > 8.0));
    }

    #[test]
    fn failing_periods_are_marked() {
        let sample = |second: u64| Sample {
            at: Duration::from_secs(second),
            resources: Resources::default(),
            requests: second * 10,
            wrong: 0,
            latencies: Latencies::default(),
            store_fails: (20..30).contains(&second) || (50..55).contains(&second),
        };
        let series = Series {
            samples: (1..60).map(sample).collect(),
            warm_up: Duration::from_secs(10),
            includes_calls: false,
        };
        let svg = plot(&series).unwrap();
        assert_eq!(svg.matches("<rect class=\"failing\"").count(), 1 + 2 * 5);
        assert_eq!(svg.matches("<polyline").count(), 8);
    }
}
