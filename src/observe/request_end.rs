//! The end of a request, as its log line, its metrics and its span show it.

use std::borrow::Cow;

/// The facts that depend on the outcome of a request.
#[derive(Default)]
pub(crate) struct RequestEnd<'a> {
    pub(super) outcome: &'static str,
    pub(super) reason: Option<&'static str>,
    /// The number of parameters that make the input invalid.
    pub(super) invalid_parameters: usize,
    pub(super) tool_ms: Option<f64>,
    pub(super) is_replay: bool,
    pub(super) can_retry: Option<bool>,
    /// The text that the tool, or this library, wrote for the log.
    pub(super) developer_message: Option<Cow<'a, str>>,
}

impl RequestEnd<'_> {
    /// Returns the word for the problem, if there is one.
    pub(super) fn problem(&self) -> Option<&'static str> {
        let is_problem = self.reason.is_some() || self.developer_message.is_some();
        is_problem.then(|| self.reason.unwrap_or(self.outcome))
    }
}
