//! Tools whose functions are not async.

use std::{
    thread,
    time::{Duration, Instant},
};

use lambda_tools::{Context, Failure, Tool, Toolkit, testing::LambdaFunction};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{self, failure, value};

/// The time limit of the tools that exceed it.
const SHORT: Duration = Duration::from_millis(500);

/// The id of every call without one, whose clock and ids are fixed.
const FIXED_CALL_ID: &str = "00000000-0000-4000-8000-000000000000";

/// Says what to do.
#[derive(Deserialize, JsonSchema)]
struct Work {
    /// The kind of work.
    kind: String,
}

#[expect(clippy::needless_pass_by_value, reason = "a tool owns its parameters")]
fn work(input: Work, cx: Context) -> Result<String, Failure> {
    match &*input.kind {
        "call id" => Ok(cx.call_id().to_owned()),
        "read" => Ok(std::fs::read_to_string("/nowhere")?),
        "panic" => panic!("with a secret in it"),
        // As blocking clients do.
        "runtime" => Ok(tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(async { "done".to_owned() })),
        _ => {
            thread::sleep(Duration::from_secs(1));
            Ok("late".to_owned())
        }
    }
}

fn toolkit() -> Toolkit {
    let repeat = |input: Work| Ok::<_, Failure>(input.kind);
    let greet =
        |greeting: String, input: Work| Ok::<_, Failure>(format!("{greeting}, {}", input.kind));
    let state_of = |state: u8, _: Work, _: Context| Ok::<_, Failure>(state);
    let length = |input: Value| Ok(json!(input.as_object().map(serde_json::Map::len)));
    let object = json!({"type": "object"});
    Toolkit::new([
        Tool::new("Plain.Work@1.0.0", work).timeout(SHORT),
        Tool::new("Plain.Repeat@1.0.0", repeat),
        Tool::with_state("Plain.Greet@1.0.0", &"Hello".to_owned(), greet),
        Tool::with_state("Plain.State@1.0.0", &7, state_of),
        Tool::dynamic("Plain.Length@1.0.0", "Counts.", object, json!({}), length),
    ])
    .unwrap()
}

fn work_of(kind: &str) -> Value {
    json!({ "kind": kind })
}

async fn assert_works(function: &LambdaFunction) {
    let value = value(function, "Plain.Repeat", work_of("x")).await;
    assert_eq!(value, "x", "the next call");
}

#[tokio::test]
async fn a_function_that_is_not_async_is_a_tool() {
    let function = support::function(toolkit());
    for (tool, kind, expected) in [
        ("Plain.Greet", "Ada", json!("Hello, Ada")),
        ("Plain.State", "x", json!(7)),
        ("Plain.Length", "x", json!(1)),
        ("Plain.Work", "runtime", json!("done")),
        ("Plain.Work", "call id", json!(FIXED_CALL_ID)),
    ] {
        let value = value(&function, tool, work_of(kind)).await;
        assert_eq!(value, expected, "{tool} {kind}");
    }
}

#[tokio::test]
async fn its_errors_and_panics_are_failures() {
    let function = support::function(toolkit());
    let internal = "The tool stopped because of an internal error";
    for (kind, name, text) in [
        ("read", "developer_message", "No such file"),
        ("panic", "message", internal),
    ] {
        let error = failure(&function, "Plain.Work", work_of(kind)).await;
        assert!(error[name].as_str().unwrap().contains(text), "{error}");
        assert!(!error.to_string().contains("secret"));
        assert_works(&function).await;
    }
}

/// On one thread, which all tools of this runtime would share.
#[tokio::test]
async fn it_ends_at_its_time_limit_while_other_calls_run() {
    let function = support::function(toolkit());
    let begun = Instant::now();
    let late = async {
        failure(&function, "Plain.Work", work_of("sleep")).await;
        begun.elapsed()
    };
    let other = async {
        assert_works(&function).await;
        begun.elapsed()
    };
    let (late, other) = tokio::join!(late, other);
    assert!(other < SHORT, "{other:?}");
    assert!(
        (SHORT..Duration::from_millis(900)).contains(&late),
        "{late:?}"
    );
}
