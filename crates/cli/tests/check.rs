//! `lambda-tools check` with a right server, with one planted fault each, and with this project's own.

use std::{
    collections::{HashMap, HashSet},
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use axum::{
    Router,
    body::{Bytes, to_bytes},
    extract::Request,
    response::Response,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use lambda_tools::{
    ApiKeys, Auth, Failure, OAuth, Server, SignIn, Tool, Toolkit, secrets::Secrets,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use reqwest::Url;
use rustls::{ServerConfig, ServerConnection, pki_types::PrivatePkcs8KeyDer};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use test_support::{
    Running, Served, answer, free_address, installed,
    openid::{Act, Browser, OpenId},
};
use tokio::{runtime::Handle, time::sleep};

const KEY: &str = "key-of-the-caller-1";

/// The responses of a right server: MCP's revisions 2025-11-25 and 2026-07-28, RFC 9728 and RFC 8414.
/// `URL` is that of the server.
const RIGHT: &str = include_str!("check/right.json");

/// Applies a JSON Merge Patch (RFC 7396).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Map::new().into();
    }
    for (key, value) in patch {
        match value {
            Value::Null => drop(target.as_object_mut().unwrap().remove(key)),
            value => merge(&mut target[key], value),
        }
    }
}

/// Serves responses: of a method of MCP, or of a path. The first one with a name may be late.
async fn respond(
    responses: Value,
    seen: Arc<Mutex<HashSet<String>>>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body: Bytes = to_bytes(body, 1 << 20).await.unwrap();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or_default();
    let cursor = message["params"]["cursor"].as_str();
    let has_credentials = parts.headers.contains_key("authorization");
    let refreshes = String::from_utf8_lossy(&body).contains("grant_type=refresh_token");
    let name = match (parts.method.as_str(), parts.uri.path()) {
        ("OPTIONS", path) => format!("OPTIONS {path}"),
        ("POST", "/token") if refreshes => "refresh".to_owned(),
        ("POST", "/mcp") if !has_credentials && responses.get("without credentials").is_some() => {
            "without credentials".to_owned()
        }
        ("POST", "/mcp") => cursor.map_or(method.to_owned(), |it| format!("{method} {it}")),
        (_, path) => path.to_owned(),
    };
    let Some(response) = responses.get(&name) else {
        return answer(404, &[], "");
    };
    let delay = response["delay"].as_u64();
    if let Some(delay) = delay.filter(|_| seen.lock().unwrap().insert(name)) {
        sleep(Duration::from_millis(delay)).await;
    }
    let headers = response["headers"].as_object().into_iter().flatten();
    let headers: Vec<_> = headers
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .collect();
    let status = response["status"].as_u64().unwrap_or(200);
    let mut own = json!({"jsonrpc": "2.0", "id": message["id"]});
    for part in ["result", "error"] {
        if let Some(value) = response.get(part) {
            own[part] = value.clone();
        }
    }
    let padding = response["padding"].as_u64().unwrap_or_default();
    own["padding"] = " ".repeat(usize::try_from(padding).unwrap()).into();
    let body = match &response["body"] {
        Value::Null if own.as_object().unwrap().len() == 3 => String::new(),
        Value::Null if response["streams"] == true => format!("event: message\ndata: {own}\n\n"),
        Value::Null => own.to_string(),
        Value::String(text) => text.clone(),
        body => body.to_string(),
    };
    answer(u16::try_from(status).unwrap(), &headers, body)
}

async fn served(mut patch: Value) -> Served {
    let mut responses: Value = serde_json::from_str(RIGHT).unwrap();
    if let Some(tool) = patch.as_object_mut().unwrap().remove("tool") {
        let list = &mut responses["tools/list"]["result"];
        merge(&mut list["tools"][0], &tool);
        merge(list, &json!({"nextCursor": null}));
    }
    merge(&mut responses, &patch);
    let seen = Arc::default();
    Served::start_with(async |url: &str| {
        let responses = responses.to_string().replace("URL", url);
        let responses: Value = serde_json::from_str(&responses).unwrap();
        Router::new().fallback(move |request: Request| {
            respond(responses.clone(), Arc::clone(&seen), request)
        })
    })
    .await
}

/// The command's output and exit code.
#[derive(Debug)]
struct Checked {
    lines: Vec<String>,
    code: Option<i32>,
}

impl Checked {
    /// Returns the line that begins like this and contains a text, and the one below it.
    fn finding(&self, label: &str, text: &str) -> Option<(&str, &str)> {
        let mut pairs = self.lines.windows(2);
        let found = pairs.find(|it| it[0].starts_with(label) && it[0].contains(text))?;
        Some((&found[0], &found[1]))
    }

    /// Asserts that there is such a line.
    #[track_caller]
    fn says(&self, label: &str, text: &str) {
        assert!(self.finding(label, text).is_some(), "{text}: {self:#?}");
    }

    fn count(&self, label: &str) -> usize {
        let lines = self.lines.iter();
        lines.filter(|it| it.starts_with(label)).count()
    }

    /// Asserts that nothing is wrong, except that the server is on this machine.
    #[track_caller]
    fn is_right(&self) {
        assert_eq!(self.code, Some(0), "{self:#?}");
        assert_eq!(self.count("FAULT"), 0, "{self:#?}");
        assert_eq!(self.count("warn"), 1, "{self:#?}");
        self.says("warn", "only programs on this machine");
    }
}

fn command(url: &str, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lambda-tools"));
    // There, it finds no program that opens a page.
    command.args(["check", url]).args(options).env("PATH", "");
    command
}

/// Runs the command. `browse` opens the page on which it lets a person sign in.
async fn run(mut command: Command, browse: impl AsyncFn(Url) + Send + 'static) -> Checked {
    let runtime = Handle::current();
    let checked = tokio::task::spawn_blocking(move || {
        let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = Vec::new();
        let stdout = BufReader::new(running.stdout.take().unwrap());
        for line in stdout.lines().map(Result::unwrap) {
            if let Some(page) = line.strip_prefix("Sign in at ") {
                runtime.block_on(browse(page.parse().unwrap()));
            }
            lines.push(line);
        }
        let code = running.wait().unwrap().code();
        Checked { lines, code }
    });
    checked.await.unwrap()
}

async fn check(url: &str, options: &[&str]) -> Checked {
    let command = command(url, options);
    run(command, async |page| panic!("{page} is opened")).await
}

async fn check_with_key(server: &Served) -> Checked {
    check(&format!("{}/mcp", server.url), &["--key", KEY]).await
}

/// Lets a person sign in whom the server sends back with a code, and with these changes.
async fn check_and_sign_in(server: &Served, patch: Value, options: &[&str]) -> Checked {
    let issuer = server.url.clone();
    let client = options.last().copied().unwrap_or("client-1").to_owned();
    let browse = async move |page: Url| {
        let asked: HashMap<_, _> = page.query_pairs().into_owned().collect();
        assert_eq!(asked["client_id"], client);
        let mut back = json!({"code": "code-1", "state": asked["state"], "iss": issuer});
        merge(&mut back, &patch);
        let back = back.as_object().unwrap().iter();
        let back = back.map(|(name, value)| (name, value.as_str().unwrap()));
        let back = Url::parse_with_params(&asked["redirect_uri"], back).unwrap();
        let page = reqwest::get(back).await.unwrap().text().await.unwrap();
        assert_eq!(page, "You can close this page.");
    };
    let mut command = command(&format!("{}/mcp", server.url), &["--sign-in"]);
    command.args(options);
    run(command, browse).await
}

/// A row of the table of faults.
#[derive(Deserialize)]
struct Row {
    change: Value,
    /// If a person signs in: a patch for the parameters with which the browser comes back.
    back: Option<Value>,
    finds: (String, String, String),
}

#[tokio::test(flavor = "multi_thread")]
async fn each_planted_fault_is_found_alone_and_cured() {
    let rows: Vec<Row> = serde_saphyr::from_str(include_str!("check/faults.yaml")).unwrap();
    let rows = rows.into_iter().map(|row| tokio::spawn(is_found(row)));
    let mut wrong = Vec::new();
    for row in rows.collect::<Vec<_>>() {
        wrong.extend(row.await.unwrap().err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns an error unless the command finds what a row has planted, and nothing else that is wrong.
async fn is_found(row: Row) -> Result<(), String> {
    let (label, text, cure) = &row.finds;
    let server = served(row.change.clone()).await;
    let checked = match row.back {
        None => check_with_key(&server).await,
        Some(patch) => check_and_sign_in(&server, patch, &[]).await,
    };
    let is_fault = label == "FAULT";
    let found = checked.finding(label, text);
    let has_cure = found.is_some_and(|(_, below)| below.contains(cure));
    let is_alone = checked.count("FAULT") == usize::from(is_fault);
    if has_cure && is_alone && checked.code == Some(i32::from(is_fault)) {
        return Ok(());
    }
    Err(format!("{}: {:?} in {checked:#?}", row.change, row.finds))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_server_has_no_fault_in_either_era_nor_as_a_stream() {
    let streams = json!({"initialize": {"streams": true}, "tools/list": {"streams": true}});
    let legacy = json!({"server/discover": null});
    for patch in [json!({}), legacy, streams] {
        let checked = check_with_key(&served(patch).await).await;
        checked.is_right();
        checked.says("ok", "call: `Clock_Now` answers");
        checked.says("ok", "half of 10 calls");
        // The report has a row for each line.
        assert_eq!(checked.count("| "), 11, "{checked:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_the_way_to_sign_in_is_checked() {
    let server = served(json!({})).await;
    let url = format!("{}/mcp", server.url);
    let checked = check(&url, &[]).await;
    assert_eq!(checked.code, Some(0), "{checked:#?}");
    let found = checked.finding("warn", "the tools are not checked");
    let (_, cure) = found.unwrap();
    assert!(cure.contains("--key"), "{cure}");
    checked.says("ok", "authorization server");

    let closed = served(json!({
        "/.well-known/oauth-protected-resource": null,
        "/.well-known/oauth-protected-resource/mcp": null,
    }));
    let closed = closed.await;
    let checked = check(&format!("{}/mcp", closed.url), &[]).await;
    assert_eq!(checked.code, Some(1));
    let found = checked.finding("FAULT", "there is no place to sign in");
    let (_, cure) = found.unwrap();
    assert!(cure.contains("repeat the command with --key"), "{cure}");
}

/// It would get a token that is for the other one.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_signs_in_at_a_server_that_claims_to_be_another_one() {
    let resource =
        |it: &str| json!({"/.well-known/oauth-protected-resource/mcp": {"body": {"resource": it}}});
    let issuer = json!({"/.well-known/oauth-authorization-server": {"body": {"issuer": "https://other.example"}}});
    // One is the beginning of every URL.
    let [other, start] = ["https://other.example/mcp", "http:"].map(resource);
    for change in [other, start, issuer] {
        let server = served(change).await;
        let checked = check(&format!("{}/mcp", server.url), &["--sign-in"]).await;
        checked.says("warn", "nobody has signed in, with a fault above");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_registered_already_signs_in() {
    let metadata =
        json!({"registration_endpoint": null, "client_id_metadata_document_supported": false});
    let server = json!({"/.well-known/oauth-authorization-server": {"body": metadata}});
    let options = ["--client-id", "client-2"];
    let checked = check_and_sign_in(&served(server).await, json!({}), &options).await;
    checked.is_right();
    checked.says("ok", "the token is refreshed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_called_by_its_name() {
    let server = served(json!({})).await;
    let url = format!("{}/mcp", server.url);
    let call = |input| ["--key", KEY, "--call", "Clock_Set", input];
    let checked = check(&url, &call(r#"{"to": "noon"}"#)).await;
    checked.says("ok", "`Clock_Set` answers");
    // A tool that may have effects is called only once.
    checked.says("ok", "half of 10 lists");
    let checked = check(&url, &call("noon")).await;
    let (_, cure) = checked.finding("FAULT", "call").unwrap();
    assert!(cure.contains("--call must be JSON"), "{cure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_that_agents_cannot_use_are_faults() {
    for row in [
        "http://tools.invalid/mcp | https to port 443 | such a URL",
        "https://tools.invalid:8443/mcp | https to port 443 | such a URL",
        "https://tools.invalid/prod/prod/mcp | the same segment twice | do not append",
        "https://tools.invalid/mcp | there is no answer | Compare the host",
    ] {
        let [url, text, cure] = row.split(" | ").collect::<Vec<_>>().try_into().unwrap();
        let checked = check(url, &[]).await;
        assert_eq!(checked.code, Some(1), "{url}");
        let (_, below) = checked.finding("FAULT", text).unwrap();
        assert!(below.contains(cure), "{below}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_certificate_is_called_by_its_name() {
    let key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = authority.self_signed(&key).unwrap();
    let pem = STANDARD.encode(root.der());
    let pem = format!("-----BEGIN CERTIFICATE-----\n{pem}\n-----END CERTIFICATE-----\n");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check-authority.pem");
    fs::write(&file, pem).unwrap();
    let issuer = Issuer::new(authority, key);

    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2019, 1, 1);
    params.not_after = date_time_ymd(2020, 1, 1);
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let der = PrivatePkcs8KeyDer::from(key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], der.into())
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("https://localhost:{port}/mcp");
    thread::spawn(move || {
        let mut connection = ServerConnection::new(Arc::new(config)).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        _ = connection.complete_io(&mut stream);
    });

    let mut command = command(&url, &[]);
    command.env("SSL_CERT_FILE", file);
    let checked = run(command, async |_| ()).await;
    let (fault, cure) = checked.finding("FAULT", "certificate").unwrap();
    assert!(fault.contains("expired"), "{fault}");
    assert!(cure.contains("Renew it"), "{cure}");
    assert_eq!(checked.code, Some(1));
}

fn own_server(auth: impl Into<Auth>) -> Server {
    let now = async |_: Value| Ok::<_, Failure>(json!({"now": "noon"}));
    let input = json!({"type": "object"});
    let tool = Tool::dynamic("Clock.Now@1.0.0", "The time.", input, json!({}), now);
    let server = Server::new(Toolkit::new([tool.read_only(true)]).unwrap());
    server.auth(auth).secrets(Secrets::fixed([("KEY", KEY)]))
}

#[tokio::test(flavor = "multi_thread")]
async fn this_projects_own_server_has_no_fault() {
    let open = own_server(Auth::none()).into_router().unwrap();
    let open = Served::start(open).await;
    check(&format!("{}/mcp", open.url), &[]).await.is_right();

    let closed = own_server(ApiKeys::with_ids(["KEY"])).into_router();
    let closed = Served::start(closed.unwrap()).await;
    let checked = check_with_key(&closed).await;
    assert_eq!(checked.code, Some(0), "{checked:#?}");
    checked.says("ok", "`Clock_Now` answers");
}

/// The person signs in at the server and at its provider, and the token reaches a tool.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_person_signs_in_at_this_projects_own_server() {
    let provider = OpenId::start();
    let server = Served::start_with(async |url: &str| {
        let sign_in = SignIn::openid(&provider.url, "toolbox", "SECRET").allow("user:alice");
        let server = own_server(Auth::from(sign_in).scope("mail.read")).public_url(url);
        let secrets = [
            ("SECRET", "toolbox-secret"),
            ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
        ];
        let server = server
            .oauth(OAuth::with([]))
            .secrets(Secrets::fixed(secrets));
        server.into_router().unwrap()
    });
    let server = server.await;
    let callback = format!("{}/authorization/openid/callback", server.url);
    provider.allow_redirect(&callback).await;
    let browse = async |page: Url| {
        let page = Browser::of("alice").follow(page.as_str(), Act::Allow).await;
        reqwest::get(&page.headers["location"]).await.unwrap();
    };
    let url = format!("{}/mcp", server.url);
    let checked = run(command(&url, &["--sign-in"]), browse).await;
    checked.is_right();
    checked.says("ok", "a person can sign in, and the token is refreshed");
    checked.says("ok", "`Clock_Now` answers");
}

/// It serves events of API Gateway with the published handler of awslabs.
const AWSLABS: &str = r#"
import http.server, sys
from awslabs.mcp_lambda_handler import MCPLambdaHandler
handler = MCPLambdaHandler("clock")
@handler.tool()
def now() -> str:
    "The time."
    return "noon"
class Gateway(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        event = {"httpMethod": self.command, "path": self.path, "headers": dict(self.headers), "body": body}
        response = handler.handle_request(event, None)
        self.send_response(response["statusCode"])
        for header in response["headers"].items():
            self.send_header(*header)
        self.send_header("content-length", len(response["body"]))
        self.end_headers()
        self.wfile.write(response["body"].encode())
    do_OPTIONS = do_POST
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Gateway).serve_forever()
"#;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs awslabs' handler of MCP; run tests/all"]
async fn a_server_of_awslabs_has_no_fault() {
    let address = free_address();
    let mut command = Command::new(installed("python"));
    let command = command.args(["-c", AWSLABS, &address.port().to_string()]);
    let _server = Running::listening(command, address, 30).await;
    let url = format!("http://{address}/mcp");
    let checked = check(&url, &[]).await;
    let found = ["FAULT", "warn"].map(|it| checked.count(it));
    assert_eq!((checked.code, found), (Some(0), [0, 3]), "{checked:#?}");
    checked.says("warn", "only programs on this machine");
    // Its responses have no header of CORS.
    checked.says("warn", "cannot use the server (CORS)");
    // Its decorator `tool` writes no annotations.
    checked.says("warn", "none only reads and needs no input");
    let called = check(&url, &["--call", "now", "{}"]).await;
    called.says("ok", "`now` answers");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs FastMCP; run tests/all"]
async fn a_server_of_fastmcp_has_no_fault() {
    let address = free_address();
    let program = format!(
        "from fastmcp import FastMCP\n\
         server = FastMCP('clock')\n\
         @server.tool(annotations={{'readOnlyHint': True}})\n\
         def now() -> str:\n    \"The time.\"\n    return 'noon'\n\
         server.run(transport='http', port={}, show_banner=False)",
        address.port()
    );
    let mut command = Command::new(installed("python"));
    let _server = Running::listening(command.args(["-c", &program]), address, 30).await;
    let checked = check(&format!("http://{address}/mcp"), &[]).await;
    assert_eq!(checked.code, Some(0), "{checked:#?}");
    checked.says("ok", "`now` answers");
}
