//! The local HTTP server: the same tools without AWS.

use std::{env, fmt, future::Future, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use http::{HeaderMap, Uri, header};
use tokio::net::TcpListener;

use super::{
    Error, REAL, log, record, sample, settings::yes_or_no, shutdown, telemetry::Telemetry,
};
use crate::{Server, host::Invocation, idempotency::Idempotency, testing, wire::oxp};

/// How long calls may still take after the process was asked to stop.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// Serves until Ctrl-C or SIGTERM.
pub(super) async fn run(mut server: Server) -> Result<(), Error> {
    let telemetry = Arc::new(Telemetry::from_environment()?);
    log::to_terminal(&telemetry);
    server.toolkit().check()?;
    server.shows_calls = yes_or_no("LOG_CALLS")?.unwrap_or(false);
    let hook = server.on_shutdown.take();
    let listener = listen().await?;
    let address = listener.local_addr()?;
    let greeting = Greeting::of(&server, address);
    let (router, warm_up) = match env::var_os("RECORD_EVENTS") {
        None => server.served_on(REAL, REAL),
        // With the clock and ids that a replay has, or it could not give the same answer.
        Some(folder) => {
            // A replay remembers no calls either.
            let server = server.idempotency(Idempotency::none());
            let (router, warm_up) = server.served_on(testing::FIXED, REAL);
            let secrets = Arc::clone(warm_up.secrets());
            (record::into(folder.into(), router, secrets)?, warm_up)
        }
    };
    let router = exporting(located(router, address), &telemetry);
    let protection = warm_up.protection();
    tokio::spawn(warm_up.run());
    let router = if address.ip().is_loopback() {
        guarded(router)
    } else {
        router
    };
    let (stopping, stopped) = tokio::sync::oneshot::channel();
    let signal = stop_signal()?;
    println!("{greeting}");
    let server = axum::serve(listener, router).with_graceful_shutdown(async move {
        signal.await;
        let _ = stopping.send(());
    });
    // Calls go on whose callers have left, if their outcome is to be recorded.
    let ended = async {
        server.await?;
        protection.idle().await;
        Ok::<(), Error>(())
    };
    tokio::select! {
        result = ended => result?,
        () = late(stopped) => tracing::warn!("stopped while calls were still running"),
    }
    let end = shutdown::end(hook, &protection, &telemetry);
    let _ = tokio::time::timeout(LAST_CALLS, end).await;
    println!("Stopped.");
    Ok(())
}

async fn listen() -> Result<TcpListener, Error> {
    let host = env::var("HOST").unwrap_or_else(|_| "127.0.0.1".into());
    let port = env::var("PORT").unwrap_or_else(|_| "9000".into());
    let number: u16 = port
        .parse()
        .map_err(|_| CannotListen(format!("PORT is '{port}', which is not a port number")))?;
    let listener = TcpListener::bind((host.as_str(), number)).await;
    Ok(listener.map_err(|error| {
        CannotListen(format!(
            "cannot listen on {host}:{number}: {error}; set HOST or PORT to listen elsewhere, as in PORT=9001 cargo run"
        ))
    })?)
}

struct CannotListen(String);

impl fmt::Display for CannotListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The same as `Display`: `main` prints its error with `Debug`.
impl fmt::Debug for CannotListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotListen {}

/// What is printed once the server listens.
struct Greeting {
    address: SocketAddr,
    is_open: bool,
    is_empty: bool,
    example: Option<String>,
}

impl Greeting {
    fn of(server: &Server, address: SocketAddr) -> Self {
        Self {
            address,
            is_open: server.is_open(),
            is_empty: server.toolkit().entries().is_empty(),
            example: sample::call_of(server.toolkit()),
        }
    }
}

impl fmt::Display for Greeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = format!("http://{}", self.address);
        writeln!(f, "Serving tools on {url}")?;
        writeln!(f, "  GET  {url}/health")?;
        writeln!(f, "  GET  {url}/tools")?;
        writeln!(f, "  POST {url}/tools/call")?;
        let who = match (self.is_open, self.address.ip().is_loopback()) {
            (false, _) => "Callers need credentials.",
            (true, true) => {
                "Everybody on this machine may call; TOOLS_AUTH=api-key asks for a key."
            }
            (true, false) => {
                "Everybody who can reach it may call; TOOLS_AUTH=api-key asks for a key."
            }
        };
        f.write_str(who)?;
        if self.is_empty {
            f.write_str("\nThere are no tools in it yet.")?;
        }
        if let Some(example) = &self.example {
            let key = if self.is_open {
                ""
            } else {
                " -H 'Authorization: Bearer YOUR_KEY'"
            };
            write!(f, "\nTry it:\n  curl {url}/tools/call{key} -d '{example}'")?;
        }
        Ok(())
    }
}

/// Completes on the first Ctrl-C or SIGTERM. The handlers stand before the address is printed, so
/// that nobody who has seen it can send a signal too early.
fn stop_signal() -> Result<impl Future<Output = ()>, Error> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}

async fn late(stopped: tokio::sync::oneshot::Receiver<()>) {
    // The sender is dropped unsent only when the server ends by itself, and the race with it.
    if stopped.await.is_ok() {
        tokio::time::sleep(LAST_CALLS).await;
    }
}

/// Tells requests where the server is, which is not what they say.
fn located(router: Router, address: SocketAddr) -> Router {
    let mut reachable = address;
    if address.ip().is_unspecified() {
        // Every address of this machine, which is no address to follow.
        reachable.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    let url = format!("http://{reachable}");
    router.layer(middleware::from_fn(
        move |mut request: Request, next: Next| {
            let invocation = Invocation {
                base_url: Some(url.clone()),
                ..Invocation::default()
            };
            request.extensions_mut().insert(invocation);
            next.run(request)
        },
    ))
}

/// Sends the spans of each request once it is answered.
fn exporting(router: Router, telemetry: &Arc<Telemetry>) -> Router {
    if !telemetry.is_on() {
        return router;
    }
    let telemetry = Arc::clone(telemetry);
    router.layer(middleware::from_fn(move |request: Request, next: Next| {
        let telemetry = Arc::clone(&telemetry);
        async move {
            let response = next.run(request).await;
            tokio::spawn(async move { telemetry.flush(None).await });
            response
        }
    }))
}

/// Keeps web pages out. A page in the developer's browser can send requests to a loopback
/// address, across origins or after pointing its own name there; tools may do more than its
/// author should be able to ask for.
fn guarded(router: Router) -> Router {
    let names = env::var("ALLOWED_HOSTS").unwrap_or_default();
    let names: Vec<String> = names
        .split(',')
        .map(|name| name.trim().to_lowercase())
        .collect();
    router.layer(middleware::from_fn_with_state(names, guard))
}

async fn guard(State(names): State<Vec<String>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    if is_ours(headers, header::HOST, &names) && is_ours(headers, header::ORIGIN, &names) {
        return next.run(request).await;
    }
    oxp::forbidden(
        "This server listens on a loopback address and takes requests for localhost only. Name \
         other hosts in ALLOWED_HOSTS.",
    )
}

/// Whether the header is absent or names a host that is allowed.
fn is_ours(headers: &HeaderMap, header: header::HeaderName, names: &[String]) -> bool {
    let Some(value) = headers.get(header) else {
        return true;
    };
    let host = value.to_str().ok().and_then(host_of);
    host.is_some_and(|host| {
        matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]") || names.contains(&host)
    })
}

/// The host in `host:port` or `scheme://host:port`.
fn host_of(text: &str) -> Option<String> {
    let authority = text
        .split_once("://")
        .map_or(text, |(_, authority)| authority);
    let uri: Uri = authority.parse().ok()?;
    Some(uri.host()?.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_for_this_machine_are_taken() {
        let is_taken = |host: &str| {
            let headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
            is_ours(&headers, header::HOST, &["tunnel.example".into()])
        };
        for host in [
            "localhost:9000",
            "LOCALHOST",
            "127.0.0.1:9000",
            "[::1]:9000",
            "http://localhost:3000",
            "tunnel.example",
            "https://tunnel.example",
        ] {
            assert!(is_taken(host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "http://evil.example",
            "null",
            "",
            "127.0.0.2",
            "user@evil.example",
        ] {
            assert!(!is_taken(host), "{host}");
        }
        assert!(is_ours(&HeaderMap::new(), header::ORIGIN, &[]));
    }
}
