//! The destination of log lines: one subscriber, unless the program has installed its own.

mod json;

use std::{
    env,
    fmt::{Debug, Result},
};

use tracing::{
    field::{Field, Visit},
    level_filters::LevelFilter,
};
use tracing_subscriber::{
    Layer,
    field::{RecordFields, VisitOutput},
    filter::Targets,
    fmt::{
        self, FormatFields,
        format::{DefaultVisitor, Writer},
    },
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use super::{confidential::without_secrets, otlp::Telemetry, spans};
use json::JsonFormatter;

/// Writes short lines for a developer, or lines in JSON.
pub(crate) fn to_terminal(telemetry: &Telemetry, in_json: bool) {
    install(in_json, env::var("RUST_LOG").ok(), telemetry);
}

fn install(in_json: bool, levels: Option<String>, telemetry: &Telemetry) {
    let lines = fmt::layer().with_ansi(false);
    let lines = if in_json {
        let lines = lines.fmt_fields(JsonFormatter);
        lines.event_format(JsonFormatter).boxed()
    } else {
        let lines = lines.without_time().with_target(false);
        lines.fmt_fields(TextFormatter).boxed()
    };
    let installed = tracing_subscriber::registry()
        .with(lines.with_filter(filter(levels)))
        .with(telemetry.layer())
        .try_init();
    // Fails if the program has installed its own subscriber, which takes precedence.
    if installed.is_err() && telemetry.is_on() {
        tracing::warn!(
            "the program installed its own tracing subscriber, so lambda_tools exports no spans"
        );
    }
    let collector = env::var_os("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap_or_default();
    if !cfg!(feature = "otlp") && !collector.is_empty() {
        tracing::warn!(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but the program lacks lambda_tools' cargo feature 'otlp'"
        );
    }
}

/// Writes lines for CloudWatch, at the level and in the format set in the function's configuration.
/// The format is JSON unless it is set to text.
pub(crate) fn to_cloudwatch(telemetry: &Telemetry) {
    let level = env::var("AWS_LAMBDA_LOG_LEVEL").or_else(|_| env::var("RUST_LOG"));
    // Lambda's highest level; `tracing` has none above `error`.
    let level = level.map(|level| match &*level {
        "FATAL" => "error".to_owned(),
        _ => level,
    });
    let format = env::var("AWS_LAMBDA_LOG_FORMAT").unwrap_or_default();
    let in_json = !format.eq_ignore_ascii_case("text");
    install(in_json, level.ok(), telemetry);
}

/// Parses a level, or levels per target, as in `info,hyper=debug`. An invalid setting means `info`.
fn filter(setting: Option<String>) -> Targets {
    /// At TRACE these crates print whole events and messages, including every token and secret in
    /// them; rmcp prints at INFO what servers say about themselves.
    const PRINT_EVENTS: [(&str, LevelFilter); 3] = [
        ("lambda_runtime", LevelFilter::INFO),
        ("lambda_extension", LevelFilter::INFO),
        ("rmcp", LevelFilter::WARN),
    ];
    let targets = setting.and_then(|text| text.parse::<Targets>().ok());
    let targets = targets.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let level = targets.default_level().unwrap_or(LevelFilter::OFF);
    let others = targets
        .iter()
        .filter(|(target, _)| !PRINT_EVENTS.iter().any(|(it, _)| target.starts_with(it)))
        .filter(|(target, _)| *target != spans::TARGET);
    let others = others.map(|(target, level)| (target.to_owned(), level));
    Targets::new()
        .with_default(level)
        .with_targets(others)
        // These spans are only for the export; in the log they would take the place of the call's.
        .with_target(spans::TARGET, LevelFilter::OFF)
        .with_targets(PRINT_EVENTS.map(|(it, most)| (it, level.min(most))))
}

/// The format of `tracing-subscriber`, with each field redacted first, and escaped.
struct TextFormatter;

impl<'writer> FormatFields<'writer> for TextFormatter {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> Result {
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
    use super::*;
    use test_support::lines::Lines;

    use crate::{Secret, secret::stored};

    #[test]
    fn the_setting_is_a_level_or_levels_per_target_but_whole_events_are_never_logged() {
        for row in [
            " x INFO yes",
            " x DEBUG no",
            " rmcp::service WARN yes",
            "nonsense=? x INFO yes",
            "DEBUG x DEBUG yes",
            "warn x INFO no",
            "warn,x=debug x::y DEBUG yes",
            "warn,x=debug y DEBUG no",
            "error lambda_runtime INFO no",
            "trace rmcp::service INFO no",
            "trace lambda_runtime::layers TRACE no",
            "lambda_runtime=trace lambda_runtime TRACE no",
            "info,lambda_runtime::layers=trace lambda_runtime::layers TRACE no",
        ] {
            let [text, target, level, is_enabled] = row.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{row}");
            };
            let setting = (!text.is_empty()).then(|| text.to_owned());
            let enables = filter(setting).would_enable(target, &level.parse().unwrap());
            assert_eq!(enables, is_enabled == "yes", "{row}");
        }
    }

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
