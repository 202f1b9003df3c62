//! Long answers, secrets in answers, and many operations. `tests/cases` has the usual answers.

use lambda_tools_core::{Context, Failure, testing};
use lambda_tools_openapi::{ApiTools, OpenApi, OpenApiOptions};
use serde_json::{Value, json};

use crate::recorder::{Recorder, call, context, json_answer, toolkit};

fn tools() -> ApiTools {
    let document = include_str!("../documents/notes.json");
    let document = serde_json::from_str(document).unwrap();
    let options = OpenApiOptions {
        secrets: [("key".to_owned(), "NOTES_KEY".to_owned())].into(),
        ..OpenApiOptions::all()
    };
    let api = OpenApi::new(document, options).unwrap();
    api.reduce().unwrap().tools
}

/// Calls the list of an API that answers with this status and this body.
async fn answered(cx: &Context, status: u16, body: String) -> Result<Value, Failure> {
    let api = Recorder::answering(move |_| json_answer(status, body.clone()));
    list(&api.await, cx).await
}

async fn list(api: &Recorder, cx: &Context) -> Result<Value, Failure> {
    let toolkit = toolkit(tools(), &api.url);
    call(&toolkit.entries()[0], json!({}), cx).await
}

#[tokio::test]
async fn an_answer_is_cut_with_a_notice() {
    let items: Vec<_> = (0..5000)
        .map(|id| json!({"id": id, "text": "x".repeat(50)}))
        .collect();
    let cx = context(&tools());
    let answer = answered(&cx, 200, json!(items).to_string()).await.unwrap();
    assert!(answer.to_string().len() < 66 * 1024);
    let shown = answer["items"].as_array().unwrap().len();
    let cut = format!("the answer: {shown} of 5000 items shown; ask for less with page");
    assert_eq!(answer["_cut"], cut);
    assert_eq!(answer["items"][shown - 1]["id"], shown - 1);

    let object = json!({"total": 5000, "items": items, "html": "y".repeat(200_000)});
    let answer = answered(&cx, 200, object.to_string()).await.unwrap();
    assert_eq!(answer["total"], 5000);
    assert!(answer["items"].as_array().unwrap().len() > 100);
    assert!(answer["html"].as_str().unwrap().len() > 20_000);

    // Small fields stay whole, and what counts is the size in JSON.
    let [small, large] = [20_000, 200_000].map(|size| "z".repeat(size));
    for answer in [
        json!({"a": small, "b": small, "c": large}),
        json!("\"".repeat(200_000)),
        json!({"a": "\u{1}".repeat(50_000), "b": ["\n".repeat(70_000)]}),
    ] {
        let cut = answered(&cx, 200, answer.to_string()).await.unwrap();
        let size = cut.to_string().len();
        assert!(size < 66 * 1024 && size > 60 * 1024, "{size}");
        assert!(answer["c"].is_null() || (cut["a"] == small && cut["b"] == small));
    }
}

#[tokio::test]
async fn a_secret_is_read_again_after_it_was_refused() {
    let api = Recorder::answering(|request| {
        let is_new = request.header("x-key") == Some("new");
        json_answer(if is_new { 200 } else { 401 }, "1")
    })
    .await;
    let cx = testing::context()
        .secret("NOTES_KEY", "old")
        .rotated_secret("NOTES_KEY", "new")
        .build();
    assert_eq!(list(&api, &cx).await.unwrap(), json!(1));
    assert_eq!(api.take().len(), 2);
    let cx = testing::context().secret("NOTES_KEY", "old").build();
    let failure = list(&api, &cx).await.unwrap_err();
    let message = failure.message();
    assert!(message.starts_with("The API rejected the credentials"));
    assert_eq!(api.take().len(), 1);
}

/// The API's text is cut at 8 KiB, before or within the secret, or where the connection breaks.
#[tokio::test]
async fn no_text_has_the_start_of_a_secret() {
    let secret = "Correct horse/battery+staple";
    let cx = testing::context().secret("NOTES_KEY", secret).build();
    let encoded = "Correct%20horse%2Fbattery%2Bstaple";
    for text in [secret, encoded] {
        for shown in 4..text.len() {
            // The space is trimmed, and secrets become short, so that a model sees the end.
            for filling in [" ".repeat(8192 - shown), {
                let whole = format!("{secret} ").repeat(280);
                " ".repeat(8192 - shown - whole.len()) + &whole
            }] {
                let body = format!("{filling}{text} is wrong");
                let failure = answered(&cx, 400, body).await.unwrap_err();
                let prompt = failure.parts().additional_prompt_content.as_deref();
                let prompt = prompt.unwrap_or_default();
                assert!(!prompt.contains(&text[..4]), "{shown}: {prompt}");
            }
        }
    }
}

#[tokio::test]
async fn messages_do_not_have_the_secret() {
    let cx = testing::context().secret("NOTES_KEY", "a-long-secret");
    let said = json!({"message": "a-long-secret is not a key"}).to_string();
    let failure = answered(&cx.build(), 400, said).await.unwrap_err();
    let message = "The API rejected the request: [secret] is not a key";
    assert_eq!(failure.message(), message);
}

/// The tools, their inputs and their errors.
const ERRORS: &str = r#"[
    ["Call", {"operation": "Add", "input": {"txt": "a"}},
        {"input.text": "Is required", "input.txt": "Is not a parameter of this tool; did you mean 'text'?"}],
    ["Call", {"operation": "Add", "input": {"text": 7}}, {"input.text": "Must be a string"}],
    ["Read", {"operation": "Add", "input": {"text": "a"}}, {"operation": "Is called with the tool Call"}],
    ["Read", {"operation": "Lists", "input": {}},
        {"operation": "Is not the name of an operation; did you mean List?"}],
    ["Describe", {"operation": "Lists"}, {"operation": "Is not the name of an operation; did you mean List?"}]
]"#;

#[tokio::test]
async fn many_operations_are_found_described_and_called() {
    let api = Recorder::start().await;
    let json = tools().to_json();
    let json = json.replacen("\"title\"", "\"searchable\": true, \"title\"", 1);
    let tools = ApiTools::from_json(&json).unwrap();
    let cx = context(&tools);
    let toolkit = toolkit(tools, &api.url);
    toolkit.check().unwrap();
    let [search, describe, _, write] = toolkit.entries() else {
        panic!("there are four")
    };
    let ids = toolkit.entries().iter().map(|it| it.id.to_string());
    let names = ["Search", "Describe", "Read", "Call"];
    assert!(ids.eq(names.map(|it| format!("Notes.{it}@1.0.0"))));
    let found = call(search, json!({"words": "add note"}), &cx).await;
    assert_eq!(found.unwrap()[0]["operation"], "Add");
    let described = call(describe, json!({"operation": "Add"}), &cx).await;
    let described = described.unwrap();
    assert_eq!(described["input"]["required"], json!(["text"]));
    assert_eq!(described["call_with"], "Call");
    // Errors of the operation's input look like those of the tool's own schema.
    let rows: Vec<(String, Value, Value)> = serde_json::from_str(ERRORS).unwrap();
    for (name, input, errors) in rows {
        let mut entries = toolkit.entries().iter();
        let entry = entries.find(|it| it.id.to_string().contains(&name));
        assert_eq!(json!(entry.unwrap().tool.decode(input).err()), errors);
    }
    let input = json!({"operation": "Add", "input": {"text": "a"}});
    call(write, input, &cx).await.unwrap();
    assert_eq!(api.take()[0].method, "POST");
}
