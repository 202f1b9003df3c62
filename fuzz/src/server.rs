//! The servers of the targets, with tools of every kind.

use std::{sync::LazyLock, time::Duration};

use lambda_tools::{
    Auth, Content, Context, DirectCalls, Failure, OAuth, Server, ServerInfo, Tool, Toolkit,
    idempotency::Idempotency, oauth::Provider, secrets::Secrets, testing::LambdaFunction,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    PLANTED_PANIC,
    forms::{Layer, SecretSearch},
    store::ResettableStore,
};

/// The secrets in the store of the servers, by their ids. No response may contain one of them.
pub(crate) const SECRETS: [(&str, &str); 5] = [
    (
        "TWILIO_API_KEY",
        "AC-planted/1+2&3=4:token \"planted\"\\56789",
    ),
    ("API_KEY", "key-planted-of-the-caller-0123456789"),
    (JWT_SECRET_ID, JWT_SECRET),
    ("TOOLS_OAUTH_KEY", "oauth-key-planted-0123456789abcdef"),
    ("GOOGLE_CLIENT_SECRET", "client-secret-planted-0123456789"),
];
pub(crate) const JWT_SECRET_ID: &str = "JWT_SECRET";
pub(crate) const JWT_SECRET: &str = "jwt-planted-0123456789abcdef0123456789";

pub(crate) static SEARCH: LazyLock<SecretSearch> =
    LazyLock::new(|| SecretSearch::new(SECRETS.map(|(_, value)| value)));

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

/// Fails with its secret in a form that the input chooses, as third-party code does.
async fn send(input: Send, cx: Context) -> Result<String, Failure> {
    let mut text = cx.secret("TWILIO_API_KEY")?.expose().to_owned();
    for byte in input.message.bytes().take(3) {
        text = Layer::of(byte).apply(&text);
    }
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

pub(crate) fn open_schema() -> Value {
    json!({"type": "object", "additionalProperties": true})
}

/// Tools of every kind, some with the ids of the tools in `events/`.
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
    let any = || json!({});
    let tools = [
        Tool::new("Calculator.Add@1.0.0", add),
        Tool::new("Calculator.Add@2.0.0", add).title("Add"),
        Tool::new("System.GetTimestamp@1.0.0", timestamp).read_only(true),
        Tool::new("Doorbell.Ring@0.1.0", ring),
        Tool::new("SMS.Send@0.1.2", send).secret("TWILIO_API_KEY"),
        Tool::dynamic(
            "Gmail.GetEmails@1.2.0",
            "Reads.",
            open_schema(),
            any(),
            emails,
        )
        .authorization("google", ["https://www.googleapis.com/auth/gmail.readonly"])
        .user_id(),
        Tool::new("Fuzz.Many@1.0.0", many).idempotent(),
        Tool::dynamic(
            "Fuzz.Dynamic@1.0.0",
            "Echoes.",
            open_schema(),
            any(),
            dynamic,
        )
        .idempotent(),
        Tool::dynamic("Fuzz.Composite@1.0.0", "Echoes.", composite, any(), dynamic)
            .run_at_most_once(),
        Tool::new("Fuzz.Ask@1.0.0", ask),
        Tool::dynamic(
            "Fuzz.Panic@1.0.0",
            "Panics.",
            open_schema(),
            Value::Null,
            panics,
        ),
        Tool::new("Fuzz.Picture@1.0.0", picture).description("Draws."),
        Tool::new("Fuzz.Nan@1.0.0", not_a_number).scope("numbers"),
        Tool::new("Fuzz.User@1.0.0", ring).user_id(),
        Tool::new("Fuzz.Absent@1.0.0", timestamp).secret("NOT_STORED"),
    ];
    Toolkit::new(tools).expect("the tools are valid")
}

/// A function and its store of calls and challenges.
pub(crate) struct FuzzedFunction {
    pub(crate) function: LambdaFunction,
    pub(crate) store: ResettableStore,
}

/// The settings of a server, which the first byte of an event's input chooses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    Open,
    Protected,
    Small,
}

impl Setting {
    pub(crate) fn of(byte: u8) -> Self {
        match byte {
            b'k' => Self::Protected,
            b's' => Self::Small,
            _ => Self::Open,
        }
    }
}

/// The address is never reached: no challenge of these servers can be completed.
pub(crate) fn google(token_url: &str) -> Provider {
    let authorize = "https://accounts.example/authorize";
    Provider::new(
        "google",
        "client",
        "GOOGLE_CLIENT_SECRET",
        authorize,
        token_url,
    )
    .title("Google <&> \"Co\"")
}

pub(crate) fn function(setting: Setting) -> FuzzedFunction {
    let store = ResettableStore::default();
    let oauth = OAuth::with([google("http://127.0.0.1:9/token")]).in_store(store.clone());
    let server = Server::new(toolkit())
        .secrets(Secrets::fixed(SECRETS))
        .idempotency(Idempotency::in_store(store.clone()))
        .oauth(oauth)
        .public_url("https://tools.example")
        .info(ServerInfo::new("Tools <of> \"all\" & one", "1.0.0"));
    let server = match setting {
        Setting::Open => server.explorer(true),
        Setting::Protected => {
            let auth = Auth::api_key_ids(["API_KEY"]).or(Auth::jwt_secret_ids([JWT_SECRET_ID]));
            server.auth(auth.subject_is_user()).base_path("/agents")
        }
        Setting::Small => server
            .max_request_size(2048)
            .direct_calls(DirectCalls::Errors)
            .base_path("/agents"),
    };
    let function = LambdaFunction::new(server);
    FuzzedFunction { function, store }
}

/// The functions with each setting.
pub(crate) struct Functions([FuzzedFunction; 3]);

impl Functions {
    pub(crate) fn new() -> Self {
        let settings = [Setting::Open, Setting::Protected, Setting::Small];
        Self(settings.map(function))
    }

    pub(crate) fn get(&self, setting: Setting) -> &FuzzedFunction {
        &self.0[setting as usize]
    }
}
