//! Text messages through Twilio.
//!
//! The secret `TWILIO_API_KEY` has three parts, separated by colons: the account SID, the auth
//! token and the sender, which is a phone number (`AC…:token:+15550001111`) or a messaging
//! service's SID (`AC…:token:MG…`). Reference: Twilio's Messages resource.

use std::sync::Arc;

use lambda_tools::{Context, Failure, Secret, Tool};
use reqwest::{Response, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Endpoints, error};

/// Returns the tools for text messages.
#[must_use]
pub fn tools(endpoints: Arc<Endpoints>) -> Vec<Tool> {
    let send = move |input: Send, cx: Context| {
        let endpoints = Arc::clone(&endpoints);
        async move { send(&endpoints, input, &cx).await }
    };
    let tool = Tool::new("SMS.Send@0.1.2", send).secret("TWILIO_API_KEY");
    // A repeated call must not send a message that may already have been sent.
    vec![tool.run_at_most_once()]
}

/// Sends SMS messages using Twilio.
#[derive(Deserialize, JsonSchema)]
struct Send {
    /// Recipient phone number.
    // E.164: a plus sign, then 2 to 15 digits.
    #[schemars(regex(pattern = r"^\+[1-9][0-9]{1,14}$"))]
    to: String,
    /// Message content to send.
    // Twilio rejects empty messages and those over 1,600 characters.
    #[schemars(length(min = 1, max = 1600))]
    message: String,
}

#[derive(JsonSchema, Serialize)]
struct Sent {
    /// Status of the SMS sending operation.
    status: String,
}

/// Twilio's response to an accepted message.
#[derive(Deserialize)]
struct Message {
    status: String,
}

async fn send(endpoints: &Endpoints, input: Send, cx: &Context) -> Result<Sent, Failure> {
    let mut response = post(endpoints, &input, cx.secret("TWILIO_API_KEY")?).await?;
    // Twilio has not sent anything yet: a second attempt with another key sends one message.
    if response.status() == StatusCode::UNAUTHORIZED
        && let Some(rotated) = cx.secret_rejected("TWILIO_API_KEY").await
    {
        response = post(endpoints, &input, &rotated).await?;
    }
    if !response.status().is_success() {
        return Err(failure_of(response, cx).await);
    }
    let message: Message = response.json().await.map_err(|error| no_response(&error))?;
    Ok(Sent {
        status: message.status,
    })
}

async fn post(endpoints: &Endpoints, input: &Send, key: &Secret) -> Result<Response, Failure> {
    let account = Account::parse(key)?;
    let Endpoints {
        twilio, timeout, ..
    } = endpoints;
    let url = format!("{twilio}/2010-04-01/Accounts/{}/Messages.json", account.sid);
    let sender = if account.sender.starts_with("MG") {
        "MessagingServiceSid"
    } else {
        "From"
    };
    let form = [
        ("To", &*input.to),
        (sender, account.sender),
        ("Body", &*input.message),
    ];
    let request = crate::http()
        .post(url)
        .basic_auth(account.sid, Some(account.token))
        .form(&form)
        .timeout(*timeout);
    request.send().await.map_err(|error| no_response(&error))
}

/// The parts of `TWILIO_API_KEY`.
struct Account<'a> {
    sid: &'a str,
    token: &'a str,
    sender: &'a str,
}

impl<'a> Account<'a> {
    fn parse(secret: &'a Secret) -> Result<Self, Failure> {
        let parts: Vec<_> = secret.expose().trim().split(':').collect();
        match parts.as_slice() {
            [sid, token, sender] if is_sid(sid) && !token.is_empty() && is_sender(sender) => {
                Ok(Self { sid, token, sender })
            }
            _ => Err(
                Failure::new("Text messages are not set up correctly").developer_message(
                    "The secret TWILIO_API_KEY must be three parts with colons between them: the \
                 account's SID, the auth token and the sender, which is a phone number like +15550001111 or a messaging service's SID.",
                ),
            ),
        }
    }
}

/// Returns true for an account's SID, which is inserted into a path.
fn is_sid(text: &str) -> bool {
    text.starts_with("AC") && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_sender(text: &str) -> bool {
    text.starts_with('+') || text.starts_with("MG")
}

/// Returns the failure of a request without a response. Unless the connection failed, the message
/// may have been sent, and sending it again could deliver it twice.
fn no_response(error: &reqwest::Error) -> Failure {
    let failure = error::no_response("Twilio", error);
    if error.is_connect() {
        return failure.retry();
    }
    failure.prompt("The message may have been sent; do not send it again without asking the user.")
}

async fn failure_of(response: Response, cx: &Context) -> Failure {
    let status = response.status();
    let busy = error::busy("Twilio", &response, cx.now());
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => busy,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Failure::new("Text messages are not set up correctly").developer_message(format!(
                "Twilio answered {status}: TWILIO_API_KEY is not accepted."
            ))
        }
        status if status.is_server_error() => Failure::new("Twilio could not send the message")
            .developer_message(format!("Twilio answered {status}."))
            .prompt(
                "The message may have been sent; do not send it again without asking the user.",
            ),
        status => {
            // Twilio's error codes are public and describe the problem with the message.
            #[derive(Deserialize)]
            struct Body {
                code: Option<u32>,
            }
            let body = response.json::<Body>().await;
            let code = body.ok().and_then(|body| body.code);
            let code = code.map_or_else(String::new, |code| format!(", error {code}"));
            Failure::new("Twilio does not accept the message")
                .developer_message(format!("Twilio answered {status}{code}."))
        }
    }
}
