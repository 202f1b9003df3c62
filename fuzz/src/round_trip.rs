//! A call on its way from a client of the library to a tool.

use std::sync::LazyLock;

use lambda_tools::{
    client::{CallRequest, opentool::FunctionCall, oxp::Dialect},
    http::HeaderMap,
};

use crate::{
    clients::Clients,
    echo::{EchoFunction, EchoTool, ToolCall},
    runtime::wait,
};

/// The response to every call: over MCP, a call is sent only to a server that responds.
const RESPONSE: &[u8] = br#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;

static CLIENTS: LazyLock<Clients> = LazyLock::new(|| {
    let clients = Clients::new();
    clients.respond_with(200, RESPONSE);
    clients
});

/// The format of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallFormat {
    /// OXP's header dialect.
    OxpHeader,
    /// OXP's `$schema` dialect.
    OxpSchema,
    /// Open Tool Calling.
    Otc,
    OpenTool,
    /// MCP before 2026-07-28.
    Mcp,
}

impl CallFormat {
    /// Returns the path of calls.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::OxpHeader | Self::OxpSchema | Self::Otc => "/tools/call",
            Self::OpenTool => "/opentool/call",
            Self::Mcp => "/mcp",
        }
    }
}

/// Connects the clients: they count for no input.
pub(crate) fn prepare() {
    LazyLock::force(&CLIENTS);
}

pub(crate) struct RoundTrip(EchoFunction);

impl RoundTrip {
    pub(crate) fn new(tools: impl IntoIterator<Item = EchoTool>) -> Self {
        Self(EchoFunction::new(tools))
    }

    /// Returns the call that a body makes, or the response to a body that makes none.
    pub(crate) fn received(
        &self,
        format: CallFormat,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<ToolCall, String> {
        self.0.call(format.path(), headers, body)
    }

    /// Returns the call after a client has sent it, or the response if it did not arrive.
    pub(crate) fn of(&self, call: &ToolCall, format: CallFormat) -> Result<ToolCall, String> {
        match format {
            CallFormat::OxpHeader => send_oxp(call, Dialect::Header),
            CallFormat::OxpSchema => send_oxp(call, Dialect::Schema),
            CallFormat::Otc => send_oxp(call, Dialect::Otc),
            CallFormat::OpenTool => send_opentool(call),
            CallFormat::Mcp => send_mcp(call),
        }
        let request = CLIENTS.sent();
        assert_eq!(request.uri().path(), format.path());
        self.received(format, request.headers(), request.body())
    }
}

fn send_oxp(call: &ToolCall, dialect: Dialect) {
    let mut request = request_of(call, &call.tool);
    if let Some(trace_id) = &call.trace_id {
        request = request.trace_id(trace_id);
    }
    if let Some(user_id) = &call.user_id {
        request = request.user_id(user_id);
    }
    for (id, token) in &call.tokens {
        request = request.token(id, &**token);
    }
    for (id, value) in &call.secrets {
        request = request.secret(id, &**value);
    }
    let client = CLIENTS.oxp.clone().dialect(dialect);
    let _ = wait(client.call(&request));
}

fn send_opentool(call: &ToolCall) {
    let call_id = call.call_id.as_deref().unwrap_or_default();
    let arguments = call.input.as_object().expect("an input is an object");
    let call = FunctionCall::new(call_id, name_of(call), arguments.clone());
    let _ = wait(CLIENTS.opentool.call(&call));
}

fn send_mcp(call: &ToolCall) {
    let request = request_of(call, &name_of(call));
    wait(CLIENTS.mcp.call(&request)).expect("MCP can carry the call");
}

/// Returns the tool's name in protocols that have no ids, which select the newest version.
fn name_of(call: &ToolCall) -> String {
    let qualified = call.tool.split('@').next().unwrap_or_default();
    qualified.replace('.', "_")
}

/// Returns a call with an input and an id, which is empty if the call has none.
fn request_of(call: &ToolCall, tool: &str) -> CallRequest {
    let call_id = call.call_id.as_deref().unwrap_or_default();
    let request = CallRequest::new(tool).call_id(call_id);
    request.input(call.input.clone())
}
