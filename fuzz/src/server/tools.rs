//! Tools of every kind: with and without secrets, grants and users, idempotent or run at most once,
//! typed and dynamic, some of which fail or panic.

use std::time::Duration;

use lambda_tools::{Content, Context, Failure, Tool, Toolkit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{PLANTED_PANIC, encodings::encodings_of};

/// Adds two numbers together.
#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number to add.
    a: f64,
    /// The second number to add.
    b: f64,
}

/// Takes nothing.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Rings a doorbell.
#[derive(Deserialize, JsonSchema)]
struct Ring {
    /// The doorbell.
    doorbell_id: String,
}

/// Sends a message.
#[derive(Deserialize, JsonSchema)]
struct Send {
    /// The recipient.
    to: String,
    /// The text.
    message: String,
}

/// Takes parameters of many kinds.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// A plain one.
    Plain,
    /// A special one.
    Special {
        /// A level.
        level: u8,
    },
}

/// Takes parameters of many kinds.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Many {
    /// A kind.
    kind: Option<Kind>,
    /// Numbers.
    #[serde(default)]
    numbers: Vec<i32>,
    /// A character.
    letter: Option<char>,
}

/// An answer.
#[derive(Deserialize, JsonSchema)]
struct Answer {
    /// A number.
    a: Option<u8>,
}

async fn add(input: Add) -> Result<f64, Failure> {
    Ok(input.a + input.b)
}

async fn timestamp(_: Nothing) -> Result<&'static str, Failure> {
    Ok("2023-10-05T12:00:00Z")
}

async fn ring(input: Ring) -> Result<(), Failure> {
    match input.doorbell_id.as_str() {
        "doorbell1" => Err(Failure::new("Doorbell ID not found")),
        "doorbell2" => Err(Failure::new("Busy").retry_after(Duration::from_secs(1))),
        _ => Ok(()),
    }
}

/// Fails with its secret in an encoding that the input chooses, as third-party code does.
async fn send(input: Send, cx: Context) -> Result<String, Failure> {
    let encodings = encodings_of(cx.secret("TWILIO_API_KEY")?.expose());
    let number = input.message.bytes().next().unwrap_or_default();
    let text = &encodings[usize::from(number) % encodings.len()];
    let text = format!(
        "no response from https://a.example/?k={text}&to={}",
        input.to
    );
    match input.to.as_bytes().first() {
        Some(b'p') => panic!("{PLANTED_PANIC}: {text}"),
        Some(b'd') => Err(Failure::new("No").developer_message(text)),
        Some(b'm') => Err(Failure::new("No").prompt(text).retry()),
        Some(b'q') => Err(std::io::Error::other(text))?,
        Some(b'+') => Ok("sent".to_owned()),
        _ => Err(Failure::new(text)),
    }
}

async fn emails(_: Value, cx: Context) -> Result<Value, Failure> {
    let token = cx.token("google")?;
    if token.expose().contains("rejected") {
        return Err(cx.token_rejected("google"));
    }
    Err(Failure::new(format!("cannot use {}", token.expose())))
}

async fn many(input: Many) -> Result<Many, Failure> {
    Ok(input)
}

async fn dynamic(input: Value) -> Result<Value, Failure> {
    Ok(input)
}

async fn ask(_: Nothing, cx: Context) -> Result<Option<u8>, Failure> {
    let answer = cx.ask::<Answer>("a", "How many?")?;
    Ok(answer.and_then(|it| it.a))
}

async fn panics(_: Value) -> Result<Value, Failure> {
    panic!("{PLANTED_PANIC}")
}

async fn picture(_: Nothing) -> Result<Content, Failure> {
    Ok(Content::bytes("image/png", [0x89, b'P', b'N', b'G']))
}

async fn not_a_number(_: Nothing) -> Result<f64, Failure> {
    Ok(f64::NAN)
}

/// Returns tools of every kind, some with the ids of the tools in `events/`.
pub(crate) fn toolkit() -> Toolkit {
    let composite = json!({
        "type": "object",
        "properties": {
            "list": {"type": "array", "description": "d", "maxItems": 4, "uniqueItems": true,
                "items": {"type": ["integer", "null"], "minimum": -3, "description": "d"}},
            "either": {"description": "d", "oneOf": [{"type": "string", "minLength": 2},
                {"type": "object", "required": ["x"], "properties": {
                    "x": {"type": "boolean", "description": "d"}}}]},
        },
        "required": ["list"],
        "additionalProperties": false,
    });
    let open = || json!({"type": "object", "additionalProperties": true});
    let any = || json!({});
    let tools = [
        Tool::new("Calculator.Add@1.0.0", add),
        Tool::new("Calculator.Add@2.0.0", add).title("Add"),
        Tool::new("System.GetTimestamp@1.0.0", timestamp).read_only(true),
        Tool::new("Doorbell.Ring@0.1.0", ring),
        Tool::new("SMS.Send@0.1.2", send).secret("TWILIO_API_KEY"),
        Tool::dynamic("Gmail.GetEmails@1.2.0", "Reads.", open(), any(), emails)
            .authorization("google", ["https://www.googleapis.com/auth/gmail.readonly"])
            .user_id(),
        Tool::new("Fuzz.Many@1.0.0", many).idempotent(),
        Tool::dynamic("Fuzz.Dynamic@1.0.0", "Echoes.", open(), any(), dynamic).idempotent(),
        Tool::dynamic("Fuzz.Composite@1.0.0", "Echoes.", composite, any(), dynamic)
            .run_at_most_once(),
        Tool::new("Fuzz.Ask@1.0.0", ask),
        Tool::dynamic("Fuzz.Panic@1.0.0", "Panics.", open(), Value::Null, panics),
        Tool::new("Fuzz.Picture@1.0.0", picture).description("Draws."),
        Tool::new("Fuzz.Nan@1.0.0", not_a_number).scope("numbers"),
        Tool::new("Fuzz.User@1.0.0", ring).user_id(),
        Tool::new("Fuzz.Absent@1.0.0", timestamp).secret("NOT_STORED"),
    ];
    Toolkit::new(tools).expect("the tools are valid")
}
