//! Connections: accepted, served over HTTP/1.1, and closed when a client is slow or idle.
//!
//! HTTP/2 is not supported: programs that call a local server do not need it, and the limits and
//! the guard would have to cover both versions.

use std::{convert::Infallible, future::Future, io::ErrorKind, pin::pin, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use http_body_util::BodyExt;
use hyper::{body::Body as _, server::conn::http1};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, select, sync::oneshot, task::JoinSet, time::timeout};

use crate::protocol::problem;

/// The pause after a failure to accept a connection, and therefore between two warnings.
const PAUSE: Duration = Duration::from_secs(1);

/// The size up to which a body is read before it is needed.
const SMALL: u64 = 64 * 1024;

/// The time that a client has to send the head of a request, counted from the start of the connection
/// or the end of the last response; then to send the body; and to read more of a response. Tools have
/// their own limits.
pub(super) const CLIENT_LIMIT: Duration = Duration::from_secs(30);

/// The maximum number of connections; others wait until one of these ends. Each takes one of the file
/// descriptors, of which a process often has 1024.
pub(super) const MOST_CONNECTIONS: usize = 512;

/// Serves at most `most` connections at once until `stop` completes. Returns those that are still
/// open.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    limit: Duration,
    most: usize,
    stop: impl Future<Output = ()>,
) -> GracefulShutdown {
    let limited = middleware::from_fn_with_state(limit, limit_body);
    let service = TowerToHyperService::new(router.layer(limited));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limit);
    let open = GracefulShutdown::new();
    let mut tasks = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = select! {
            () = &mut stop => {
                tasks.detach_all();
                return open;
            }
            Some(_) = tasks.join_next() => continue,
            accepted = listener.accept(), if tasks.len() < most => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            // The client has given up.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
            Err(error) => {
                // Temporary: file descriptors become free again.
                tracing::warn!(%error, "connections cannot be accepted; retrying in a second");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        // The kernel closes the connection of a client that does not read its responses, for which
        // hyper has no limit.
        #[cfg(target_os = "linux")]
        let _ = socket2::SockRef::from(&stream).set_tcp_user_timeout(Some(limit));
        let connection = http.serve_connection(TokioIo::new(stream), service.clone());
        tasks.spawn(open.watch(connection));
    }
}

/// Rejects a request whose body does not fully arrive within `limit`: hyper limits only the time for
/// the head.
async fn limit_body(State(limit): State<Duration>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    if body.size_hint().upper().is_some_and(|size| size <= SMALL) {
        // Read even if no one needs it, as when credentials are missing: otherwise hyper would close
        // a connection on which the client may already send its next request.
        let Ok(Ok(body)) = timeout(limit, to_bytes(body, usize::MAX)).await else {
            return problem::late(limit);
        };
        return next.run(Request::from_parts(parts, body.into())).await;
    }
    // Dropped with the body, which the router has then read, or does not need.
    let (reading, read) = oneshot::channel::<Infallible>();
    let body = body.map_frame(move |frame| {
        let _ = &reading;
        frame
    });
    let request = Request::from_parts(parts, Body::new(body));
    let mut response = pin!(next.run(request));
    select! {
        biased;
        response = &mut response => return response,
        read = timeout(limit, read) => if read.is_err() {
            return problem::late(limit);
        },
    }
    response.await
}

#[cfg(test)]
mod tests;
