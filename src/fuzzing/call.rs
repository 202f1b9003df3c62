//! Calls as each protocol decodes and encodes them.

use std::collections::BTreeMap;

use http::{HeaderMap, Method, Request, header::ACCEPT, header::CONTENT_TYPE, request::Parts};
use serde_json::Value;

use crate::{
    Protocol, Server, Toolkit,
    assemble::assemble,
    call::Call,
    client::{
        CallRequest, mcp,
        opentool::{self, FunctionCall},
        oxp::{self, CallFormat as OxpFormat},
    },
    clock::FIXED,
    idempotency::Idempotency,
    protocol::fuzzing::CallDecoder,
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

    /// The body in which the client of this crate sends the call. `name` is the tool's name in
    /// protocols that have no ids.
    #[must_use]
    pub fn encode(&self, format: CallFormat, name: &str) -> Vec<u8> {
        let call_id = self.call_id.as_deref();
        let arguments = self.input.as_object().expect("an input is an object");
        match format {
            CallFormat::OxpHeader => self.encode_oxp(OxpFormat::Header),
            CallFormat::OxpSchema => self.encode_oxp(OxpFormat::Schema),
            CallFormat::Otc => self.encode_oxp(OxpFormat::Otc),
            CallFormat::OpenTool => {
                let call_id = call_id.unwrap_or_default();
                let call = FunctionCall::new(call_id, name, arguments.clone());
                opentool::fuzzing::encoded_call(&call)
            }
            CallFormat::Mcp => mcp::fuzzing::encoded_call(name, call_id, arguments),
        }
    }

    fn encode_oxp(&self, format: OxpFormat) -> Vec<u8> {
        let mut call = CallRequest::new(&*self.tool).input(self.input.clone());
        if let Some(trace_id) = &self.trace_id {
            call = call.trace_id(trace_id);
        }
        if let Some(user_id) = &self.user_id {
            call = call.user_id(user_id);
        }
        for (id, token) in &self.tokens {
            call = call.token(id, &**token);
        }
        for (id, value) in &self.secrets {
            call = call.secret(id, &**value);
        }
        let call_id = self.call_id.as_deref().unwrap_or_default();
        oxp::fuzzing::encoded_call(&call, call_id, format)
    }
}

/// Decodes calls of one form.
pub struct Calls {
    decoder: CallDecoder,
    format: CallFormat,
    names: BTreeMap<String, String>,
}

impl Calls {
    /// A server with these tools.
    #[must_use]
    pub fn new(format: CallFormat, toolkit: Toolkit) -> Self {
        // Of several versions, the newest is the last.
        let definitions = toolkit.definitions().into_iter();
        let names = definitions.map(|it| {
            let qualified = it.id.split('@').next().unwrap_or_default();
            (qualified.to_owned(), it.name)
        });
        let names = names.collect();
        let server = Server::new(toolkit).idempotency(Idempotency::in_memory());
        let (_, warm_up) = assemble(server, FIXED, FIXED);
        Self {
            decoder: format.protocol().decoder(&warm_up.into_engine()),
            format,
            names,
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

    /// The call after the client has encoded it and the server has decoded it.
    #[must_use]
    pub fn round_trip(&self, call: &DecodedCall, format: CallFormat) -> Option<DecodedCall> {
        let qualified = call.tool.split('@').next().unwrap_or_default();
        let name = self.names.get(qualified).map_or("", String::as_str);
        self.decode(HeaderMap::new(), &call.encode(format, name))
    }
}
