//! The library's own means of testing tools.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use lambda_tools::{ApiKeys, Context, Failure, Server, Tool, Toolkit, secrets::Secrets, testing};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use test_support::{assert_program, marks::Scratch};

use crate::support::idle;

/// Returns what the call brought.
#[derive(Deserialize, JsonSchema)]
struct Show {
    /// The name of an article.
    article: String,
}

async fn show(input: Show, cx: Context) -> Result<Value, Failure> {
    if input.article == "none" {
        return Err(Failure::new("There is no such article").retry());
    }
    let now = cx.now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    Ok(json!({
        "article": input.article,
        "user": cx.user_id(),
        "key": cx.secret("SHOP_KEY")?.expose(),
        "token": cx.token("shop")?.expose(),
        "call_id": cx.call_id(),
        "now": now,
    }))
}

fn shop() -> Server {
    let tool = Tool::new("Shop.Show@1.0.0", show).user_id();
    let tool = tool.secret("SHOP_KEY").authorization("shop", ["read"]);
    Server::new(Toolkit::new([tool]).unwrap())
        .auth(ApiKeys::with_ids(["KEY"]))
        .secrets(Secrets::fixed([("SHOP_KEY", "value-of-the-key")]))
}

/// Its own secret comes before that of the server. The time is always the same.
#[tokio::test]
async fn a_call_brings_what_its_tool_needs() {
    for (own, key) in [(None, "value-of-the-key"), (Some("k"), "k")] {
        let call = testing::call(shop(), "Shop.Show", json!({"article": "tea"}));
        let mut call = call.user_id("user_1").token("shop", "token").call_id("c-1");
        if let Some(own) = own {
            call = call.secret("SHOP_KEY", own);
        }
        let expected = json!({
            "article": "tea", "user": "user_1", "key": key, "token": "token",
            "call_id": "c-1", "now": 1_696_507_200,
        });
        assert_eq!(call.await.value(), expected);
    }
}

#[tokio::test]
async fn a_failure_is_the_tools_own() {
    let call = testing::call(shop(), "Shop.Show", json!({"article": "none"}));
    let call = call.user_id("u").token("shop", "t").secret("SHOP_KEY", "k");
    let failure = call.await.failure();
    assert_eq!(failure.message(), "There is no such article");
    assert!(failure.can_retry());
}

#[tokio::test]
#[should_panic(expected = "Is required")]
async fn a_value_that_is_missing_says_why() {
    let _ = testing::call(shop(), "Shop.Show", json!({})).await.value();
}

/// Also a tool that lists say is for the background alone.
#[cfg(feature = "tasks")]
#[tokio::test]
async fn a_call_runs_in_place() {
    let tool = idle("Stage.Task@1.0.0", "Is slow.").requires_task();
    let call = testing::call(Toolkit::new([tool]).unwrap(), "Stage.Task", json!({}));
    assert_eq!(call.await.value(), Value::Null);
}

/// Returns an event with a call by itself.
fn calling(tool: &str) -> String {
    json!({"tool_id": tool, "input": {}}).to_string()
}

/// Returns a server with a tool that counts its calls, from 0, and one that needs a secret.
fn counting() -> Server {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = move |_: Value| {
        let number = calls.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, Failure>(json!(number)) }
    };
    let object = json!({"type": "object"});
    let tools = [
        Tool::dynamic("Count.Calls@1.0.0", "Counts.", object, json!({}), count),
        idle("Count.Key@1.0.0", "Has a key.").secret("REPLAYED_KEY"),
    ];
    Server::new(Toolkit::new(tools).unwrap())
}

/// Creates a folder with these files.
fn folder(name: &str, files: &[(&str, String)]) -> Scratch {
    let folder = Scratch::new(&format!("replay-{name}"));
    fs::create_dir_all(&folder.0).unwrap();
    for (name, text) in files {
        let file = folder.0.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    folder
}

/// Returns what a replay says if it fails.
async fn replayed(folder: &Scratch) -> Result<(), String> {
    let replay = tokio::spawn(testing::replay(folder.0.clone(), counting()));
    replay
        .await
        .map_err(|error| *error.into_panic().downcast().unwrap())
}

/// Returns the response to a call that has this value.
fn valued(value: usize) -> String {
    let id = "00000000-0000-4000-8000-000000000000";
    let body = json!({"call_id": id, "success": true, "duration": 0, "value": value});
    json!({"status": 200, "body": body}).to_string()
}

#[tokio::test]
async fn events_are_replayed_in_the_order_of_their_names() {
    let mut files = Vec::new();
    for (place, name) in ["1", "10", "2", "a", "b/1"].into_iter().enumerate() {
        files.push((format!("{name}.json"), calling("Count.Calls")));
        files.push((format!("{name}.expected.json"), valued(place)));
    }
    // Neither an event nor a response.
    files.push(("notes.txt".into(), "text".into()));
    files.reverse();
    let files = files.iter().map(|(name, it)| (&**name, it.clone()));
    let files: Vec<_> = files.collect();
    assert_eq!(replayed(&folder("order", &files)).await, Ok(()));
}

#[tokio::test]
async fn a_folder_that_shows_nothing_fails() {
    let call = || ("a.json", calling("Count.Calls"));
    let one_differs = [
        call(),
        ("a.expected.json", valued(0)),
        ("b.json", calling("Count.Calls")),
        ("b.expected.json", valued(0)),
    ];
    for (files, says) in [
        (&[][..], "there are no events below"),
        (&[("notes.txt", String::new())], "there are no events below"),
        (&[("a.client-context.json", "{}".into())], "but no event"),
        (&[call()], "a.expected.json is missing"),
        (&[call(), ("a.expected.json", "{".into())], "EOF"),
        (&one_differs, "1 of 2 events"),
    ] {
        let report = replayed(&folder("nothing", files)).await.unwrap_err();
        assert!(report.contains(says), "{report}");
    }
    let missing = Scratch(PathBuf::from("/nowhere/events"));
    let report = replayed(&missing).await.unwrap_err();
    assert!(report.contains("cannot read"), "{report}");
}

#[tokio::test]
#[ignore = "a program that tests start"]
async fn replay_program_of_tests() {
    assert_program();
    let folder = std::env::var_os("REPLAYED").unwrap();
    testing::replay(PathBuf::from(folder), counting()).await;
}

/// In a process of its own, because the environment belongs to all tests of this one.
#[test]
fn a_replay_reads_one_variable_of_the_environment() {
    let events = [
        ("a.json", calling("Count.Calls")),
        ("b.json", calling("Count.Key")),
    ];
    let folder = folder("environment", &events);
    let replay = |update: Option<&str>| {
        let mut program = test_support::program("testing::replay_program_of_tests");
        program.env("REPLAYED", &folder.0);
        program.env_remove("UPDATE_EXPECTED");
        program.envs(update.map(|it| ("UPDATE_EXPECTED", it)));
        // None of these is for a replay.
        program.envs([("TOOLS_AUTH", "api-key"), ("REPLAYED_KEY", "value")]);
        program.output().unwrap().status.success()
    };
    let expected = |name: &str| fs::read_to_string(folder.0.join(format!("{name}.expected.json")));
    for update in [None, Some("0"), Some(""), Some("yes")] {
        assert!(!replay(update), "{update:?}");
        assert!(expected("a").is_err(), "{update:?}");
    }
    assert!(replay(Some("1")));
    let of = |name: &str| -> Value { serde_json::from_str(&expected(name).unwrap()).unwrap() };
    assert_eq!(of("a")["body"]["value"], 0);
    let missing = &of("b")["body"]["missing_requirements"];
    assert_eq!(missing["secrets"][0]["id"], "REPLAYED_KEY", "{:#}", of("b"));
    // What was written is what the next replay expects.
    assert!(replay(None));
}

/// Events of tools that call an API, which a document describes.
#[cfg(feature = "from-openapi")]
mod apis {
    use std::collections::BTreeMap;

    use axum::{Router, extract::Request, response::Response};
    use lambda_tools::{
        from_openapi::{OpenApi, OpenApiOptions},
        serve,
    };
    use test_support::{Running, Served, answer, call_at};

    use super::*;

    /// Serves the tool of an API of notes.
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "a program that tests start"]
    async fn notes_program_of_tests() {
        assert_program();
        let url = std::env::var("NOTES_URL").unwrap();
        let id =
            json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}});
        let note = json!({"description": "A note.", "content": {"application/json": {}}});
        let document = json!({
            "openapi": "3.0.3", "info": {"title": "Notes", "version": "1"}, "servers": [{"url": url}],
            "components": {"securitySchemes": {"Key": {"type": "apiKey", "name": "key", "in": "header"}}},
            "paths": {"/notes/{id}": {"get": {
                "operationId": "read", "summary": "Notes.", "security": [{"Key": []}],
                "parameters": [id], "responses": {"200": note},
            }}},
        });
        let options = OpenApiOptions {
            secrets: [("Key".to_owned(), "NOTES_KEY".to_owned())].into(),
            allow_private: true,
            ..OpenApiOptions::all()
        };
        let tools = OpenApi::new(document, options).unwrap().tools();
        serve(Toolkit::new(tools.unwrap()).unwrap()).await.unwrap();
    }

    async fn respond(request: Request) -> Response {
        const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
        match request.uri().path() {
            "/v1/notes/1" => answer(200, &[("content-type", "text/plain")], "[1,2]"),
            "/v1/notes/echo" => {
                let key = request.headers()["key"].to_str().unwrap();
                answer(200, JSON, json!({"key": key}).to_string())
            }
            // A failure quotes it.
            _ => answer(404, JSON, "{\n  \"message\": \"no such note\"\n}"),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_responses_of_an_api_are_recorded_with_their_status_and_without_secrets() {
        let api = Served::start(Router::new().fallback(respond)).await;
        let folder = folder("apis", &[]);
        let mut program = test_support::program("testing::apis::notes_program_of_tests");
        program.env("RECORD_EVENTS", &folder.0);
        program.env("NOTES_KEY", "marked-key-of-notes");
        program.env("NOTES_URL", format!("{}/v1", api.url));
        let (running, url) = Running::serving(&mut program);
        // One calls nothing.
        let inputs = ["1", "2", "echo"].map(|id| json!({"id": id}));
        for input in inputs.into_iter().chain([json!({})]) {
            call_at(&url, &json!({"tool_id": "Notes.Read", "input": input})).await;
        }
        drop(running);
        let mut recorded = BTreeMap::new();
        for entry in fs::read_dir(&folder.0).unwrap() {
            let file = entry.unwrap().path();
            let text = fs::read_to_string(&file).unwrap();
            assert!(!text.contains("marked"), "{}: {text}", file.display());
            if file.to_str().unwrap().ends_with(".responses.json") {
                let all: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
                assert_eq!(all.len(), 1, "{text}");
                recorded.extend(all);
            }
        }
        let json = "application/json";
        let expected = json!({
            "GET /notes/1": {"status": 200, "content_type": "text/plain", "body": [1, 2]},
            "GET /notes/2": {"status": 404, "content_type": json,
                             "body": "{\n  \"message\": \"no such note\"\n}"},
            "GET /notes/echo": {"status": 200, "content_type": json, "body": {"key": "[secret]"}},
        });
        assert_eq!(json!(recorded), expected);
    }
}
