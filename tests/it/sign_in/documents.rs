//! Metadata documents of clients: a published client's, and hostile ones.

use std::{convert::Infallible, future::ready, io, net::SocketAddr};

use axum::{body::Body, http::Uri, response::Response, serve::Listener};
use futures_util::{future::join_all, stream};
use lambda_tools_accounts::auth::sign_in::{OnlyGlobal, document_client, with_document_client};
use rcgen::generate_simple_self_signed;
use reqwest::{
    Client,
    dns::{Addrs, Name, Resolve, Resolving},
};
use rustls::{ServerConfig, crypto::aws_lc_rs::default_provider, pki_types::PrivatePkcs8KeyDer};
use test_support::answer;
use tokio::{
    net::{TcpListener, TcpStream},
    time::{Instant, sleep},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::*;

pub(super) const ID: &str = "https://client.example/client.json";

/// A server of documents over TLS.
pub(super) struct Hosts {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    /// How often a name was resolved.
    lookups: Arc<AtomicUsize>,
}

impl Hosts {
    /// Starts one with the document of one client.
    pub(super) async fn with_a_client() -> Self {
        Self::start(async |path| match &*path {
            "/client.json" => answer(200, &[], document().to_string()),
            _ => answer(404, &[], ""),
        })
        .await
    }

    /// Starts one that responds to each path as a function says.
    async fn start<F: Future<Output = Response> + Send + 'static>(
        respond: impl Fn(String) -> F + Clone + Send + Sync + 'static,
    ) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let key = generate_simple_self_signed(["client.example".to_owned()]).unwrap();
        let der = PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![key.cert.der().clone()], der.into())
            .unwrap();
        let address = tcp.local_addr().unwrap();
        let requests = Arc::<AtomicUsize>::default();
        let seen = Arc::clone(&requests);
        let router = Router::new().fallback(move |uri: Uri| {
            seen.fetch_add(1, Ordering::Relaxed);
            respond(uri.path().to_owned())
        });
        let tls = Tls(tcp, TlsAcceptor::from(Arc::new(config)));
        tokio::spawn(async { axum::serve(tls, router).await });
        let lookups = Arc::default();
        Self {
            address,
            requests,
            lookups,
        }
    }

    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Returns a resolver with which every name leads to this server.
    fn names(&self) -> Names {
        Names {
            addresses: vec![self.address],
            lookups: Arc::clone(&self.lookups),
        }
    }

    /// Returns a client to which every name leads to this server.
    pub(super) fn client(&self) -> Client {
        let client = document_client(self.names()).danger_accept_invalid_certs(true);
        client.build().unwrap()
    }
}

/// A resolver with which all names have the same addresses.
struct Names {
    addresses: Vec<SocketAddr>,
    lookups: Arc<AtomicUsize>,
}

impl Resolve for Names {
    fn resolve(&self, _: Name) -> Resolving {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        let addresses = self.addresses.clone().into_iter();
        Box::pin(async { Ok::<Addrs, _>(Box::new(addresses)) })
    }
}

struct Tls(TcpListener, TlsAcceptor);

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (socket, address) = self.0.accept().await.unwrap();
            // Otherwise a response waits for an acknowledgement, for which a paused clock has no time.
            socket.set_nodelay(true).unwrap();
            if let Ok(stream) = self.1.accept(socket).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
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

/// Returns the document of the client with this path as a text, with another value of one member.
fn document_at(path: &str, name: &str, value: Value) -> String {
    let mut document = document();
    document["client_id"] = format!("https://client.example{path}").into();
    document[name] = value;
    document.to_string()
}

pub(super) async fn serving(hosts: &Hosts) -> Server {
    serving_from(hosts.client()).await
}

async fn serving_from(client: Client) -> Server {
    Server::with(|it| with_document_client(it.allow("anyone"), client)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_a_document_needs_no_registration_and_a_free_port() {
    let hosts = Hosts::with_a_client().await;
    let server = serving(&hosts).await;
    let local = ("redirect_uri", "http://localhost:3118/callback");
    let (status, page) = server.opened(ID, &[local]).await;
    assert_eq!(status, 200, "{page}");
    for shown in ["client.example", "Code", "A program on this computer"] {
        assert!(page.contains(shown), "{shown} {page}");
    }
    let code = server.code(ID, &alice()).await;
    let tokens = server.redeemed(ID, &code).await;
    assert_eq!(server.whose(&tokens).await["user"], "alice");
    // Each of the two instances has fetched it once. A name that resolves differently the second time
    // gains nothing: there is no second time.
    assert_eq!(hosts.requests(), 2);
    assert_eq!(hosts.lookups.load(Ordering::Relaxed), 2);
}

/// A document is used for its `max-age`, but 5 minutes to 24 hours. Then it is used for a week while
/// its host is away, which is asked once a minute, but not after it has been withdrawn. A stranger
/// cannot have this server ask a host again and again: a failure is remembered for a minute.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_and_a_failure_are_kept_for_their_time() {
    const DAY: u64 = 24 * 3600;
    let host = Arc::new(Mutex::new((404, 0)));
    let shared = Arc::clone(&host);
    let hosts = Hosts::start(move |_| {
        let (status, age) = *shared.lock().unwrap();
        let age = format!("max-age={age}");
        let document = document().to_string();
        ready(answer(status, &[("cache-control", &age)], document))
    });
    let hosts = hosts.await;
    let server = serving(&hosts).await;
    let (browser, url) = (Browser::new(), server.authorize_url(ID, &[]));
    // The host's status and `max-age`, the seconds that pass before, the page's status, and whether
    // the host is asked.
    for (status, age, later, opened, is_asked) in [
        (404, 0, 0, 400, true),
        (200, 0, 45, 400, false),
        (503, 0, 15, 400, true),
        (200, 0, 45, 400, false),
        (200, 1, 15, 200, true),
        (503, 0, 270, 200, false),
        (503, 0, 30, 200, true),
        (500, 0, 45, 200, false),
        (500, 0, 15, 200, true),
        (500, 0, 7 * DAY, 400, true),
        (200, 1200, 60, 200, true),
        (404, 0, 1140, 200, false),
        (404, 0, 60, 400, true),
        (200, 10 * DAY, 60, 200, true),
        (404, 0, DAY - 60, 200, false),
        (404, 0, 60, 400, true),
    ] {
        *host.lock().unwrap() = (status, age);
        server.later(Duration::from_secs(later));
        let before = hosts.requests();
        let pages = join_all((0..10).map(|_| browser.open(url.clone()))).await;
        let row = format!("{status} {age} {later}");
        assert!(pages.iter().all(|it| it.0 == opened), "{row} {pages:?}");
        // Once by each instance.
        let asked = if is_asked { 2 } else { 0 };
        assert_eq!(hosts.requests() - before, asked, "{row}");
    }
}

/// Returns hostile responses to a request for the document at a path.
fn hostile(path: &str) -> Vec<Response> {
    let (ok, with) = (
        |body: &str| answer(200, &[], body.to_owned()),
        |name: &str, value: Value| answer(200, &[], document_at(path, name, value)),
    );
    let valid = || document_at(path, "client_uri", Value::Null);
    let moved = |status, url: &str| answer(status, &[("location", url)], valid());
    // A gigabyte, as far as anyone reads.
    let chunks = || (0..16_384).map(|_| Ok::<_, Infallible>(" ".repeat(1 << 16)));
    let endless = || Body::from_stream(stream::iter(chunks()));
    let part = stream::iter([Ok::<_, Infallible>("{\"client_id\":")]);
    vec![
        moved(302, "https://169.254.169.254/latest"),
        moved(307, "http://127.0.0.1/"),
        // To the next one, which counts as a request.
        moved(302, "https://client.example/3.json"),
        answer(404, &[], valid()),
        answer(206, &[], valid()),
        answer(200, &[], endless()),
        answer(200, &[("content-length", "1073741824")], endless()),
        answer(200, &[("content-length", "4000")], Body::from_stream(part)),
        ok("not JSON"),
        ok("[]"),
        ok(&"[".repeat(5000)),
        with("client_id", json!("https://claude.ai/client.json")),
        with("client_id", json!(null)),
        with("client_name", json!("")),
        with("padding", json!("x".repeat(5 * 1024))),
        with("redirect_uris", json!([])),
        with("redirect_uris", json!(CALLBACK)),
        with("redirect_uris", json!(["https://evil.example/callback"])),
        with("token_endpoint_auth_method", json!("client_secret_basic")),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_hostile_document_describes_a_client() {
    let hosts = Hosts::start(|path| {
        let number = path.trim_matches(|it: char| !it.is_ascii_digit());
        ready(hostile(&path).swap_remove(number.parse().unwrap()))
    });
    let hosts = hosts.await;
    let server = serving(&hosts).await;
    let count = hostile("").len();
    for number in 0..count {
        let id = format!("https://client.example/{number}.json");
        let (status, page) = server.opened(&id, &[]).await;
        assert_eq!(status, 400, "{number} {page}");
        assert!(!page.contains("evil"), "{page}");
    }
    assert_eq!(hosts.requests(), count, "no redirect is followed");
}

/// A document is given up after five seconds. Many slow ones of one host keep those of other hosts
/// waiting for nothing, and waiting for another one of the host takes nothing of a document's time.
#[tokio::test(start_paused = true)]
async fn a_slow_document_costs_seconds_and_keeps_only_its_host_waiting() {
    let hosts = Hosts::start(async |path| {
        if path.starts_with("/slow") {
            let chunks = stream::unfold((), async |()| {
                sleep(Duration::from_millis(100)).await;
                Some((Ok::<_, Infallible>(" "), ()))
            });
            let body = Body::from_stream(chunks);
            return answer(200, &[("content-length", "4000")], body);
        }
        if path.starts_with("/late") {
            sleep(Duration::from_secs(3)).await;
        }
        answer(200, &[], document_at(&path, "client_uri", Value::Null))
    });
    let hosts = hosts.await;
    let server = serving(&hosts).await;
    let browser = Browser::new();
    let open = async |host: &str, name: String| {
        let id = format!("https://{host}.example/{name}.json");
        browser.open(server.authorize_url(&id, &[])).await.0
    };
    let started = Instant::now();
    assert_eq!(open("client", "slow".to_owned()).await, 400);
    let elapsed = started.elapsed().as_secs_f32();
    assert!((4.9..5.5).contains(&elapsed), "{elapsed}");

    let late = (0..4).map(|number| open("client", format!("late{number}")));
    assert_eq!(join_all(late).await, [200; 4]);

    let (started, before) = (Instant::now(), hosts.requests());
    let slow = join_all((0..80).map(|number| open("slow", format!("slow{number}"))));
    let others = async {
        sleep(Duration::from_secs(1)).await;
        let requests = hosts.requests() - before;
        assert_eq!(requests, 2, "one at a time in each instance");
        for _ in 0..2 {
            assert_eq!(open("client", "client".to_owned()).await, 200);
        }
        started.elapsed()
    };
    let (_, elapsed) = tokio::join!(slow, others);
    assert!(elapsed < Duration::from_secs(2), "{elapsed:?}");
}

/// A name that has an address in a private network, or none, is not on the internet.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_has_global_addresses_and_a_valid_certificate() {
    let hosts = Hosts::with_a_client().await;
    let leading_to = |addresses: Vec<SocketAddr>| {
        let lookups = Arc::clone(&hosts.lookups);
        let names = Names { addresses, lookups };
        let client = document_client(OnlyGlobal(names)).danger_accept_invalid_certs(true);
        client.build().unwrap()
    };
    let with_certificate = document_client(hosts.names()).build().unwrap();
    for (what, client) in [
        ("a private address", leading_to(vec![hosts.address])),
        ("no address", leading_to(Vec::new())),
        ("a certificate that nobody trusts", with_certificate),
    ] {
        let server = serving_from(client).await;
        let (status, page) = server.opened(ID, &[]).await;
        assert_eq!(status, 400, "{what} {page}");
    }
    assert_eq!(hosts.requests(), 0);
}

/// An address is not looked up, so that no resolver could check it. `is_document_url` has more.
#[tokio::test(flavor = "multi_thread")]
async fn no_document_is_fetched_from_an_address_or_another_port() {
    let hosts = Hosts::with_a_client().await;
    let server = serving(&hosts).await;
    let port = hosts.address.port();
    for host in ["127.0.0.1", "2130706433", "client.example"] {
        let id = format!("https://{host}:{port}/client.json");
        let (status, page) = server.opened(&id, &[]).await;
        assert_eq!(status, 400, "{id} {page}");
    }
    assert_eq!(hosts.requests(), 0);
}

/// A document may name any redirect URI; users are sent to the safe ones only. `parse_redirect_uri` has
/// more.
#[tokio::test(flavor = "multi_thread")]
async fn no_document_makes_a_redirect_uri_safe() {
    const UNSAFE: [&str; 2] = ["http://client.example/callback", "myapp://callback"];
    let hosts = Hosts::start(async |path| {
        answer(200, &[], document_at(&path, "redirect_uris", json!(UNSAFE)))
    });
    let hosts = hosts.await;
    let server = serving(&hosts).await;
    for uri in UNSAFE {
        let (status, page) = server.opened(ID, &[("redirect_uri", uri)]).await;
        assert_eq!(status, 400, "{uri} {page}");
    }
    // The document is read, and its owner may list one of them.
    server.replace(|it| {
        let listed = it.allow("anyone").client("myapp://callback");
        with_document_client(listed, hosts.client())
    });
    let opened = server.opened(ID, &[("redirect_uri", "myapp://callback")]);
    assert_eq!(opened.await.0, 200);
}

/// A published client with a metadata document. Those that register are tested with the deployed
/// function. `.ci/long` runs this test.
mod long {
    use std::process::Command;

    use test_support::{installed, openid::OpenId, repository};

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs npm's oidc-provider and FastMCP; run .ci/long"]
    async fn fastmcps_client_signs_in_with_its_metadata_document() {
        let (openid, hosts) = (OpenId::start(), Hosts::with_a_client().await);
        let client = hosts.client();
        let router = async |url: &str| {
            let sign_in = SignIn::openid(&openid.url, "toolbox", "SECRET").allow("user:alice");
            let auth = Auth::from(with_document_client(sign_in, client)).scope("mail.read");
            let secrets = [("SECRET", "toolbox-secret"), ("TOOLS_OAUTH_KEY", KEY)];
            let server = server(tools()).auth(auth).oauth(OAuth::with([]));
            let server = server.secrets(Secrets::fixed(secrets)).public_url(url);
            server.into_router().unwrap()
        };
        let server = Served::start_with(router).await;
        openid
            .allow_redirect(&format!("{}/authorization/openid/callback", server.url))
            .await;
        let mut command = Command::new("timeout");
        command
            .args(["--kill-after=5", "60"])
            .arg(installed("python"))
            .arg(repository("functions/toolbox/tests/fastmcp_oauth.py"))
            .args([&format!("{}/mcp", server.url), "alice"])
            .args(["--tool", "Mail_Whose", "--metadata-url", ID]);
        let output = tokio::task::block_in_place(|| command.output()).unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let seen: Value =
            serde_json::from_str(&stdout).unwrap_or_else(|it| panic!("{it}: {stderr}"));
        assert_eq!(seen["asked"][0]["client_id"], ID, "{seen}");
        let said = seen["call"]["value"]["result"].as_str();
        let said: Value = serde_json::from_str(said.unwrap_or_else(|| panic!("{seen}"))).unwrap();
        assert_eq!(said["user"], json!("alice"));
        assert!(hosts.requests() > 0);
    }
}
