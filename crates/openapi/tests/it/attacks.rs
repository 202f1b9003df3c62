//! Inputs, responses and documents that try to make a request leave the API.

use axum::response::Response;
use lambda_tools_core::Toolkit;
use lambda_tools_openapi::{ApiTools, OpenApi};
use serde_json::{Value, json};

use crate::recorder::{Recorded, Recorder, call, context};

fn document(server: &str) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Files API", "version": "1"},
        "servers": [{"url": server}],
        "paths": {"/v1/files/{file}/text.{format}": {"get": {
            "operationId": "read",
            "summary": "Reads a file",
            "parameters": [
                {"name": "file", "in": "path", "schema": {"type": "string"}},
                {"name": "format", "in": "path", "schema": {"type": "string"}},
                {"name": "q", "in": "query", "schema": {"type": "string"}},
                {"name": "x-trace", "in": "header", "schema": {"type": "string"}},
                {"name": "theme", "in": "cookie", "schema": {"type": "string"}},
            ],
            "responses": {"200": {"description": "OK"}},
        }}, "/{any}": {"delete": {
            "operationId": "drop",
            "summary": "Deletes something",
            "parameters": [{"name": "any", "in": "path", "schema": {"type": "string"}}],
            "responses": {"204": {"description": "OK"}},
        }}},
    })
}

fn tools(server: &str) -> ApiTools {
    let api = OpenApi::new(document(server)).unwrap().include_all();
    api.reduce().unwrap().tools
}

/// Values that lead elsewhere if a program puts them into a URL as they are.
const VALUES: [&str; 40] = [
    "..",
    ".",
    "../..",
    "../../admin",
    "..%2f..%2fadmin",
    "%2e%2e",
    "%2e%2e%2fadmin",
    ".%2e",
    "%252e%252e",
    "..;/admin",
    "..\\..\\admin",
    "\\\\evil.example\\share",
    "//evil.example",
    "/\\evil.example",
    "https://evil.example/",
    "http://169.254.169.254/latest/meta-data/",
    "@evil.example",
    ":80@evil.example/",
    "a@evil.example:443/",
    "#@evil.example/",
    "?host=evil.example",
    "a/b",
    "a%2Fb",
    "a\u{2215}b",
    "\u{ff0e}\u{ff0e}\u{ff0f}admin",
    "a\r\nHost: evil.example",
    "a\nX-Evil: 1",
    "a\rb",
    "a\0b",
    "a b",
    "\tadmin",
    " ",
    "",
    "x; Domain=evil.example",
    "x, y",
    "{file}",
    "{any}",
    "%",
    "%zz",
    "é/ü",
];

/// Returns true for a request of the operation, and not of another resource.
fn stays(request: &Recorded, host: &str) -> bool {
    let path = request.target.split('?').next().unwrap();
    let segments: Vec<_> = path.split('/').collect();
    let is_ours = match &*segments {
        ["", "base", "v1", "files", file, format] => {
            !file.is_empty() && format.starts_with("text.")
        }
        ["", "base", any] => !any.is_empty(),
        _ => false,
    };
    let is_dotted = segments.iter().any(|it| matches!(*it, "." | ".."));
    is_ours
        && !is_dotted
        && request.header("host") == Some(host)
        && request.header("x-evil").is_none()
}

#[tokio::test]
async fn no_input_leaves_the_api() {
    let recorder = Recorder::start().await;
    let host = recorder.url.trim_start_matches("http://").to_owned();
    let tools = tools("https://files.example");
    let cx = context(&tools);
    let base = format!("{}/base", recorder.url);
    let toolkit = Toolkit::new(tools.base_url(base).allow_private().tools().unwrap()).unwrap();
    let (read, drop) = (&toolkit.entries()[0], &toolkit.entries()[1]);
    let mut sent = 0;
    for value in VALUES {
        let inputs = [
            json!({"file": value, "format": "md"}),
            json!({"file": "a", "format": value}),
            json!({"file": "a", "format": "md", "q": value}),
            json!({"file": "a", "format": "md", "x-trace": value}),
            json!({"file": "a", "format": "md", "theme": value}),
        ];
        for input in inputs {
            let result = call(read, input.clone(), &cx).await;
            let requests = recorder.take();
            assert_eq!(
                requests.len(),
                usize::from(result.is_ok()),
                "{input}: {result:?}"
            );
            assert!(
                requests.iter().all(|it| stays(it, &host)),
                "{input}: {requests:?}"
            );
            sent += requests.len();
        }
        let _ = call(drop, json!({"any": value}), &cx).await;
        let requests = recorder.take();
        assert!(
            requests.iter().all(|it| stays(it, &host)),
            "{value:?}: {requests:?}"
        );
    }
    assert!(
        sent > 100,
        "most values are harmless where they are encoded: {sent}"
    );
}

#[tokio::test]
async fn no_redirect_leads_elsewhere() {
    let trap = Recorder::start().await;
    let places = [
        format!("{}/a", trap.url),
        trap.url.replace("127.0.0.1", "localhost"),
        format!("//{}/a", trap.url.trim_start_matches("http://")),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "https://evil.example/".to_owned(),
        "file:///etc/passwd".to_owned(),
    ];
    for place in places {
        for status in [301, 302, 303, 307, 308] {
            let place = place.clone();
            let api = Recorder::answering(move |_| {
                let response = Response::builder()
                    .status(status)
                    .header("location", &place);
                response.body("".into()).unwrap()
            });
            let api = api.await;
            let tools = tools("https://files.example");
            let cx = context(&tools);
            let toolkit =
                Toolkit::new(tools.base_url(&api.url).allow_private().tools().unwrap()).unwrap();
            let input = json!({"file": "a", "format": "md"});
            let failure = call(&toolkit.entries()[0], input, &cx).await.unwrap_err();
            assert!(failure.message().contains("redirects"), "{failure:?}");
            assert_eq!(api.take().len(), 1);
            assert!(trap.take().is_empty());
        }
    }
}

#[tokio::test]
async fn a_redirect_on_the_same_server_is_followed() {
    let api = Recorder::answering(|request| {
        let response = Response::builder();
        if request.target.starts_with("/new") {
            return response
                .header("content-type", "application/json")
                .body("7".into())
                .unwrap();
        }
        response
            .status(307)
            .header("location", "/new")
            .body("".into())
            .unwrap()
    });
    let api = api.await;
    let tools = tools("https://files.example");
    let cx = context(&tools);
    let toolkit = Toolkit::new(tools.base_url(&api.url).allow_private().tools().unwrap()).unwrap();
    let value = call(
        &toolkit.entries()[0],
        json!({"file": "a", "format": "md"}),
        &cx,
    )
    .await;
    assert_eq!(value.unwrap(), json!(7));
}

#[test]
fn no_document_leads_to_an_address_of_the_own_network() {
    for server in [
        "https://169.254.169.254",
        "https://169.254.169.254:443/latest",
        "https://2852039166",
        "https://0xa9fea9fe",
        "https://0xa9.0xfe.0xa9.0xfe",
        "https://0251.0376.0251.0376",
        "https://169.254.43518",
        "https://[::ffff:169.254.169.254]",
        "https://[::ffff:a9fe:a9fe]",
        "https://[64:ff9b::a9fe:a9fe]",
        "https://[fd00:ec2::254]",
        "https://169.254.170.2",
        "https://127.0.0.1",
        "https://127.1",
        "https://0",
        "https://[::1]",
        "https://[::]",
        "https://10.0.0.1",
        "https://192.168.0.1",
        "https://172.16.0.1",
        "https://100.64.0.1",
        "https://localhost",
        "https://LOCALHOST",
        "https://api.localhost",
        "https://１６９.２５４.１６９.２５４",
        "http://files.example",
    ] {
        let error = tools(server).tools().err().map(|it| it.to_string());
        assert!(
            error.is_some_and(|it| it.contains("allow_private")),
            "{server}"
        );
    }
    for server in [
        "https://user@files.example",
        "https://files.example?a=b",
        "https://files.example#a",
        "ftp://files.example",
    ] {
        let api = OpenApi::new(document(server)).unwrap().include_all();
        assert!(api.reduce().is_err(), "{server}");
    }
    assert!(tools("https://files.example").tools().is_ok());
    assert!(tools("https://1.1.1.1").tools().is_ok());
}
