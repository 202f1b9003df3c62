//! Connections: accepted, served over HTTP/1.1, and closed when a client is slow or idle.
//!
//! HTTP/2 is not supported: programs that call a local server do not need it, and the limits and
//! the guard would have to cover both versions.

use std::time::{Duration, Instant};
use std::{convert::Infallible, future::Future, io::ErrorKind, pin::pin};

use axum::{
    Extension, Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use http::{HeaderValue, header::CONNECTION};
use http_body_util::BodyExt;
use hyper::{body::Body as _, server::conn::http1, service::Service, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, select, sync::oneshot, sync::watch, task, time::timeout};

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

/// The time that an idle connection is left alone: its client may be about to send a request.
const SHORTEST_IDLE: Duration = Duration::from_millis(250);

/// The time between two looks for a connection that has been idle for longer.
const TICK: Duration = Duration::from_millis(50);

/// The time from which a connection is idle: it has no complete request that is being answered.
/// `None` if it has one.
type Idle = watch::Sender<Option<Instant>>;

/// Serves at most `most` connections at once until `stop` completes. Returns those that are still
/// open. If there are `most`, idle ones are closed: without a request, nobody keeps a place.
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
    let (mut tasks, mut connections) = (task::JoinSet::new(), Vec::new());
    let mut stop = pin!(stop);
    loop {
        let is_full = tasks.len() >= most;
        if is_full {
            close_idlest(&mut connections);
        }
        let accepted = select! {
            () = &mut stop => {
                tasks.detach_all();
                return open;
            }
            Some(_) = tasks.join_next() => continue,
            () = tokio::time::sleep(TICK), if is_full => continue,
            accepted = listener.accept(), if !is_full => accepted,
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
        let idle = Idle::new(Some(Instant::now()));
        let (router, of_request) = (service.clone(), idle.clone());
        let service = service_fn(move |mut request: hyper::Request<_>| {
            request.extensions_mut().insert(of_request.clone());
            router.call(request)
        });
        let connection = http.serve_connection(TokioIo::new(stream), service);
        connections.retain(|(task, _): &(task::AbortHandle, _)| !task.is_finished());
        connections.push((tasks.spawn(open.watch(connection)), idle));
    }
}

/// Closes the connection that has been idle for the longest time, if that is long enough.
fn close_idlest(connections: &mut Vec<(task::AbortHandle, Idle)>) {
    connections.retain(|(task, _)| !task.is_finished());
    let idle = connections.iter().enumerate();
    let idle = idle.filter_map(|(at, (_, idle))| Some(((*idle.borrow())?, at)));
    if let Some((since, at)) = idle.min()
        && since.elapsed() >= SHORTEST_IDLE
    {
        connections.swap_remove(at).0.abort();
    }
}

/// Rejects a request whose body does not fully arrive within `limit`: hyper limits only the time for
/// the head.
async fn limit_body(
    State(limit): State<Duration>,
    Extension(idle): Extension<Idle>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    idle.send_replace(Some(Instant::now()));
    if body.size_hint().upper().is_some_and(|size| size <= SMALL) {
        // Read even if no one needs it, as when credentials are missing: otherwise hyper would close
        // a connection on which the client may already send its next request.
        let Ok(Ok(body)) = timeout(limit, to_bytes(body, usize::MAX)).await else {
            return problem::late(limit);
        };
        let response = next.run(Request::from_parts(parts, body.into()));
        return answered(&idle, response).await;
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
    answered(&idle, response).await
}

/// Returns the response to a complete request.
async fn answered(idle: &Idle, response: impl Future<Output = Response>) -> Response {
    idle.send_replace(None);
    let mut response = response.await;
    if response.body().size_hint().exact().is_some() {
        idle.send_replace(Some(Instant::now()));
    } else {
        // The end of a stream ends its connection, which therefore never becomes idle.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}

#[cfg(test)]
mod tests;
