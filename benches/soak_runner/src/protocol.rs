//! The forms in which one call is sent.

mod outcome;

use serde_json::{Value, json};

use crate::event::{Credential, Event};

pub(crate) use outcome::ToolFailure;

/// A protocol, or one of its forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// OXP, header form.
    Oxp,
    /// OXP, `$schema` form.
    OxpSchema,
    OpenToolCalling,
    /// The path of a single tool.
    SingleTool,
    OpenTool,
    /// MCP, revision 2026-07-28.
    McpModern,
    /// MCP, revision 2025-11-25.
    McpLegacy,
    /// An event that is a call.
    Direct,
}

impl Protocol {
    pub(crate) const ALL: [Self; 8] = [
        Self::Oxp,
        Self::OxpSchema,
        Self::OpenToolCalling,
        Self::SingleTool,
        Self::OpenTool,
        Self::McpModern,
        Self::McpLegacy,
        Self::Direct,
    ];

    /// Those whose callers send credentials and may name their user.
    pub(crate) const WITH_CONTEXT: [Self; 3] = [Self::Oxp, Self::OxpSchema, Self::OpenToolCalling];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Oxp => "OXP header form",
            Self::OxpSchema => "OXP $schema form",
            Self::OpenToolCalling => "Open Tool Calling",
            Self::SingleTool => "single tool",
            Self::OpenTool => "OpenTool",
            Self::McpModern => "MCP 2026-07-28",
            Self::McpLegacy => "MCP 2025-11-25",
            Self::Direct => "direct call",
        }
    }

    fn is_mcp(self) -> bool {
        matches!(self, Self::McpModern | Self::McpLegacy)
    }
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) protocol: Protocol,
    /// Its toolkit and name.
    pub(crate) tool: &'static str,
    pub(crate) id: String,
    pub(crate) input: Value,
    /// `null`, or what the caller adds; only for [`Protocol::WITH_CONTEXT`].
    pub(crate) context: Value,
}

impl Call {
    pub(crate) fn event(&self, credential: &Credential) -> Event {
        let Self { id, input, .. } = self;
        match self.protocol {
            Protocol::Oxp => Event::post("/tools/call", &self.request())
                .header("oxp-version", "1.0")
                .credential(credential),
            Protocol::OxpSchema => self.enveloped("urn:oxp:1.0").credential(credential),
            Protocol::OpenToolCalling => self.enveloped("otc://1.0").credential(credential),
            Protocol::SingleTool => Event::post(&format!("/tools/{}/call", self.tool), input)
                .header("idempotency-key", id)
                .credential(credential),
            Protocol::OpenTool => {
                let body = json!({"jsonrpc": "2.0", "id": id, "method": self.name(),
                                  "params": input});
                Event::post("/opentool/call", &body).credential(credential)
            }
            Protocol::McpModern | Protocol::McpLegacy => {
                let params = json!({"name": self.name(), "arguments": input});
                mcp(self.protocol, "tools/call", params)
                    .header("mcp-name", &self.name())
                    .header("idempotency-key", id)
                    .credential(credential)
            }
            Protocol::Direct => Event::direct(&self.request()),
        }
    }

    /// The name under which models see the tool.
    fn name(&self) -> String {
        self.tool.replace('.', "_")
    }

    fn request(&self) -> Value {
        let mut request = json!({"tool_id": self.tool, "call_id": self.id, "input": self.input});
        if !self.context.is_null() {
            request["context"] = self.context.clone();
        }
        request
    }

    fn enveloped(&self, schema: &str) -> Event {
        let body = json!({"$schema": schema, "request": self.request()});
        Event::post("/tools/call", &body)
    }
}

/// A message of MCP with the id 7.
pub(crate) fn mcp(protocol: Protocol, method: &str, mut params: Value) -> Event {
    let version = if protocol == Protocol::McpModern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        "2026-07-28"
    } else {
        "2025-11-25"
    };
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    Event::post("/mcp", &body)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", version)
        .header("mcp-method", method)
}
