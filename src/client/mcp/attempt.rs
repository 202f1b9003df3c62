//! Attempts at a request: on the shared connection, and on a new one if its session has ended.

use super::{
    McpClient, McpRevision,
    connection::Connection,
    exchange::{AttemptTime, Exchange, FailedAttempt},
    message::RpcRequest,
};
use crate::{
    client::{
        ClientError,
        retry::{Attempts, RetryLimits},
    },
    payload::JsonObject,
};

impl McpClient {
    /// Sends a request that may be repeated.
    pub(super) async fn request(
        &self,
        method: &'static str,
        params: &JsonObject,
        limits: RetryLimits,
    ) -> Result<(JsonObject, McpRevision), ClientError> {
        let request = RpcRequest::new(method, params.clone());
        let mut attempts = Attempts::new(limits);
        loop {
            let time = AttemptTime::new(attempts.begin());
            match self.attempt(&request, time).await {
                Ok((exchange, revision)) => return Ok((exchange.into_result()?, revision)),
                Err(failed) if attempts.wait_for_next(failed.advice).await => {}
                Err(failed) => return Err(failed.error),
            }
        }
    }

    /// Sends a request once; twice if the session has ended.
    pub(super) async fn attempt(
        &self,
        request: &RpcRequest<'_>,
        time: AttemptTime,
    ) -> Result<(Exchange, McpRevision), FailedAttempt> {
        let mut connection = self.connection(time).await?;
        let mut exchange = self.send(&connection, request, time).await?;
        // 2025-11-25, Transports, Session Management.
        if connection.session.is_some() && exchange.response.status == 404 {
            self.forget(&connection).await;
            connection = self.connection(time).await?;
            exchange = self.send(&connection, request, time).await?;
        }
        Ok((exchange, connection.server.revision))
    }

    async fn send(
        &self,
        connection: &Connection,
        request: &RpcRequest<'_>,
        time: AttemptTime,
    ) -> Result<Exchange, FailedAttempt> {
        let has_input = ["inputResponses", "requestState"]
            .iter()
            .any(|it| request.params.contains_key(*it));
        if has_input && !connection.server.revision.is_modern() {
            let text = "this revision of MCP has no input responses";
            return Err(ClientError::Unsupported(text).into());
        }
        self.exchange(connection.context(), request, time).await
    }
}
