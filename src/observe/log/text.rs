//! Fields in text lines, without the secrets of calls, and without characters that begin another
//! line or control a terminal.

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

/// The format of `tracing-subscriber`, with each field redacted first, and escaped.
pub(super) struct TextFormatter;

impl<'writer> FormatFields<'writer> for TextFormatter {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut text = String::new();
        let visitor = DefaultVisitor::new(Writer::new(&mut text), true);
        let mut redacting = RedactingWriter(visitor);
        fields.record(&mut redacting);
        redacting.0.finish()?;
        text.chars().try_for_each(|it| match it {
            it if is_unsafe(it) => write!(writer, "{}", it.escape_default()),
            it => writer.write_char(it),
        })
    }
}

/// Returns true for control characters, for Unicode's line separators, and for characters that
/// change the direction of a text (UAX #9, 2).
pub(crate) fn is_unsafe(it: char) -> bool {
    let separators = ['\u{2028}', '\u{2029}', '\u{61c}', '\u{200e}', '\u{200f}'];
    let directions = ['\u{202a}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    it.is_control() || separators.contains(&it) || directions.iter().any(|all| all.contains(&it))
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

#[cfg(test)]
mod tests {
    use super::TextFormatter;
    use crate::{Secret, observe::tests::Lines, secrets::stored};
    use tracing_subscriber::layer::SubscriberExt;

    /// Returns what is logged as text.
    fn printed(log: impl FnOnce()) -> String {
        let lines = Lines::default();
        let layer = tracing_subscriber::fmt::layer()
            .without_time()
            .with_ansi(false);
        let layer = layer.fmt_fields(TextFormatter).with_writer(lines.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        lines.text()
    }

    #[test]
    fn secrets_of_the_store_are_redacted_in_every_field() {
        stored::remember(&Secret::from("a \"late\" key of text"));
        let text = printed(|| {
            let key = "a \"late\" key of text";
            let _span = tracing::info_span!("background", key).entered();
            tracing::info!(key, debug = ?key, "later: {key:?}");
        });
        assert_eq!(text.matches("[secret]").count(), 4, "{text}");
        assert!(!text.contains("of text"), "{text}");
    }

    #[test]
    fn an_event_is_one_line_that_no_terminal_obeys() {
        const HOSTILE: &str =
            "a\n{\"_aws\": 1}\r\u{1b}[2J\u{85}\u{2028}\u{2029}\u{202e}\u{9b}\u{2066}é";
        let text = printed(|| {
            let span = tracing::info_span!("call", display = %HOSTILE, text = HOSTILE);
            let _span = span.entered();
            let error = std::io::Error::other(HOSTILE);
            let error: &(dyn std::error::Error + 'static) = &error;
            tracing::info!(display = %HOSTILE, "na\nme" = HOSTILE, error, "{HOSTILE}");
        });
        let line = text.strip_suffix('\n').unwrap();
        assert_eq!(line.matches("[2J").count(), 6, "{line:?}");
        assert_eq!(line.matches('é').count(), 6, "{line:?}");
        assert!(line.contains(r#"na\nme="a\n{\"_aws"#), "{line:?}");
        let others: String = line
            .chars()
            .filter(|it| it.is_control() || !it.is_ascii())
            .collect();
        assert_eq!(others, "é".repeat(6), "{line:?}");
    }
}
