//! Calls as each protocol decodes them.

use std::collections::BTreeMap;

use http::{HeaderMap, Method, Request, header::ACCEPT, header::CONTENT_TYPE, request::Parts};
use serde_json::Value;

use crate::{
    Protocol, Server, Toolkit, assemble::assemble, call::Call, clock::FIXED,
    idempotency::Idempotency, protocol::fuzzing::CallDecoder,
};

/// The form of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFormat {
    /// OXP's header form.
    OxpHeader,
    /// OXP's `$schema` form.
    OxpSchema,
    /// Open Tool Calling.
    Otc,
    /// OpenTool.
    OpenTool,
    /// MCP before 2026-07-28.
    Mcp,
}

impl CallFormat {
    fn protocol(self) -> Protocol {
        match self {
            Self::OxpHeader | Self::OxpSchema | Self::Otc => Protocol::Oxp,
            Self::OpenTool => Protocol::OpenTool,
            Self::Mcp => Protocol::Mcp,
        }
    }

    /// The path of calls.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self.protocol() {
            Protocol::Oxp => "/tools/call",
            Protocol::OpenTool => "/opentool/call",
            Protocol::Mcp => "/mcp",
        }
    }
}

/// A decoded call.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodedCall {
    /// The selector.
    pub tool: String,
    /// The id with which the call is repeated.
    pub call_id: Option<String>,
    /// The id of the trace.
    pub trace_id: Option<String>,
    /// The parameters that lost digits.
    pub lossy_integers: Vec<String>,
    /// The input.
    pub input: Value,
    /// The user.
    pub user_id: Option<String>,
    /// The tokens by provider.
    pub tokens: BTreeMap<String, String>,
    /// The secrets by id.
    pub secrets: BTreeMap<String, String>,
}

impl DecodedCall {
    fn of(call: Call) -> Self {
        let context = call.client_context;
        let exposed = |secrets: BTreeMap<String, crate::Secret>| {
            let secrets = secrets.into_iter();
            secrets
                .map(|(id, it)| (id, it.expose().to_owned()))
                .collect()
        };
        Self {
            tool: call.selector.to_string(),
            call_id: call.call_id,
            trace_id: call.trace_id,
            lossy_integers: call.rounded.lossy_integers,
            input: call.input,
            user_id: context.user_id,
            tokens: exposed(context.tokens),
            secrets: exposed(context.secrets),
        }
    }
}

/// Decodes calls of one form.
pub struct Calls {
    decoder: CallDecoder,
    format: CallFormat,
}

impl Calls {
    /// A server with these tools.
    #[must_use]
    pub fn new(format: CallFormat, toolkit: Toolkit) -> Self {
        let server = Server::new(toolkit).idempotency(Idempotency::in_memory());
        let (_, warm_up) = assemble(server, FIXED, FIXED);
        Self {
            decoder: format.protocol().decoder(&warm_up.into_engine()),
            format,
        }
    }

    /// Decodes a body, with the headers that the protocol's clients send and these.
    #[must_use]
    pub fn decode(&self, headers: HeaderMap, body: &[u8]) -> Option<DecodedCall> {
        let call = (self.decoder)(&self.parts(headers), body)?;
        Some(DecodedCall::of(*call))
    }

    fn parts(&self, headers: HeaderMap) -> Parts {
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.format.path())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        let request = request.body(()).expect("the request is valid");
        let (mut parts, ()) = request.into_parts();
        parts.headers.extend(headers);
        parts
    }
}
