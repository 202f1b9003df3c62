//! Lines of JSON, one object each, in which a call's ids stand where queries look for them.
//!
//! `tracing-subscriber`'s own JSON has them in an object of the span, so that a query for a
//! `requestId` finds the line of the call, but not those that its tool has left.

use std::fmt::{self, Debug, Write};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormattedFields,
        format::{JsonFields, Writer},
        time::{FormatTime, SystemTime},
    },
    registry::{LookupSpan, SpanRef},
};

/// The spans that say whose a line is.
const OURS: [&str; 2] = ["lambda_tools::call", "lambda_tools::invocation"];

pub(super) struct Json;

impl<S> FormatEvent<S, JsonFields> for Json
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::with_capacity(512);
        line.push_str("{\"timestamp\":\"");
        SystemTime.format_time(&mut Writer::new(&mut line))?;
        write!(line, "\",\"level\":\"{}\"", event.metadata().level())?;
        event.record(&mut Fields(&mut line));
        // What names the request itself is the line of a call.
        if event.metadata().fields().field("requestId").is_none() {
            of_spans(context, &mut line)?;
        }
        line.push('}');
        writeln!(writer, "{line}")
    }
}

/// The fields of our innermost span beside those of the event, and the innermost span of the
/// tool's own, if there is one.
fn of_spans<S>(context: &FmtContext<'_, S, JsonFields>, line: &mut String) -> fmt::Result
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let mut theirs = None;
    let from_within = context.lookup_current().into_iter();
    for span in from_within.flat_map(|span| span.scope()) {
        if OURS.contains(&span.metadata().target()) {
            if let Some(fields) = inner(&span).filter(|fields| !fields.is_empty()) {
                write!(line, ",{fields}")?;
            }
            break;
        }
        theirs.get_or_insert(span);
    }
    if let Some(span) = theirs {
        write!(line, ",\"span\":{{\"name\":{}", text(span.name()))?;
        if let Some(fields) = inner(&span).filter(|fields| !fields.is_empty()) {
            write!(line, ",{fields}")?;
        }
        line.push('}');
    }
    Ok(())
}

/// A span's fields as they stand between the braces.
fn inner<S: for<'span> LookupSpan<'span>>(span: &SpanRef<'_, S>) -> Option<String> {
    let extensions = span.extensions();
    let fields = extensions.get::<FormattedFields<JsonFields>>()?;
    let fields = fields.fields.strip_prefix('{')?.strip_suffix('}')?;
    Some(fields.to_owned())
}

fn text(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// Writes an event's fields.
struct Fields<'a>(&'a mut String);

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: impl fmt::Display) {
        // Writing to a string does not fail.
        let _ = write!(self.0, ",\"{}\":{value}", field.name());
    }
}

impl Visit for Fields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, serde_json::Value::from(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, text(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, text(&format!("{value:?}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use serde_json::{Value, json};
    use tracing_subscriber::{fmt::MakeWriter, layer::SubscriberExt};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    /// What is printed, without the times.
    fn printed(log: impl FnOnce()) -> Vec<Value> {
        let lines = Lines::default();
        let layer = tracing_subscriber::fmt::layer()
            .fmt_fields(JsonFields::new())
            .event_format(Json)
            .with_writer(lines.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let line = |line: &str| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("timestamp").unwrap();
            line
        };
        text.lines().map(line).collect()
    }

    #[test]
    fn any_value_is_json() {
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
    fn the_calls_ids_are_fields_of_what_it_logs() {
        let lines = printed(|| {
            let outer =
                tracing::error_span!(target: "lambda_tools::invocation", "x", requestId = "r-0");
            let _outer = outer.entered();
            let call = tracing::error_span!(target: "lambda_tools::call", "call", requestId = "r-1", call_id = "c");
            let _call = call.entered();
            tracing::info!(tool = "a", "of a tool");
            tracing::info!(requestId = "r-2", "of the call");
            let _own = tracing::info_span!("theirs", page = 2).entered();
            let _inner = tracing::info_span!("innermost").entered();
            tracing::info!("deeper");
        });
        assert_eq!(
            lines,
            [
                json!({"level": "INFO", "message": "of a tool", "tool": "a", "requestId": "r-1", "call_id": "c"}),
                json!({"level": "INFO", "message": "of the call", "requestId": "r-2"}),
                json!({
                    "level": "INFO", "message": "deeper", "requestId": "r-1", "call_id": "c",
                    "span": {"name": "innermost"},
                }),
            ]
        );
    }
}
