//! Log lines as JSON objects, with a call's ids at the top level, where queries look for them.
//!
//! `tracing-subscriber`'s own JSON nests them in an object for the span, so a query for a
//! `requestId` finds the line of the call, but not the lines logged by its tool.

use std::{
    fmt::{self, Debug, Display},
    io::Write,
};

use serde::Serialize;
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
        let level = event.metadata().level();
        let mut line = Vec::with_capacity(512);
        // Writing to memory does not fail, here or below.
        let _ = write!(line, "{{\"timestamp\":\"{time}\",\"level\":\"{level}\"");
        let target = event.metadata().target();
        let reserved: &[&str] = if target.starts_with("lambda_tools::") {
            &[]
        } else {
            &RESERVED
        };
        let mut fields = FieldWriter {
            line: &mut line,
            reserved,
            redacts: target != REQUEST_TARGET,
            has_request_id: false,
        };
        event.record(&mut fields);
        // A request's line already has its own ids.
        if target != REQUEST_TARGET || !fields.has_request_id {
            write_spans(context, &mut line);
        }
        line.extend_from_slice(b"}\n");
        writer.write_str(str::from_utf8(&line).map_err(|_| fmt::Error)?)
    }
}

/// Writes the fields of our innermost span after those of the event, then the tool's own innermost
/// span, if any.
fn write_spans<S>(context: &FmtContext<'_, S, JsonFormatter>, line: &mut Vec<u8>)
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let mut tool_span = None;
    for span in context.event_scope().into_iter().flatten() {
        if CONTEXT_TARGETS.contains(&span.metadata().target()) {
            line.extend_from_slice(fields_of(&span).as_bytes());
            break;
        }
        tool_span.get_or_insert(span);
    }
    if let Some(span) = tool_span {
        line.extend_from_slice(b",\"span\":{\"name\":");
        write_json(line, span.name());
        line.extend_from_slice(fields_of(&span).as_bytes());
        line.push(b'}');
    }
}

/// Returns a span's fields, each with a comma before it.
fn fields_of<S: for<'span> LookupSpan<'span>>(span: &SpanRef<'_, S>) -> String {
    let extensions = span.extensions();
    let fields = extensions.get::<FormattedFields<JsonFormatter>>();
    fields.map_or_else(String::new, |fields| fields.fields.clone())
}

impl<'writer> FormatFields<'writer> for JsonFormatter {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut text = Vec::with_capacity(128);
        fields.record(&mut FieldWriter {
            line: &mut text,
            reserved: &["name"],
            redacts: true,
            has_request_id: false,
        });
        writer.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }

    /// Appends fields that are recorded later; a new value replaces the old one of the same name.
    fn add_fields(
        &self,
        current: &'writer mut FormattedFields<Self>,
        fields: &Record<'_>,
    ) -> fmt::Result {
        self.format_fields(current.as_writer(), fields)?;
        let object = format!("{{{}}}", current.fields.trim_start_matches(','));
        // If a name occurs twice, the last value wins.
        if let Ok(all) = serde_json::from_str::<Map<String, Value>>(&object) {
            current.fields.clear();
            for (name, value) in all {
                let name = Value::from(name);
                write!(current.as_writer(), ",{name}:{value}")?;
            }
        }
        Ok(())
    }
}

/// A writer of fields, each with a comma before it.
struct FieldWriter<'a> {
    line: &'a mut Vec<u8>,
    reserved: &'static [&'static str],
    /// True if a tool may have logged secrets in these fields.
    redacts: bool,
    /// True once a `requestId` has been written.
    has_request_id: bool,
}

impl FieldWriter<'_> {
    fn put(&mut self, field: &Field, value: impl Serialize) {
        self.line.push(b',');
        let name = field.name();
        let name = name.strip_prefix("r#").unwrap_or(name);
        self.has_request_id |= name == "requestId";
        if self.reserved.contains(&name) {
            write_json(self.line, format_args!("field.{name}"));
        } else {
            write_json(self.line, name);
        }
        self.line.push(b':');
        write_json(self.line, value);
    }

    /// Redacts numbers too: a secret may be a number.
    fn put_number(&mut self, field: &Field, value: impl Serialize + Display) {
        let redacted = self.redacts.then(|| without_secrets(&value.to_string()));
        match redacted.flatten() {
            Some(redacted) => self.put(field, redacted),
            None => self.put(field, value),
        }
    }
}

fn write_json(line: &mut Vec<u8>, value: impl Serialize) {
    let _ = serde_json::to_writer(line, &value);
}

impl Visit for FieldWriter<'_> {
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

    use crate::{Secret, observe::tests::Lines, secrets::stored};

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
        assert_eq!(
            lines,
            [json!({
                "level": "WARN", "message": "it \\ says", "text": "\"quoted\"\n\u{1}é",
                "nan": null, "whole": -3, "yes": true, "debug": "[1, 2]", "error": "shown",
            })]
        );
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
        assert_eq!(
            lines,
            [json!({
                "level": "INFO", "message": "later: \"[secret]\"", "key": "[secret]",
                "pin": "[secret]", "span": {"name": "background", "key": "[secret]"},
            })]
        );
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
