//! OXP 1.0 and its predecessor Open Tool Calling 1.0: one model in three dialects.
//!
//! The dialect of a request is read off its shape, and the answer keeps to it. Reference: OXP 1.0,
//! Call Tool and List Tools; OTC 1.0, Call Tool.

mod catalogue;
mod dialect;
mod error;
mod request;
mod response;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Serialize;

use super::codec::{Codec, Declaration, DecodedRequest, EncodedRequest, Operation, Route, Task};
use crate::{
    ServerInfo, Toolkit,
    call::{Outcome, rejection::Rejection},
};
use catalogue::{Catalogue, OxpForm};
use error::{ErrorBody, status_of};

/// OXP 1.0, and Open Tool Calling 1.0.
pub(super) struct OxpCodec(Catalogue);

const CALL: Route = Route {
    method: Method::POST,
    path: "/tools/call",
    task: Task::Call("POST /tools/call"),
    is_alias: false,
};

impl Codec for OxpCodec {
    const DECLARATION: &'static Declaration = &Declaration {
        title: None,
        routes: &[
            Route {
                method: Method::GET,
                path: "/health",
                task: Task::Health,
                is_alias: false,
            },
            Route {
                method: Method::GET,
                path: "/tools",
                task: Task::List("list"),
                is_alias: false,
            },
            CALL,
            // Where the specification's examples post to.
            Route {
                path: "/call",
                is_alias: true,
                ..CALL
            },
        ],
        list: "list of tools",
        request_headers: &["oxp-version"],
        answer_headers: &["oxp-version", "x-should-retry"],
        // Every answer says which version of the protocol it follows.
        fixed_headers: &[("oxp-version", "1.0")],
        // The published clients do not try again after a 400 unless they are told to.
        retry_headers: &[("x-should-retry", "true")],
        secrets: &[
            ("/context/secrets", "value"),
            ("/context/authorization", "token"),
            ("/request/context/secrets", "value"),
            ("/request/context/authorization", "token"),
            // Beside the context is the wrong place, and no reason to show what is there.
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
            Task::Health | Task::Version => health(request.engine.is_healthy()),
            Task::List(_) => request::list(&request.parts.headers, request.body),
            Task::Call(_) => {
                request::call(&request.parts.headers, request.body, request.most_values)
            }
        }
    }

    fn dialect(form: &OxpForm) -> &'static str {
        form.dialect().name()
    }

    fn list(&self, form: &OxpForm, toolkit: &Toolkit) -> Result<&Bytes, &str> {
        self.0.get(*form, toolkit)
    }

    fn unlisted(&self, detail: &str) -> (StatusCode, Vec<u8>) {
        let rejection = Rejection::malformed("The list of tools cannot be sent", detail);
        self.rejection(&OxpForm::default(), &rejection)
    }

    fn outcome(&self, form: &OxpForm, outcome: &Outcome) -> Vec<u8> {
        response::encoded(form.dialect(), outcome)
    }

    fn rejection(&self, form: &OxpForm, rejection: &Rejection) -> (StatusCode, Vec<u8>) {
        let body = ErrorBody::of(rejection, form.dialect());
        (status_of(rejection), written(&body))
    }
}

/// OXP 1.0, `GET /health`: 200 when healthy, 503 when not.
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
        asked: Operation::Answer(code, written(&Health { status })),
    }
}

fn written(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("our own bodies have string keys only")
}
