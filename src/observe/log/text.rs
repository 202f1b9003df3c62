//! Fields in text lines, without the secrets of calls.

use std::fmt::{self, Debug};

use tracing::field::{Field, Visit};
use tracing_subscriber::{
    field::{RecordFields, VisitOutput},
    fmt::{
        FormatFields,
        format::{DefaultVisitor, Writer},
    },
};

use crate::observe::confidential::without_secrets;

/// Writes fields as `tracing-subscriber` does, but redacts each of them first.
pub(super) struct TextFormatter;

impl<'writer> FormatFields<'writer> for TextFormatter {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut redacting = RedactingWriter(DefaultVisitor::new(writer, true));
        fields.record(&mut redacting);
        redacting.0.finish()
    }
}

struct RedactingWriter<'writer>(DefaultVisitor<'writer>);

impl Visit for RedactingWriter<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let redacted = without_secrets(value);
        self.0
            .record_str(field, redacted.as_deref().unwrap_or(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        let redacted = without_secrets(&text);
        let text = redacted.as_deref().unwrap_or(&text);
        self.0.record_debug(field, &format_args!("{text}"));
    }
}
