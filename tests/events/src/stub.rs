//! A local stand-in for the external APIs, with their documented responses.
//!
//! The request selects the response: the search query at Gmail, the recipient at Twilio.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    extract::{Path, Request, State},
    response::Response,
    routing::{get, post},
};
use serde_json::{Value, json};
use test_support::{Served, answer};
use toolbox::Endpoints;

/// A running server and the requests that it received.
pub struct Stub {
    served: Served,
    requests: ReceivedRequests,
}

type ReceivedRequests = Arc<Mutex<Vec<String>>>;

impl Stub {
    /// Starts a server on a free port of this machine.
    pub async fn start() -> Self {
        let requests = ReceivedRequests::default();
        let messages = "/gmail/v1/users/me/messages";
        let sms = "/2010-04-01/Accounts/{sid}/Messages.json";
        let router = Router::new()
            .route(messages, get(list))
            .route(&format!("{messages}/{{id}}"), get(message))
            .route(sms, post(send))
            .with_state(Arc::clone(&requests));
        let served = Served::start(router).await;
        Self { served, requests }
    }

    /// Returns its URL.
    #[must_use]
    pub fn url(&self) -> String {
        self.served.url.clone()
    }

    /// Returns the URLs of the APIs at this server.
    #[must_use]
    pub fn endpoints(&self) -> Endpoints {
        Endpoints {
            gmail: self.url(),
            twilio: self.url(),
            timeout: Duration::from_millis(300),
        }
    }

    /// Returns every request so far: method, path with query, body.
    ///
    /// # Panics
    /// If a request has failed in the meantime.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn json_response(status: u16, body: &Value) -> Response {
    let headers = [("content-type", "application/json")];
    answer(status, &headers, body.to_string())
}

/// Returns Google's error body.
fn google(status: u16, reason: &str) -> Response {
    let error = json!({"error": {
        "code": status, "message": "…",
        "errors": [{"domain": "usageLimits", "reason": reason, "message": "…"}],
    }});
    json_response(status, &error)
}

async fn slow() -> Response {
    tokio::time::sleep(Duration::from_secs(20)).await;
    answer(200, &[], "{}")
}

fn bearer(request: &Request) -> Option<&str> {
    let value = request.headers().get("authorization")?.to_str().ok()?;
    value.strip_prefix("Bearer ")
}

async fn list(State(requests): State<ReceivedRequests>, request: Request) -> Response {
    let url = request.uri().to_string();
    requests.lock().unwrap().push(format!("GET {url}"));
    if bearer(&request) == Some("expired") {
        return google(401, "authError");
    }
    let query = url
        .split(['?', '&'])
        .find_map(|part| part.strip_prefix("q="));
    let ids =
        |ids: [&str; 2]| json_response(200, &json!({"messages": ids.map(|id| json!({"id": id}))}));
    match query.unwrap_or_default() {
        "none" => json_response(200, &json!({"resultSizeEstimate": 0})),
        "many-requests" => answer(429, &[("retry-after", "7")], "{}"),
        // Ten minutes after the fixed time of replays.
        "many-requests-until" => answer(
            429,
            &[("retry-after", "Thu, 05 Oct 2023 12:10:00 GMT")],
            "{}",
        ),
        "quota" => google(403, "userRateLimitExceeded"),
        "scope" => google(403, "insufficientPermissions"),
        "error" => google(500, "backendError"),
        "bad" => google(400, "invalidArgument"),
        "slow" => slow().await,
        "broken" => answer(200, &[], r#"{"messages": [{"id":"#),
        "other" => answer(200, &[("content-type", "text/html")], "<html>"),
        "one-deleted" => ids(["gone", "email_2"]),
        "one-limited" => ids(["limited", "email_2"]),
        _ => ids(["email_1", "email_2"]),
    }
}

async fn message(
    State(requests): State<ReceivedRequests>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let line = format!("GET {}", request.uri());
    requests.lock().unwrap().push(line);
    if bearer(&request).is_none_or(str::is_empty) {
        return google(401, "required");
    }
    let (subject, snippet) = match id.as_str() {
        "email_1" => ("Welcome to Gmail", "Hello, welcome to your inbox!"),
        "email_2" => ("Your Receipt", "Thank you for your purchase..."),
        "limited" => return answer(429, &[("retry-after", "9")], "{}"),
        _ => return google(404, "notFound"),
    };
    let headers = json!([{"name": "Subject", "value": subject}]);
    let payload = json!({"mimeType": "text/plain", "headers": headers});
    let message = json!({"id": id, "threadId": "1", "snippet": snippet, "payload": payload});
    json_response(200, &message)
}

async fn send(
    State(requests): State<ReceivedRequests>,
    Path(sid): Path<String>,
    request: Request,
) -> Response {
    let authorized = request.headers().get("authorization").cloned();
    let body = axum::body::to_bytes(request.into_body(), 10_000)
        .await
        .unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    requests.lock().unwrap().push(format!("POST {sid} {body}"));
    // AC00000000000000000000000000000000:auth-token
    let valid = "Basic QUMwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDphdXRoLXRva2Vu";
    // AC00000000000000000000000000000000:token-Xmark-01234567
    let marked =
        "Basic QUMwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDp0b2tlbi1YbWFyay0wMTIzNDU2Nw==";
    if authorized.is_none_or(|value| value != valid && value != marked) {
        let body = json!({"code": 20003, "message": "Authenticate", "status": 401});
        return json_response(401, &body);
    }
    let to = body.split('&').find_map(|part| part.strip_prefix("To=%2B"));
    match to.unwrap_or_default() {
        "15005550001" => json_response(400, &json!({"code": 21211, "status": 400, "message": "…"})),
        "15005550429" => answer(429, &[("retry-after", "3")], "{}"),
        "15005550500" => answer(500, &[], "oops"),
        "15005550503" => answer(503, &[], "{}"),
        "15005550408" => slow().await,
        "15005550200" => answer(201, &[], r#"{"sid": "SM"#),
        "15005550204" => json_response(201, &json!({"sid": "SM1"})),
        _ => {
            let sent = json!({"sid": "SM1", "status": "sent", "error_code": null});
            json_response(201, &sent)
        }
    }
}
