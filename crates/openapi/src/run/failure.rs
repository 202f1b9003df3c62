//! Failures with the API's own messages, and whether the call may be repeated.

use std::time::Duration;

use http::header::{HeaderName, LOCATION};
use lambda_tools_core::{Context, Failure, text::clipped, tool::failure::response::ApiError};
use reqwest::Response;

use crate::plan::ApiTool;

/// The maximum length, in bytes, of the API's text in a message.
const LONGEST_MESSAGE: usize = 600;
/// The maximum length, in bytes, of a response that the model also sees.
const LONGEST_PROMPT: usize = 2048;
/// The time to wait where the API does not say.
const DEFAULT_WAIT: Duration = Duration::from_secs(1);

/// The warning after a request that may have had its effect.
const LOOK_BEFORE: &str = "; it may have done what it was asked: look before you call it again";

/// Returns the value of a header, if it is text.
pub(super) fn header_of(response: &Response, name: HeaderName) -> Option<String> {
    let value = response.headers().get(name)?;
    value.to_str().ok().map(str::to_owned)
}

/// Returns the failure of a response that reports an error.
pub(super) async fn of_response(
    response: Response,
    plan: &ApiTool,
    repeats: bool,
    cx: &Context,
) -> Failure {
    let place = header_of(&response, LOCATION);
    let error = ApiError::read(response.into()).await;
    let status = error.status.as_u16();
    let said = error.said.clone();
    let said = said.or_else(|| place.map(|it| format!("it is at {it}")));
    let said = said.map(|text| clipped(&redacted(text, cx), LONGEST_MESSAGE).into_owned());
    let meaning = meaning_of(status, plan, repeats);
    let failure = Failure::new(match &said {
        Some(text) => format!("{meaning}: {text}"),
        None => meaning,
    });
    let failure = failure.developer_message(format!("HTTP status {status}"));
    let failure = match prompt(&error, plan) {
        Some(text) => failure.prompt(clipped(&redacted(text, cx), LONGEST_PROMPT)),
        None => failure,
    };
    if may_retry(status, repeats) {
        return failure.retry_after(error.wait.unwrap_or(DEFAULT_WAIT));
    }
    failure
}

/// Returns the failure of a request without a response.
pub(super) fn of_error(error: reqwest::Error, may_repeat: bool) -> Failure {
    let (is_connect, is_timeout) = (error.is_connect(), error.is_timeout());
    let cause = Failure::from_error(error.without_url());
    let message = match (is_connect, is_timeout) {
        (true, _) => "The API cannot be reached",
        (_, true) => "The API did not answer in time",
        _ => "The connection to the API broke",
    };
    // Without a connection, nothing was sent.
    let (warning, can_retry) = match (is_connect, may_repeat) {
        (true, _) => ("", cause.can_retry()),
        (false, true) => ("", true),
        (false, false) => (LOOK_BEFORE, false),
    };
    let text = cause.parts().developer_message.clone();
    let failure = Failure::new(format!("{message}{warning}"));
    let failure = failure.developer_message(text.unwrap_or_default());
    if can_retry { failure.retry() } else { failure }
}

fn meaning_of(status: u16, plan: &ApiTool, repeats: bool) -> String {
    let scopes = plan.credentials.values().flatten().map(String::as_str);
    let scopes = scopes.collect::<Vec<_>>().join(", ");
    let text = match status {
        300..=399 => "The API redirects the request, which is not followed",
        401 => "The API rejected the credentials",
        403 if scopes.is_empty() => "The API does not allow this",
        403 => return format!("The API does not allow this; the call needs the scopes {scopes}"),
        404 | 410 => "The API does not know what was asked for",
        408 | 425 | 429 => "The API is busy",
        500.. if repeats => "The API is temporarily unavailable",
        500.. => return format!("The API failed{LOOK_BEFORE}"),
        _ => "The API rejected the request",
    };
    text.to_owned()
}

/// Returns true if the same call may succeed later: always if the request was not served; if it may
/// have had its effect, only if it can be repeated.
fn may_retry(status: u16, may_repeat: bool) -> bool {
    match status {
        429 => true,
        408 | 425 | 500 | 502 | 503 | 504 => may_repeat,
        _ => false,
    }
}

fn redacted(text: String, cx: &Context) -> String {
    // Before it is cut: a part of a secret could not be recognized.
    cx.redacted(&text).unwrap_or(text)
}

/// Returns the API's whole answer, with the parameters in it renamed as models know them.
fn prompt(error: &ApiError, plan: &ApiTool) -> Option<String> {
    error.text()?;
    let body = &error.body;
    let renamed = plan.request.parameters.iter();
    let renamed = renamed.filter_map(|it| it.key.as_ref().zip(it.name.as_ref()));
    let fields = plan.request.body.iter().flat_map(|it| &it.names);
    let names = renamed.chain(fields);
    let names = names.filter(|(_, name)| body.contains(&***name));
    let names = names.map(|(key, name)| format!("`{name}` is the parameter `{key}`"));
    let names = names.collect::<Vec<_>>().join(", ");
    let mut text = format!("The API's response: {body}");
    if !names.is_empty() {
        text.extend([" (", &names, ")"]);
    }
    Some(text)
}
