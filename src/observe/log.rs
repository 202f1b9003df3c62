//! Where log lines go: one subscriber, unless the program has installed its own.

mod json;
mod text;

use std::env;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    Layer, Registry, filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

use json::JsonFormatter;
use text::TextFormatter;

use super::{otlp::Telemetry, spans};

/// Short lines for a developer.
pub(crate) fn to_terminal(telemetry: &Telemetry) {
    let lines = fmt::layer().without_time().with_target(false);
    let lines = lines.fmt_fields(TextFormatter).boxed();
    install(lines, filter(env::var("RUST_LOG").ok()), telemetry);
}

fn install(lines: Box<dyn Layer<Registry> + Send + Sync>, filter: Targets, telemetry: &Telemetry) {
    let installed = tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .with(telemetry.layer())
        .try_init();
    // It fails where the program has installed a subscriber of its own, which is then the right one.
    if installed.is_err() && telemetry.is_on() {
        tracing::warn!(
            "this program has a tracing subscriber of its own, so that lambda_tools exports no spans"
        );
    }
    #[cfg(not(feature = "otlp"))]
    telemetry.explain();
}

/// Lines for CloudWatch, in the format and from the level on that the function's configuration
/// asks for. JSON unless it asks for text.
pub(crate) fn to_cloudwatch(telemetry: &Telemetry) {
    let level = env::var("AWS_LAMBDA_LOG_LEVEL").or_else(|_| env::var("RUST_LOG"));
    // Lambda's highest level; `tracing` has none above errors.
    let level = level.map(|level| match &*level {
        "FATAL" => "error".to_owned(),
        _ => level,
    });
    let filter = filter(level.ok());
    let format = env::var("AWS_LAMBDA_LOG_FORMAT").unwrap_or_default();
    let lines = fmt::layer().with_target(false);
    let lines = if format.eq_ignore_ascii_case("text") {
        let lines = lines.without_time().with_ansi(false);
        lines.fmt_fields(TextFormatter).boxed()
    } else {
        lines
            .fmt_fields(JsonFormatter)
            .event_format(JsonFormatter)
            .boxed()
    };
    install(lines, filter, telemetry);
}

/// A level, or levels for targets, as in `info,hyper=debug`. What cannot be understood is `info`.
fn filter(asked_for: Option<String>) -> Targets {
    /// At TRACE they print whole events, and with them every token and secret in them.
    const PRINT_EVENTS: [&str; 2] = ["lambda_runtime", "lambda_extension"];
    let asked_for = asked_for.and_then(|text| text.parse::<Targets>().ok());
    let asked_for = asked_for.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let level = asked_for.default_level().unwrap_or(LevelFilter::OFF);
    let others = asked_for
        .iter()
        .filter(|(target, _)| !PRINT_EVENTS.iter().any(|it| target.starts_with(it)))
        .filter(|(target, _)| *target != spans::TARGET);
    let others = others.map(|(target, level)| (target.to_owned(), level));
    Targets::new()
        .with_default(level)
        .with_targets(others)
        // They are for the export; here they would stand in the place of the call.
        .with_target(spans::TARGET, LevelFilter::OFF)
        .with_targets(PRINT_EVENTS.map(|it| (it, level.min(LevelFilter::INFO))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[tokio::test]
    async fn a_task_that_outlives_its_call_is_held_to_its_secrets() {
        use crate::{
            Context, Failure, Tool, Toolkit, observe::lines::Lines, testing::LambdaFunction,
        };
        use serde_json::{Value, json};
        use tokio::sync::Notify;

        static GO: Notify = Notify::const_new();
        static DONE: Notify = Notify::const_new();

        async fn leave(_: Value, cx: Context) -> Result<Value, Failure> {
            let secret = cx.secret("KEY")?.clone();
            tokio::spawn(async move {
                GO.notified().await;
                let key = secret.expose();
                let span = tracing::info_span!("behind", key);
                let _span = span.entered();
                tracing::info!(key, bytes = ?key.as_bytes(), pin = 12_345_678, "later: {key:?}");
                DONE.notify_one();
            });
            Ok(Value::Null)
        }

        let lines = [Lines::default(), Lines::default()];
        let text = fmt::layer().with_ansi(false).fmt_fields(TextFormatter);
        let json = fmt::layer()
            .fmt_fields(JsonFormatter)
            .event_format(JsonFormatter);
        let subscriber = tracing_subscriber::registry()
            .with(text.with_writer(lines[0].clone()))
            .with(json.with_writer(lines[1].clone()));
        let _subscriber = tracing::subscriber::set_default(subscriber);
        let tool = Tool::dynamic(
            "T.T@1.0.0",
            "d",
            json!({"type": "object"}),
            json!({}),
            leave,
        );
        let function =
            LambdaFunction::new(Toolkit::new([tool.secret("KEY").secret("PIN")]).unwrap());
        let secrets =
            json!([{"id": "KEY", "value": "a \"late\" key"}, {"id": "PIN", "value": "12345678"}]);
        let body = json!({"tool_id": "T.T", "context": {"secrets": secrets}}).to_string();
        let event = json!({
            "version": "2.0", "rawPath": "/tools/call", "rawQueryString": "", "headers": {},
            "requestContext": {"http": {"method": "POST", "path": "/tools/call"}, "stage": "$default"},
            "body": body, "isBase64Encoded": false,
        });
        let answer = function.answer(&event.to_string()).await.unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        drop(function);
        GO.notify_one();
        DONE.notified().await;
        for lines in lines {
            let text = lines.text();
            let line = text.lines().last().unwrap();
            assert!(
                line.contains("later: \\\"[secret]\\\"") || line.contains("later: \"[secret]\""),
                "{line}"
            );
            assert!(line.matches("[secret]").count() >= 5, "{line}");
            for left in ["late\\\"", "late\"", "108, 97, 116", "12345678"] {
                assert!(!line.contains(left), "{line}");
            }
        }
    }

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
    fn a_level_or_levels_for_targets_can_be_asked_for() {
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
    }
}
