//! OXP 1.0 and its predecessor Open Tool Calling 1.0: one model in three dialects.
//!
//! The shape of a request determines its dialect, and the response uses the same one. Reference:
//! OXP 1.0, Call Tool and List Tools; OTC 1.0, Call Tool.

mod catalogue;
mod dialect;
mod error;
mod request;
mod response;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Serialize;

use super::codec::{
    Codec, Declaration, DecodedRequest, EncodedRequest, Operation, Reply, Route, Task,
};
use crate::{
    ServerInfo, Toolkit,
    call::{Outcome, rejection::Rejection},
};
use catalogue::{Catalogue, OxpForm};
use error::{ErrorBody, status_of};

/// The codec of OXP 1.0 and Open Tool Calling 1.0.
pub(super) struct OxpCodec(Catalogue);

const CALL: Task = Task::Call("POST /tools/call");

impl Codec for OxpCodec {
    const DECLARATION: &'static Declaration = &Declaration {
        title: None,
        routes: &[
            Route {
                method: Method::GET,
                path: "/health",
                task: Task::Health,
                is_alias: false,
                others: None,
            },
            Route {
                method: Method::GET,
                path: "/tools",
                task: Task::List("list"),
                is_alias: false,
                others: None,
            },
            Route {
                method: Method::POST,
                path: "/tools/call",
                task: CALL,
                is_alias: false,
                others: None,
            },
            // The path in the specification's examples.
            Route {
                method: Method::POST,
                path: "/call",
                task: CALL,
                is_alias: true,
                others: None,
            },
        ],
        checks_origin: false,
        list: "list of tools",
        request_headers: &["oxp-version"],
        response_headers: &["oxp-version", "x-should-retry"],
        // Every response names the protocol version that it follows.
        fixed_headers: &[("oxp-version", "1.0")],
        // The published clients retry after a 400 only with this header.
        retry_headers: &[("x-should-retry", "true")],
        secrets: &[
            ("/context/secrets", "value"),
            ("/context/authorization", "token"),
            ("/request/context/secrets", "value"),
            ("/request/context/authorization", "token"),
            // Wrong places, outside of the context; values there are still secret.
            ("/secrets", "value"),
            ("/authorization", "token"),
            ("/request/secrets", "value"),
            ("/request/authorization", "token"),
        ],
    };

    type Form = OxpForm;

    fn new(_: &ServerInfo) -> Self {
        Self(Catalogue::default())
    }

    fn decode(&self, task: Task, request: &EncodedRequest<'_>) -> DecodedRequest<OxpForm> {
        match task {
            Task::Health | Task::Version | Task::Unsupported => health(request.engine.is_healthy()),
            Task::List(_) => request::list(&request.parts.headers, request.body),
            Task::Call(_) => {
                request::call(&request.parts.headers, request.body, request.max_values)
            }
        }
    }

    fn dialect(form: &OxpForm) -> &'static str {
        form.dialect().name()
    }

    fn list(&self, form: &OxpForm, toolkit: &Toolkit) -> Result<Bytes, String> {
        self.0.get(*form, toolkit).cloned().map_err(str::to_owned)
    }

    fn list_error(&self, _: &OxpForm, detail: &str) -> (StatusCode, Vec<u8>) {
        let rejection = Rejection::malformed("The list of tools cannot be sent", detail);
        self.rejection(&OxpForm::default(), &rejection)
    }

    fn outcome(&self, form: &OxpForm, outcome: &Outcome) -> Vec<u8> {
        response::encode(form.dialect(), outcome)
    }

    fn rejection(&self, form: &OxpForm, rejection: &Rejection) -> (StatusCode, Vec<u8>) {
        let body = ErrorBody::of(rejection, form.dialect());
        (status_of(rejection), to_json(&body))
    }
}

/// OXP 1.0, `GET /health`: 200 if healthy, 503 if not.
fn health(is_healthy: bool) -> DecodedRequest<OxpForm> {
    #[derive(Serialize)]
    struct Health {
        status: &'static str,
    }
    let (code, status) = if is_healthy {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "unavailable")
    };
    DecodedRequest {
        form: OxpForm::default(),
        operation: Operation::Respond(Reply::json(code, to_json(&Health { status }))),
    }
}

fn to_json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("our own bodies have string keys only")
}
