//! OpenTool 1.0.0: JSON-RPC 2.0 over HTTP, below `/opentool`.
//!
//! The protocol says less than OXP: a call has a function's name and arguments, an answer a result
//! or a message. The tools, the checks and the order of them are the same; what cannot be expressed
//! goes into texts. Reference: OpenTool, Client and Server, parts 1 to 3.

mod document;
mod error;
mod request;
mod response;
mod schema;

use crate::payload::size_as_sent;
use std::sync::Arc;

use axum::response::Response;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde::Serialize;

use super::{Admitted, App, REPLAY, json::most_values, json_response as send, oxp};
use crate::{
    call::{Call, rejection::Rejection},
    observe::request::Line,
};
pub(crate) use document::{About, Document};
use error::Refusal;
use request::Decoded;

/// A word for logs.
const NAME: &str = "opentool";

/// `GET /opentool/version`: the version of what is served.
pub(super) fn version(document: &Document) -> Response {
    #[derive(Serialize)]
    struct Version<'a> {
        version: &'a str,
    }
    let version = &document.about.version;
    json(StatusCode::OK, &Version { version })
}

/// `GET /opentool/load`: what there is to call.
pub(super) fn load(
    app: &App,
    document: &Document,
    admitted: &Admitted,
    mut line: Line,
) -> Response {
    line.named(NAME, &admitted.caller);
    let detail = match document.get(&app.toolkit) {
        Ok(body) if size_as_sent(body) <= admitted.arrival.invocation.largest_answer => {
            line.listed(None);
            return send(StatusCode::OK, body.clone().into());
        }
        Ok(_) => "The document is larger than what lies in front of this function can send.",
        Err(detail) => detail,
    };
    line.listed(Some(detail));
    let refusal = Refusal::internal(detail);
    send(refusal.status, response::refused(&refusal, None).into())
}

/// `POST /opentool/call`: runs the newest version of one tool.
pub(super) async fn call(app: &Arc<App>, admitted: Admitted, mut line: Line) -> Response {
    let decode = |app: &App, _: &HeaderMap, body: &[u8]| {
        let document = app.opentool.as_ref();
        let most = most_values(app.largest_request);
        document.map(|document| request::decode(body, document, &app.toolkit, most))
    };
    let decoded = app.decoded(&admitted, decode).await;
    let (Decoded { id, names, call }, turn) = match decoded {
        Ok((Some(decoded), turn)) => (decoded, turn),
        Ok((None, _)) => return oxp::not_found(false),
        Err(rejection) => return rejected(rejection, line),
    };
    let largest = admitted.arrival.invocation.largest_answer;
    line.named(NAME, &admitted.caller);
    let result = match call {
        Ok(call) => {
            let call = Call { turn, ..call };
            let performed = app.perform(call, admitted, &mut line).await;
            performed.map_err(Refusal::of)
        }
        Err(refusal) => {
            line.named_itself(&admitted.headers, &names);
            Err(refusal)
        }
    };
    match result {
        Ok(mut outcome) => {
            let is_replay = outcome.is_replay;
            // What is too large to send becomes a failure.
            let body = response::outcome(&mut outcome, id.as_deref(), largest);
            line.outcome(&outcome);
            let mut response = send(StatusCode::OK, body.into());
            if is_replay {
                let headers = response.headers_mut();
                headers.insert(REPLAY, HeaderValue::from_static("true"));
            }
            response
        }
        Err(refusal) => {
            line.rejection(&refusal.rejection);
            refused(&refusal, id.as_deref())
        }
    }
}

/// A request that was not let in, or whose body did not arrive.
pub(super) fn rejected(rejection: Rejection, line: Line) -> Response {
    line.rejection(&rejection);
    refused(&Refusal::of(rejection), None)
}

fn refused(refusal: &Refusal, id: Option<&request::Id>) -> Response {
    let mut response = send(refusal.status, response::refused(refusal, id).into());
    let headers = response.headers_mut();
    if refusal.status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if refusal.rejection.is_temporary() {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let body = serde_json::to_vec(body).expect("our own bodies have string keys only");
    send(status, body.into())
}
