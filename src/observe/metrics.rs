//! Metrics, as log lines that CloudWatch turns into metrics.
//!
//! A line on standard output costs no network call, and is written before the invocation ends.
//! Reference: CloudWatch, Embedded metric format specification.

use std::{
    io::{self, Write},
    time::{Duration, SystemTime},
};

use serde_json::{Number, Value, json};

use super::trail::RequestEnd;
use crate::{ToolId, clock::epoch_millis, secrets::CacheUse, text::milliseconds};

/// A metric's name, its unit and its value.
type Measurement = (&'static str, &'static str, Number);

/// Writes the metrics of a request to standard output, in this namespace. `tool` is `None` if the request
/// names no tool of this server: names that callers make up must not become a dimension, because each
/// value of a dimension costs the owner money.
pub(super) fn write(
    namespace: &str,
    tool: Option<&ToolId>,
    end: &RequestEnd<'_>,
    duration: Duration,
    cache: CacheUse,
    now: SystemTime,
) {
    let line = format!("{}\n", line(namespace, tool, end, duration, cache, now));
    // A single write, so that lines of concurrent calls do not mix. An error cannot be reported
    // anywhere.
    let _ = io::stdout().lock().write_all(line.as_bytes());
}

/// Returns the line without counts of zero: a metric costs the owner money as soon as it has a value.
fn line(
    namespace: &str,
    tool: Option<&ToolId>,
    end: &RequestEnd<'_>,
    duration: Duration,
    cache: CacheUse,
    now: SystemTime,
) -> Value {
    let is_failure = end.outcome == "failure" && !end.is_replay;
    let counts = [
        ("Failures", is_failure.into()),
        ("ValidationErrors", end.invalid_parameters),
        ("Replays", end.is_replay.into()),
        ("SecretCacheHits", cache.hits),
        ("SecretCacheMisses", cache.misses),
    ];
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let counts = counts.map(|(name, count)| (name, "Count", count.into()));
    let mut measurements: Vec<Measurement> = vec![
        ("Calls", "Count", 1.into()),
        ("Duration", "Milliseconds", milliseconds(duration)),
    ];
    measurements.extend(counts);
    let directive = |dimensions: &[&str], measurements: &[Measurement]| {
        let metric = |(name, unit, _): &Measurement| json!({"Name": name, "Unit": unit});
        let metrics: Vec<_> = measurements.iter().map(metric).collect();
        json!({"Namespace": namespace, "Dimensions": [dimensions], "Metrics": metrics})
    };
    let mut directives = vec![directive(&["tool", "version"], &measurements)];
    let reason = end.reason.filter(|_| end.outcome == "rejection");
    if reason.is_some() {
        let rejections = [("Rejections", "Count", 1.into())];
        directives.push(directive(&["tool", "version", "reason"], &rejections));
        measurements.extend(rejections);
    }
    let version = tool.map(|tool| tool.version().to_string());
    let mut line = json!({
        "_aws": {
            "Timestamp": epoch_millis(now),
            "CloudWatchMetrics": directives,
        },
        "tool": tool.map_or("none", ToolId::qualified),
        "version": version.as_deref().unwrap_or("none"),
    });
    if let Some(reason) = reason {
        line["reason"] = reason.into();
    }
    for (name, _, value) in measurements {
        line[name] = value.into();
    }
    line
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::UNIX_EPOCH};

    use super::*;
    use crate::tool::reason::Reason;

    fn line(tool: Option<&ToolId>, end: &RequestEnd<'_>, cache: CacheUse) -> Value {
        let now = UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        super::line("Agents", tool, end, Duration::from_micros(1500), cache, now)
    }

    const LINE: &str = r#"{
        "_aws": {"Timestamp": 1700000000123, "CloudWatchMetrics": [{
            "Namespace": "Agents", "Dimensions": [["tool", "version"]], "Metrics": [
                {"Name": "Calls", "Unit": "Count"}, {"Name": "Duration", "Unit": "Milliseconds"},
                {"Name": "Failures", "Unit": "Count"}, {"Name": "SecretCacheHits", "Unit": "Count"},
                {"Name": "SecretCacheMisses", "Unit": "Count"}
            ]
        }]},
        "tool": "SMS.Send", "version": "0.1.2", "Calls": 1, "Duration": 1.5, "Failures": 1,
        "SecretCacheHits": 2, "SecretCacheMisses": 1
    }"#;

    #[test]
    fn a_call_is_counted_by_tool_and_version() {
        let tool: ToolId = "SMS.Send@0.1.2".parse().unwrap();
        let cache = CacheUse { hits: 2, misses: 1 };
        let end = RequestEnd {
            outcome: "failure",
            ..RequestEnd::default()
        };
        let line = line(Some(&tool), &end, cache);
        let expected: Value = serde_json::from_str(LINE).unwrap();
        assert_eq!(line, expected);
    }

    #[test]
    fn a_rejection_is_also_counted_by_reason() {
        let end = RequestEnd {
            outcome: "rejection",
            reason: Some("invalid_input"),
            invalid_parameters: 3,
            ..RequestEnd::default()
        };
        let line = line(None, &end, CacheUse::default());
        let directive = &line["_aws"]["CloudWatchMetrics"][1];
        let dimensions = json!([["tool", "version", "reason"]]);
        assert_eq!(directive["Dimensions"], dimensions);
        assert_eq!(directive["Metrics"][0]["Name"], "Rejections");
        let fields = "reason Rejections ValidationErrors tool version".split(' ');
        let fields: Vec<_> = fields.map(|name| &line[name]).collect();
        let expected = json!(["invalid_input", 1, 3, "none", "none"]);
        assert_eq!(json!(fields), expected);
    }

    #[test]
    fn the_documentation_lists_every_reason() {
        let page = include_str!("../../docs/production.md");
        let rows = page
            .lines()
            .skip_while(|line| !line.starts_with("| reason |"));
        let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
        let first = rows.filter_map(|row| row.split('|').nth(1));
        let listed: BTreeSet<_> = first
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect();
        let all: BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(listed, all);
    }
}
