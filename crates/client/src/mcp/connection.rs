//! The connection to a server, with the revision that both share, and attempts at requests over it.

use std::{sync::Arc, time::Duration};

use lambda_tools_core::wire::mcp::RECOGNIZES_CALL_IDS;
use rmcp::{
    ClientLifecycleMode, ClientServiceExt, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ClientRequest, ElicitationCapability,
        FormElicitationCapability, Implementation, ProtocolVersion, ServerPeerInfo, ServerResult,
        UrlElicitationCapability,
    },
    service::{PeerRequestOptions, RunningService},
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};

use super::{McpClient, failure::Failed, transport::Transport};
use crate::{ClientError, retry::RetryAdvice};

/// An MCP server, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpServer {
    /// The revision of MCP that client and server share, such as `2026-07-28`.
    pub revision: String,
    /// The server's name.
    pub name: Option<String>,
    /// The server's version.
    pub version: Option<String>,
    /// The server's advice to models on the use of its tools.
    pub instructions: Option<String>,
}

/// A connection, which ends when all of its clones are dropped.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    service: Arc<RunningService<RoleClient, ClientConfig>>,
    info: Arc<ServerPeerInfo>,
}

impl Connection {
    pub(super) fn server(&self) -> McpServer {
        let server = self.info.server_info.as_ref();
        McpServer {
            revision: self.info.protocol_version.to_string(),
            name: server.map(|it| it.name.clone()),
            version: server.map(|it| it.version.clone()),
            instructions: self.info.instructions.clone(),
        }
    }

    fn recognizes_call_ids(&self) -> bool {
        let meta = self.info.meta.as_ref();
        let value = meta.and_then(|it| it.0.get(RECOGNIZES_CALL_IDS));
        value.is_some_and(|it| it == true)
    }

    async fn send(&self, request: ClientRequest, limit: Duration) -> Result<ServerResult, Failed> {
        let mut options = PeerRequestOptions::no_options();
        options.timeout = Some(limit);
        let response = async {
            let sent = self.service.send_request_with_option(request, options);
            Ok(sent.await?.await_response().await?)
        };
        // Its own limit excludes the time in which it tells the server that it does not wait any more.
        let response = tokio::time::timeout(limit, response).await;
        response.unwrap_or_else(|_| Err(Failed::timed_out()))
    }
}

impl McpClient {
    /// Returns the connection, which is made on first use, and again if it has ended.
    pub(super) async fn connection(&self, limit: Duration) -> Result<Connection, Failed> {
        let connected = async {
            // Requests that start together wait for one negotiation.
            let mut slot = self.connection.lock().await;
            let open = slot.as_ref().filter(|it| !it.service.is_transport_closed());
            if let Some(connection) = open {
                return Ok(connection.clone());
            }
            // Boxed, because its future has 16 KiB.
            let connection = Box::pin(self.connect()).await?;
            Ok(slot.insert(connection).clone())
        };
        let connected = tokio::time::timeout(limit, connected).await;
        connected.unwrap_or_else(|_| Err(Failed::timed_out()))
    }

    /// Connects: the client asks with a modern request, and begins with `initialize` if the server
    /// does not understand it (2026-07-28, Versioning, Backward Compatibility).
    async fn connect(&self) -> Result<Connection, Failed> {
        let config = StreamableHttpClientTransportConfig::with_uri(self.http.base.as_str());
        // The program decides how many calls it makes at once.
        let config = config.max_concurrent_requests(usize::MAX);
        let transport = Transport(self.http.clone());
        let transport = StreamableHttpClientTransport::with_client(transport, config);
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        let service = client_config().serve_with_lifecycle(transport, lifecycle);
        let service = Arc::new(service.await?);
        let info = service.peer_info();
        let info = info.ok_or_else(|| ClientError::Unreachable("it has ended".to_owned()))?;
        Ok(Connection { service, info })
    }

    /// Sends a request once. A call that may have run is not repeated if it might then run twice.
    pub(super) async fn attempt(
        &self,
        request: ClientRequest,
        limit: Duration,
    ) -> Result<ServerResult, Failed> {
        let started = std::time::Instant::now();
        let connection = self.connection(limit).await?;
        let is_call = matches!(request, ClientRequest::CallToolRequest(_));
        let limit = limit.saturating_sub(started.elapsed());
        let sent = connection.send(request, limit).await;
        sent.map_err(|failed| match failed.advice {
            RetryAdvice::IfRecognized if is_call && !connection.recognizes_call_ids() => {
                let advice = RetryAdvice::Done;
                Failed { advice, ..failed }
            }
            _ => failed,
        })
    }
}

fn client_config() -> ClientConfig {
    let mut capabilities = ClientCapabilities::default();
    // Requests for input are returned to the program.
    let elicitation = ElicitationCapability::new()
        .with_form(FormElicitationCapability::default())
        .with_url(UrlElicitationCapability::default());
    capabilities.elicitation = Some(elicitation);
    let info = Implementation::new("lambda_tools", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(capabilities, info)
}
