//! The server's response to direct calls.

/// The server's response to direct calls: events that are calls, `{"tool_id": …, "input": …}`,
/// rather than HTTP requests.
///
/// `aws lambda invoke`, Step Functions, EventBridge Scheduler and other functions send them. IAM
/// decides who may (`lambda:InvokeFunction`), so they need no credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DirectCalls {
    /// They are answered with the body that an HTTP client would get, also if the call is rejected
    /// or the tool fails.
    #[default]
    Answers,
    /// They are answered if the tool succeeds; otherwise, the invocation fails with an error of the
    /// type `Rejection`, `Failure`, `TemporaryRejection` or `TemporaryFailure`, which Step Functions
    /// can catch and retry.
    Errors,
    /// They are rejected.
    Off,
}
