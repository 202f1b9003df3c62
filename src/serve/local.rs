//! The local HTTP server: the same tools without AWS.

mod allowed_hosts;
mod body;
mod connections;
mod greeting;
mod guard;
mod listen;
mod stream;

use std::{
    fmt::Display,
    future::Future,
    io::{self, Write},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    extract::Request,
    middleware::{self, Next},
};

use super::{Error, settings, shutdown};
use crate::{
    Server,
    arrival::Invocation,
    assemble::{WarmUp, assemble},
    call::watch::Watch,
    clock::{FIXED, REAL},
    idempotency::Idempotency,
    observe::{log, otlp::Telemetry},
    testing::record,
};

use allowed_hosts::AllowedHosts;
use connections::ConnectionLimits;
use greeting::Greeting;

/// The time that running calls have to finish after a stop signal.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// Serves until Ctrl-C or SIGTERM.
pub(super) async fn run(mut server: Server) -> Result<(), Error> {
    let telemetry = Arc::new(Telemetry::from_environment()?);
    log::to_terminal(&telemetry);
    settings::log(&server);
    server.toolkit().check()?;
    server.watch = Watch::Polls;
    server.shows_calls = settings::yes_or_no("LOG_CALLS")?.unwrap_or(false);
    #[cfg(feature = "explorer")]
    server.explorer.get_or_insert(true);
    let hook = server.on_shutdown.take();
    let listener = listen::listen().await?;
    let address = listener.local_addr()?;
    let allowed = AllowedHosts::from_environment(address.ip())?;
    let recording = settings::get("RECORD_EVENTS")?;
    let greeting = Greeting::of(&server, address, recording.as_deref());
    // The guard checks origins, for every protocol.
    let server = server.allowed_origins(["*"]);
    let (router, warm_up) = router_of(server, recording)?;
    let router = with_export(with_base_url(router, address), &telemetry);
    let router = guard::protect(router, allowed);
    let deduplication = warm_up.deduplication();
    let (stop_sender, stop_receiver) = tokio::sync::oneshot::channel();
    let signal = stop_signal()?;
    print(greeting);
    // Its warnings come after the greeting, which hardly anybody scrolls up to.
    tokio::spawn(warm_up.run());
    let stop = async move {
        signal.await;
        let _ = stop_sender.send(());
    };
    // A call whose outcome has to be recorded continues after its caller has disconnected.
    let serving = async {
        connections::serve(listener, router, ConnectionLimits::LOCAL, stop).await;
        deduplication.idle().await;
    };
    tokio::select! {
        () = serving => {}
        () = end_of_grace_period(stop_receiver) => {
            tracing::warn!("stopped while calls were still running");
        }
    }
    let end = shutdown::end(hook, &deduplication, &telemetry);
    let _ = tokio::time::timeout(GRACE_PERIOD, end).await;
    print("Stopped.");
    Ok(())
}

/// Prints lines for the developer. Unlike `println!`, it does not panic if nobody reads them, as in
/// `cargo run | head -1`.
fn print(lines: impl Display) {
    let _ = writeln!(io::stdout(), "{lines}");
}

/// The router, which records requests in the folder `recording`, if there is one.
fn router_of(server: Server, recording: Option<String>) -> Result<(Router, WarmUp), Error> {
    let Some(folder) = recording else {
        return Ok(assemble(server, REAL, REAL));
    };
    // A replay has no deduplication either.
    let server = server.idempotency(Idempotency::none());
    // The clock and ids are those of a replay; otherwise its responses would differ.
    let (router, warm_up) = assemble(server, FIXED, REAL);
    let secrets = Arc::clone(warm_up.secrets());
    let router = record::into_folder(folder.into(), router, secrets)?;
    Ok((router, warm_up))
}

/// Completes on the first Ctrl-C or SIGTERM. The handlers are installed before the address is
/// printed, so that a signal sent in response to that line is never missed.
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

async fn end_of_grace_period(stop: tokio::sync::oneshot::Receiver<()>) {
    // The sender is dropped without a message only together with the server and this future.
    if stop.await.is_ok() {
        tokio::time::sleep(GRACE_PERIOD).await;
    }
}

/// Attaches the server's own URL to requests, whose headers may name any host.
fn with_base_url(router: Router, address: SocketAddr) -> Router {
    let mut reachable = address;
    if address.ip().is_unspecified() {
        // The unspecified address means all addresses of this machine; a URL cannot use it.
        reachable.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    let url = format!("http://{reachable}");
    let invocation = Arc::new(Invocation {
        base_url: Some(url),
        ..Invocation::default()
    });
    router.layer(middleware::from_fn(
        move |mut request: Request, next: Next| {
            request.extensions_mut().insert(Arc::clone(&invocation));
            next.run(request)
        },
    ))
}

/// Exports the spans of each request after its response.
fn with_export(router: Router, telemetry: &Arc<Telemetry>) -> Router {
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
