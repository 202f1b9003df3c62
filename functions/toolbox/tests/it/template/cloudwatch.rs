//! CloudWatch's metric filters and alarms, as far as the templates use them.
//!
//! moto keeps both without evaluating them. This follows the documentation: "Filter pattern syntax
//! for metric filters" of CloudWatch Logs, and "Using Amazon CloudWatch alarms".

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A namespace, a metric's name, and its dimensions, each with its value.
pub(super) type Metric = (String, String, BTreeMap<String, String>);

/// The values of metrics, each with its time in seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Metrics(BTreeMap<Metric, Vec<(u64, f64)>>);

impl Metrics {
    pub(super) fn put(&mut self, metric: Metric, time: u64, value: f64) {
        self.0.entry(metric).or_default().push((time, value));
    }

    /// Adds what an `AWS::Logs::MetricFilter` makes of an event in its log group.
    pub(super) fn filter(&mut self, filter: &Value, event: &str, time: u64) {
        let pattern = filter["FilterPattern"].as_str().unwrap();
        if !matches(pattern, event) {
            return;
        }
        for transformation in filter["MetricTransformations"].as_array().unwrap() {
            let [namespace, name] =
                ["MetricNamespace", "MetricName"].map(|it| text_of(&transformation[it]));
            let value = transformation["MetricValue"].as_str().unwrap();
            self.put(
                (namespace, name, BTreeMap::new()),
                time,
                value.parse().unwrap(),
            );
        }
    }

    /// Returns true if an `AWS::CloudWatch::Alarm` is in the state ALARM at a time.
    pub(super) fn is_alarming(&self, alarm: &Value, now: u64) -> bool {
        let number = |name: &str| alarm[name].as_u64();
        let periods = number("EvaluationPeriods").unwrap();
        let needed = number("DatapointsToAlarm").unwrap_or(periods);
        let period = number("Period").unwrap();
        let breaching = (0..periods).filter(|it| {
            let end = now - it * period;
            let value = self.statistic(alarm, end - period..end);
            // Missing data is not breaching.
            assert_eq!(alarm["TreatMissingData"], "notBreaching");
            value.is_some_and(|value| is_breaching(alarm, value))
        });
        breaching.count() as u64 >= needed
    }

    /// Returns the statistic of an alarm for one period, or `None` if the period has no values.
    fn statistic(&self, alarm: &Value, times: std::ops::Range<u64>) -> Option<f64> {
        let dimensions = alarm["Dimensions"].as_array().into_iter().flatten();
        let dimensions = dimensions.map(|it| (text_of(&it["Name"]), text_of(&it["Value"])));
        let [namespace, name] = ["Namespace", "MetricName"].map(|it| text_of(&alarm[it]));
        let values = self.0.get(&(namespace, name, dimensions.collect()))?;
        let values = values.iter().filter(|(time, _)| times.contains(time));
        let mut values: Vec<f64> = values.map(|(_, value)| *value).collect();
        values.sort_by(f64::total_cmp);
        let (least, greatest) = (*values.first()?, *values.last()?);
        let statistic = alarm["Statistic"].as_str();
        let statistic = statistic.or_else(|| alarm["ExtendedStatistic"].as_str());
        Some(match statistic.unwrap() {
            "Sum" => values.iter().sum(),
            "Minimum" => least,
            "Maximum" => greatest,
            "p99" => values[(values.len() * 99).div_ceil(100) - 1],
            other => panic!("{other}"),
        })
    }
}

fn is_breaching(alarm: &Value, value: f64) -> bool {
    let threshold = text_of(&alarm["Threshold"]).parse().unwrap();
    match alarm["ComparisonOperator"].as_str().unwrap() {
        "GreaterThanOrEqualToThreshold" => value >= threshold,
        "GreaterThanThreshold" => value > threshold,
        other => panic!("{other}"),
    }
}

/// Returns a text, or the name of the resource or pseudo parameter that it refers to.
fn text_of(value: &Value) -> String {
    let reference = value["Ref"]
        .as_str()
        .or_else(|| value["Fn::GetAtt"][0].as_str());
    let text = reference.or_else(|| value.as_str()).map(str::to_owned);
    text.unwrap_or_else(|| value.to_string())
}

/// Returns true if a log event matches a JSON filter pattern. An event that is not JSON matches none.
pub(super) fn matches(pattern: &str, event: &str) -> bool {
    let Ok(event) = serde_json::from_str::<Value>(event) else {
        return false;
    };
    let inner = pattern
        .trim()
        .strip_prefix('{')
        .and_then(|it| it.strip_suffix('}'));
    let mut rest = inner.unwrap_or_else(|| panic!("not a JSON pattern: {pattern}"));
    let result = any(&mut rest, &event);
    assert_eq!(rest.trim(), "", "{pattern}");
    result
}

/// `A || B`, which binds less than `&&`.
fn any(rest: &mut &str, event: &Value) -> bool {
    let mut result = both(rest, event);
    while eat(rest, "||") {
        result |= both(rest, event);
    }
    result
}

fn both(rest: &mut &str, event: &Value) -> bool {
    let mut result = term(rest, event);
    while eat(rest, "&&") {
        result &= term(rest, event);
    }
    result
}

/// `(A)`, or a comparison of a field with a text, which no event without this field passes.
fn term(rest: &mut &str, event: &Value) -> bool {
    if eat(rest, "(") {
        let result = any(rest, event);
        assert!(eat(rest, ")"), "{rest}");
        return result;
    }
    assert!(eat(rest, "$."), "{rest}");
    let end = rest.find([' ', '=', '!']).unwrap();
    let (name, after) = rest.split_at(end);
    *rest = after;
    let expects_equal = !eat(rest, "!=");
    assert!(!expects_equal || eat(rest, "="), "{rest}");
    assert!(eat(rest, "\""), "{rest}");
    let (text, after) = rest.split_once('"').unwrap();
    *rest = after;
    let value = event.get(name).and_then(Value::as_str);
    value.is_some_and(|value| (value == text) == expects_equal)
}

fn eat(rest: &mut &str, token: &str) -> bool {
    let after = rest.trim_start().strip_prefix(token);
    after.inspect(|after| *rest = after).is_some()
}

#[test]
fn a_pattern_selects_events() {
    let event = r#"{"level": "WARN", "outcome": "rejection", "reason": "busy", "n": 5}"#;
    for (pattern, expected) in [
        (r#"{ $.level = "WARN" }"#, true),
        (r#"{ $.level = "ERROR" }"#, false),
        (r#"{ $.level != "ERROR" }"#, true),
        (r#"{ $.level != "WARN" }"#, false),
        (r#"{ $.absent = "WARN" }"#, false),
        (r#"{ $.absent != "WARN" }"#, false),
        (
            r#"{ ($.level = "WARN") && ($.outcome = "rejection") }"#,
            true,
        ),
        (
            r#"{ ($.level = "WARN") && ($.outcome = "failure") }"#,
            false,
        ),
        (r#"{ ($.level = "ERROR") || ($.reason = "busy") }"#, true),
        (r#"{ ($.level = "ERROR") || ($.reason = "failed") }"#, false),
        // `&&` comes before `||`.
        (
            r#"{ $.level = "WARN" || $.level = "ERROR" && $.reason = "x" }"#,
            true,
        ),
        (
            r#"{ ($.level = "WARN" || $.level = "ERROR") && $.reason = "x" }"#,
            false,
        ),
    ] {
        assert_eq!(matches(pattern, event), expected, "{pattern}");
    }
    assert!(!matches(r#"{ $.level = "WARN" }"#, "level WARN"));
}

#[test]
fn an_alarm_evaluates_its_periods() {
    let metric = |name: &str| ("N".to_owned(), name.to_owned(), BTreeMap::new());
    let alarm = |statistic: &str, threshold: f64, periods: u64| {
        json!({
            "Namespace": "N", "MetricName": "M", "Statistic": statistic, "Period": 300,
            "EvaluationPeriods": periods, "Threshold": threshold,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "TreatMissingData": "notBreaching",
        })
    };
    let mut metrics = Metrics::default();
    for (time, value) in [(10, 1.0), (20, 3.0), (310, 5.0), (700, 1.0)] {
        metrics.put(metric("M"), time, value);
    }
    metrics.put(metric("Other"), 10, 100.0);
    for (statistic, threshold, periods, now, expected) in [
        ("Sum", 4.0, 1, 300, true),
        ("Sum", 4.5, 1, 300, false),
        ("Minimum", 1.0, 1, 300, true),
        ("Minimum", 2.0, 1, 300, false),
        ("Maximum", 3.0, 1, 300, true),
        ("Sum", 1.0, 3, 900, true),
        ("Sum", 4.0, 3, 900, false),
        // The last period has no data.
        ("Sum", 1.0, 3, 1200, false),
    ] {
        let alarm = alarm(statistic, threshold, periods);
        assert_eq!(metrics.is_alarming(&alarm, now), expected, "{alarm} {now}");
    }
    let mut two_of_three = alarm("Sum", 4.0, 3);
    two_of_three["DatapointsToAlarm"] = json!(2);
    assert!(metrics.is_alarming(&two_of_three, 900));
    let mut above = alarm("Sum", 4.0, 1);
    above["ComparisonOperator"] = json!("GreaterThanThreshold");
    assert!(!metrics.is_alarming(&above, 300));

    let mut slow = Metrics::default();
    for value in 1..=200_u32 {
        slow.put(metric("M"), 5, value.into());
    }
    let mut percentile = alarm("", 198.0, 1);
    percentile["ExtendedStatistic"] = json!("p99");
    percentile.as_object_mut().unwrap().remove("Statistic");
    assert!(slow.is_alarming(&percentile, 300));
    percentile["Threshold"] = json!(199);
    assert!(!slow.is_alarming(&percentile, 300));
}
