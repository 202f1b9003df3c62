//! A model's calls, which are run, and their results, which are returned to it.

use std::time::Duration;

use lambda_tools_models::ModelTools;
use serde_json::Value;

use super::{
    CallOutcome, CallReply, CallRequest, ClientError, InputRequest, MissingRequirements,
    mcp::McpClient, oxp::OxpClient,
};

macro_rules! respond {
    ($client:ty) => {
        impl $client {
            /// Runs the calls in a model's reply, and returns the messages or items to append to the
            /// conversation after the reply; none if the reply has no calls.
            ///
            /// `reply` is a whole response, a message, its items or blocks, or a single call, and
            /// `tools` lists tools of this client's server. Calls run one after the other, in the
            /// model's order. Whatever goes wrong becomes a result that tells the model what to do:
            /// an unknown name, arguments that are not JSON, an invalid input, a failure, or a
            /// missing authorization, with the URL that the user has to open. So does a server that
            /// does not respond, which is logged as a warning.
            pub async fn respond(&self, tools: &ModelTools, reply: &Value) -> Vec<Value> {
                self.respond_with(tools, reply, |call| call).await
            }

            /// Does the same as [`respond`](Self::respond), and completes each call, for example
            /// with the user and their tokens.
            pub async fn respond_with(
                &self,
                tools: &ModelTools,
                reply: &Value,
                complete: impl Fn(CallRequest) -> CallRequest,
            ) -> Vec<Value> {
                let mut results = Vec::new();
                for mut call in tools.calls(reply) {
                    let request = std::mem::replace(&mut call.request, Err(String::new()));
                    let result = match request {
                        Ok(request) => {
                            let request = CallRequest::new(request.tool_id).input(request.input);
                            result_of(self.call(&complete(request)).await)
                        }
                        Err(message) => Err(message),
                    };
                    results.push((call, result));
                }
                tools.messages(results)
            }
        }
    };
}

respond!(OxpClient);
respond!(McpClient);

/// Returns the value, or a message for the model.
fn result_of(reply: Result<CallReply, ClientError>) -> Result<Value, String> {
    match reply {
        Ok(reply) => match reply.outcome {
            CallOutcome::Value(value) => Ok(value),
            other => Err(other.for_model()),
        },
        Err(error) => {
            tracing::warn!(target: "lambda_tools::client", "a model's call got no response: {error}");
            Err(match error {
                ClientError::Unauthorized { .. } => {
                    "The server does not accept this program's credentials. No call can succeed \
                     until they are corrected."
                }
                ClientError::Unsupported(text) => text,
                _ => {
                    "The server did not respond to the call, which may or may not have run. It may \
                     be unavailable."
                }
            }
            .to_owned())
        }
    }
}

impl CallOutcome {
    /// Returns the reason why there is no value, and what to do about it.
    fn for_model(&self) -> String {
        let message = self.message();
        match self {
            Self::ToolError(failure) if failure.can_retry => {
                format!("{message}\n{}", may_retry(failure.retry_after))
            }
            Self::MissingRequirements(missing) => with_requirements(message, missing),
            Self::InputRequired(input) => {
                let url = |request: &InputRequest| match request {
                    InputRequest::Url { url, .. } => Some(url.clone()),
                    InputRequest::Form { .. } => None,
                };
                with_urls(message, input.requests.iter().filter_map(url))
            }
            _ => message,
        }
    }
}

fn may_retry(after: Option<Duration>) -> String {
    match after {
        Some(after) if !after.is_zero() => {
            format!(
                "The same call may succeed after {} seconds.",
                after.as_secs_f64()
            )
        }
        _ => "The same call may succeed later.".to_owned(),
    }
}

fn with_requirements(mut message: String, missing: &MissingRequirements) -> String {
    message = with_urls(message, missing.challenges.iter().map(|it| it.url.clone()));
    if missing.user_id {
        message.push_str("\nThe call needs the user's id, which the program has to send.");
    }
    if !missing.secrets.is_empty() {
        let secrets = missing.secrets.join(", ");
        let sentence = format!("\nThe call needs secrets that the program has to send: {secrets}.");
        message.push_str(&sentence);
    }
    message
}

fn with_urls(mut message: String, urls: impl Iterator<Item = String>) -> String {
    for url in urls.filter(|url| !url.is_empty()) {
        if !message.contains(&url) {
            let sentence = "to allow it; then the same call can succeed.";
            message = format!("{message}\nThe user has to open {url} {sentence}");
        }
    }
    message
}
