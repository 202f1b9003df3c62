//! Failures: errors that a tool reports.
//!
//! A failure is an answer: it is sent in a 200 response, and tells the model and the user what to
//! do next. A call that does not reach its tool ends in a rejection instead; the two never mix.

#[cfg(feature = "http")]
pub mod response;

use std::{error::Error, io, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reason::Reason;
use crate::text::{clipped, without_paths};

/// A tool's report that it could not complete a call.
///
/// OXP 1.0, Tool Execution Errors. `?` turns any error into a failure with a generic message;
/// the error's own text and its causes go to `developer_message`, which is meant for logs. URLs in
/// it lose their paths and queries, which may have values of the input. The methods add details:
///
/// ```
/// # use lambda_tools_core as lambda_tools;
/// use std::time::Duration;
/// use lambda_tools::Failure;
///
/// let failure = Failure::new("Doorbell ID not found")
///     .developer_message("The doorbell with ID 'doorbell1' does not exist.")
///     .prompt("ids: doorbell42,doorbell84")
///     .retry_after(Duration::from_millis(500));
/// assert!(failure.can_retry());
/// ```
#[derive(Debug)]
#[must_use]
pub struct Failure(Box<FailureParts>);

/// The parts of a failure, which are stored once its secrets are redacted.
#[derive(Debug, Deserialize, Serialize)]
pub struct FailureParts {
    /// The message for the user and the model.
    pub message: String,
    /// The message is cut at this length, but not before the call's secrets are redacted: a part of
    /// a secret could not be recognized.
    #[serde(skip)]
    longest_message: Option<usize>,
    /// The text for logs and developers.
    pub developer_message: Option<String>,
    /// URLs in the developer message lose their paths and queries, after the same step.
    #[serde(skip)]
    hides_paths: bool,
    /// True if the same call may succeed later.
    pub can_retry: bool,
    /// The time to wait before that.
    pub retry_after: Option<Duration>,
    /// The text for the model's next attempt.
    pub additional_prompt_content: Option<String>,
    /// The provider that rejected the token granted by the user, in this call: not in a repetition.
    #[serde(skip)]
    pub rejected_provider: Option<String>,
    /// The question that the user has to answer first.
    pub question: Option<Question>,
    /// The reason for logs.
    pub reason: Reason,
}

/// A question to the user, which the failure's message asks.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Question {
    /// The key that identifies the question within its call.
    pub key: String,
    /// The form that the user fills in: the JSON Schema of an object without nested objects.
    pub form: Value,
}

impl Failure {
    /// Creates a failure that may not be retried, with a message for the user and the model.
    pub fn new(message: impl Into<String>) -> Self {
        Self(Box::new(FailureParts {
            message: message.into(),
            longest_message: None,
            developer_message: None,
            hides_paths: false,
            can_retry: false,
            retry_after: None,
            additional_prompt_content: None,
            rejected_provider: None,
            question: None,
            reason: Reason::Failed,
        }))
    }

    /// Creates a failure of the library, not of the tool.
    pub fn internal(reason: Reason, message: &str) -> Self {
        let mut failure = Self::new(message);
        failure.0.reason = reason;
        failure
    }

    /// Creates a failure from any error, including `lambda_tools::Error` and other boxed errors, which
    /// `?` does not convert: `result.map_err(Failure::from_error)?`.
    pub fn from_error(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::caused_by(&*error.into())
    }

    fn caused_by(error: &dyn Error) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        let mut was_unreachable = false;
        while let Some(error) = cause {
            was_unreachable |= is_unreachable(error);
            let inner = error.to_string();
            // Many errors already repeat their cause in their own text.
            if !text.ends_with(&inner) {
                text = format!("{text}: {inner}");
            }
            cause = error.source();
        }
        // Nothing was sent, so nothing has happened.
        let mut failure = if was_unreachable {
            Self::new("The tool could not connect to a service that it needs").retry()
        } else {
            Self::new("The tool could not complete the call")
        };
        failure = failure.developer_message(text);
        failure.0.hides_paths = true;
        failure
    }

    /// Adds text meant for logs and developers. It does go over the wire. As in all texts of a
    /// failure, the call's own secrets and tokens (of at least 8 characters) are redacted; keep
    /// others out.
    pub fn developer_message(mut self, text: impl Into<String>) -> Self {
        self.0.developer_message = Some(text.into());
        self.0.hides_paths = false;
        self
    }

    /// Marks the failure as temporary: the same call may succeed later (`can_retry`).
    pub fn retry(mut self) -> Self {
        self.0.can_retry = true;
        self
    }

    /// Marks the failure as temporary: the same call may succeed after this wait (`can_retry` and
    /// `retry_after_ms`, whole milliseconds).
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self.retry()
    }

    /// Adds text for the model's next attempt (`additional_prompt_content`), such as the values
    /// that would have been accepted.
    pub fn prompt(mut self, text: impl Into<String>) -> Self {
        self.0.additional_prompt_content = Some(text.into());
        self
    }

    /// Records which provider rejected its token; the same call may succeed with another token.
    pub(crate) fn with_rejected_token(mut self, provider: &str) -> Self {
        self.0.rejected_provider = Some(provider.to_owned());
        self.retry()
    }

    /// Turns the failure into a question, which its message asks; the same call may succeed with an
    /// answer.
    pub fn with_question(mut self, question: Question) -> Self {
        self.0.question = Some(question);
        self.retry()
    }

    /// Returns the message for the user and the model.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns `true` if the same call may succeed later.
    #[must_use]
    pub fn can_retry(&self) -> bool {
        self.0.can_retry
    }

    /// Returns the key of the question, if this failure [asks](crate::Context::ask) the user one.
    /// For unit tests.
    #[must_use]
    pub fn question(&self) -> Option<&str> {
        let question = self.0.question.as_ref();
        question.map(|question| &*question.key)
    }

    /// Redacts the call's secrets and tokens, which the underlying error may have quoted.
    pub fn redacted(mut self, redact: impl Fn(&str) -> Option<String>) -> Self {
        let clean = |text: &mut String| {
            if let Some(redacted) = redact(text) {
                *text = redacted;
            }
        };
        let parts = &mut *self.0;
        clean(&mut parts.message);
        if let Some(longest) = parts.longest_message {
            parts.message = clipped(&parts.message, longest).into_owned();
        }
        if let Some(text) = &mut parts.developer_message {
            clean(text);
            if parts.hides_paths {
                *text = without_paths(text);
            }
        }
        parts.additional_prompt_content.as_mut().map(clean);
        self
    }

    /// Returns what a server sends and records of the failure.
    pub fn parts(&self) -> &FailureParts {
        &self.0
    }

    /// Creates a failure again from its recorded parts.
    pub fn from_parts(parts: FailureParts) -> Self {
        Self(Box::new(parts))
    }
}

/// Returns true for the cause of an HTTP client's error that could not connect.
fn is_unreachable(error: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};

    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    kind.is_some_and(|it| [ConnectionRefused, HostUnreachable, NetworkUnreachable].contains(&it))
}

/// Any error becomes a failure with a generic message; the error's text is its `developer_message`.
/// The call may be retried if the cause is a connection that was refused.
///
/// This conversion is possible because `Failure` does not implement [`Error`] itself.
impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::caused_by(&error)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    fn parse(text: &str) -> Result<i32, Failure> {
        Ok(text.parse::<i32>()?)
    }

    #[test]
    fn a_message_is_cut_when_its_secrets_are_gone() {
        let secret = "zz8Zzz8zz8ZZ8zz8";
        let redact = |text: &str| Some(text.replace(secret, "[secret]"));
        for start in 580..600 {
            let mut failure = Failure::new(format!("{}{secret}", ".".repeat(start)));
            failure.0.longest_message = Some(600);
            let message = failure.redacted(redact).message().to_owned();
            assert!(message.len() <= 603 && !message.contains('z'), "{message}");
        }
    }

    #[test]
    fn a_question_mark_hides_the_error_from_the_caller_and_keeps_it_for_the_log() {
        let failure = parse("x").unwrap_err();
        assert_eq!(failure.message(), "The tool could not complete the call");
        let text = failure.parts().developer_message.as_deref();
        assert_eq!(text, Some("invalid digit found in string"));
        assert!(!failure.can_retry());
    }

    #[tokio::test]
    async fn urls_in_errors_lose_their_paths_and_queries() {
        async fn send(url: &str) -> Result<(), Failure> {
            let client = reqwest::Client::builder().no_proxy().build()?;
            client.get(url).send().await?;
            Ok(())
        }
        let text_of = |failure: Failure| {
            // After the secrets: a part of one could not be recognized.
            let redact = |text: &str| Some(text.replace("a secret", "[secret]"));
            let failure = failure.redacted(redact);
            failure.parts().developer_message.clone().unwrap()
        };
        // Nobody listens on this port.
        let url = "http://127.0.0.1:1/patients/4711?name=ada";
        let text = text_of(send(url).await.unwrap_err());
        assert!(text.contains("(http://127.0.0.1:1/…)"), "{text}");
        let boxed: Box<dyn Error + Send + Sync> = format!("GET {url}&key=a secret failed").into();
        let text = text_of(Failure::from_error(boxed));
        assert_eq!(text, "GET http://127.0.0.1:1/… failed");
        // A tool's own text is not changed.
        for failure in [Failure::new("no"), Failure::from_error("an error")] {
            assert_eq!(text_of(failure.developer_message(url)), url);
        }
    }

    /// An error with a cause.
    #[derive(Debug)]
    struct Caused<E>(E);

    impl<E> fmt::Display for Caused<E> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the request was not sent")
        }
    }

    impl<E: Error + 'static> Error for Caused<E> {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn a_refused_connection_may_be_retried() {
        let failed = |kind: io::ErrorKind| Failure::from(Caused(io::Error::from(kind)));
        assert!(failed(io::ErrorKind::ConnectionRefused).can_retry());
        assert!(!failed(io::ErrorKind::ConnectionReset).can_retry());
        assert!(!failed(io::ErrorKind::TimedOut).can_retry());
    }

    #[test]
    fn causes_appear_once() {
        let failure = Failure::from(Caused("x".parse::<i32>().unwrap_err()));
        let text = failure.parts().developer_message.as_deref();
        let expected = "the request was not sent: invalid digit found in string";
        assert_eq!(text, Some(expected));
    }
}
