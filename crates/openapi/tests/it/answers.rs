//! What responses are to a model, and which calls may be repeated.

use std::time::Duration;

use axum::response::Response;
use lambda_tools_core::{Context, Failure, Toolkit, testing};
use lambda_tools_openapi::{ApiTools, OpenApi};
use serde_json::{Value, json};

use crate::recorder::{Recorder, call, context};

fn tools() -> ApiTools {
    let document = json!({
        "openapi": "3.0.3",
        "info": {"title": "Notes API", "version": "1"},
        "servers": [{"url": "https://notes.example"}],
        "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
        "security": [{"key": []}],
        "paths": {"/notes": {
            "get": {
                "operationId": "list", "summary": "Lists notes",
                "parameters": [
                    {"name": "page", "in": "query", "schema": {"type": "integer"}},
                    {"name": "filter[tag]", "in": "query", "schema": {"type": "string"}},
                ],
                "responses": {"200": {"description": "OK", "content": {"application/json": {}}}},
            },
            "post": {
                "operationId": "add", "summary": "Adds a note",
                "requestBody": {"required": true, "content": {"application/json": {"schema": {
                    "type": "object", "required": ["data"], "properties": {"data": {
                        "type": "object", "required": ["text"], "properties": {
                            "text": {"type": "string", "description": "Its text."},
                            "due": {"type": "string", "nullable": true},
                            "id": {"type": "string", "readOnly": true},
                        }}},
                }}}},
                "responses": {"201": {"description": "OK", "content": {"application/json": {}}}},
            },
        }, "/notes/picture": {"get": {
            "operationId": "picture", "summary": "Draws the notes",
            "responses": {"200": {"description": "OK", "content": {"image/png": {}}}},
        }}, "/notes/import": {"post": {
            "operationId": "import", "summary": "Imports notes",
            "requestBody": {"required": true, "content": {"multipart/form-data": {"schema": {
                "type": "object", "required": ["file"], "properties": {
                    "file": {"type": "string", "format": "binary"}, "tags": {"type": "array", "items": {"type": "string"}},
                }}}}},
            "responses": {"204": {"description": "OK"}},
        }}},
    });
    OpenApi::new(document)
        .unwrap()
        .include_all()
        .secret("key", "NOTES_KEY")
        .reduce()
        .unwrap()
        .tools
}

/// Calls a tool of an API that answers with this status, these headers and this body.
async fn answered(
    tool: usize,
    input: Value,
    status: u16,
    headers: &'static [(&str, &str)],
    body: &str,
) -> (Result<Value, Failure>, Recorder) {
    let body = body.to_owned();
    let api = Recorder::answering(move |_| {
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        response.body(body.clone().into()).unwrap()
    })
    .await;
    let tools = tools();
    let cx = context(&tools);
    (called(tools, &api, tool, input, &cx).await, api)
}

async fn called(
    tools: ApiTools,
    api: &Recorder,
    tool: usize,
    input: Value,
    cx: &Context,
) -> Result<Value, Failure> {
    let toolkit = Toolkit::new(tools.base_url(&api.url).allow_private().tools().unwrap()).unwrap();
    call(&toolkit.entries()[tool], input, cx).await
}

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn json_is_a_value_text_a_text_and_nothing_null() {
    for (status, headers, body, value) in [
        (200, &[JSON][..], r#"{"a": [1]}"#, json!({"a": [1]})),
        (
            200,
            &[("content-type", "text/plain")],
            "hello",
            json!("hello"),
        ),
        (204, &[], "", Value::Null),
        (
            201,
            &[("content-type", "application/hal+json; charset=utf-8")],
            "3",
            json!(3),
        ),
    ] {
        let (result, _) = answered(0, json!({}), status, headers, body).await;
        assert_eq!(result.unwrap(), value);
    }
    let (result, _) = answered(0, json!({}), 200, &[JSON], "{").await;
    assert!(result.unwrap_err().message().contains("not JSON"));
    let (image, _) = answered(2, json!({}), 200, &[("content-type", "image/png")], "png").await;
    assert_eq!(
        image.unwrap(),
        json!({"media_type": "image/png", "data": "cG5n"})
    );
}

#[tokio::test]
async fn an_answer_is_cut_with_a_notice_and_names_the_next_page() {
    let items: Vec<_> = (0..5000)
        .map(|id| json!({"id": id, "text": "x".repeat(50)}))
        .collect();
    let (result, _) = answered(0, json!({}), 200, &[JSON], &json!(items).to_string()).await;
    let answer = result.unwrap();
    assert!(answer.to_string().len() < 66 * 1024);
    let shown = answer["items"].as_array().unwrap().len();
    assert_eq!(
        answer["_cut"],
        format!("the answer: {shown} of 5000 items shown; ask for less with page")
    );
    assert_eq!(answer["items"][shown - 1]["id"], shown - 1);

    let object = json!({"total": 5000, "items": items, "html": "y".repeat(200_000)});
    let (result, _) = answered(0, json!({}), 200, &[JSON], &object.to_string()).await;
    let answer = result.unwrap();
    assert_eq!(answer["total"], 5000);
    assert!(answer["items"].as_array().unwrap().len() > 100);
    assert!(answer["html"].as_str().unwrap().len() > 20_000);

    // Small fields stay whole, and what counts is the size in JSON.
    let [small, large] = [20_000, 200_000].map(|size| "z".repeat(size));
    for (answer, longest) in [
        (json!({"a": small, "b": small, "c": large}), 66 * 1024),
        (json!("\"".repeat(200_000)), 66 * 1024),
        (
            json!({"a": "\u{1}".repeat(50_000), "b": ["\n".repeat(70_000)]}),
            66 * 1024,
        ),
    ] {
        let (result, _) = answered(0, json!({}), 200, &[JSON], &answer.to_string()).await;
        let cut = result.unwrap();
        let size = cut.to_string().len();
        assert!(size < longest && size > 60 * 1024, "{size}");
        assert!(answer["c"].is_null() || (cut["a"] == small && cut["b"] == small));
    }

    let link = &[
        JSON,
        (
            "link",
            r#"<https://x.example/notes?page=2&filter%5Btag%5D=a&z=1>; rel="next", </>; rel="last""#,
        ),
    ];
    let (result, _) = answered(0, json!({}), 200, link, "[1]").await;
    assert_eq!(
        result.unwrap(),
        json!({"items": [1], "_next": {"page": 2, "filter_tag": "a"}})
    );
}

#[tokio::test]
async fn failures_speak_for_the_api_and_say_whether_to_repeat() {
    let list = (0, json!({"filter_tag": "a"}));
    let add = (1, json!({"text": "a"}));
    for ((tool, input), status, message, can_retry) in [
        (
            &list,
            400,
            "The API rejected the request: no such tag",
            false,
        ),
        (
            &list,
            403,
            "The API does not allow this: no such tag",
            false,
        ),
        (
            &list,
            404,
            "The API does not know what was asked for: no such tag",
            false,
        ),
        (&list, 429, "The API is busy: no such tag", true),
        (&add, 429, "The API is busy: no such tag", true),
        (
            &list,
            503,
            "The API is temporarily unavailable: no such tag",
            true,
        ),
        (
            &add,
            503,
            "The API failed; it may have done what it was asked: look before you call it again: no such tag",
            false,
        ),
        (
            &list,
            422,
            "The API rejected the request: no such tag",
            false,
        ),
    ] {
        let body = r#"{"errors": [{"detail": "no such tag", "field": "filter[tag]"}]}"#;
        let headers = &[JSON, ("retry-after", "7")];
        let (result, _) = answered(*tool, input.clone(), status, headers, body).await;
        let failure = result.unwrap_err();
        assert_eq!(failure.message(), message);
        assert_eq!(failure.can_retry(), can_retry, "{status}");
        let wait = can_retry.then(|| Duration::from_secs(7));
        assert_eq!(failure.parts().retry_after, wait);
        if *tool == 0 {
            let prompt = failure.parts().additional_prompt_content.clone().unwrap();
            assert!(
                prompt.contains("`filter[tag]` is the parameter `filter_tag`"),
                "{prompt}"
            );
        }
    }
}

#[tokio::test]
async fn null_is_sent_and_absent_is_not() {
    for (input, body) in [
        (
            json!({"text": "a", "due": null}),
            json!({"data": {"text": "a", "due": null}}),
        ),
        (json!({"text": "a"}), json!({"data": {"text": "a"}})),
    ] {
        let (result, api) = answered(1, input, 201, &[JSON], "{}").await;
        result.unwrap();
        let sent: Value = serde_json::from_slice(&api.take()[0].body).unwrap();
        assert_eq!(sent, body);
    }
}

#[tokio::test]
async fn a_file_is_a_part_with_a_name_and_a_media_type() {
    let input = json!({"file": {"filename": "a\".txt", "content_type": "text/plain", "base64": "aGVsbG8="}, "tags": ["x", "y"]});
    let (result, api) = answered(3, input, 204, &[], "").await;
    assert_eq!(result.unwrap(), Value::Null);
    let request = &api.take()[0];
    let boundary = request
        .header("content-type")
        .unwrap()
        .split_once("boundary=")
        .unwrap()
        .1
        .to_owned();
    let body = String::from_utf8(request.body.to_vec()).unwrap();
    let expected = format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a%22.txt\"\r\ncontent-type: text/plain\r\n\r\nhello\r\n\
         --{boundary}\r\ncontent-disposition: form-data; name=\"tags\"\r\n\r\nx\r\n\
         --{boundary}\r\ncontent-disposition: form-data; name=\"tags\"\r\n\r\ny\r\n--{boundary}--\r\n"
    );
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_secret_is_read_again_after_it_was_refused() {
    let api = Recorder::answering(|request| {
        let is_new = request.header("x-key") == Some("new");
        let response = Response::builder().status(if is_new { 200 } else { 401 });
        response
            .header("content-type", "application/json")
            .body("1".into())
            .unwrap()
    })
    .await;
    let cx = testing::context()
        .secret("NOTES_KEY", "old")
        .rotated_secret("NOTES_KEY", "new")
        .build();
    assert_eq!(
        called(tools(), &api, 0, json!({}), &cx).await.unwrap(),
        json!(1)
    );
    assert_eq!(api.take().len(), 2);
    let cx = testing::context().secret("NOTES_KEY", "old").build();
    let failure = called(tools(), &api, 0, json!({}), &cx).await.unwrap_err();
    assert!(
        failure
            .message()
            .starts_with("The API rejected the credentials")
    );
    assert_eq!(api.take().len(), 1);
}

/// The API's text is cut at 8 KiB, before or within the secret, or where the connection breaks.
#[tokio::test]
async fn no_text_has_the_start_of_a_secret() {
    let secret = "Correct horse/battery+staple";
    let cx = testing::context().secret("NOTES_KEY", secret).build();
    let encoded = "Correct%20horse%2Fbattery%2Bstaple";
    for text in [secret, encoded] {
        for shown in 1..text.len() {
            // The space is trimmed, and secrets become short, so that a model sees the end.
            for filling in [" ".repeat(8192 - shown), {
                let whole = format!("{secret} ").repeat(280);
                " ".repeat(8192 - shown - whole.len()) + &whole
            }] {
                let (result, _) = with(&cx, 400, &format!("{filling}{text} is wrong")).await;
                let failure = result.unwrap_err();
                let parts = failure.parts();
                let prompt = parts
                    .additional_prompt_content
                    .as_deref()
                    .unwrap_or_default();
                let start = &text[..shown.min(4)];
                if shown >= 4 {
                    assert!(!prompt.contains(start), "{shown}: {prompt}");
                }
            }
        }
    }
}

async fn with(cx: &Context, status: u16, body: &str) -> (Result<Value, Failure>, Recorder) {
    let body = body.to_owned();
    let api = Recorder::answering(move |_| {
        let response = Response::builder().status(status);
        response.body(body.clone().into()).unwrap()
    })
    .await;
    (called(tools(), &api, 0, json!({}), cx).await, api)
}

#[tokio::test]
async fn messages_do_not_have_the_secret() {
    let cx = testing::context()
        .secret("NOTES_KEY", "a-long-secret")
        .build();
    let api = Recorder::answering(|request| {
        let said = json!({"message": format!("{} is not a key", request.header("x-key").unwrap())});
        Response::builder()
            .status(400)
            .body(said.to_string().into())
            .unwrap()
    });
    let failure = called(tools(), &api.await, 0, json!({}), &cx)
        .await
        .unwrap_err();
    assert_eq!(
        failure.message(),
        "The API rejected the request: [secret] is not a key"
    );
}

#[tokio::test]
async fn many_operations_are_found_described_and_called() {
    let api = Recorder::start().await;
    let json = tools()
        .to_json()
        .replacen("\"title\"", "\"searchable\": true, \"title\"", 1);
    let tools = ApiTools::from_json(&json).unwrap();
    let cx = context(&tools);
    let toolkit = Toolkit::new(tools.base_url(&api.url).allow_private().tools().unwrap()).unwrap();
    toolkit.check().unwrap();
    let ids: Vec<_> = toolkit
        .definitions()
        .iter()
        .map(|it| it.id.clone())
        .collect();
    assert_eq!(
        ids,
        [
            "Notes.Search@1.0.0",
            "Notes.Describe@1.0.0",
            "Notes.Read@1.0.0",
            "Notes.Call@1.0.0"
        ]
    );
    let [search, describe, read, write] = toolkit.entries() else {
        panic!("there are four")
    };
    let found = call(search, json!({"words": "add note"}), &cx)
        .await
        .unwrap();
    assert_eq!(found[0]["operation"], "Add");
    let described = call(describe, json!({"operation": "Add"}), &cx)
        .await
        .unwrap();
    assert_eq!(described["input"]["required"], json!(["text"]));
    assert_eq!(described["call_with"], "Call");
    // Errors of the operation's input look like those of the tool's own schema.
    for (tool, input, errors) in [
        (
            write,
            json!({"operation": "Add", "input": {"txt": "a"}}),
            json!({"input.text": "Is required", "input.txt": "Is not a parameter of this tool; did you mean 'text'?"}),
        ),
        (
            write,
            json!({"operation": "Add", "input": {"text": 7}}),
            json!({"input.text": "Must be a string"}),
        ),
        (
            read,
            json!({"operation": "Add", "input": {"text": "a"}}),
            json!({"operation": "Is called with the tool Call"}),
        ),
        (
            read,
            json!({"operation": "Lists", "input": {}}),
            json!({"operation": "Is not the name of an operation; did you mean List?"}),
        ),
        (
            describe,
            json!({"operation": "Lists"}),
            json!({"operation": "Is not the name of an operation; did you mean List?"}),
        ),
    ] {
        let actual = tool.tool.decode(input).err();
        assert_eq!(json!(actual), errors);
    }
    call(
        write,
        json!({"operation": "Add", "input": {"text": "a"}}),
        &cx,
    )
    .await
    .unwrap();
    assert_eq!(api.take()[0].method, "POST");
}

#[tokio::test]
async fn a_body_is_found_beside_a_parameter_of_its_name() {
    let list = json!({"type": "array", "items": {"type": "string"}});
    let document = json!({
        "openapi": "3.1.0", "info": {"title": "A", "version": "1"}, "servers": [{"url": "https://a.example"}],
        "paths": {"/a": {"post": {
            "operationId": "send", "summary": "Sends.", "responses": {},
            "parameters": [{"name": "body", "in": "query", "schema": {"type": "string"}}],
            "requestBody": {"required": true, "content": {"application/json": {"schema": list}}},
        }}},
    });
    let sent = async |api: OpenApi, input: Value| {
        let recorder = Recorder::start().await;
        let tools = api.include_all().reduce().unwrap().tools;
        let cx = context(&tools);
        called(tools, &recorder, 0, input, &cx).await.unwrap();
        let request = recorder.take().remove(0);
        (
            request.target,
            String::from_utf8(request.body.to_vec()).unwrap(),
        )
    };
    let api = OpenApi::new(document).unwrap();
    let input = json!({"body": "q", "body_body": ["x"]});
    let expected = ("/a?body=q".to_owned(), "[\"x\"]".to_owned());
    assert_eq!(sent(api, input).await, expected);
}
