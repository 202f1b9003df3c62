//! The explorer: its page, its data, and who gets them.

use axum::{Router, body::Body, body::to_bytes, routing::get};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, Request};
use lambda_tools::{ApiKeys, Failure, Server, Tool, Toolkit, secrets::Secrets};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tower::ServiceExt;

use crate::support::server;

/// Adds two numbers.
#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first.
    a: f64,
    /// The second.
    b: f64,
}

async fn add(input: Add) -> Result<f64, Failure> {
    Ok(input.a + input.b)
}

fn tools() -> Toolkit {
    let tools = [
        Tool::new("Calculator.Add@1.0.0", add),
        Tool::new("Calculator.Add@2.0.0", add)
            .title("Add numbers")
            .read_only(true)
            .idempotent(),
        Tool::new("Bank.Transfer@1.0.0", add)
            .secret("BANK_KEY")
            .user_id()
            .scope("transfer")
            .destructive(true)
            .timeout(std::time::Duration::from_millis(1500))
            .run_at_most_once(),
    ];
    Toolkit::new(tools).unwrap()
}

/// Without a socket.
struct Page {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Page {
    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("(absent)", |value| value.to_str().unwrap())
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

async fn send(router: &Router, method: &str, path: &str, key: Option<&str>) -> Page {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    let request = request.body(Body::empty()).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    Page {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

async fn fetch(router: &Router, path: &str) -> Page {
    send(router, "GET", path, None).await
}

fn router_of(server: Server) -> Router {
    server.into_router().unwrap()
}

const KEY: &str = "the-key-of-a-partner";

fn explorer() -> Server {
    server(tools()).explorer(true)
}

fn protected() -> Server {
    let secrets = Secrets::fixed([("PARTNER", KEY)]);
    explorer()
        .auth(ApiKeys::with_ids(["PARTNER"]))
        .secrets(secrets)
}

/// Returns the contents of the elements with this name that have no attributes.
fn contents<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let parts = html.split(&*open).skip(1);
    parts
        .map(|part| part.split(&*close).next().unwrap())
        .collect()
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

#[tokio::test]
async fn the_page_is_off_unless_it_is_turned_on() {
    for (server, status) in [
        (server(tools()), 404),
        (explorer(), 200),
        (explorer().explorer(false), 404),
    ] {
        let router = router_of(server);
        for path in ["/", "/explorer.json"] {
            assert_eq!(fetch(&router, path).await.status, status, "{path}");
        }
        assert_eq!(fetch(&router, "/nothing").await.status, 404);
        assert_eq!(fetch(&router, "/tools").await.status, 200);
    }
}

#[tokio::test]
async fn the_policy_allows_the_style_and_the_script_of_the_page_and_nothing_else() {
    let page = fetch(&router_of(explorer()), "/").await;
    let (styles, scripts) = (
        contents(&page.body, "style"),
        contents(&page.body, "script"),
    );
    assert_eq!((styles.len(), scripts.len()), (1, 1));
    assert!(styles[0].len() > 1000 && scripts[0].len() > 10_000);
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        hash(scripts[0]),
        hash(styles[0])
    );
    assert_eq!(page.header("content-security-policy"), policy);
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(page.header(name), value, "{name}");
    }
    // The policy would block both, so neither may occur.
    let markup = page.body.replace(scripts[0], "").replace(styles[0], "");
    assert!(
        !markup.contains(" style=") && !markup.contains(" on"),
        "{markup}"
    );
}

#[tokio::test]
async fn without_credentials_the_same_page_asks_for_them_and_tells_nothing() {
    let info = lambda_tools::ServerInfo::new("A hidden title", "7.7.7");
    let router = router_of(protected().info(info));
    let with_key = send(&router, "GET", "/", Some(KEY)).await;
    assert_eq!(with_key.status, 200);
    for key in [None, Some("another-key")] {
        let page = send(&router, "GET", "/", key).await;
        assert_eq!(page.status, 401);
        assert!(page.header("www-authenticate").starts_with("Bearer"));
        assert_eq!(page.body, with_key.body);
        assert_eq!(
            page.header("content-security-policy"),
            with_key.header("content-security-policy")
        );
        let data = send(&router, "GET", "/explorer.json", key).await;
        assert_eq!(data.status, 401);
        assert!(data.header("www-authenticate").starts_with("Bearer"));
        assert!(!data.body.contains("Calculator"), "{}", data.body);
    }
    for hidden in ["A hidden title", "7.7.7", "Calculator", "PARTNER"] {
        assert!(!with_key.body.contains(hidden), "{hidden}");
    }
    let data = send(&router, "GET", "/explorer.json", Some(KEY)).await;
    assert_eq!(data.header("cache-control"), "no-store");
    let data = data.json();
    assert_eq!(data["server"]["title"], "A hidden title");
    assert_eq!(data["requires_credentials"], true);
}

#[tokio::test]
async fn the_data_has_every_version_with_its_properties() {
    let data = fetch(&router_of(explorer()), "/explorer.json").await.json();
    assert_eq!(data["protocols"], json!(["Oxp", "Mcp", "OpenTool"]));
    assert_eq!(data["server"]["version"], "1.0.0");
    assert_eq!(data["requires_credentials"], false);
    assert_eq!(data["limits"]["request_bytes"], 1 << 20);
    let listed = fetch(&router_of(explorer()), "/tools").await.json();
    let tools = data["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 3);
    for (tool, definition) in tools.iter().zip(listed["items"].as_array().unwrap()) {
        for name in [
            "id",
            "description",
            "version",
            "input_schema",
            "output_schema",
        ] {
            assert_eq!(tool[name], definition[name], "{name}");
        }
    }
    let [old, new, transfer] = &tools[..] else {
        panic!("{data}");
    };
    let hints = json!({"read_only": true, "destructive": null, "open_world": null});
    let requirements = json!({"secrets": [{"id": "BANK_KEY"}], "user_id": true});
    for (tool, name, value) in [
        (old, "is_newest", json!(false)),
        (old, "repeats", json!("recorded")),
        (old, "timeout_ms", json!(28_000)),
        (new, "is_newest", json!(true)),
        (new, "title", json!("Add numbers")),
        (new, "name", json!("Calculator_Add")),
        (new, "toolkit", json!("Calculator")),
        (new, "hints", hints),
        (new, "repeats", json!("idempotent")),
        (transfer, "repeats", json!("at_most_once")),
        (transfer, "timeout_ms", json!(1500)),
        (transfer, "scopes", json!(["transfer"])),
        (transfer, "requirements", requirements),
    ] {
        assert_eq!(tool[name], value, "{name}");
    }
}

#[tokio::test]
async fn only_served_protocols_are_offered() {
    let server = explorer().protocols([lambda_tools::Protocol::Mcp]);
    let data = fetch(&router_of(server), "/explorer.json").await.json();
    assert_eq!(data["protocols"], json!(["Mcp"]));
}

#[cfg(feature = "jwt")]
#[tokio::test]
async fn a_list_of_callable_tools_has_no_others() {
    use jsonwebtoken::{EncodingKey, Header, encode};
    use lambda_tools::Jwt;

    let secret = "a-secret-that-signs-tokens-0123456789";
    let count = async |scope: &str, is_filtered: bool| {
        let claims = json!({"sub": "u", "exp": 4_000_000_000_u64, "scope": scope});
        let signing = EncodingKey::from_secret(secret.as_bytes());
        let token = encode(&Header::default(), &claims, &signing).unwrap();
        let mut server = explorer()
            .auth(Jwt::with_secret_ids(["SIGNER"]))
            .secrets(Secrets::fixed([("SIGNER", secret)]));
        if is_filtered {
            server = server.list_only_callable_tools();
        }
        let page = send(&router_of(server), "GET", "/explorer.json", Some(&token)).await;
        let data = page.json();
        let tools = data["tools"].as_array().unwrap_or_else(|| panic!("{data}"));
        tools.len()
    };
    assert_eq!(count("", true).await, 2);
    assert_eq!(count("transfer", true).await, 3);
    assert_eq!(count("", false).await, 3);
}

#[tokio::test]
async fn a_head_has_no_body_and_other_methods_are_rejected() {
    let router = router_of(explorer());
    for path in ["/", "/explorer.json"] {
        let page = send(&router, "HEAD", path, None).await;
        assert_eq!((page.status, &*page.body), (200, ""), "{path}");
        let page = send(&router, "POST", path, None).await;
        assert_eq!(
            (page.status, page.header("allow")),
            (405, "GET,HEAD"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_page_is_also_below_the_base_path_with_and_without_a_slash() {
    let router = router_of(explorer().base_path("/agents/v1"));
    for path in ["/", "/agents/v1", "/agents/v1/"] {
        let page = fetch(&router, path).await;
        assert_eq!(page.status, 200, "{path}");
        assert!(page.body.starts_with("<!DOCTYPE html>"), "{path}");
    }
    assert_eq!(fetch(&router, "/agents/v1/explorer.json").await.status, 200);
    for path in ["/agents", "/agents/v12", "/agents/v1/nothing"] {
        assert_eq!(fetch(&router, path).await.status, 404, "{path}");
    }
    let router = router_of(server(tools()).base_path("/agents"));
    for path in ["/agents", "/agents/"] {
        assert_eq!(fetch(&router, path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn the_programs_own_routes_come_first() {
    let router = router_of(
        explorer().map_router(|router| router.route("/", get(async || "the program's own"))),
    );
    assert_eq!(fetch(&router, "/").await.body, "the program's own");
    assert_eq!(fetch(&router, "/explorer.json").await.status, 200);
}

/// At most 30 KB compressed.
#[tokio::test]
#[ignore = "needs gzip; run tests/all"]
async fn the_page_is_small() {
    use std::{
        io::Write,
        process::{Command, Stdio},
    };

    let page = fetch(&router_of(explorer()), "/").await;
    let mut gzip = Command::new("gzip")
        .args(["-9", "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = gzip.stdin.take().unwrap();
    let writing = std::thread::spawn(move || stdin.write_all(page.body.as_bytes()).unwrap());
    let size = gzip.wait_with_output().unwrap().stdout.len();
    writing.join().unwrap();
    assert!((1000..30_000).contains(&size), "{size}");
}
