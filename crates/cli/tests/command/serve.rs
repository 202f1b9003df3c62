//! `lambda-tools serve`: what it derives of a document, and what it says if it cannot.

use axum::{Router, http::HeaderMap, routing::get};
use serde_json::{Value, json};
use test_support::{Running, Served};

use super::{Folder, PETS};

/// A document as `FastAPI` writes it: without servers, with the names of functions.
const FASTAPI: &str = include_str!("fastapi.json");

/// The service, which accepts one secret.
pub(super) async fn fastapi() -> Served {
    let order = async |headers: HeaderMap| {
        assert_eq!(headers["authorization"], "Bearer token-of-orders");
        ([("content-type", "application/json")], r#"{"item": "tea"}"#)
    };
    let document = get(async || FASTAPI);
    let router = Router::new().route("/openapi.json", document);
    Served::start(router.route("/orders/7", get(order))).await
}

/// Starts the command; returns it, and the server's URL.
fn serving(folder: &Folder, words: &str, secrets: &[(&str, &str)]) -> (Running, String) {
    let words: Vec<_> = words.split_whitespace().collect();
    let mut command = folder.command(&[&["serve"], &words[..]].concat());
    Running::serving(command.envs(secrets.iter().copied()))
}

async fn post(url: &str, body: Value) -> Value {
    let request = reqwest::Client::new().post(url).json(&body);
    let request = request.header("accept", "application/json, text/event-stream");
    request.send().await.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_of_fastapi_is_served_at_once() {
    let api = fastapi().await;
    let folder = Folder::new("fastapi");
    let document = format!("{}/openapi.json", api.url);
    let secret = ("ORDERS_HTTPBEARER", "token-of-orders");
    let words = format!("{document} --include-tag ORDERS");
    let (_running, url) = serving(&folder, &words, &[secret]);
    let order = json!({"item": "tea"});
    let call = json!({"tool_id": "Orders.ReadOrder", "input": {"order_id": 7}});
    let answer = post(&format!("{url}/tools/call"), call).await;
    assert_eq!(answer["value"], order, "{answer}");
    let message = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mcp = format!("{url}/mcp");
    let call = json!({"name": "Orders_ReadOrder", "arguments": {"order_id": 7}});
    let answer = post(&mcp, message("tools/call", call)).await;
    let result = &answer["result"]["structuredContent"]["result"];
    assert_eq!(*result, order, "{answer}");
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
    let answer = &post(&mcp, message("initialize", hello)).await["result"];
    assert_eq!(answer["instructions"], "Orders of customers.", "{answer}");
    assert_eq!(answer["serverInfo"]["version"], "0.2.0", "{answer}");
    let page = reqwest::get(&url).await.unwrap().text().await.unwrap();
    let tools = reqwest::get(format!("{url}/opentool/load")).await.unwrap();
    assert!(page.contains("<html") && tools.status().is_success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_missing_is_named_at_the_start() {
    let folder = Folder::new("missing");
    let (running, _) = serving(&folder, "pets.yaml", &[]);
    let line = running.line_with("a secret is missing", 5);
    assert!(line.contains("PETS_KEY"), "{line}");
}

/// Returns the last line that a command has printed, after `lambda-tools serve`.
fn next_command(printed: &str) -> &str {
    let last = printed.lines().last().unwrap();
    last.strip_prefix("  lambda-tools serve ").unwrap()
}

#[test]
fn the_printed_command_serves() {
    let folder = Folder::new("next");
    folder.write("orders.json", FASTAPI);
    let paths = PETS.replace("https://pets.example/v1", "/v1/");
    folder.write("paths.yaml", &paths);
    let path = |number: u8| format!("  /x{number}:\n    get: {{tags: [Many], responses: {{}}}}\n");
    let many = PETS.to_owned() + &(0..41).map(path).collect::<String>();
    folder.write("more.yaml", &many);
    let head = PETS.split("  /pets").next().unwrap();
    folder.write("only.yaml", &many.replace(PETS, head));
    let few = many.replace("tags: [Many]", "tags: [Few]");
    folder.write("many.yaml", &few.replacen("[Few]", "[Many]", 21));
    let private = "pets.yaml --base-url http://10.0.0.1/v1";
    for (words, code, said) in [
        ("orders.json", 1, "the document names no server: "),
        ("paths.yaml", 1, "not an absolute http URL, but \"/v1/\": "),
        (private, 1, "does not use TLS"),
        ("many.yaml", 0, "    20  Few\n"),
        // These are too many for one list: the command chooses another tag, or a search.
        ("more.yaml", 0, "    41  Many\n"),
        ("only.yaml", 0, "    41  Many\n"),
        ("many.yaml --all", 1, "44 tools are more than the 40 "),
    ] {
        let ended = folder.types(&format!("serve {words}"));
        let printed = ended.stdout + &ended.stderr;
        assert_eq!(ended.code, Some(code), "{printed}");
        assert!(printed.contains(said), "{printed}");
        let words: Vec<_> = next_command(&printed).split(' ').collect();
        let mut command = folder.command(&[&["serve"], &words[..]].concat());
        Running::start(&mut command).line_with("Serving tools on", 20);
    }
}

#[test]
fn what_cannot_be_served_is_said() {
    let folder = Folder::new("refused");
    let is_named = "did you mean \"Pets\"? It has \"Old, unused\", \"Pets\"";
    let ended = folder.types("serve pets.yaml --include-tag Pet");
    ended.fails(is_named);
    let twice = "pets.yaml pets.yaml";
    refuses(&folder, twice, "--toolkit NAME -o NAME.json");
    let moved = "pets.yaml other.yaml --base-url https://pets.example/v2";
    refuses(&folder, moved, "--base-url is for one document");
}

/// Checks an error that the command finds in the tools, after it has said what they are.
fn refuses(folder: &Folder, words: &str, expected: &str) {
    let ended = folder.types(&format!("serve {words}"));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(expected), "{ended:?}");
}

/// The tools of several files, one of them a file of tools, whose API is on this machine.
#[tokio::test(flavor = "multi_thread")]
async fn several_documents_have_one_server() {
    let folder = Folder::new("several");
    let cats = PETS.replace("Pets API", "Cats");
    let cats = cats.replace("https://pets.example", "http://127.0.0.1:1");
    folder.write("cats.yaml", &cats);
    folder.run("pets.yaml --all -o tools.json").succeeds();
    let (_running, url) = serving(&folder, "cats.yaml tools.json", &[]);
    let tools = reqwest::get(format!("{url}/tools")).await.unwrap();
    let tools = tools.text().await.unwrap();
    let has_both = tools.contains("Cats.GetPet") && tools.contains("Pets.GetPet");
    assert!(has_both, "{tools}");
}

/// On Linux, 0.0.0.0 leads to this machine, but is not its address.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_document_of_another_machine_chooses_nothing_on_this_one() {
    let document = PETS.replace("https://pets.example", "http://127.0.0.1:1");
    let folder = Folder::new("other-machine");
    folder.run("pets.yaml --all -o tools.json").succeeds();
    let tools = folder.read("tools.json");
    let router = Router::new().route("/pets.yaml", get(async || document));
    let served = Served::start(router.route("/tools.json", get(async || tools))).await;
    let url = served.url.replace("127.0.0.1", "0.0.0.0");
    refuses(&folder, &format!("{url}/pets.yaml"), "does not use TLS");
    let tools = format!("{url}/tools.json");
    refuses(&folder, &tools, "download it, read it");
}
