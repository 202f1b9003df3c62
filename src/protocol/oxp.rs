//! OXP 1.0 and its predecessor Open Tool Calling 1.0: one model in three dialects.
//!
//! The dialect of a request is read off its shape, and the answer keeps to it. Reference: OXP 1.0,
//! Call Tool and List Tools; OTC 1.0, Call Tool.

mod catalogue;
mod dialect;
mod error;
mod request;
mod response;

use crate::payload::size_as_sent;
use std::time::Duration;

use std::sync::Arc;

use axum::response::Response;
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde::Serialize;

use super::{Admitted, App, REPLAY, json::most_values};
use crate::{
    call::{Call, rejection::Rejection},
    observe::request::{
        Line, {self as request_log},
    },
};

pub(crate) use catalogue::Catalogue;
use dialect::Dialect;
use error::{ErrorBody, status_of};

pub(crate) use error::{LONGEST_NAME, UNAVAILABLE, detail_of};

const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// `GET /health`: 200 when ready to take calls, 503 when not.
pub(super) fn health(ready: bool) -> Response {
    #[derive(Serialize)]
    struct Health {
        status: &'static str,
    }
    if ready {
        json(StatusCode::OK, &Health { status: "ok" })
    } else {
        let status = "unavailable";
        json(StatusCode::SERVICE_UNAVAILABLE, &Health { status })
    }
}

/// `GET /tools`: the catalogue, in the form that the request asks for.
pub(super) fn list(app: &App, admitted: &Admitted, mut line: Line) -> Response {
    let form = match request::form_of_list(&admitted.headers, &admitted.body) {
        Ok(form) => form,
        Err((dialect, rejection)) => {
            line.named(dialect.name(), &admitted.caller);
            line.rejection(&rejection);
            return refused(dialect, &rejection);
        }
    };
    line.named(form.dialect().name(), &admitted.caller);
    let detail = match app.catalogue.get(form, &app.toolkit) {
        Ok(body) => {
            let largest = admitted.arrival.invocation.largest_answer;
            if size_as_sent(body) <= largest {
                line.listed(None);
                return send(StatusCode::OK, body.clone().into());
            }
            "The list of tools is larger than what lies in front of this function can send."
        }
        Err(detail) => detail,
    };
    line.listed(Some(detail));
    let message = "The list of tools cannot be sent";
    error_response(StatusCode::BAD_REQUEST, message, detail)
}

/// `POST /tools/call`: runs one tool.
pub(super) async fn call(app: &Arc<App>, admitted: Admitted, mut line: Line) -> Response {
    let decode = |app: &App, headers: &HeaderMap, body: &[u8]| {
        request::decode(headers, body, most_values(app.largest_request))
    };
    let (decoded, turn) = match app.decoded(&admitted, decode).await {
        Ok(decoded) => decoded,
        Err(rejection) => return rejected(&rejection, line),
    };
    let dialect = decoded.dialect;
    let largest = admitted.arrival.invocation.largest_answer;
    line.named(dialect.name(), &admitted.caller);
    let result = match decoded.call {
        Ok(call) => {
            let call = Call { turn, ..call };
            app.perform(call, admitted, &mut line).await
        }
        Err(rejection) => {
            line.named_itself(&admitted.headers, &request::names_in(&admitted.body));
            Err(rejection)
        }
    };
    match result {
        Ok(mut outcome) => {
            let is_replay = outcome.is_replay;
            // What is too large to send becomes a failure.
            let body = response::outcome(dialect, &mut outcome, largest);
            line.outcome(&outcome);
            let mut response = send(StatusCode::OK, body.into());
            if is_replay {
                let headers = response.headers_mut();
                headers.insert(REPLAY, HeaderValue::from_static("true"));
            }
            response
        }
        Err(rejection) => {
            line.rejection(&rejection);
            refused(dialect, &rejection)
        }
    }
}

/// A rejection before the dialect is known: flat, without `$schema`.
pub(super) fn rejected(rejection: &Rejection, line: Line) -> Response {
    line.rejection(rejection);
    refused(Dialect::Header, rejection)
}

fn refused(dialect: Dialect, rejection: &Rejection) -> Response {
    let status = status_of(rejection);
    let mut response = json(status, &ErrorBody::of(rejection).in_dialect(dialect));
    if status == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    }
    if rejection.is_temporary() {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        // The published clients do not try again after a 400 unless they are told to.
        headers.insert(SHOULD_RETRY, HeaderValue::from_static("true"));
    }
    response
}

/// Any other path.
pub(super) fn not_found(has_opentool: bool) -> Response {
    let detail = if has_opentool {
        "This server has GET /health, GET /tools and POST /tools/call, and for OpenTool GET \
         /opentool/version, GET /opentool/load and POST /opentool/call."
    } else {
        "This server has GET /health, GET /tools and POST /tools/call."
    };
    error_response(
        StatusCode::NOT_FOUND,
        "There is nothing at this path",
        detail,
    )
}

/// A known path with another method; the router adds `Allow`.
pub(super) fn method_not_allowed() -> Response {
    error_response(
        StatusCode::METHOD_NOT_ALLOWED,
        "This path does not take this method",
        "The Allow header lists the methods it takes.",
    )
}

/// A body that did not arrive as it was sent.
pub(crate) fn undecodable_body(detail: &str) -> Response {
    let rejection = Rejection::malformed("The request body cannot be decoded", detail);
    request_log::undecodable(&rejection);
    refused(Dialect::Header, &rejection)
}

/// What a route of the owner's own did that cannot be sent.
pub(crate) fn internal_error(detail: &str) -> Response {
    error_response(
        StatusCode::INTERNAL_SERVER_ERROR,
        "The response cannot be sent",
        detail,
    )
}

/// A request that a local server does not take, so that no web page can reach it.
pub(crate) fn forbidden(detail: &str) -> Response {
    error_response(
        StatusCode::FORBIDDEN,
        "This request is not allowed here",
        detail,
    )
}

/// A body that did not arrive in the time that a local server gives it. Its rest may still come, so
/// that the connection is of no more use.
pub(crate) fn late(limit: Duration) -> Response {
    let limit = limit.as_secs_f64();
    let mut response = error_response(
        StatusCode::REQUEST_TIMEOUT,
        "The request did not arrive in time",
        &format!("The body has to be here {limit} seconds after the headers."),
    );
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

fn error_response(status: StatusCode, message: &str, detail: &str) -> Response {
    json(status, &ErrorBody::plain(message, detail))
}

fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let body = serde_json::to_vec(body).expect("our own bodies have string keys only");
    send(status, body.into())
}

/// Every OXP answer says which version of the protocol it follows.
fn send(status: StatusCode, body: axum::body::Body) -> Response {
    let mut response = super::json_response(status, body);
    let headers = response.headers_mut();
    headers.insert(dialect::VERSION_HEADER, HeaderValue::from_static("1.0"));
    response
}
