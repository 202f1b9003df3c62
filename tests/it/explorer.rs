//! The explorer: its page, its data, and who gets them.

use axum::routing::get;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use lambda_tools::{ApiKeys, Protocol, Server, ServerInfo, Toolkit, secrets::Secrets};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::support::{self, Page, idle, server};

fn tools() -> Toolkit {
    let tools = [
        idle("Calculator.Add@1.0.0", "Adds."),
        idle("Calculator.Add@2.0.0", "Adds.")
            .title("Add numbers")
            .read_only(true)
            .idempotent(),
        idle("Bank.Transfer@1.0.0", "Transfers.")
            .secret("BANK_KEY")
            .user_id()
            .scope("transfer")
            .destructive(true)
            .timeout(std::time::Duration::from_millis(1500))
            .run_at_most_once(),
    ];
    Toolkit::new(tools).unwrap()
}

async fn send(server: Server, method: &str, path: &str, key: Option<&str>) -> Page {
    let key = key.map(|key| format!("Bearer {key}"));
    let headers = key.iter().map(|key| ("authorization", &**key));
    let headers: Vec<_> = headers.collect();
    support::send(&server.into_router().unwrap(), method, path, &headers, "").await
}

async fn fetch(server: Server, path: &str) -> Page {
    send(server, "GET", path, None).await
}

const KEY: &str = "the-key-of-a-partner";

fn explorer() -> Server {
    server(tools()).explorer(true)
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
async fn the_policy_allows_the_style_and_the_script_of_the_page_and_nothing_else() {
    let page = fetch(explorer(), "/").await;
    let styles = contents(&page.body, "style");
    let scripts = contents(&page.body, "script");
    assert_eq!((styles.len(), scripts.len()), (1, 1));
    assert!(styles[0].len() > 1000 && scripts[0].len() > 10_000);
    // Compressed, it is less than a third of that.
    assert!(page.body.len() < 100_000, "{}", page.body.len());
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
    let has_inline = markup.contains(" style=") || markup.contains(" on");
    assert!(!has_inline, "{markup}");
}

#[tokio::test]
async fn without_credentials_the_same_page_asks_for_them_and_tells_nothing() {
    let protected = || {
        explorer()
            .auth(ApiKeys::with_ids(["PARTNER"]))
            .secrets(Secrets::fixed([("PARTNER", KEY)]))
            .info(ServerInfo::new("A hidden title", "7.7.7"))
    };
    let with_key = send(protected(), "GET", "/", Some(KEY)).await;
    assert_eq!(with_key.status, 200);
    for hidden in ["A hidden title", "7.7.7", "Calculator", "PARTNER"] {
        assert!(!with_key.body.contains(hidden), "{hidden}");
    }
    let policy = "content-security-policy";
    for key in [None, Some("another-key")] {
        let page = send(protected(), "GET", "/", key).await;
        assert_eq!(page.body, with_key.body);
        assert_eq!(page.header(policy), with_key.header(policy));
        let data = send(protected(), "GET", "/explorer.json", key).await;
        assert!(!data.body.contains("Calculator"), "{}", data.body);
        for page in [page, data] {
            assert_eq!(page.status, 401);
            assert!(page.header("www-authenticate").starts_with("Bearer"));
        }
    }
    let data = send(protected(), "GET", "/explorer.json", Some(KEY)).await;
    assert_eq!(data.header("cache-control"), "no-store");
    let data = data.json();
    assert_eq!(data["server"]["title"], "A hidden title");
    assert_eq!(data["requires_credentials"], true);
}

#[tokio::test]
async fn the_data_has_every_version_with_its_properties() {
    let server = explorer().protocols([Protocol::Mcp]);
    let data = fetch(server, "/explorer.json").await.json();
    assert_eq!(data["protocols"], json!(["Mcp"]));
    let data = fetch(explorer(), "/explorer.json").await.json();
    assert_eq!(data["protocols"], json!(["Oxp", "Mcp", "OpenTool"]));
    assert_eq!(data["server"]["version"], "1.0.0");
    assert_eq!(data["requires_credentials"], false);
    assert_eq!(data["limits"]["request_bytes"], 1 << 20);
    let listed = fetch(explorer(), "/tools").await.json();
    let tools = data["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 3);
    for (tool, definition) in tools.iter().zip(listed["items"].as_array().unwrap()) {
        for name in "id description version input_schema output_schema".split(' ') {
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
async fn the_page_and_its_data_are_on_their_paths_if_they_are_turned_on() {
    let agents = || explorer().base_path("/agents/v1");
    let without = server(tools()).base_path("/agents");
    // The program's own routes come first.
    let own = explorer().map_router(|router| router.route("/", get(async || "own")));
    for (server, method, path, status, start) in vec![
        (without, "GET", "/agents/", 404, "{"),
        (own, "GET", "/", 200, "own"),
        (explorer().explorer(false), "GET", "/", 404, "{"),
        (explorer(), "HEAD", "/", 200, ""),
        (explorer(), "HEAD", "/explorer.json", 200, ""),
        (explorer(), "POST", "/", 405, ""),
        (agents(), "GET", "/", 200, "<!DOCTYPE html>"),
        (agents(), "GET", "/agents/v1", 200, "<!DOCTYPE html>"),
        (agents(), "GET", "/agents/v1/explorer.json", 200, "{"),
        (agents(), "GET", "/agents", 404, "{"),
        (agents(), "GET", "/agents/v12", 404, "{"),
    ] {
        let page = send(server, method, path, None).await;
        assert_eq!(page.status, status, "{method} {path}");
        assert!(page.body.starts_with(start), "{method} {path}");
        assert!(method != "HEAD" || page.body.is_empty(), "{path}");
        let allow = if status == 405 { "GET,HEAD" } else { "" };
        assert_eq!(page.header("allow"), allow, "{path}");
    }
}
