//! Users of MCP clients that know nothing but the function's URL: the function is the authorization
//! server, and lets its users sign in at an identity provider.
//!
//! The providers and the clients come from npm and PyPI. `tests/all` installs them and runs these
//! tests; a plain `cargo test` lists them as ignored.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::HeaderMap,
    response::Response,
};
use reqwest::{Url, redirect::Policy};
use serde_json::{Value, json};
use test_support::{
    Served, aws::CREDENTIALS, dynamodb::DynamoDb, function_url::FunctionUrl, node, openid::OpenId,
};

use crate::{
    clients::stdout_of,
    mcp_clients::limited,
    sign_in::{CLIENTS, Client, NEEDED, NEEDED_BY_SEND},
    support::{Running, faults, isolated, repository},
};

const TABLE: &str = "grants";
const KEY: &str = "a-key-of-this-server-0123456789abcdef";
const LARGEST_BODY: usize = 1 << 20;

/// Clients that sign in with a server only, besides [`CLIENTS`].
const OTHER_CLIENTS: [Client; 4] = [
    Client::new("fastmcp_oauth.py", "auto"),
    Client::new("fastmcp_oauth.py", "legacy"),
    Client::new("inspector_oauth.mjs", "auto"),
    Client::new("inspector_oauth.mjs", "legacy"),
];

/// A program of the tests that serves on a free port: an identity provider, or another server.
struct Program {
    url: String,
    /// With its standard input: the program ends when that is closed.
    child: Child,
}

impl Program {
    /// Starts a program that prints `Serving … on URL`.
    fn start(mut command: Command) -> Self {
        let spawned = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut program = Self {
            url: String::new(),
            child,
        };
        let (send, urls) = mpsc::channel();
        std::thread::spawn(move || {
            // Drains the pipe even after the URL: a full pipe would block the program.
            for line in lines.map_while(Result::ok) {
                if let Some((_, url)) = line.split_once(" on ") {
                    let _ = send.send(url.to_owned());
                }
            }
        });
        let url = urls.recv_timeout(Duration::from_secs(30));
        program.url = url.unwrap_or_else(|error| panic!("{command:?} does not serve: {error}"));
        program
    }

    /// Starts a script in this Python environment.
    fn python(environment: &str, script: &str, settings: &[String]) -> Self {
        let python = repository("target").join(environment).join("bin/python");
        let mut command = isolated(Command::new(python));
        command.arg(repository("functions/toolbox/tests").join(script));
        command.args(settings);
        Self::start(command)
    }

    /// Starts a script that `tests/all` has copied next to npm's packages.
    fn node(script: &str) -> Self {
        let mut command = isolated(Command::new(node()));
        command.arg(repository("target/openid").join(script));
        Self::start(command)
    }

    /// Requests something that the program has for tests.
    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Value {
        let mut url = Url::parse_with_params(&self.url, query).unwrap();
        url.set_path(path);
        reqwest::get(url).await.unwrap().json().await.unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the users of a server sign in, and who may.
struct Upstream<'a> {
    provider: &'static str,
    issuer: &'a str,
    client_id: &'a str,
    client_secret: &'a str,
    allow: &'static str,
}

impl<'a> Upstream<'a> {
    /// A provider of the kind `openid`, at which everyone may sign in under any name.
    fn openid(issuer: &'a str) -> Self {
        Self {
            provider: "openid",
            issuer,
            client_id: "toolbox",
            client_secret: "toolbox-secret",
            allow: "anyone",
        }
    }

    /// Returns the settings of a server.
    fn variables(&self) -> [(&'static str, &'a str); 8] {
        [
            ("TOOLS_AUTH", "sign-in"),
            ("TOOLS_OAUTH_KEY", KEY),
            ("TOOLS_SIGN_IN_PROVIDER", self.provider),
            ("TOOLS_SIGN_IN_ISSUER", self.issuer),
            ("TOOLS_SIGN_IN_CLIENT_ID", self.client_id),
            ("TOOLS_SIGN_IN_CLIENT_SECRET", self.client_secret),
            ("TOOLS_SIGN_IN_ALLOW", self.allow),
            ("TOOLS_SIGN_IN_SCOPES", NEEDED),
        ]
    }

    /// Returns the redirect URI of a server.
    fn callback(&self, server: &str) -> String {
        format!("{server}/authorization/{}/callback", self.provider)
    }

    /// Starts a local server.
    fn serve(&self) -> (Running, String) {
        Running::serving(faults().envs(self.variables()))
    }
}

/// Two instances of a function behind one URL, and the table that they share. Each request reaches
/// the instance that did not get the one before.
struct Function {
    url: String,
    table: DynamoDb,
    _served: Served,
}

struct Instances {
    instances: [FunctionUrl; 2],
    requests: AtomicUsize,
    client: reqwest::Client,
}

impl Function {
    async fn start(upstream: &Upstream<'_>) -> Self {
        let table = DynamoDb::start(TABLE).await;
        let address = table.url();
        let router = async |url: &str| {
            let mut variables = upstream.variables().to_vec();
            variables.extend(CREDENTIALS);
            variables.extend([
                // The events name the host of a function URL.
                ("TOOLS_PUBLIC_URL", url),
                ("TOOLS_OAUTH_TABLE", TABLE),
                ("AWS_ENDPOINT_URL_DYNAMODB", &*address),
            ]);
            let client = reqwest::Client::builder().redirect(Policy::none());
            let instances = Instances {
                instances: [
                    FunctionUrl::start(&mut faults(), &variables).await,
                    FunctionUrl::start(&mut faults(), &variables).await,
                ],
                requests: AtomicUsize::new(0),
                client: client.build().unwrap(),
            };
            Router::new()
                .fallback(pass_on)
                .with_state(Arc::new(instances))
        };
        let served = Served::start_with(router).await;
        Self {
            url: served.url.clone(),
            table,
            _served: served,
        }
    }
}

/// Passes a request on to the other instance.
async fn pass_on(State(function): State<Arc<Instances>>, request: Request) -> Response {
    let number = function.requests.fetch_add(1, Ordering::Relaxed);
    let instance = &function.instances[number % 2].url;
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, LARGEST_BODY).await.unwrap();
    let path = parts.uri.path_and_query().unwrap();
    let sent = function
        .client
        .request(parts.method, format!("{instance}{path}"))
        .headers(end_to_end(parts.headers))
        .body(body)
        .send();
    let answer = sent.await.unwrap();
    let (status, headers) = (answer.status(), answer.headers().clone());
    let mut response = Response::new(Body::from(answer.bytes().await.unwrap()));
    *response.status_mut() = status;
    *response.headers_mut() = end_to_end(headers);
    response
}

/// Removes the headers that are about one connection.
fn end_to_end(mut headers: HeaderMap) -> HeaderMap {
    for name in [
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "transfer-encoding",
    ] {
        headers.remove(name);
    }
    headers
}

/// Lets a client sign its user in with nothing but the URL, and call two tools, of which the second
/// one needs another scope. `sign_ins` is how often the user signs in for that.
fn check(client: Client, url: &str, user: &str, sign_ins: usize) {
    check_known_as(client, url, user, user, sign_ins);
}

/// Does the same for a user whom the server knows by an `id` of the provider's.
fn check_known_as(client: Client, url: &str, user: &str, id: &str, sign_ins: usize) {
    let is_inspector = client.script.starts_with("inspector");
    let second = if is_inspector { "then" } else { "step-up" };
    let option = format!("--{second}");
    let seen = client.call(url, user, "Mail_Whose", &[&option, "Mail_Send"]);
    let context = format!("{client:?} at {url}: {seen:#}");
    let named = json!({"value": {"result": id}});
    assert_eq!(seen["call"], named, "{context}");
    assert_eq!(seen[second.replace('-', "_")], named, "{context}");
    assert_eq!(seen["registered"], true, "{context}");
    let asked = seen["asked"].as_array().unwrap();
    assert_eq!(asked.len(), sign_ins, "{context}");
    for one in asked {
        assert_eq!(one["resource"], format!("{url}/mcp"), "{context}");
    }
    let both = format!("{NEEDED} {NEEDED_BY_SEND}");
    assert_eq!(asked[sign_ins - 1]["scope"], both, "{context}");
    if sign_ins > 1 {
        assert_eq!(asked[0]["scope"], NEEDED, "{context}");
    }
    // The Inspector does not say which scopes its token has.
    if !is_inspector {
        assert_eq!(seen["step_up_scopes"], both, "{context}");
    }
}

/// Lets the client for Python sign in as a user to whom no rule applies.
fn check_refused(url: &str, user: &str) {
    let [client, ..] = CLIENTS;
    let output = client.run(url, user, "Mail_Whose", &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let is_refused = stderr.contains("'error': 'access_denied'");
    assert!(!output.status.success() && is_refused, "{user}: {output:?}");
}

/// Lets Alice, whom the provider knows by this id, and others sign in at a local server.
fn check_users(url: &str, id: &str, refused: &[&str]) {
    let [client, ..] = CLIENTS;
    check_known_as(client, url, "alice", id, 2);
    for user in refused {
        check_refused(url, user);
    }
}

/// A function URL renames the header that names the scope of a call, so clients ask for all scopes in
/// the metadata at once.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, and clients and a provider of npm and PyPI; run tests/all"]
async fn published_clients_need_only_the_url_of_a_function_with_two_instances() {
    let provider = OpenId::start();
    let upstream = Upstream::openid(&provider.url);
    let function = Function::start(&upstream).await;
    let callback = upstream.callback(&function.url);
    provider.allow_redirect(&callback).await;
    for client in CLIENTS.into_iter().chain(OTHER_CLIENTS) {
        let records = function.table.len();
        check(client, &function.url, "alice", 1);
        assert!(function.table.len() > records, "{client:?}");
    }
}

/// The Inspector always asks for all scopes.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, and clients and a provider of npm and PyPI; run tests/all"]
async fn published_clients_ask_for_another_scope_when_a_tool_needs_it() {
    let provider = OpenId::start();
    let upstream = Upstream::openid(&provider.url);
    let (_running, url) = upstream.serve();
    provider.allow_redirect(&upstream.callback(&url)).await;
    for client in CLIENTS.into_iter().chain(OTHER_CLIENTS) {
        let is_inspector = client.script.starts_with("inspector");
        check(client, &url, "bob", if is_inspector { 1 } else { 2 });
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, and a client and a provider of PyPI; run tests/all"]
async fn users_with_an_address_of_a_domain_sign_in_at_another_openid_provider() {
    let provider = Program::python("venv-sign-in", "openid/mock_provider.py", &[]);
    let claims = json!({"email": "alice@acme.example", "email_verified": true});
    let user = reqwest::Client::new().put(format!("{}/users/alice", provider.url));
    let user = user.json(&claims).send().await.unwrap();
    assert_eq!(user.status(), 204);
    let upstream = Upstream {
        allow: "domain:acme.example",
        ..Upstream::openid(&provider.url)
    };
    let (_running, url) = upstream.serve();
    check_users(&url, "alice", &["bob"]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, moto and a client of PyPI; run tests/all"]
async fn users_in_a_group_of_cognito_sign_in() {
    let provider = Program::python("venv", "openid/cognito.py", &[]);
    let client = provider.get("/test/client", &[]).await;
    let text = |name: &str| client[name].as_str().unwrap();
    let upstream = Upstream {
        provider: "cognito",
        issuer: &provider.url,
        client_id: text("client_id"),
        client_secret: text("client_secret"),
        allow: "group:staff",
    };
    let (_running, url) = upstream.serve();
    let callback = upstream.callback(&url);
    provider
        .get("/test/redirect_uri", &[("uri", &callback)])
        .await;
    check_users(
        &url,
        client["subjects"]["alice"].as_str().unwrap(),
        &["bob"],
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, Node and a client of PyPI; run tests/all"]
async fn members_of_an_organization_of_github_sign_in() {
    let provider = Program::node("fake_github.mjs");
    let upstream = Upstream {
        provider: "github",
        allow: "organization:acme",
        ..Upstream::openid(&provider.url)
    };
    let (_running, url) = upstream.serve();
    let callback = upstream.callback(&url);
    provider
        .get("/test/redirect_uri", &[("uri", &callback)])
        .await;
    let alice = provider.get("/test/user", &[("login", "alice")]).await;
    // Carol is only invited.
    check_users(&url, &alice["id"].to_string(), &["carol", "dave"]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, and npm's conformance suite and oidc-provider; run tests/all"]
async fn the_conformance_suite_for_authorization_servers_passes() {
    let provider = OpenId::start();
    let upstream = Upstream::openid(&provider.url);
    let function = Function::start(&upstream).await;
    let callback = upstream.callback(&function.url);
    provider.allow_redirect(&callback).await;
    let script = repository("target/conformance/conformance_authorization.mjs");
    let mut suite = limited(node());
    suite.arg(script).args([&function.url, "alice"]);
    let output = tokio::task::block_in_place(|| suite.output());
    let seen: Value = serde_json::from_str(&stdout_of(&output.unwrap())).unwrap();
    let checks = json!({
        "authorization-server-metadata": "SUCCESS",
        "authorization-server-metadata-cimd": "SUCCESS",
        "authorization-code-grant": "SUCCESS",
    });
    assert_eq!(seen, json!({"code": 0, "checks": checks}));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, FastMCP, and a provider of npm; run tests/all"]
async fn fastmcps_proxy_serves_the_same_clients() {
    let provider = OpenId::start();
    let settings = [format!("ISSUER={}", provider.url), "STORE=memory".into()];
    let theirs = Program::python("venv-sign-in", "fastmcp_proxy.py", &settings);
    let upstream = Upstream::openid(&provider.url);
    let (_running, ours) = upstream.serve();
    provider.allow_redirect(&upstream.callback(&ours)).await;
    for client in CLIENTS {
        check(client, &ours, "alice", 2);
        let second = ["--step-up", "Mail_Send"];
        let seen = client.call(&theirs.url, "alice", "Mail_Whose", &second);
        let context = format!("{client:?}: {seen:#}");
        assert_eq!(seen["call"]["value"]["result"], "alice", "{context}");
        assert_eq!(seen["asked"].as_array().unwrap().len(), 1, "{context}");
        // It hides a tool that needs another scope, so its clients never ask for one.
        let hidden = json!({"failure": "Unknown tool: 'Mail_Send'"});
        assert_eq!(seen["step_up"], hidden, "{context}");
    }
}
