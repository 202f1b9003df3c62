//! Tools whose calls take long, in the background or with progress.

use std::{env, fs::OpenOptions, io::Write, time::Duration};

use lambda_tools::{Context, Failure, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// Counts, and says how far it has got.
#[derive(Deserialize, JsonSchema)]
struct Count {
    /// The number to count to; 3 by default.
    to: Option<u32>,
    /// The milliseconds for each step; 100 by default.
    step_ms: Option<u64>,
    /// What happens at the end; nothing by default.
    end: Option<End>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum End {
    /// It fails.
    Fail,
    /// It panics.
    Panic,
}

async fn count(Count { to, step_ms, end }: Count, cx: Context) -> Result<u32, Failure> {
    let (to, pause) = (
        to.unwrap_or(3),
        Duration::from_millis(step_ms.unwrap_or(100)),
    );
    for done in 1..=to {
        if cx.is_cancelled() {
            return Err(Failure::new("The call was cancelled"));
        }
        tokio::time::sleep(pause).await;
        cx.progress(done, f64::from(to), format!("counted to {done}"));
    }
    match end {
        None => Ok(to),
        Some(End::Fail) => Err(Failure::new("It cannot count further")),
        Some(End::Panic) => panic!("on request"),
    }
}

/// Writes its call id to the file EFFECTS, after a while.
#[derive(Deserialize, JsonSchema)]
struct Effect {
    /// The milliseconds before the effect; 0 by default.
    before_ms: Option<u64>,
    /// The milliseconds after the effect; 0 by default.
    after_ms: Option<u64>,
    /// A text that is written, too.
    text: Option<String>,
}

async fn effect(input: Effect, cx: Context) -> Result<String, Failure> {
    let pause = async |ms: Option<u64>| {
        tokio::time::sleep(Duration::from_millis(ms.unwrap_or_default())).await;
    };
    pause(input.before_ms).await;
    let path = env::var("EFFECTS").map_err(Failure::from_error)?;
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let text = input.text.unwrap_or_default();
    // One write, so that those of several processes do not mix.
    file.write_all(format!("{} {text}\n", cx.call_id()).as_bytes())?;
    pause(input.after_ms).await;
    Ok(format!("written for {}", cx.call_id()))
}

/// Returns the tools.
pub(super) fn tools() -> Vec<Tool> {
    let limit = Duration::from_mins(15);
    vec![
        Tool::new("Long.Report@1.0.0", count).timeout(limit),
        Tool::new("Long.Count@1.0.0", count).background(),
        Tool::new("Long.Write@1.0.0", effect).background(),
        Tool::new("Long.Order@1.0.0", effect).once_within(Duration::from_mins(1)),
        Tool::new("Long.Once@1.0.0", effect)
            .background()
            .run_at_most_once(),
    ]
}
