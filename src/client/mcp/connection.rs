//! The revision that client and server share, and the session, if the server has one.
//!
//! 2026-07-28, Versioning, Backward Compatibility: the client asks with a modern request, and
//! begins with `initialize` if the server does not understand it.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::{
    McpClient,
    exchange::{AttemptTime, Exchange, FailedAttempt, RequestContext, SESSION},
    message::{
        HEADER_MISMATCH, MISSING_CAPABILITY, RpcAnswer, RpcRequest, UNSUPPORTED_VERSION,
        client_info,
    },
    revision::McpRevision,
};
use crate::{client::ClientError, payload::JsonObject};

/// A key in `_meta` with which a server built with this library says that it recognizes call ids.
const RECOGNIZES_CALL_IDS: &str = "lambda-tools/recognizes-call-ids";

/// An MCP server, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpServer {
    /// The revision that client and server share.
    pub revision: McpRevision,
    /// The server's name.
    pub name: Option<String>,
    /// The server's version.
    pub version: Option<String>,
    /// The server's advice to models on the use of its tools.
    pub instructions: Option<String>,
}

/// The facts about a server that the client keeps.
pub(super) struct Connection {
    pub(super) server: McpServer,
    pub(super) session: Option<HeaderValue>,
}

impl Connection {
    pub(super) fn context(&self) -> RequestContext<'_> {
        RequestContext {
            revision: Some(self.server.revision),
            session: self.session.as_ref(),
        }
    }
}

impl McpClient {
    /// The connection, which is made on first use.
    pub(super) async fn connection(
        &self,
        time: AttemptTime,
    ) -> Result<Arc<Connection>, FailedAttempt> {
        // Requests that start together wait for one negotiation.
        let mut slot = self.shared.connection.lock().await;
        if let Some(connection) = &*slot {
            return Ok(Arc::clone(connection));
        }
        let connection = self.negotiate(time).await;
        let connection = Arc::new(connection.map_err(FailedAttempt::before_it_ran)?);
        *slot = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Forgets a connection whose session has ended.
    pub(super) async fn forget(&self, ended: &Arc<Connection>) {
        let mut slot = self.shared.connection.lock().await;
        slot.take_if(|it| Arc::ptr_eq(it, ended));
    }

    async fn negotiate(&self, time: AttemptTime) -> Result<Connection, FailedAttempt> {
        let legacy = match self.revision {
            Some(revision) if !revision.is_modern() => revision,
            pinned => {
                let request = RpcRequest::new("server/discover", JsonObject::new());
                let context = RequestContext {
                    revision: Some(McpRevision::NEWEST),
                    session: None,
                };
                let exchange = self.exchange(context, &request, time).await?;
                match era_of(exchange)? {
                    Era::Modern(discovery) => return Ok(self.discovered(&discovery)),
                    Era::Legacy if pinned.is_some() => {
                        let text = "the server does not support revision 2026-07-28 of MCP";
                        return Err(ClientError::Unsupported(text).into());
                    }
                    Era::Legacy => McpRevision::NEWEST_LEGACY,
                }
            }
        };
        self.initialize(legacy, time).await
    }

    fn discovered(&self, discovery: &JsonObject) -> Connection {
        let info = discovery
            .get("_meta")
            .map_or(&Value::Null, |it| &it["io.modelcontextprotocol/serverInfo"]);
        self.connected(McpRevision::NEWEST, discovery, info, None)
    }

    /// 2025-11-25, Lifecycle, Initialization.
    async fn initialize(
        &self,
        requested: McpRevision,
        time: AttemptTime,
    ) -> Result<Connection, FailedAttempt> {
        let mut params = JsonObject::new();
        params.insert("protocolVersion".into(), requested.as_str().into());
        // Without a stream from the server, its requests could not be answered.
        params.insert("capabilities".into(), json!({}));
        params.insert("clientInfo".into(), client_info());
        let request = RpcRequest::new("initialize", params);
        let exchange = self
            .exchange(RequestContext::default(), &request, time)
            .await?;
        let session = exchange.response.headers.get(SESSION).cloned();
        let result = exchange.into_result()?;
        let revision = result.get("protocolVersion").and_then(Value::as_str);
        let revision = revision.and_then(McpRevision::parse);
        let Some(revision) = revision.filter(|it| !it.is_modern()) else {
            let text = "it names a revision that this client does not know";
            return Err(ClientError::Unreadable(text.into()).into());
        };
        let info = result.get("serverInfo").unwrap_or(&Value::Null);
        let connection = self.connected(revision, &result, info, session);
        let initialized = RpcRequest::new("notifications/initialized", JsonObject::new());
        self.notify(connection.context(), &initialized, time)
            .await?;
        Ok(connection)
    }

    fn connected(
        &self,
        revision: McpRevision,
        result: &JsonObject,
        info: &Value,
        session: Option<HeaderValue>,
    ) -> Connection {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let meta = result.get("_meta").unwrap_or(&Value::Null);
        let recognizes_call_ids = meta[RECOGNIZES_CALL_IDS] == true;
        self.shared
            .recognizes_call_ids
            .store(recognizes_call_ids, Relaxed);
        let server = McpServer {
            revision,
            name: text(&info["name"]),
            version: text(&info["version"]),
            instructions: result.get("instructions").and_then(text),
        };
        Connection { server, session }
    }
}

/// The two kinds of servers.
#[derive(Debug)]
enum Era {
    Modern(JsonObject),
    Legacy,
}

/// The era of a server, by its response to `server/discover`.
fn era_of(exchange: Exchange) -> Result<Era, ClientError> {
    let Exchange { response, answer } = exchange;
    match era_in(response.status, answer) {
        Some(era) => era,
        None => Err(response.status_error()),
    }
}

/// `None` if the response says nothing about the era.
fn era_in(
    status: StatusCode,
    answer: Result<RpcAnswer, ClientError>,
) -> Option<Result<Era, ClientError>> {
    let may_be_legacy = matches!(status.as_u16(), 400 | 404 | 405);
    match answer {
        Ok(RpcAnswer::Result(result)) if status.is_success() => {
            let versions = result.get("supportedVersions");
            Some(match versions.and_then(newest_shared) {
                // A server that understands the method is modern, even without a list.
                Some(revision) if revision.is_modern() => Ok(Era::Modern(result)),
                None if versions.is_none() => Ok(Era::Modern(result)),
                Some(_) => Ok(Era::Legacy),
                None => Err(no_shared_revision()),
            })
        }
        Ok(RpcAnswer::Error(error)) if status.is_success() || may_be_legacy => {
            Some(match error.code {
                UNSUPPORTED_VERSION => match newest_shared(&error.data["supported"]) {
                    Some(revision) if !revision.is_modern() => Ok(Era::Legacy),
                    _ => Err(no_shared_revision()),
                },
                HEADER_MISMATCH | MISSING_CAPABILITY => Err(error.into_client_error()),
                _ => Ok(Era::Legacy),
            })
        }
        Err(error) if status.is_success() => Some(Err(error)),
        _ => may_be_legacy.then_some(Ok(Era::Legacy)),
    }
}

/// The newest revision in a list that this client speaks.
fn newest_shared(versions: &Value) -> Option<McpRevision> {
    let versions = versions.as_array().into_iter().flatten();
    let known = versions.filter_map(|it| McpRevision::parse(it.as_str()?));
    known.max()
}

fn no_shared_revision() -> ClientError {
    ClientError::Unsupported("the server supports no revision of MCP that this client knows")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::mcp::message::answer_in;

    fn era(status: u16, message: Value) -> Option<Result<Era, ClientError>> {
        let status = StatusCode::from_u16(status).unwrap();
        era_in(status, answer_in(message, 1))
    }

    fn error(code: i64, supported: &[&str]) -> Value {
        json!({"id": 1, "error": {"code": code, "data": {"supported": supported}}})
    }

    fn discovery(versions: &[&str]) -> Value {
        json!({"id": 1, "result": {"supportedVersions": versions}})
    }

    #[test]
    fn a_server_that_does_not_understand_a_modern_request_is_legacy() {
        for (status, message) in [
            (400, Value::Null),
            (404, json!("Not Found")),
            (405, Value::Null),
            (400, error(-32000, &[])),
            (404, error(-32601, &[])),
            (200, error(-32601, &[])),
            (200, discovery(&["2025-06-18"])),
            (
                400,
                error(UNSUPPORTED_VERSION, &["2030-01-01", "2025-11-25"]),
            ),
        ] {
            let era = era(status, message.clone());
            assert!(matches!(era, Some(Ok(Era::Legacy))), "{status} {message}");
        }
    }

    #[test]
    fn a_modern_error_is_no_reason_to_begin_with_initialize() {
        for (status, message) in [
            (400, error(HEADER_MISMATCH, &[])),
            (400, error(MISSING_CAPABILITY, &[])),
            (400, error(UNSUPPORTED_VERSION, &["2030-01-01"])),
            (400, error(UNSUPPORTED_VERSION, &[])),
            (200, discovery(&["2030-01-01"])),
            (200, json!("no message")),
        ] {
            assert!(
                matches!(era(status, message.clone()), Some(Err(_))),
                "{status} {message}"
            );
        }
        for (status, message) in [
            (200, discovery(&["2025-11-25", "2026-07-28"])),
            (200, json!({"id": 1, "result": {}})),
        ] {
            assert!(
                matches!(era(status, message.clone()), Some(Ok(Era::Modern(_)))),
                "{message}"
            );
        }
    }

    #[test]
    fn other_statuses_say_nothing_about_the_era() {
        for status in [301, 401, 403, 406, 415, 418, 500] {
            assert!(era(status, error(-32000, &[])).is_none(), "{status}");
            assert!(
                era(status, discovery(&["2026-07-28"])).is_none(),
                "{status}"
            );
        }
    }
}
