//! The local HTTP server: the same tools without AWS.

mod connections;
mod greeting;
mod guard;

use std::{
    collections::HashMap,
    future::{Future, ready},
    io::{self, Write},
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::{Extension, Router, middleware, response::Response};
use tokio::{
    net::TcpListener,
    sync::{
        Semaphore,
        mpsc::{self, UnboundedReceiver},
    },
    time::timeout,
};

use super::{
    Error,
    settings::{self, InvalidSetting},
    shutdown,
};
use crate::{
    Server,
    arrival::Invocation,
    assemble::{assemble, warm_up},
    call::{background::Ticket, watch::Watch},
    clock::{FIXED, REAL},
    idempotency::{Idempotency, owner_of},
    observe::{confidential::SHOWS_INPUTS, log, otlp::Telemetry},
    protocol::{app::AppState, driver},
    testing::record,
};

use connections::{CLIENT_LIMIT, MOST_CONNECTIONS};
use greeting::greeting;
use guard::AllowedHosts;

/// The time that running calls have to finish after a stop signal, unless `SHUTDOWN_SECONDS` says
/// otherwise; also the time that the work at shutdown then has.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// Serves until Ctrl-C or SIGTERM.
pub(super) async fn run(mut server: Server) -> Result<(), Error> {
    let telemetry = Arc::new(Telemetry::from_environment()?);
    let in_json = settings::get("LOG_FORMAT")?.is_some_and(|it| it == "json");
    log::to_terminal(&telemetry, in_json);
    settings::log(&server);
    server.toolkit.check()?;
    server.watch = Watch::Polls;
    server.shows_calls = settings::yes_or_no("LOG_CALLS")?.unwrap_or(false);
    SHOWS_INPUTS.store(server.shows_calls, Ordering::Relaxed);
    server.explorer.get_or_insert(cfg!(feature = "explorer"));
    server.openapi.get_or_insert(cfg!(feature = "openapi"));
    let (sender, tasks) = mpsc::unbounded_channel();
    if server.tasks.unwrap_or_default() {
        server.worker = Some(Box::new(move |ticket, caller| {
            // It is received as long as the process runs.
            let _ = sender.send((ticket, owner_of(caller, None)));
            Box::pin(ready(Ok(())))
        }));
    }
    let grace_period = settings::get("SHUTDOWN_SECONDS")?.and_then(|it| it.parse().ok());
    let grace_period = grace_period.map_or(GRACE_PERIOD, Duration::from_secs);
    let listener = listen().await?;
    let address = listener.local_addr()?;
    if server.auth.is_none() && !address.ip().is_loopback() {
        let text = format!("this server, which others can reach at {address}");
        return Err(settings::undecided(&text).into());
    }
    let allowed = AllowedHosts::from_environment(address.ip(), server.public_url.as_deref())?;
    let recording = settings::get("RECORD_EVENTS")?;
    let greeting = greeting(&server, address, recording.as_deref());
    if allowed.is_none() {
        // Any page may send, but only those that the owner has named may read.
        server.readers = server.allowed_origins.take();
    }
    // The guard checks origins, for every protocol.
    let server = server.allowed_origins(["*"]);
    let (router, app) = router_of(server, recording)?;
    let router = with_export(router.layer(Extension(invocation_at(address))), &telemetry);
    let router = match allowed {
        Some(allowed) => allowed.protect(router),
        None => router,
    };
    tokio::spawn(perform(Arc::clone(&app), tasks));
    let deduplication = Arc::clone(&app.engine.deduplication);
    let stop = stop_signal()?;
    announce(&greeting, in_json);
    // After the greeting, so that its warnings are the last lines, which people read.
    tokio::spawn(async move { warm_up(&app).await });
    let open = connections::serve(listener, router, CLIENT_LIMIT, MOST_CONNECTIONS, stop).await;
    let finish = async {
        open.shutdown().await;
        // A call whose outcome has to be recorded continues after its caller has disconnected.
        deduplication.idle().await;
    };
    if timeout(grace_period, finish).await.is_err() {
        tracing::warn!("stopped while calls were still running");
    }
    let end = shutdown::end(&deduplication, &telemetry);
    let _ = timeout(GRACE_PERIOD, end).await;
    announce("Stopped.", in_json);
    Ok(())
}

/// Prints a text, or logs its first line if all output is JSON.
fn announce(text: &str, in_json: bool) {
    if in_json {
        tracing::info!("{}", text.lines().next().unwrap_or_default());
        return;
    }
    // Unlike `println!`, this does not panic if nobody reads it, as in `cargo run | head -1`.
    let _ = writeln!(io::stdout(), "{text}");
}

/// Listens on `HOST` and `PORT`.
async fn listen() -> Result<TcpListener, Error> {
    let host = settings::get("HOST")?.unwrap_or_else(|| "127.0.0.1".into());
    let port = settings::get("PORT")?.unwrap_or_else(|| "9000".into());
    let number: u16 = port
        .parse()
        .map_err(|_| InvalidSetting(format!("PORT is '{port}', which is not a port number")))?;
    let listener = TcpListener::bind((host.as_str(), number)).await;
    Ok(listener.map_err(|error| {
        InvalidSetting(format!(
            "cannot listen on {host}:{number}: {error}; set HOST or PORT to listen elsewhere, as \
             in PORT=9001 cargo run"
        ))
    })?)
}

/// Returns the router, which records requests in the folder `recording`, if there is one.
fn router_of(server: Server, recording: Option<String>) -> Result<(Router, Arc<AppState>), Error> {
    let Some(folder) = recording else {
        return Ok(assemble(server, REAL, REAL));
    };
    // A replay has no deduplication either.
    let server = server.idempotency(Idempotency::none());
    // The clock and ids are those of a replay; otherwise its responses would differ.
    let (router, app) = assemble(server, FIXED, REAL);
    let router = record::into_folder(folder.into(), router, Arc::clone(&app.engine))?;
    Ok((router, app))
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

/// Returns an invocation with the server's own URL, for requests, whose headers may name any host.
fn invocation_at(mut address: SocketAddr) -> Arc<Invocation> {
    if address.ip().is_unspecified() {
        // The unspecified address means all addresses of this machine; a URL cannot use it.
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    Arc::new(Invocation {
        base_url: Some(format!("http://{address}")),
        streams: true,
        ..Invocation::default()
    })
}

/// Performs tasks as they are handed over, as many at once as calls that block, and a quarter of them
/// for one caller; others wait.
async fn perform(app: Arc<AppState>, mut tasks: UnboundedReceiver<(Ticket, String)>) {
    static TURNS: Semaphore = Semaphore::const_new(64);
    let mut shares = HashMap::<String, Arc<Semaphore>>::new();
    while let Some((ticket, caller)) = tasks.recv().await {
        shares.retain(|_, share| Arc::strong_count(share) > 1);
        let share = shares.entry(caller);
        let share = Arc::clone(share.or_insert_with(|| Arc::new(Semaphore::new(16))));
        let app = Arc::clone(&app);
        tokio::spawn(async move {
            // In this order: whoever waits for a share takes no turn from others.
            let _share = share.acquire().await;
            let _turn = TURNS.acquire().await;
            if let Err(error) = driver::perform(&app, &ticket, Invocation::default()).await {
                tracing::error!(%error, "a task could not be started");
            }
        });
    }
}

/// Exports the spans of each request after its response.
fn with_export(router: Router, telemetry: &Arc<Telemetry>) -> Router {
    let telemetry = Arc::clone(telemetry);
    router.layer(middleware::map_response(move |response: Response| {
        let telemetry = Arc::clone(&telemetry);
        tokio::spawn(async move { telemetry.flush(None).await });
        ready(response)
    }))
}
