//! Connections: accepted, served over HTTP/1.1, and closed when a client is slow or idle.
//!
//! HTTP/2 is not supported: programs that call a local server do not need it, and the limits and
//! the guard would have to cover both versions.

use std::{future::Future, io, pin::pin, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::net::{TcpListener, TcpStream};

use super::{body, stream::TimedStream};

/// The pause after a failure to accept a connection, and therefore between two warnings.
const PAUSE: Duration = Duration::from_secs(1);

/// Time limits for clients to send a request and to read the response. Tools have their own.
#[derive(Clone, Copy)]
pub(super) struct ConnectionLimits {
    /// For the head, counted from the start of the connection or the end of the last response.
    pub(super) head: Duration,
    /// For the body, counted from the end of the head.
    pub(super) body: Duration,
    /// For the client to read more of a response.
    pub(super) write: Duration,
}

impl ConnectionLimits {
    pub(super) const LOCAL: Self = Self {
        head: Duration::from_secs(30),
        body: Duration::from_mins(1),
        write: Duration::from_secs(30),
    };
}

/// Serves until `stop` completes; returns once running requests have their responses.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    stop: impl Future<Output = ()>,
) {
    let service = TowerToHyperService::new(body::limit(router, limits.body));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head);
    let open = GracefulShutdown::new();
    let mut stop = pin!(stop);
    loop {
        let stream = tokio::select! {
            () = &mut stop => break,
            stream = accept(&listener) => stream,
        };
        let stream = TimedStream::new(stream, limits.write);
        let connection = http.serve_connection(TokioIo::new(stream), service.clone());
        let connection = open.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection was closed early");
            }
        });
    }
    // Rejects new clients, rather than leaving them waiting in the queue.
    drop(listener);
    open.shutdown().await;
}

/// Returns the next connection. Errors are temporary: file descriptors become free again.
async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) if is_client_error(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "connections cannot be accepted; retrying in a second");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// True if a client disconnected before its connection was accepted.
fn is_client_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
mod tests;
