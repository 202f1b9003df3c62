//! Model Context Protocol: the tools of a server, at `POST /mcp`, without sessions.
//!
//! All revisions share one path: 2026-07-28, whose requests are self-contained, and the earlier
//! (legacy) ones, which begin with `initialize`. No instance remembers a client, so any instance
//! can handle any request. Responses are JSON, or a stream for a call whose client asks for
//! progress.

pub(crate) mod agentcore;
mod catalogue;
mod elicitation;
mod format;
mod params;
mod progress;
mod reading;
mod rejection;
mod request;
mod response;
mod tasks;
mod transport;

use std::sync::{Arc, OnceLock};

use axum::body::Body;
use http::{HeaderMap, Method, StatusCode};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use tracing::Span;

use super::{
    app::AppState,
    codec::{Codec, Declaration, EncodedRequest, Operation, Purpose, Route},
    encoded_list::EncodedList,
    jsonrpc::{INTERNAL_ERROR, RpcError},
    listed_tools::ListedTools,
    refusal::Refusal,
};
use crate::{
    ServerInfo,
    call::{Call, Outcome},
    tool::definition::name_of,
    wire::{IDEMPOTENCY_KEY, mcp::RECOGNIZES_CALL_IDS},
};
use agentcore::GatewayCall;
use catalogue::{KeptPages, ListResult, TTL_MS, pages};
use format::{McpFormat, OutputKind};
use response::Meta;
use transport::{Revision, TASKS};

const CALL: Purpose = Purpose::Call("POST /mcp");

/// The codec of the Model Context Protocol.
#[derive(Default)]
pub(super) struct McpCodec {
    /// The server as every modern result names it.
    server_info: OnceLock<Arc<RawValue>>,
    pages: KeptPages,
    /// The call of an event, for which alone this codec was made.
    gateway: Option<GatewayCall>,
}

impl Codec for McpCodec {
    const DECLARATION: &'static Declaration = &Declaration {
        title: Some("MCP"),
        routes: &[Route::new(Method::POST, "/mcp", CALL)],
        // GET and DELETE are for streams and sessions, which this server does not have.
        takes_all_methods: true,
        resource_path: "/mcp",
        request_headers: &[
            IDEMPOTENCY_KEY,
            "mcp-method",
            "mcp-name",
            "mcp-protocol-version",
        ],
        ..Declaration::BASE
    };

    type Format = McpFormat;

    fn undecoded(purpose: Purpose) -> McpFormat {
        match purpose {
            Purpose::Event(_) => agentcore::bare(),
            _ => McpFormat::default(),
        }
    }

    fn decode(
        &self,
        purpose: Purpose,
        request: &EncodedRequest<'_>,
        format: &mut McpFormat,
    ) -> Operation {
        match (purpose, &self.gateway) {
            (_, Some(gateway)) => agentcore::decode(request, gateway, format),
            (Purpose::Call(_), None) => request::decode(request, self, format),
            _ => Operation::Respond(StatusCode::METHOD_NOT_ALLOWED, Vec::new()),
        }
    }

    fn is_health_check(body: &[u8]) -> bool {
        request::is_ping(body)
    }

    fn dialect(format: &McpFormat) -> &'static str {
        match format.revision {
            _ if format.is_bare => "agentcore",
            revision => revision.map_or("mcp", Revision::dialect),
        }
    }

    fn trace_headers(format: &McpFormat) -> Option<&HeaderMap> {
        format.trace.as_deref()
    }

    /// OpenTelemetry, Semantic conventions for Model Context Protocol, Server.
    fn annotate(format: &McpFormat, call: &Call, app: &AppState, span: &Span) {
        let (method, field) = match format.output {
            OutputKind::Resource => ("resources/read", "mcp.resource.uri"),
            OutputKind::Prompt => ("prompts/get", "gen_ai.prompt.name"),
            _ => ("tools/call", "gen_ai.tool.name"),
        };
        let tool = || app.engine.toolkit.resolve(&call.selector, |_| false).ok();
        let name = match (&call.entry, format.output) {
            (_, OutputKind::Resource) => format.uri.to_string(),
            (Some(prompt), _) => prompt.id.name().to_owned(),
            (None, _) => tool().map_or(String::new(), |it| name_of(&it.id, &it.tool)),
        };
        // A URI may be a secret, and there are many.
        let shown = if format.uri.is_empty() { &name } else { "" };
        span.record("otel.name", format!("{method} {shown}").trim());
        span.record("mcp.method.name", method);
        span.record(field, name);
        if method == "tools/call" {
            span.record("gen_ai.operation.name", "execute_tool");
        }
        span.record(
            "mcp.protocol.version",
            format.revision.map(Revision::as_str),
        );
        let id = format.id.as_deref().map(|it| it.get().trim_matches('"'));
        span.record("jsonrpc.request.id", id);
    }

    fn list(&self, format: &McpFormat, tools: &ListedTools<'_>) -> Arc<EncodedList> {
        let pages = pages(&self.pages, tools, format.list);
        let result = ListResult(format, &pages);
        EncodedList::new(response::encode(format, &result))
    }

    fn list_error(&self, format: &McpFormat, detail: &str) -> (StatusCode, Vec<u8>) {
        let error = RpcError::new(INTERNAL_ERROR, detail);
        (StatusCode::OK, response::encode_error(format, &error))
    }

    fn early_chunks(format: &mut McpFormat, call: &mut Call) -> Option<Body> {
        let (follower, chunks) = format.progress.as_mut()?.begin();
        call.follower = Some(follower);
        Some(chunks)
    }

    fn outcome(&self, format: &McpFormat, outcome: &Outcome) -> (StatusCode, Vec<u8>) {
        let body = match (outcome.task.as_deref(), &outcome.result) {
            (Some(task), _) if format.takes_tasks => tasks::created(format, task),
            (_, Ok(output)) if format.is_read() => reading::encode(format, outcome, output),
            _ => response::encode_outcome(format, outcome),
        };
        (StatusCode::OK, body)
    }

    fn refusal(&self, format: &McpFormat, refusal: &Refusal) -> (StatusCode, Vec<u8>) {
        rejection::encode_refusal(format, refusal)
    }
}

impl McpCodec {
    fn server_info(&self, info: &ServerInfo) -> &Arc<RawValue> {
        self.server_info.get_or_init(|| {
            let info = json!({"name": info.title, "version": info.version});
            to_raw_value(&info).expect("texts are JSON").into()
        })
    }

    /// Returns the response to `initialize`.
    fn initialization(&self, format: &McpFormat, app: &AppState) -> Vec<u8> {
        let revision = format.revision.unwrap_or(Revision::NEWEST_LEGACY);
        let mut result = json!({
            "protocolVersion": revision.as_str(),
            "capabilities": capabilities(app),
            "serverInfo": self.server_info(&app.info),
            "instructions": app.info.description,
        });
        if app.engine.deduplication.is_on() {
            result["_meta"] = json!({RECOGNIZES_CALL_IDS: true});
        }
        response::encode(format, &result)
    }
}

/// Returns the capabilities of all revisions.
fn capabilities(app: &AppState) -> Value {
    let (mut capabilities, toolkit) = (json!({"tools": {}}), &app.engine.toolkit);
    if toolkit.resources_with_uris().next().is_some() {
        capabilities["resources"] = json!({});
    }
    if toolkit.prompt_entries().next().is_some() {
        capabilities["prompts"] = json!({});
        capabilities["completions"] = json!({});
    }
    capabilities
}

/// Returns the response to `server/discover`.
fn discovery(format: &McpFormat, app: &AppState) -> Vec<u8> {
    let mut capabilities = capabilities(app);
    if app.engine.has_tasks() {
        capabilities["extensions"] = json!({TASKS: {}});
    }
    let mut meta = Meta::of(format);
    if app.engine.deduplication.is_on() {
        meta.insert(RECOGNIZES_CALL_IDS, true);
    }
    let result = json!({
        "resultType": "complete",
        "supportedVersions": Revision::modern(),
        "capabilities": capabilities,
        "instructions": app.info.description,
        "ttlMs": TTL_MS,
        "cacheScope": "private",
        "_meta": meta,
    });
    response::encode(format, &result)
}
