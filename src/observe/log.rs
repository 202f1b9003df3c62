//! The destination of log lines: one subscriber, unless the program has installed its own.

mod json;
pub(crate) mod text;

use std::env;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    Layer, Registry, filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

use json::JsonFormatter;
use text::TextFormatter;

use super::{otlp::Telemetry, spans};

/// Writes short lines for a developer, or lines in JSON.
pub(crate) fn to_terminal(telemetry: &Telemetry, in_json: bool) {
    let lines = if in_json {
        json_lines()
    } else {
        let lines = fmt::layer().without_time().with_target(false);
        lines.fmt_fields(TextFormatter).boxed()
    };
    install(lines, filter(env::var("RUST_LOG").ok()), telemetry);
}

fn json_lines() -> Box<dyn Layer<Registry> + Send + Sync> {
    let lines = fmt::layer().fmt_fields(JsonFormatter);
    lines.event_format(JsonFormatter).boxed()
}

fn install(lines: Box<dyn Layer<Registry> + Send + Sync>, filter: Targets, telemetry: &Telemetry) {
    let installed = tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .with(telemetry.layer())
        .try_init();
    // Fails if the program has installed its own subscriber, which takes precedence.
    if installed.is_err() && telemetry.is_on() {
        tracing::warn!(
            "the program installed its own tracing subscriber, so lambda_tools exports no spans"
        );
    }
    Telemetry::warn_without_feature();
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
    let filter = filter(level.ok());
    let format = env::var("AWS_LAMBDA_LOG_FORMAT").unwrap_or_default();
    let lines = if format.eq_ignore_ascii_case("text") {
        let lines = fmt::layer().with_target(false).without_time();
        lines.with_ansi(false).fmt_fields(TextFormatter).boxed()
    } else {
        json_lines()
    };
    install(lines, filter, telemetry);
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

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn whole_events_are_never_logged() {
        for text in [
            "trace",
            "TRACE",
            "lambda_runtime=trace",
            "info,lambda_runtime::layers=trace",
        ] {
            let filter = filter(Some(text.to_owned()));
            assert!(
                !filter.would_enable("lambda_runtime::layers", &Level::TRACE),
                "{text}"
            );
        }
    }

    #[test]
    fn the_setting_is_a_level_or_levels_per_target() {
        let enables = |text: Option<&str>, target: &str, level| {
            filter(text.map(str::to_owned)).would_enable(target, &level)
        };
        assert!(enables(None, "x", Level::INFO));
        assert!(!enables(None, "x", Level::DEBUG));
        assert!(enables(Some("nonsense=?"), "x", Level::INFO));
        assert!(enables(Some("DEBUG"), "x", Level::DEBUG));
        assert!(!enables(Some("warn"), "x", Level::INFO));
        assert!(enables(Some("warn,x=debug"), "x::y", Level::DEBUG));
        assert!(!enables(Some("warn,x=debug"), "y", Level::DEBUG));
        assert!(!enables(Some("error"), "lambda_runtime", Level::INFO));
        assert!(!enables(Some("trace"), "rmcp::service", Level::INFO));
        assert!(enables(None, "rmcp::service", Level::WARN));
    }
}
