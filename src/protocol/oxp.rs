//! OXP 1.0 and its predecessor Open Tool Calling 1.0: one model in three dialects.
//!
//! The shape of a request determines its dialect, and the response uses the same one. Reference:
//! OXP 1.0, Call Tool and List Tools; OTC 1.0, Call Tool.

mod catalogue;
mod dialect;
mod error;
mod form;
#[cfg(feature = "openapi")]
pub(super) mod openapi;
mod query;
mod request;
mod response;

use std::sync::Arc;

use http::StatusCode;
use serde::Serialize;

use super::{
    codec::{Codec, Declaration, DecodedRequest, EncodedRequest, Operation, Reply, Route, Task},
    encoded_list::EncodedList,
    idempotency_key::IDEMPOTENCY_KEY,
    listed_tools::ListedTools,
    names::ModelNames,
};
use crate::{
    ServerInfo,
    call::{Outcome, rejection::Rejection},
    observe::request_log::RequestNames,
};
use catalogue::Catalogue;
use error::{ErrorBody, status_of};
use form::{OxpPath, RequestForm};
#[cfg(feature = "openapi")]
use openapi::OpenApiDocument;

/// The codec of OXP 1.0 and Open Tool Calling 1.0.
pub(super) struct OxpCodec {
    catalogue: Catalogue,
    #[cfg(feature = "openapi")]
    info: ServerInfo,
    #[cfg(feature = "openapi")]
    openapi: OpenApiDocument,
    /// Some clients send the name of a tool as its id.
    names: ModelNames,
}

const CALL: Task = Task::Call("POST /tools/call");
const CALL_OF_SINGLE_TOOL: Task = Task::Call("POST /tools/{tool_id}/call");
#[cfg(feature = "openapi")]
const OPENAPI: Task = Task::List("openapi");

impl Codec for OxpCodec {
    const DECLARATION: &'static Declaration = &Declaration {
        title: None,
        routes: &[
            Route::get("/health", Task::Health),
            Route::get("/tools", Task::List("list")),
            Route::post("/tools/call", CALL),
            Route::post("/tools/{tool_id}/call", CALL_OF_SINGLE_TOOL),
            #[cfg(feature = "openapi")]
            Route::get("/openapi.json", OPENAPI),
            // The path in the specification's examples.
            Route::post("/call", CALL).alias(),
        ],
        resource_path: "",
        // The list of tools or the OpenAPI document.
        list: "response",
        // RFC 9110, section 12.5.5.
        list_headers: &[("vary", "oxp-version")],
        request_headers: &[IDEMPOTENCY_KEY, "if-none-match", "oxp-version"],
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

    type Form = RequestForm;

    #[cfg_attr(
        not(feature = "openapi"),
        expect(unused_variables, reason = "only the document describes the server")
    )]
    fn new(info: &ServerInfo) -> Self {
        Self {
            catalogue: Catalogue::default(),
            #[cfg(feature = "openapi")]
            info: info.clone(),
            #[cfg(feature = "openapi")]
            openapi: OpenApiDocument::default(),
            names: ModelNames::default(),
        }
    }

    fn decode(&self, task: Task, request: &EncodedRequest<'_>) -> DecodedRequest<RequestForm> {
        match task {
            Task::Health | Task::Version | Task::Unsupported => health(request.engine.is_healthy()),
            #[cfg(feature = "openapi")]
            OPENAPI => DecodedRequest {
                form: OxpPath::OpenApi.into(),
                operation: Operation::List,
            },
            Task::List(_) => {
                let query = request.parts.uri.query();
                let decoded = request::list(&request.parts.headers, query, request.body);
                DecodedRequest {
                    form: decoded.form.into(),
                    operation: decoded.operation,
                }
            }
            CALL_OF_SINGLE_TOOL => self.decode_call_of_single_tool(request),
            Task::Call(_) => self.decode_call(request),
        }
    }

    fn dialect(form: &RequestForm) -> &'static str {
        form.dialect().name()
    }

    fn list(&self, form: &RequestForm, tools: &ListedTools<'_>) -> Arc<EncodedList> {
        #[cfg(feature = "openapi")]
        if form.path == OxpPath::OpenApi {
            return self.openapi.get(&self.info, tools);
        }
        self.catalogue.get(form.form, tools)
    }

    fn list_error(&self, form: &RequestForm, detail: &str) -> (StatusCode, Vec<u8>) {
        let message = match form.path {
            #[cfg(feature = "openapi")]
            OxpPath::OpenApi => "The OpenAPI document cannot be sent",
            OxpPath::Tools | OxpPath::SingleTool => "The list of tools cannot be sent",
        };
        let rejection = Rejection::malformed(message, detail);
        self.rejection(&RequestForm::default(), &rejection)
    }

    fn outcome(&self, form: &RequestForm, outcome: &Outcome) -> (StatusCode, Vec<u8>) {
        if form.path == OxpPath::SingleTool {
            return response::encode_bare(outcome);
        }
        (StatusCode::OK, response::encode(form.dialect(), outcome))
    }

    fn rejection(&self, form: &RequestForm, rejection: &Rejection) -> (StatusCode, Vec<u8>) {
        let body = ErrorBody::of(rejection, form);
        (status_of(rejection), to_json(&body))
    }
}

impl OxpCodec {
    fn decode_call(&self, request: &EncodedRequest<'_>) -> DecodedRequest<RequestForm> {
        let headers = &request.parts.headers;
        let DecodedRequest {
            form,
            mut operation,
        } = request::call(headers, request.body, request.max_values);
        if let Operation::Reject(rejection, names) = &mut operation {
            self.suggest(rejection, names, request);
        }
        DecodedRequest {
            form: RequestForm::of_call(form, &operation, request.body),
            operation,
        }
    }

    fn decode_call_of_single_tool(
        &self,
        request: &EncodedRequest<'_>,
    ) -> DecodedRequest<RequestForm> {
        let (call, names) = request::single_tool(request.parts, request.body, request.max_values);
        let operation = match call {
            Ok(call) => Operation::Call(Box::new(call)),
            Err(mut rejection) => {
                self.suggest(&mut rejection, &names, request);
                Operation::Reject(rejection, names)
            }
        };
        DecodedRequest {
            form: OxpPath::SingleTool.into(),
            operation,
        }
    }

    /// Adds the id that may be meant by an invalid one.
    fn suggest(&self, rejection: &mut Rejection, names: &RequestNames, request: &EncodedRequest) {
        if let Rejection::InvalidToolId { closest, .. } = rejection {
            let id = names.tool.as_deref();
            *closest = id.and_then(|id| self.id_for(id, request));
        }
    }

    /// The id of the tool whose name is, or is similar to, the text that was sent as an id.
    fn id_for(&self, text: &str, request: &EncodedRequest<'_>) -> Option<String> {
        let toolkit = &request.engine.toolkit;
        let name = text.split_once('@').map_or(text, |(name, _)| name);
        let exact = self.names.tool_of(name, toolkit);
        let id = exact.filter(|id| request.is_listed(id)).or_else(|| {
            let closest = self.names.closest(name, request)?;
            self.names.tool_of(&closest, toolkit)
        });
        id.map(|id| id.to_string())
    }
}

/// OXP 1.0, `GET /health`: 200 if healthy, 503 if not.
fn health(is_healthy: bool) -> DecodedRequest<RequestForm> {
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
        form: RequestForm::default(),
        operation: Operation::Respond(Reply::json(code, to_json(&Health { status }))),
    }
}

fn to_json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("our own bodies have string keys only")
}
