//! The local HTTP server: the same tools without AWS.

mod allowed_hosts;
mod body;
mod connections;
mod greeting;
mod guard;
mod host_name;
mod listen;
mod stream;

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

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
    clock::{FIXED, REAL},
    idempotency::Idempotency,
    observe::{log, otlp::Telemetry},
    testing::record,
};

use allowed_hosts::AllowedHosts;
use connections::ConnectionLimits;
use greeting::Greeting;

/// How long calls may still take after the process was asked to stop.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// Serves until Ctrl-C or SIGTERM.
pub(super) async fn run(mut server: Server) -> Result<(), Error> {
    let telemetry = Arc::new(Telemetry::from_environment()?);
    log::to_terminal(&telemetry);
    server.toolkit().check()?;
    server.shows_calls = settings::yes_or_no("LOG_CALLS")?.unwrap_or(false);
    let hook = server.on_shutdown.take();
    let listener = listen::listen().await?;
    let address = listener.local_addr()?;
    let allowed = AllowedHosts::from_environment(address.ip())?;
    let greeting = Greeting::of(&server, address);
    let (router, warm_up) = routed(server)?;
    let router = exporting(located(router, address), &telemetry);
    let router = guard::protect(router, allowed);
    let deduplication = warm_up.deduplication();
    tokio::spawn(warm_up.run());
    let (stopping, stopped) = tokio::sync::oneshot::channel();
    let signal = stop_signal()?;
    println!("{greeting}");
    let stop = async move {
        signal.await;
        let _ = stopping.send(());
    };
    // Calls go on whose callers have left, if their outcome is to be recorded.
    let ended = async {
        connections::serve(listener, router, ConnectionLimits::LOCAL, stop).await;
        deduplication.idle().await;
    };
    tokio::select! {
        () = ended => {}
        () = late(stopped) => tracing::warn!("stopped while calls were still running"),
    }
    let end = shutdown::end(hook, &deduplication, &telemetry);
    let _ = tokio::time::timeout(LAST_CALLS, end).await;
    println!("Stopped.");
    Ok(())
}

/// The router, recording if `RECORD_EVENTS` says so.
fn routed(server: Server) -> Result<(Router, WarmUp), Error> {
    let Some(folder) = settings::set("RECORD_EVENTS")? else {
        return Ok(assemble(server, REAL, REAL));
    };
    // A replay remembers no calls either.
    let server = server.idempotency(Idempotency::none());
    // With the clock and ids that a replay has, or it could not give the same answer.
    let (router, warm_up) = assemble(server, FIXED, REAL);
    let secrets = Arc::clone(warm_up.secrets());
    Ok((record::into(folder.into(), router, secrets)?, warm_up))
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
    // The sender is dropped unsent only with the server, and the race with it.
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
