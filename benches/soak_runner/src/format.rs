//! The formats in which one call is sent.

use serde_json::{Value, json};
use test_support::lambda::calling;

use crate::callers::Credential;

/// A protocol, or one of its formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// OXP, header dialect.
    Oxp,
    /// OXP, `$schema` dialect.
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

impl Format {
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

    /// Those whose callers may send secrets.
    pub(crate) const WITH_CONTEXT: [Self; 3] = [Self::Oxp, Self::OxpSchema, Self::OpenToolCalling];

    pub(crate) const OVER_HTTP: usize = Self::ALL.len() - 1;
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) format: Format,
    /// Its toolkit and name.
    pub(crate) tool: &'static str,
    pub(crate) id: String,
    pub(crate) input: Value,
    /// A secret with its id; only for [`Format::WITH_CONTEXT`].
    pub(crate) secret: Option<(&'static str, String)>,
}

impl Call {
    pub(crate) fn event(&self, (header, credential): &Credential) -> Value {
        let Self {
            id, input, tool, ..
        } = self;
        let name = tool.replace('.', "_");
        let keyed = [(*header, &**credential)];
        let enveloped = |schema: &str| json!({"$schema": schema, "request": self.request()});
        match self.format {
            Format::Oxp => calling(&self.request(), &[keyed[0], ("oxp-version", "1.0")]),
            Format::OxpSchema => calling(&enveloped("urn:oxp:1.0"), &keyed),
            Format::OpenToolCalling => calling(&enveloped("otc://1.0"), &keyed),
            Format::SingleTool => {
                let event = calling(input, &[keyed[0], ("idempotency-key", id)]);
                at(event, &format!("/tools/{tool}/call"))
            }
            Format::OpenTool => {
                let body = json!({"jsonrpc": "2.0", "id": id, "method": name, "params": input});
                at(calling(&body, &keyed), "/opentool/call")
            }
            Format::McpModern | Format::McpLegacy => self.mcp(&name, keyed[0]),
            Format::Direct => self.request(),
        }
    }

    fn request(&self) -> Value {
        let mut request = json!({"tool_id": self.tool, "call_id": self.id, "input": self.input});
        if let Some((id, value)) = &self.secret {
            request["context"] = json!({"secrets": [{"id": id, "value": value}]});
        }
        request
    }

    fn mcp(&self, name: &str, credential: (&str, &str)) -> Value {
        let mut params = json!({"name": name, "arguments": self.input});
        let mut version = "2025-11-25";
        if self.format == Format::McpModern {
            version = "2026-07-28";
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        let headers = [
            credential,
            ("accept", "application/json, text/event-stream"),
            ("idempotency-key", &*self.id),
            ("mcp-method", "tools/call"),
            ("mcp-name", name),
            ("mcp-protocol-version", version),
        ];
        at(calling(&body, &headers), "/mcp")
    }
}

/// Returns the same request at another path.
fn at(mut event: Value, path: &str) -> Value {
    event["rawPath"] = path.into();
    event["requestContext"]["http"]["path"] = path.into();
    event
}
