//! A call on its way from a client of the library to a server.

use std::collections::BTreeMap;

use lambda_tools::{
    Toolkit,
    client::{CallRequest, opentool::FunctionCall, oxp::CallFormat as Dialect},
    fuzzing::{CallFormat, Calls, DecodedCall},
    http::HeaderMap,
};

use crate::{clients::Clients, runtime::wait};

/// The response to every call: over MCP, a call is sent only to a server that responds.
const RESPONSE: &[u8] = br#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;

pub(crate) struct RoundTrip {
    calls: Calls,
    clients: Clients,
    /// The names of the tools in protocols that have no ids.
    names: BTreeMap<String, String>,
}

impl RoundTrip {
    pub(crate) fn new(format: CallFormat, toolkit: Toolkit) -> Self {
        // Of several versions, the newest is the last.
        let definitions = toolkit.definitions().into_iter();
        let names = definitions.map(|it| {
            let qualified = it.id.split('@').next().unwrap_or_default();
            (qualified.to_owned(), it.name)
        });
        let names = names.collect();
        let clients = Clients::new();
        clients.respond_with(200, RESPONSE);
        Self {
            calls: Calls::new(format, toolkit),
            clients,
            names,
        }
    }

    /// Decodes a body as a server does.
    pub(crate) fn decode(&self, headers: HeaderMap, body: &[u8]) -> Option<DecodedCall> {
        self.calls.decode(headers, body)
    }

    /// Returns the call after a client has sent it and a server has decoded it.
    pub(crate) fn of(&self, call: &DecodedCall, format: CallFormat) -> Option<DecodedCall> {
        match format {
            CallFormat::OxpHeader => self.send_oxp(call, Dialect::Header),
            CallFormat::OxpSchema => self.send_oxp(call, Dialect::Schema),
            CallFormat::Otc => self.send_oxp(call, Dialect::Otc),
            CallFormat::OpenTool => self.send_opentool(call),
            CallFormat::Mcp => self.send_mcp(call),
        }
        self.decode(HeaderMap::new(), &self.clients.sent())
    }

    fn send_oxp(&self, call: &DecodedCall, dialect: Dialect) {
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
        let client = self.clients.oxp.clone().dialect(dialect);
        let _ = wait(client.call(&request));
    }

    fn send_opentool(&self, call: &DecodedCall) {
        let call_id = call.call_id.as_deref().unwrap_or_default();
        let arguments = call.input.as_object().expect("an input is an object");
        let call = FunctionCall::new(call_id, self.name_of(call), arguments.clone());
        let _ = wait(self.clients.opentool.call(&call));
    }

    fn send_mcp(&self, call: &DecodedCall) {
        let request = request_of(call, self.name_of(call));
        wait(self.clients.mcp.call(&request)).expect("MCP can carry the call");
    }

    fn name_of(&self, call: &DecodedCall) -> &str {
        let qualified = call.tool.split('@').next().unwrap_or_default();
        self.names.get(qualified).map_or("", String::as_str)
    }
}

/// Returns a call with an input and an id, which is empty if the call has none.
fn request_of(call: &DecodedCall, tool: &str) -> CallRequest {
    let call_id = call.call_id.as_deref().unwrap_or_default();
    let request = CallRequest::new(tool).call_id(call_id);
    request.input(call.input.clone())
}
