//! Metadata documents of clients: a published client's, and hostile ones.

use std::{
    future::ready,
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use lambda_tools::{SignIn, seams::DocumentNetwork};
use rcgen::generate_simple_self_signed;
use rustls::{
    ServerConfig, ServerConnection, Stream, crypto::aws_lc_rs::default_provider,
    pki_types::PrivatePkcs8KeyDer,
};
use serde_json::{Value, json};

use super::{Browser, CALLBACK, Server, parameter};

pub(super) const ID: &str = "https://client.example/client.json";

/// A server of documents over TLS: responds to each path as a function says.
pub(super) struct Hosts {
    address: SocketAddr,
    /// The paths that were requested.
    requests: Arc<Mutex<Vec<String>>>,
}

/// Writes a response, which may be anything.
type Respond = fn(&str, &mut dyn Write) -> std::io::Result<()>;

impl Hosts {
    /// Starts one with the document of one client.
    pub(super) fn with_a_client() -> Self {
        Self::start(|path, out| match path {
            "/client.json" => send(out, "200 OK", "", &document().to_string()),
            _ => send(out, "404 Not Found", "", ""),
        })
    }

    fn start(respond: Respond) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let key = generate_simple_self_signed(["client.example".to_owned()]).unwrap();
        let der = PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![key.cert.der().clone()], der.into())
            .unwrap();
        let (config, requests) = (Arc::new(config), Arc::new(Mutex::new(Vec::new())));
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, config, seen) =
                    (socket.unwrap(), Arc::clone(&config), Arc::clone(&seen));
                thread::spawn(move || serve(socket, config, &seen, respond));
            }
        });
        Self { address, requests }
    }

    pub(super) fn requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// Returns a network in which every name leads to this server.
    pub(super) fn network(&self) -> DocumentNetwork {
        let address = self.address;
        DocumentNetwork {
            look_up: Arc::new(move |_| Box::pin(async move { vec![address] })),
            exempt: vec![address],
            change: |builder| builder.danger_accept_invalid_certs(true),
        }
    }
}

fn serve(
    mut socket: TcpStream,
    config: Arc<ServerConfig>,
    seen: &Mutex<Vec<String>>,
    respond: Respond,
) {
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    socket
        .set_write_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut connection = ServerConnection::new(config).unwrap();
    let mut stream = Stream::new(&mut connection, &mut socket);
    let (mut request, mut bytes) = (Vec::new(), [0; 1024]);
    while !request.windows(4).any(|it| it == b"\r\n\r\n") {
        match stream.read(&mut bytes) {
            Ok(length) if length > 0 => request.extend_from_slice(&bytes[..length]),
            _ => return,
        }
    }
    let text = String::from_utf8_lossy(&request).into_owned();
    let path = text.split(' ').nth(1).unwrap().to_owned();
    seen.lock().unwrap().push(path.clone());
    let _ = respond(&path, &mut stream);
    let _ = stream.flush();
}

fn document() -> Value {
    json!({
        "client_id": ID,
        "client_name": "Code",
        "redirect_uris": ["http://localhost/callback", CALLBACK],
        "token_endpoint_auth_method": "none",
        "client_uri": "https://client.example",
    })
}

fn send(out: &mut dyn Write, status: &str, headers: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(
        out,
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

pub(super) async fn serving(hosts: &Hosts) -> Server {
    serving_from(hosts.network()).await
}

async fn serving_from(network: DocumentNetwork) -> Server {
    Server::with(move |it| it.allow("anyone").documents_from(network.clone())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_a_document_needs_no_registration_and_a_free_port() {
    let hosts = Hosts::with_a_client();
    let server = serving(&hosts).await;
    let local = "http://localhost:3118/callback";
    let url = server.authorize_url(ID, &[("redirect_uri", local)]);
    let (status, page) = Browser::new().open(url.as_str()).await;
    assert_eq!(status, 200, "{page}");
    for shown in ["client.example", "Code", "A program on this computer"] {
        assert!(page.contains(shown), "{shown} {page}");
    }
    let landed = Browser::new()
        .sign_in(&server.authorize_url(ID, &[]), "alice")
        .await;
    let code = parameter(&landed, "code").unwrap();
    let (status, tokens) = server.redeem(ID, &code).await;
    assert_eq!(status, 200, "{tokens}");
    let (_, said) = server.whose(tokens["access_token"].as_str().unwrap()).await;
    assert_eq!(said["user"], "alice");
    // Each of the two instances has fetched it once.
    assert_eq!(hosts.requests(), 2);
}

/// A document is used while its host is away, which is asked once a minute, but not for longer than
/// a week, nor after it has been withdrawn.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_used_while_its_host_is_away() {
    static STATUS: Mutex<&str> = Mutex::new("200 OK");
    let hosts = Hosts::start(|_, out| {
        let status = *STATUS.lock().unwrap();
        send(out, status, "", &document().to_string())
    });
    let server = serving(&hosts).await;
    let url = server.authorize_url(ID, &[]);
    for (host, later, opened, requests) in [
        ("200 OK", 0, 200, 2),
        ("503 Service Unavailable", 270, 200, 2),
        ("503 Service Unavailable", 30, 200, 4),
        ("500 Internal Server Error", 45, 200, 4),
        ("500 Internal Server Error", 15, 200, 6),
        ("500 Internal Server Error", 7 * 24 * 3600, 400, 8),
        ("200 OK", 60, 200, 10),
        ("404 Not Found", 270, 200, 10),
        ("404 Not Found", 30, 400, 12),
    ] {
        *STATUS.lock().unwrap() = host;
        server.later(Duration::from_secs(later));
        // Two for each instance.
        for _ in 0..4 {
            let status = Browser::new().open(url.as_str()).await.0;
            assert_eq!(status, opened, "{host} {later}");
        }
        assert_eq!(hosts.requests(), requests, "{host} {later}");
    }
}

/// "used for its `max-age`, but 5 minutes to 24 hours"
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_lasts_for_five_minutes_to_a_day() {
    let hosts = Hosts::start(|path, out| {
        let mut document = document();
        document["client_id"] = format!("https://client.example{path}").into();
        let seconds = path.trim_matches(|it: char| !it.is_ascii_digit());
        let header = format!("cache-control: max-age={seconds}\r\n");
        send(out, "200 OK", &header, &document.to_string())
    });
    let server = serving(&hosts).await;
    let minutes = |minutes: u64| Duration::from_mins(minutes);
    for (seconds, kept, due) in [
        (1, minutes(4), minutes(5)),
        (1200, minutes(19), minutes(20)),
        (864_000, minutes(24 * 60 - 1), minutes(24 * 60)),
    ] {
        let id = format!("https://client.example/{seconds}.json");
        let url = server.authorize_url(&id, &[]);
        let opens = async || {
            let before = hosts.requests();
            for _ in 0..2 {
                assert_eq!(Browser::new().open(url.as_str()).await.0, 200);
            }
            hosts.requests() - before
        };
        assert_eq!(opens().await, 2, "{seconds}");
        server.later(kept);
        assert_eq!(opens().await, 0, "{seconds}");
        server.later(due.saturating_sub(kept));
        assert_eq!(opens().await, 2, "{seconds}");
    }
}

/// Returns the hostile responses, by the number in their path.
fn hostile(path: &str, out: &mut dyn Write) -> std::io::Result<()> {
    let number: usize = path
        .trim_matches(|it: char| !it.is_ascii_digit())
        .parse()
        .unwrap();
    let with = |changes: &[(&str, Value)]| {
        let mut document = document();
        document["client_id"] = format!("https://client.example{path}").into();
        for (name, value) in changes {
            document[*name] = value.clone();
        }
        document.to_string()
    };
    let ok = |out: &mut dyn Write, body: &str| send(out, "200 OK", "", body);
    match number {
        0 => send(
            out,
            "302 Found",
            "location: https://169.254.169.254/latest\r\n",
            "",
        ),
        1 => send(out, "301 Moved", &format!("location: {path}x\r\n"), ""),
        2 => send(
            out,
            "307 Temporary Redirect",
            "location: http://127.0.0.1/\r\n",
            &with(&[]),
        ),
        3 => ok(
            out,
            &with(&[(
                "client_id",
                json!("https://claude.ai/oauth/claude-code-client-metadata"),
            )]),
        ),
        4 => ok(out, &with(&[("client_id", json!(null))])),
        5 => ok(out, &with(&[("padding", json!("x".repeat(5 * 1024)))])),
        // A gigabyte, announced and then sent as far as anyone reads.
        6 => {
            write!(out, "HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n")?;
            let chunk = vec![b' '; 1 << 16];
            (0..16_384).try_for_each(|_| out.write_all(&chunk))
        }
        7 => {
            write!(out, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
            (0..65_536).try_for_each(|_| write!(out, "1000\r\n{}\r\n", " ".repeat(4096)))
        }
        8 => ok(out, "not JSON"),
        9 => ok(out, "<html>"),
        10 => ok(out, "[]"),
        11 => ok(out, &with(&[("redirect_uris", json!([]))])),
        12 => ok(
            out,
            &with(&[("redirect_uris", json!("https://client.example/callback"))]),
        ),
        13 => ok(
            out,
            &with(&[("redirect_uris", json!(["https://evil.example/callback"]))]),
        ),
        14 => ok(
            out,
            &with(&[("token_endpoint_auth_method", json!("client_secret_basic"))]),
        ),
        15 => ok(out, &with(&[("client_name", json!(""))])),
        16 => send(out, "404 Not Found", "", &with(&[])),
        17 => send(out, "206 Partial Content", "", &with(&[])),
        18 => ok(out, &"[".repeat(5000)),
        _ => out.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n{\"client_id\":"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_hostile_document_describes_a_client() {
    let hosts = Hosts::start(hostile);
    let server = serving(&hosts).await;
    let started = Instant::now();
    for number in 0..20 {
        let id = format!("https://client.example/{number}.json");
        let url = server.authorize_url(&id, &[]);
        let (status, page) = Browser::new().open(url.as_str()).await;
        assert_eq!(status, 400, "{number} {page}");
        assert!(!page.contains("evil"), "{page}");
    }
    let elapsed = started.elapsed();
    assert!(elapsed < Duration::from_mins(1), "{elapsed:?}");
    let requests = hosts.requests.lock().unwrap();
    assert!(
        requests.iter().all(|path| !path.ends_with('x')),
        "{requests:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_document_is_given_up_after_five_seconds() {
    let hosts = Hosts::start(|_, out| {
        write!(out, "HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n")?;
        (0..100).try_for_each(|_| {
            thread::sleep(Duration::from_millis(100));
            out.write_all(b" ")?;
            out.flush()
        })
    });
    let server = serving(&hosts).await;
    let started = Instant::now();
    let url = server.authorize_url(ID, &[]);
    let (status, page) = Browser::new().open(url.as_str()).await;
    assert_eq!(status, 400, "{page}");
    let elapsed = started.elapsed();
    assert!(
        Duration::from_secs(4) < elapsed && elapsed < Duration::from_secs(8),
        "{elapsed:?}"
    );
}

/// A stranger cannot have this server ask a host again and again.
#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_remembered_for_a_minute() {
    static FAILS: AtomicUsize = AtomicUsize::new(1);
    let hosts = Hosts::start(|path, out| match path {
        "/away.json" => send(out, "503 Service Unavailable", "", ""),
        "/other.json" => send(out, "200 OK", "", &document().to_string()),
        "/client.json" if FAILS.load(Ordering::Relaxed) == 0 => {
            send(out, "200 OK", "", &document().to_string())
        }
        _ => send(out, "404 Not Found", "", ""),
    });
    let server = serving(&hosts).await;
    for name in ["away", "other", "missing", "client"] {
        let url = server.authorize_url(&format!("https://client.example/{name}.json"), &[]);
        let before = hosts.requests();
        let opens = async |number: usize| {
            let opened = (0..number).map(|_| async { Browser::new().open(url.as_str()).await.0 });
            futures_util::future::join_all(opened).await
        };
        assert_eq!(opens(40).await, [400; 40], "{name}");
        assert_eq!(
            hosts.requests() - before,
            2,
            "{name}: one for each instance"
        );
        server.later(Duration::from_secs(45));
        assert_eq!(opens(2).await, [400; 2], "{name}");
        assert_eq!(hosts.requests() - before, 2, "{name}");
        server.later(Duration::from_secs(15));
        if name == "client" {
            FAILS.store(0, Ordering::Relaxed);
        }
        let status = if name == "client" { 200 } else { 400 };
        assert_eq!(opens(4).await, [status; 4], "{name}");
        assert_eq!(hosts.requests() - before, 4, "{name}");
    }
}

/// Many slow documents of one host keep those of other hosts waiting for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_host_does_not_keep_others_waiting() {
    let hosts = Hosts::start(|path, out| {
        if path.starts_with("/slow") {
            thread::sleep(Duration::from_secs(8));
        }
        send(out, "200 OK", "", &document().to_string())
    });
    let server = serving(&hosts).await;
    let slow = (0..80).map(|number| {
        server.authorize_url(&format!("https://slow.example/slow{number}.json"), &[])
    });
    let slow: Vec<_> = slow
        .map(|url| tokio::spawn(async move { Browser::new().open(url.as_str()).await.0 }))
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let started = Instant::now();
    let url = server.authorize_url(ID, &[]);
    for _ in 0..2 {
        assert_eq!(Browser::new().open(url.as_str()).await.0, 200);
    }
    assert!(started.elapsed() < Duration::from_secs(2));
    let asked = hosts.requests.lock().unwrap();
    let slow_ones = asked.iter().filter(|it| it.starts_with("/slow")).count();
    assert_eq!(slow_ones, 2, "one at a time in each instance: {asked:?}");
    drop(asked);
    for task in slow {
        task.abort();
    }
}

/// Who waits for another document of the host still has five seconds for its own.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_takes_nothing_of_the_time_for_a_document() {
    let hosts = Hosts::start(|path, out| {
        thread::sleep(Duration::from_secs(3));
        let mut document = document();
        document["client_id"] = format!("https://client.example{path}").into();
        send(out, "200 OK", "", &document.to_string())
    });
    let server = serving(&hosts).await;
    let opened = (0..4).map(|number| {
        let id = format!("https://client.example/{number}.json");
        let url = server.authorize_url(&id, &[]);
        async move { Browser::new().open(url.as_str()).await.0 }
    });
    assert_eq!(futures_util::future::join_all(opened).await, [200; 4]);
}

/// The addresses of a name are checked, and those that were checked are used.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_leads_only_to_the_internet() {
    let hosts = Hosts::with_a_client();
    for answers in [
        &["127.0.0.1"][..],
        &["169.254.169.254"],
        &["10.0.0.1"],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["1.1.1.1", "127.0.0.1"],
        &[],
    ] {
        let port = hosts.address.port();
        let addresses = answers
            .iter()
            .map(|it| SocketAddr::new(it.parse::<IpAddr>().unwrap(), port));
        let addresses: Vec<_> = addresses.collect();
        let network = DocumentNetwork {
            look_up: Arc::new(move |_| Box::pin(ready(addresses.clone()))),
            exempt: Vec::new(),
            ..hosts.network()
        };
        let server = serving_from(network).await;
        let url = server.authorize_url(ID, &[]);
        let (status, page) = Browser::new().open(url.as_str()).await;
        assert_eq!(status, 400, "{answers:?} {page}");
    }
    assert_eq!(hosts.requests(), 0);
}

/// A name that resolves differently the second time: there is no second time.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_resolved_once() {
    let hosts = Hosts::with_a_client();
    let (address, lookups) = (hosts.address, Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&lookups);
    let network = DocumentNetwork {
        look_up: Arc::new(move |_| {
            let first = count.fetch_add(1, Ordering::Relaxed) % 2 == 0;
            let loopback = SocketAddr::from(([127, 0, 0, 2], address.port()));
            Box::pin(ready(vec![if first { address } else { loopback }]))
        }),
        ..hosts.network()
    };
    let server = serving_from(network).await;
    let url = server.authorize_url(ID, &[]);
    assert_eq!(Browser::new().open(url.as_str()).await.0, 200);
    assert_eq!(lookups.load(Ordering::Relaxed), 1);
    // The other instance gets the other address, which is not global.
    assert_eq!(Browser::new().open(url.as_str()).await.0, 400);
    assert_eq!(hosts.requests(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_must_be_valid() {
    let hosts = Hosts::with_a_client();
    let network = DocumentNetwork {
        change: |builder| builder,
        ..hosts.network()
    };
    let server = serving_from(network).await;
    let url = server.authorize_url(ID, &[]);
    assert_eq!(Browser::new().open(url.as_str()).await.0, 400);
    assert_eq!(hosts.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_of_a_client_that_is_not_listed_is_not_fetched() {
    let hosts = Hosts::with_a_client();
    for (listed, status, requests) in [("other.example", 403, 0), ("client.example", 200, 1)] {
        let network = hosts.network();
        let change = move |it: SignIn| {
            let sign_in = it.allow("anyone").client(listed);
            sign_in.documents_from(network.clone())
        };
        let server = Server::with(change).await;
        let url = server.authorize_url(ID, &[]);
        assert_eq!(
            Browser::new().open(url.as_str()).await.0,
            status,
            "{listed}"
        );
        assert_eq!(hosts.requests(), requests);
    }
}
