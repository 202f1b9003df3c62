//! Log lines as JSON objects, with a call's ids at the top level, where queries look for them.
//!
//! `tracing-subscriber`'s own JSON nests them in an object for the span, so a query for a
//! `requestId` finds the line of the call, but not the lines logged by its tool.

use std::fmt::{self, Debug, Display};

use serde_json::{Map, Value};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::Record,
};
use tracing_subscriber::{
    field::RecordFields,
    fmt::{
        FmtContext, FormatEvent, FormatFields, FormattedFields,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    registry::{LookupSpan, SpanRef},
};

use crate::observe::{confidential::without_secrets, request_log::REQUEST_TARGET};

/// The targets of the spans that identify a line's call or invocation.
const CONTEXT_TARGETS: [&str; 2] = ["lambda_tools::call", "lambda_tools::invocation"];

/// Reserved field names; a tool's own field of the same name is written as `field.NAME`.
const RESERVED: [&str; 7] = [
    "call_id",
    "level",
    "requestId",
    "span",
    "timestamp",
    "tool",
    "trace_id",
];

/// Formats lines, and the fields of spans as they appear in lines.
pub(super) struct JsonFormatter;

impl<S> FormatEvent<S, JsonFormatter> for JsonFormatter
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, Self>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::with_capacity(32);
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let target = event.metadata().target();
        let is_ours = target.starts_with("lambda_tools::");
        let is_request = target == REQUEST_TARGET;
        let mut fields = Fields {
            values: Map::with_capacity(20),
            reserved: if is_ours { &[] } else { &RESERVED },
            redacts: !is_request,
        };
        let level = event.metadata().level().as_str();
        fields.values.insert("timestamp".to_owned(), time.into());
        fields.values.insert("level".to_owned(), level.into());
        event.record(&mut fields);
        let mut line = fields.values;
        // A request's line already has its own ids.
        if !is_request || !line.contains_key("requestId") {
            add_spans(context, &mut line);
        }
        writer.write_str(&to_json(&line)?)?;
        writer.write_char('\n')
    }
}

/// Adds the fields of our innermost span to those of the event, and the tool's own innermost span,
/// if any.
fn add_spans<S>(context: &FmtContext<'_, S, JsonFormatter>, line: &mut Map<String, Value>)
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let mut tool_span = None;
    for span in context.event_scope().into_iter().flatten() {
        if CONTEXT_TARGETS.contains(&span.metadata().target()) {
            line.extend(fields_of(&span));
            break;
        }
        tool_span.get_or_insert(span);
    }
    if let Some(span) = tool_span {
        let mut fields = Map::from_iter([("name".to_owned(), span.name().into())]);
        fields.extend(fields_of(&span));
        line.insert("span".to_owned(), fields.into());
    }
}

fn fields_of<S: for<'span> LookupSpan<'span>>(span: &SpanRef<'_, S>) -> Map<String, Value> {
    let extensions = span.extensions();
    let fields = extensions.get::<FormattedFields<JsonFormatter>>();
    fields.map(|it| decoded(&it.fields)).unwrap_or_default()
}

fn decoded(fields: &str) -> Map<String, Value> {
    serde_json::from_str(fields).unwrap_or_default()
}

impl<'writer> FormatFields<'writer> for JsonFormatter {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut all = Fields::of_span(Map::new());
        fields.record(&mut all);
        writer.write_str(&to_json(&all.values)?)
    }

    /// Adds fields that are recorded later; a new value replaces the old one of the same name.
    fn add_fields(
        &self,
        current: &'writer mut FormattedFields<Self>,
        fields: &Record<'_>,
    ) -> fmt::Result {
        let mut all = Fields::of_span(decoded(&current.fields));
        fields.record(&mut all);
        current.fields = to_json(&all.values)?;
        Ok(())
    }
}

fn to_json(fields: &Map<String, Value>) -> Result<String, fmt::Error> {
    serde_json::to_string(fields).map_err(|_| fmt::Error)
}

/// The fields of an event or a span.
struct Fields {
    values: Map<String, Value>,
    reserved: &'static [&'static str],
    /// True if a tool may have logged secrets in these fields.
    redacts: bool,
}

impl Fields {
    fn of_span(values: Map<String, Value>) -> Self {
        Self {
            values,
            reserved: &["name"],
            redacts: true,
        }
    }

    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        let name = field.name();
        let name = name.strip_prefix("r#").unwrap_or(name);
        let name = if self.reserved.contains(&name) {
            format!("field.{name}")
        } else {
            name.to_owned()
        };
        self.values.insert(name, value.into());
    }

    /// Redacts numbers too: a secret may be a number.
    fn put_number(&mut self, field: &Field, value: impl Into<Value> + Display) {
        let redacted = self.redacts.then(|| without_secrets(&value.to_string()));
        match redacted.flatten() {
            Some(redacted) => self.put(field, redacted),
            None => self.put(field, value),
        }
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put_number(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put_number(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put_number(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let redacted = self.redacts.then(|| without_secrets(value)).flatten();
        self.put(field, redacted.as_deref().unwrap_or(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::json;
    use tracing_subscriber::layer::SubscriberExt;

    use test_support::lines::Lines;

    use crate::{Secret, secret::stored};

    /// Returns the lines that `log` prints, without their timestamps.
    fn printed(log: impl FnOnce()) -> Vec<Value> {
        let lines = Lines::default();
        let layer = tracing_subscriber::fmt::layer()
            .fmt_fields(JsonFormatter)
            .event_format(JsonFormatter)
            .with_writer(lines.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        let line = |line: &str| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("timestamp").unwrap();
            line
        };
        lines.text().lines().map(line).collect()
    }

    #[test]
    fn any_value_is_written_as_json() {
        let lines = printed(|| {
            tracing::warn!(
                text = "\"quoted\"\n\u{1}é",
                nan = f64::NAN,
                whole = -3,
                yes = true,
                none = None::<&str>,
                debug = ?[1, 2],
                error = %"shown",
                "it {}", "\\ says",
            );
        });
        let expected = json!({
            "level": "WARN", "message": "it \\ says", "text": "\"quoted\"\n\u{1}é",
            "nan": null, "whole": -3, "yes": true, "debug": "[1, 2]", "error": "shown",
        });
        assert_eq!(lines, [expected]);
    }

    #[test]
    fn secrets_of_the_store_are_redacted_in_every_field() {
        for secret in ["a \"late\" key", "7654321012345678"] {
            stored::remember(&Secret::from(secret));
        }
        let lines = printed(|| {
            let key = "a \"late\" key";
            let _span = tracing::info_span!("background", key).entered();
            tracing::info!(key, pin = 7_654_321_012_345_678_u64, "later: {key:?}");
        });
        let expected = json!({
            "level": "INFO", "message": "later: \"[secret]\"", "key": "[secret]",
            "pin": "[secret]", "span": {"name": "background", "key": "[secret]"},
        });
        assert_eq!(lines, [expected]);
    }

    #[test]
    fn a_calls_ids_are_fields_of_its_tools_lines() {
        let lines = printed(|| {
            let outer =
                tracing::error_span!(target: "lambda_tools::invocation", "x", requestId = "r-0");
            let _outer = outer.entered();
            let call = tracing::error_span!(target: "lambda_tools::call", "call", requestId = "r-1", call_id = "c");
            let _call = call.entered();
            tracing::info!(target: "their::module", tool = "a", level = 7, other = 1, "of a tool");
            tracing::info!(target: REQUEST_TARGET, requestId = "r-2", "of the call");
            let _own = tracing::info_span!("theirs", page = 2).entered();
            let inner = tracing::info_span!("innermost", name = "x", late = tracing::field::Empty);
            inner.record("late", 1);
            inner.record("late", "y");
            let _inner = inner.entered();
            tracing::info!("deeper");
        });
        assert_eq!(
            lines,
            [
                json!({
                    "level": "INFO", "message": "of a tool", "field.tool": "a", "field.level": 7,
                    "other": 1, "requestId": "r-1", "call_id": "c",
                }),
                json!({"level": "INFO", "message": "of the call", "requestId": "r-2"}),
                json!({
                    "level": "INFO", "message": "deeper", "requestId": "r-1", "call_id": "c",
                    "span": {"name": "innermost", "field.name": "x", "late": "y"},
                }),
            ]
        );
    }
}
