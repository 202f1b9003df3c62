//! The example tools of the specifications, without third-party APIs, and a program that serves
//! them.

use std::{fs::OpenOptions, io::Write, process::Command, time::Duration};

use lambda_tools::{Context, Failure, Server, ServerInfo, Tool, Toolkit, serve};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use test_support::assert_program;

/// Adds two numbers together.
#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number to add.
    a: f64,
    /// The second number to add.
    b: f64,
}

async fn add(input: Add) -> Result<f64, Failure> {
    Ok(input.a + input.b)
}

/// Rings a doorbell.
#[derive(Deserialize, JsonSchema)]
struct Ring {
    /// The id of the doorbell.
    doorbell_id: String,
}

async fn ring(input: Ring) -> Result<(), Failure> {
    if input.doorbell_id == "doorbell42" {
        return Ok(());
    }
    Err(Failure::new("Doorbell ID not found")
        .developer_message("There is no such doorbell.")
        .prompt("ids: doorbell42")
        .retry_after(Duration::from_millis(500)))
}

/// Sends a text message.
#[derive(Deserialize, JsonSchema)]
struct Send {
    /// The recipient.
    to: String,
    /// The text of the message.
    message: String,
}

async fn send(input: Send, cx: Context) -> Result<Value, Failure> {
    // Like Twilio's key: account, token and sender.
    let key = cx.secret("TWILIO_API_KEY")?;
    if key.expose().split(':').count() != 3 || input.message.is_empty() {
        return Err(Failure::new("The message was not sent"));
    }
    Ok(json!({"status": "sent", "to": input.to}))
}

/// Gets a user's emails.
#[derive(Deserialize, JsonSchema)]
struct GetEmails {}

/// Writes the tokens it received to a file for its test.
async fn get_emails(_: GetEmails, cx: Context) -> Result<Value, Failure> {
    let token = cx.token("google")?;
    if let Some(file) = std::env::var_os("TOKENS") {
        let mut file = OpenOptions::new().create(true).append(true).open(file)?;
        file.write_all(format!("{}\n", token.expose()).as_bytes())?;
    }
    Ok(json!({"emails": [{"subject": "Welcome to Gmail"}]}))
}

fn tools() -> Vec<Tool> {
    let gmail_scope = "https://www.googleapis.com/auth/gmail.readonly";
    vec![
        Tool::new("Calculator.Add@1.0.0", add).idempotent(),
        Tool::new("Doorbell.Ring@0.1.0", ring),
        Tool::new("Gmail.GetEmails@1.2.0", get_emails)
            .authorization("google", [gmail_scope])
            .user_id()
            .idempotent(),
        Tool::new("SMS.Send@0.1.2", send)
            .secret("TWILIO_API_KEY")
            .run_at_most_once(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn serving_program_of_tests() {
    assert_program();
    let info = ServerInfo::new("Toolbox", "0.1.0");
    let server = Server::new(Toolkit::new(tools()).unwrap()).info(info);
    if let Err(error) = serve(server).await {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// Returns a command that serves these tools, with the features of this test build.
pub(crate) fn program() -> Command {
    test_support::program("tools::serving_program_of_tests")
}
