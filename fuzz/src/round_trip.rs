//! A call on its way to a tool: from a client of the library, or, over MCP, as the protocol describes it.

use std::sync::LazyLock;

use lambda_tools::{
    client::{CallRequest, opentool::FunctionCall, oxp::Dialect},
    http::{
        HeaderMap, HeaderValue,
        header::{ACCEPT, CONTENT_TYPE},
    },
};

use serde_json::json;

use crate::{
    clients::Clients,
    echo::{EchoFunction, EchoTool, ToolCall},
    runtime::wait,
};

static CLIENTS: LazyLock<Clients> = LazyLock::new(Clients::new);

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

/// Makes the clients: they count for no input.
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

    /// Returns the call after it has been sent, or the response if it did not arrive.
    pub(crate) fn of(&self, call: &ToolCall, format: CallFormat) -> Result<ToolCall, String> {
        match format {
            CallFormat::OxpHeader => send_oxp(call, Dialect::Header),
            CallFormat::OxpSchema => send_oxp(call, Dialect::Schema),
            CallFormat::Otc => send_oxp(call, Dialect::Otc),
            CallFormat::OpenTool => send_opentool(call),
            CallFormat::Mcp => return self.over_mcp(call),
        }
        let request = CLIENTS.sent();
        assert_eq!(request.uri().path(), format.path());
        self.received(format, request.headers(), request.body())
    }

    fn over_mcp(&self, call: &ToolCall) -> Result<ToolCall, String> {
        let json = HeaderValue::from_static("application/json");
        let headers = [(CONTENT_TYPE, json.clone()), (ACCEPT, json)];
        let mut params = json!({"name": name_of(call), "arguments": call.input});
        if let Some(call_id) = &call.call_id {
            params["_meta"] = json!({"lambda-tools/call-id": call_id});
        }
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        let headers = HeaderMap::from_iter(headers);
        self.received(CallFormat::Mcp, &headers, body.to_string().as_bytes())
    }
}

fn send_oxp(call: &ToolCall, dialect: Dialect) {
    let call_id = call.call_id.as_deref().unwrap_or_default();
    let mut request = CallRequest::new(&call.tool).call_id(call_id);
    request = request.input(call.input.clone());
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

/// Returns the tool's name in protocols that have no ids, which select the newest version.
fn name_of(call: &ToolCall) -> String {
    let qualified = call.tool.split('@').next().unwrap_or_default();
    qualified.replace('.', "_")
}
