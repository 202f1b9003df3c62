//! Metrics, as log lines that CloudWatch turns into metrics.
//!
//! A line on standard output costs no network call, and is written before the invocation ends.
//! Reference: CloudWatch, Embedded metric format specification.

use std::{
    io::{self, Write},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{ToolId, secrets::CacheUse, tool::reason::Reason};

/// Writes metrics to standard output, under this namespace.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    namespace: String,
}

/// The metrics of one request.
pub(crate) struct RequestMetrics<'a> {
    /// `None` if the request names no tool of this server: names that callers make up must not
    /// become a dimension, because each value of a dimension costs the owner money.
    pub(crate) tool: Option<&'a ToolId>,
    pub(crate) end: RequestEnd,
    pub(crate) duration: Duration,
    pub(crate) cache: CacheUse,
}

/// The way a request ended.
pub(crate) enum RequestEnd {
    Success,
    Failure,
    Rejection {
        reason: Reason,
        /// The number of invalid parameters.
        parameters: usize,
    },
    Replay,
    /// The caller stopped waiting.
    Abandoned,
}

#[derive(Serialize)]
struct MetricsLine<'a> {
    #[serde(rename = "_aws")]
    directives: Directives<'a>,
    tool: &'a str,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(flatten)]
    values: Map<String, Value>,
}

#[derive(Serialize)]
struct Directives<'a> {
    #[serde(rename = "Timestamp")]
    timestamp: u64,
    #[serde(rename = "CloudWatchMetrics")]
    metrics: Vec<Directive<'a>>,
}

#[derive(Serialize)]
struct Directive<'a> {
    #[serde(rename = "Namespace")]
    namespace: &'a str,
    #[serde(rename = "Dimensions")]
    dimensions: [&'static [&'static str]; 1],
    #[serde(rename = "Metrics")]
    metrics: Vec<Metric>,
}

#[derive(Serialize)]
struct Metric {
    #[serde(rename = "Name")]
    name: &'static str,
    #[serde(rename = "Unit")]
    unit: &'static str,
}

/// A metric's name, its unit and its value.
type Measurement = (&'static str, &'static str, f64);

impl Metrics {
    pub(crate) fn in_namespace(namespace: impl Into<String>) -> Self {
        let namespace = namespace.into();
        Self { namespace }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Writes the metrics of a request.
    pub(crate) fn count(&self, request: &RequestMetrics<'_>, now: SystemTime) {
        let line = self.line(request, now) + "\n";
        // A single write, so that lines of concurrent calls do not mix. An error cannot be
        // reported anywhere.
        let _ = io::stdout().lock().write_all(line.as_bytes());
    }

    fn line(&self, request: &RequestMetrics<'_>, now: SystemTime) -> String {
        const BY_TOOL: &[&str] = &["tool", "version"];
        const BY_REASON: &[&str] = &["tool", "version", "reason"];
        let by_tool = request.by_tool();
        let mut metrics = vec![self.directive(BY_TOOL, &by_tool)];
        let mut values: Map<String, Value> = by_tool.iter().map(pair).collect();
        let mut reason = None;
        if let RequestEnd::Rejection { reason: word, .. } = request.end {
            let rejections = [("Rejections", "Count", 1.0)];
            metrics.push(self.directive(BY_REASON, &rejections));
            values.extend(rejections.iter().map(pair));
            reason = Some(word.as_str());
        }
        let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let version = request.tool.map(|tool| tool.version().to_string());
        let line = MetricsLine {
            directives: Directives {
                timestamp: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
                metrics,
            },
            tool: request.tool.map_or("none", ToolId::qualified),
            version: version.unwrap_or_else(|| "none".to_owned()),
            reason,
            values,
        };
        serde_json::to_string(&line).expect("our own lines have string keys only")
    }

    fn directive(
        &self,
        dimensions: &'static [&'static str],
        measurements: &[Measurement],
    ) -> Directive<'_> {
        let metric = |&(name, unit, _): &Measurement| Metric { name, unit };
        Directive {
            namespace: &self.namespace,
            dimensions: [dimensions],
            metrics: measurements.iter().map(metric).collect(),
        }
    }
}

fn pair(&(name, _, value): &Measurement) -> (String, Value) {
    // Whole numbers are written as integers.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked"
    )]
    let value = if value.fract() == 0.0 && (0.0..1e15).contains(&value) {
        Value::from(value as u64)
    } else {
        Value::from(value)
    };
    (name.to_owned(), value)
}

impl RequestMetrics<'_> {
    /// Omits zero counts: a metric costs the owner money as soon as it has a value.
    fn by_tool(&self) -> Vec<Measurement> {
        let milliseconds = self.duration.as_secs_f64() * 1000.0;
        let mut measurements = vec![
            ("Calls", "Count", 1.0),
            ("Duration", "Milliseconds", milliseconds),
        ];
        let mut add = |name, count: f64| {
            if count > 0.0 {
                measurements.push((name, "Count", count));
            }
        };
        match self.end {
            RequestEnd::Success | RequestEnd::Abandoned => {}
            RequestEnd::Failure => add("Failures", 1.0),
            RequestEnd::Rejection { parameters, .. } => {
                #[expect(clippy::cast_precision_loss, reason = "the count is small")]
                add("ValidationErrors", parameters as f64);
            }
            RequestEnd::Replay => add("Replays", 1.0),
        }
        add("SecretCacheHits", self.cache.hits.into());
        add("SecretCacheMisses", self.cache.misses.into());
        measurements
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(tool: Option<&ToolId>, end: RequestEnd, cache: CacheUse) -> Value {
        let request = RequestMetrics {
            tool,
            end,
            duration: Duration::from_micros(1500),
            cache,
        };
        let now = UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        serde_json::from_str(&Metrics::in_namespace("Agents").line(&request, now)).unwrap()
    }

    #[test]
    fn a_call_is_counted_by_tool_and_version() {
        let tool: ToolId = "SMS.Send@0.1.2".parse().unwrap();
        let cache = CacheUse { hits: 2, misses: 1 };
        let count = |name: &str| json!({"Name": name, "Unit": "Count"});
        let line = line(Some(&tool), RequestEnd::Failure, cache);
        let expected = json!({
            "_aws": {
                "Timestamp": 1_700_000_000_123_u64,
                "CloudWatchMetrics": [{
                    "Namespace": "Agents",
                    "Dimensions": [["tool", "version"]],
                    "Metrics": [
                        count("Calls"),
                        {"Name": "Duration", "Unit": "Milliseconds"},
                        count("Failures"),
                        count("SecretCacheHits"),
                        count("SecretCacheMisses"),
                    ],
                }],
            },
            "tool": "SMS.Send",
            "version": "0.1.2",
            "Calls": 1,
            "Duration": 1.5,
            "Failures": 1,
            "SecretCacheHits": 2,
            "SecretCacheMisses": 1,
        });
        assert_eq!(line, expected);
    }

    #[test]
    fn a_rejection_is_also_counted_by_reason() {
        let end = RequestEnd::Rejection {
            reason: Reason::InvalidInput,
            parameters: 3,
        };
        let line = line(None, end, CacheUse::default());
        let directives = &line["_aws"]["CloudWatchMetrics"];
        assert_eq!(
            directives[1]["Dimensions"],
            json!([["tool", "version", "reason"]])
        );
        assert_eq!(directives[1]["Metrics"][0]["Name"], "Rejections");
        assert_eq!(line["reason"], "invalid_input");
        assert_eq!(line["Rejections"], 1);
        assert_eq!(line["ValidationErrors"], 3);
        assert_eq!(line["tool"], "none");
        assert_eq!(line["version"], "none");
    }

    #[test]
    fn zero_counts_are_omitted() {
        let line = line(None, RequestEnd::Success, CacheUse::default());
        let names: Vec<_> = line
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(names.len(), 5, "{names:?}");
    }
}
