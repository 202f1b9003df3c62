//! The treatments of requests that a test may decide on.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use test_support::dynamodb::{
    Applied, DynamoDb, Fault, Interception, Interceptor, OnRequest, OnResponse, Operation, Request,
};

use super::{TABLE, put, send};

/// Treats every request in the same way.
struct Always(OnRequest, OnResponse);

impl Interceptor for Always {
    fn on_request<'a>(&'a self, _: &'a Request) -> Interception<'a, OnRequest> {
        Box::pin(async { self.0 })
    }

    fn on_response<'a>(
        &'a self,
        request: &'a Request,
        applied: &'a Applied,
    ) -> Interception<'a, OnResponse> {
        assert_eq!(
            (request.operation, &*request.access_key),
            (Operation::PutItem, "test")
        );
        assert!(applied.has_written);
        Box::pin(async { self.1 })
    }
}

#[tokio::test]
async fn an_interceptor_decides_on_each_request_and_its_response() {
    let throttled = "ThrottlingException";
    let exceeded = "ProvisionedThroughputExceededException";
    let conflict = "ConditionalCheckFailedException";
    for (on_request, on_response, is_written, response) in [
        (OnRequest::Apply, OnResponse::Send, true, Some((200, ""))),
        (
            OnRequest::ApplyTwice,
            OnResponse::Send,
            true,
            Some((400, conflict)),
        ),
        (OnRequest::Lose, OnResponse::Send, false, None),
        (OnRequest::Ignore, OnResponse::Send, false, None),
        (
            OnRequest::Fail(Fault::Throttling),
            OnResponse::Send,
            false,
            Some((400, throttled)),
        ),
        (
            OnRequest::Fail(Fault::Internal),
            OnResponse::Send,
            false,
            Some((500, "InternalServerError")),
        ),
        (OnRequest::Apply, OnResponse::Lose, true, None),
        (OnRequest::Apply, OnResponse::Ignore, true, None),
        (
            OnRequest::Apply,
            OnResponse::Fail(Fault::ThroughputExceeded),
            true,
            Some((400, exceeded)),
        ),
        (
            OnRequest::Apply,
            OnResponse::Fail(Fault::Unavailable),
            true,
            Some((503, "ServiceUnavailableException")),
        ),
    ] {
        let interceptor = Arc::new(Always(on_request, on_response));
        let table = DynamoDb::intercepted(TABLE, interceptor).await;
        let body = put(&json!({"id": {"S": "k"}}));
        let url = table.url();
        let sent = tokio::time::timeout(Duration::from_secs(1), send(&url, "PutItem", &body));
        let received = sent.await.unwrap_or_default();
        let expected = response.map(|(status, kind)| (status, kind.to_owned()));
        assert_eq!(received, expected, "{on_request:?} {on_response:?}");
        assert_eq!(
            table.len(),
            usize::from(is_written),
            "{on_request:?} {on_response:?}"
        );
    }
}

/// Delays every request.
struct Late;

impl Interceptor for Late {
    fn on_request<'a>(&'a self, _: &'a Request) -> Interception<'a, OnRequest> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            OnRequest::Apply
        })
    }

    fn on_response<'a>(&'a self, _: &'a Request, _: &'a Applied) -> Interception<'a, OnResponse> {
        Box::pin(async { OnResponse::Send })
    }
}

/// Waits for a condition.
async fn until(is_met: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_met() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the condition is not met in time");
}

#[tokio::test]
async fn a_late_request_is_applied_although_its_client_has_gone() {
    let table = DynamoDb::intercepted(TABLE, Arc::new(Late)).await;
    let (url, body) = (table.url(), put(&json!({"id": {"S": "k"}})));
    let sending = tokio::spawn(async move { send(&url, "PutItem", &body).await });
    until(|| table.requests() == 1).await;
    sending.abort();
    assert!(table.is_empty());
    until(|| table.len() == 1).await;
}
