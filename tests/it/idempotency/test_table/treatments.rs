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
    use OnRequest::{Apply, ApplyTwice};
    use OnResponse::Send;

    let fails_at_once = OnRequest::Fail(Fault::Throttling);
    let slow_down = "ThrottlingException";
    let fails = OnResponse::Fail(Fault::Unavailable);
    let unavailable = "ServiceUnavailableException";
    let conflict = "ConditionalCheckFailedException";
    for (on_request, on_response, is_written, response) in [
        (Apply, Send, true, Some((200, ""))),
        (ApplyTwice, Send, true, Some((400, conflict))),
        (OnRequest::Lose, Send, false, None),
        (OnRequest::Ignore, Send, false, None),
        (fails_at_once, Send, false, Some((400, slow_down))),
        (Apply, OnResponse::Lose, true, None),
        (Apply, OnResponse::Ignore, true, None),
        (Apply, fails, true, Some((503, unavailable))),
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
