//! One run: starts everything, measures every second, and reports.

use std::{
    error::Error,
    io,
    net::{SocketAddr, TcpListener},
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use test_support::lambda::{LAMBDA, RUNTIME};
use tokio::{task::JoinSet, time::timeout};

use crate::{
    client::{Client, FAULT_KEY, KEYS, LOAD_KEY, MARK, Shared},
    event::DOMAIN,
    issuer::{AUDIENCE, Issuer},
    local::{self, LocalServer},
    options::Options,
    process::Process,
    recorder::Recorder,
    report::Outcome,
    runtime_api::RuntimeApi,
    series::{Sample, Series},
    server::Server,
    store::{Store, TABLE},
};

/// The time between two calls that block a thread.
const BLOCKED_EVERY: Duration = Duration::from_secs(20);
/// The time between two deletions of expired records.
const EXPIRY_EVERY: u64 = 60;
/// The time in which the clients finish their last requests.
const END: Duration = Duration::from_secs(100);

/// Puts the load on the function, and fails if a limit is exceeded.
pub(crate) async fn run(options: &Options) -> Result<(), Box<dyn Error + Send + Sync>> {
    let begin = Instant::now();
    let store = Store::start(options.schedule(), begin).await;
    let issuer = Issuer::start(options.rotation).await?;
    let (server, mut process, address) = start(options, &issuer, &store).await?;
    let shared = Arc::new(Shared {
        server,
        issuer,
        recorder: Recorder::default(),
        interval: options.interval(),
        is_over: AtomicBool::default(),
        filling_until: begin + options.warm_up / 2,
        references: Mutex::default(),
    });
    let mut clients = JoinSet::new();
    for number in 0..options.clients {
        let offset = shared.interval * number / options.clients;
        clients.spawn(Client::new(number, &shared, begin + offset).run());
    }
    let blocking = Client::new(options.clients, &shared, begin + Duration::from_secs(5));
    clients.spawn(blocking.block(BLOCKED_EVERY));
    if let Some(address) = address {
        let shared = Arc::clone(&shared);
        clients.spawn(async move {
            local::misbehave(address, &shared.recorder, &shared.is_over).await;
        });
    }
    let series = measure(options, &shared, &store, &mut process, begin).await?;
    shared.is_over.store(true, Relaxed);
    let ended = timeout(END, async { while clients.join_next().await.is_some() {} }).await;
    let outcome = Outcome {
        options: options.clone(),
        totals: shared.recorder.totals(),
        latencies: shared.recorder.latencies(),
        misplaced: shared.server.misplaced(),
        lines: process.lines(),
        store: store.figures(),
        key_fetches: shared.issuer.fetches(),
        has_ended: process.has_ended(),
        series,
    };
    outcome.write()?;
    if ended.is_err() {
        return Err("the clients did not end".into());
    }
    outcome.print()
}

/// Starts the program as a function, or as a local server at the address that is returned.
async fn start(
    options: &Options,
    issuer: &Issuer,
    store: &Store,
) -> io::Result<(Server, Process, Option<SocketAddr>)> {
    let failures = Arc::clone(&store.failures);
    if options.is_local {
        // Free at this moment: the server prints its port only for people.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let port = address.port().to_string();
        let own = [
            ("PORT", &*port),
            ("ALLOWED_HOSTS", DOMAIN),
            ("TOOLS_PUBLIC_URL", "https://tools.example"),
        ];
        let process = start_process(options, issuer, store, &own)?;
        let server = LocalServer::start(address, failures).await?;
        return Ok((Server::Local(server), process, Some(address)));
    }
    let api = RuntimeApi::start(failures).await?;
    let own = [("AWS_LAMBDA_RUNTIME_API", &*api.address)];
    let own: Vec<_> = own.into_iter().chain(LAMBDA).collect();
    let process = start_process(options, issuer, store, &own)?;
    Ok((Server::Function(api), process, None))
}

fn start_process(
    options: &Options,
    issuer: &Issuer,
    store: &Store,
    own: &[(&str, &str)],
) -> io::Result<Process> {
    let [one, two] = KEYS;
    let key_ids = format!("{},{}", one.0, two.0);
    let store_url = store.url();
    let mut environment = vec![
        one,
        two,
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "soak"),
        ("AWS_SECRET_ACCESS_KEY", "marked-secret-access-key"),
        ("AWS_ENDPOINT_URL_DYNAMODB", &store_url),
        ("LOAD_TOOLS", "yes"),
        ("TOOLS_AUTH", "api-key,oidc"),
        ("TOOLS_API_KEY_IDS", &key_ids),
        ("TOOLS_OIDC_ISSUERS", issuer.url()),
        ("TOOLS_OIDC_AUDIENCES", AUDIENCE),
        ("TOOLS_EXPLORER", "yes"),
        ("TOOLS_METRICS", "cloudwatch"),
        ("TOOLS_IDEMPOTENCY", "dynamodb"),
        ("TOOLS_IDEMPOTENCY_TABLE", TABLE),
        ("TOOLS_OAUTH_TABLE", TABLE),
        (
            "TOOLS_OAUTH_KEY",
            "marked-oauth-0123456789abcdef0123456789abcdef",
        ),
        ("TOOLS_GOOGLE_CLIENT_ID", "soak.apps.googleusercontent.com"),
        ("TOOLS_GOOGLE_CLIENT_SECRET", "marked-google-client-secret"),
        ("KEY", FAULT_KEY),
        ("LOAD_KEY", LOAD_KEY),
    ];
    environment.extend(own);
    environment.extend(RUNTIME);
    Process::start(Command::new(&options.program), &environment, MARK)
}

/// Measures every second until the end of the run.
async fn measure(
    options: &Options,
    shared: &Shared,
    store: &Store,
    process: &mut Process,
    begin: Instant,
) -> Result<Series, Box<dyn Error + Send + Sync>> {
    let schedule = options.schedule();
    let mut series = Series {
        samples: Vec::new(),
        warm_up: options.warm_up,
        includes_calls: options.is_local,
    };
    for second in 1.. {
        let at = Duration::from_secs(second);
        if at > options.length {
            break;
        }
        tokio::time::sleep_until((begin + at).into()).await;
        if process.has_ended() {
            return Err(format!("the function's process has ended after {second} seconds").into());
        }
        if second % EXPIRY_EVERY == 0 {
            store.delete_expired();
        }
        // Without an idle moment, such as while a call waits for the store, the second has no sample.
        let sleeps = || process.sleeps();
        let resources = shared.server.measure(sleeps, || process.resources());
        let Some(resources) = resources.await else {
            continue;
        };
        let totals = shared.recorder.totals();
        let sample = Sample {
            at: begin.elapsed(),
            resources: resources?,
            requests: totals.requests,
            wrong: totals.wrong,
            latencies: shared.recorder.recent(),
            store_fails: schedule.fails(at),
        };
        series.samples.push(sample);
        if second % 60 == 0 {
            println!("{}", progress(second / 60, &sample));
        }
    }
    Ok(series)
}

/// A line on the progress.
fn progress(minute: u64, sample: &Sample) -> String {
    let resources = sample.resources;
    format!(
        "minute {minute:>2}: {:>8} requests, {} wrong, resident {:>8} KB, anonymous {:>8} KB, {} \
         descriptors, {} threads, p50 {} µs, p99 {} µs",
        sample.requests,
        sample.wrong,
        resources.resident / 1024,
        resources.anonymous / 1024,
        resources.descriptors,
        resources.threads,
        sample.latencies.p50,
        sample.latencies.p99,
    )
}
