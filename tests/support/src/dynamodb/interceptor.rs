//! The treatment of each request, which a test decides on.

use std::pin::Pin;

use serde_json::Value;

/// An operation of DynamoDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are DynamoDB's")]
pub enum Operation {
    GetItem,
    PutItem,
    UpdateItem,
    DeleteItem,
}

/// A request for the table.
#[derive(Clone, Debug)]
pub struct Request {
    /// The operation.
    pub operation: Operation,
    /// The parameters.
    pub body: Value,
}

/// The response to a request that was applied.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Value,
    /// True if an item was written or deleted: the request's condition was met.
    pub has_written: bool,
}

/// The treatment of a request before it is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRequest {
    /// Applies it.
    Apply,
}

/// The treatment of a request after it was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnResponse {
    /// Sends the response.
    Send,
    /// Never responds.
    Ignore,
}

/// The future that a method of [`Interceptor`] returns.
pub type Interception<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Sees each request before and after it is applied, and decides on it. Either method may take its
/// time: a request is applied even if its client has closed the connection meanwhile, like one that
/// the network delivers late.
pub trait Interceptor: Send + Sync {
    /// Runs before a request is applied.
    fn on_request<'a>(&'a self, request: &'a Request) -> Interception<'a, OnRequest>;

    /// Runs after a request was applied.
    fn on_response<'a>(
        &'a self,
        request: &'a Request,
        applied: &'a Applied,
    ) -> Interception<'a, OnResponse>;
}

/// Lets every request through.
pub(super) struct Nothing;

impl Interceptor for Nothing {
    fn on_request<'a>(&'a self, _: &'a Request) -> Interception<'a, OnRequest> {
        Box::pin(std::future::ready(OnRequest::Apply))
    }

    fn on_response<'a>(&'a self, _: &'a Request, _: &'a Applied) -> Interception<'a, OnResponse> {
        Box::pin(std::future::ready(OnResponse::Send))
    }
}
