//! Resources and prompts of MCP: what a server tells of them, and who may read them, besides what the
//! events in `events/mcp-resources` show.

use lambda_tools::{
    ApiKeys, BuildError, Content, Context, Failure, Message, Prompt, Resource, Server, Tool,
    Toolkit,
    idempotency::Idempotency,
    quotas::Quota,
    secrets::Secrets,
    serve,
    testing::{ExpectedResponse, LambdaFunction},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use test_support::mcp::{LEGACY, modern};

use crate::support::{Nothing, post};

const A: &str = "the-key-of-caller-a";
const B: &str = "the-key-of-caller-b";

/// An order.
#[derive(Deserialize, JsonSchema)]
struct Order {
    /// Its number.
    number: String,
}

async fn order(Order { number }: Order, cx: Context) -> Result<Option<Vec<Content>>, Failure> {
    match &*number {
        "7" => Ok(Some(vec![
            Content::text("two lamps"),
            Content::bytes("image/png", [1, 2]).uri("shop://orders/7/picture"),
        ])),
        "fail" => Err(Failure::new("The shop is closed").retry()),
        "panic" => panic!("on request"),
        "secret" => Err(Failure::new(cx.secret("KEY")?.expose())),
        "link" => Ok(Some(vec![Content::link("shop://terms", "text/plain")])),
        "large" => Ok(Some(vec![Content::text("x".repeat(7_000_000))])),
        _ => Ok(None),
    }
}

/// Asks for a reply to a customer.
#[derive(Deserialize, JsonSchema)]
struct Reply {
    /// The customer's message.
    text: String,
    /// The tone.
    tone: Option<Tone>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Tone {
    Friendly,
    Formal,
    FormalAndShort,
}

async fn reply(input: Reply) -> Result<Vec<Message>, Failure> {
    let tone = match input.tone {
        None => "any",
        Some(Tone::Friendly) => "a friendly",
        Some(Tone::Formal | Tone::FormalAndShort) => "a formal",
    };
    Ok(vec![
        Message::user(&*format!("Reply in {tone} tone to: {}", input.text)),
        Message::assistant("Dear customer,"),
    ])
}

async fn own(_: Nothing, cx: Context) -> Result<String, Failure> {
    Ok(cx.caller().to_string())
}

async fn empty(_: Nothing) -> Result<Vec<Message>, Failure> {
    Ok(Vec::new())
}

async fn fails(_: Nothing) -> Result<(), Failure> {
    Err(Failure::new("no"))
}

fn tools() -> Result<Toolkit, BuildError> {
    Toolkit::new([
        Tool::new("Who.AmI@1.0.0", own).description("Tells."),
        Tool::new("Who.Fails@1.0.0", fails).description("Fails."),
    ])
}

fn toolkit() -> Result<Toolkit, BuildError> {
    tools()?
        .resources([
            Resource::text("shop://terms", "terms", "30 days").declare(|it| it.title("Terms")),
            Resource::with("shop://orders/{number}", "order", order).declare(|it| it.secret("KEY")),
            Resource::with("shop://me", "me", own)
                .declare(|it| it.description("The caller.").allow(["caller:A"])),
        ])?
        .prompts([
            Prompt::new("reply", reply),
            Prompt::new("empty", empty).declare(|it| it.allow(["caller:A"])),
            Prompt::new("who", own).declare(|it| it.description("Tells.").allow(["caller:A"])),
        ])
}

fn server() -> Server {
    let secrets = [("A", A), ("B", B), ("KEY", "Xmark-0123456789")];
    Server::new(toolkit().unwrap())
        .auth(ApiKeys::with_ids(["A", "B"]))
        .secrets(Secrets::fixed(secrets))
        .idempotency(Idempotency::in_memory())
        .list_only_callable_tools()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn shop_program_of_tests() {
    test_support::assert_program();
    let secrets = Secrets::fixed([("KEY", "Xmark-0123456789")]);
    let orders = Resource::with("shop://orders/{number}", "order", order);
    let terms = Resource::text("shop://terms", "terms", "30 days");
    let toolkit = tools().unwrap().resources([terms, orders]).unwrap();
    let toolkit = toolkit.prompts([Prompt::new("reply", reply)]).unwrap();
    serve(Server::new(toolkit).secrets(secrets)).await.unwrap();
}

/// Sends a request in one of the eras.
async fn send(
    function: &LambdaFunction,
    is_modern: bool,
    key: &str,
    method: &str,
    params: Value,
) -> ExpectedResponse {
    let (mut headers, mut body) = modern(method, params, json!({}));
    if !is_modern {
        body["params"].as_object_mut().unwrap().remove("_meta");
        headers.retain(|(name, _)| !name.starts_with("mcp-"));
        headers.push(("mcp-protocol-version", LEGACY.to_owned()));
    } else if let Some(uri) = body["params"]["uri"].as_str() {
        let uri = uri.to_owned();
        headers.retain(|(name, _)| *name != "mcp-name");
        headers.push(("mcp-name", uri));
    }
    headers.push(("oxp-api-key", key.to_owned()));
    let headers: Vec<_> = headers.iter().map(|(name, it)| (*name, &**it)).collect();
    post(function, "/mcp", &headers, &body).await
}

async fn result(function: &LambdaFunction, key: &str, method: &str, params: Value) -> Value {
    let mut response = send(function, true, key, method, params).await;
    assert!(response.body["error"].is_null(), "{method} {response:?}");
    response.body["result"].take()
}

#[tokio::test]
async fn lists_show_what_their_reader_may_read() {
    let function = LambdaFunction::new(server());
    for (key, resources, prompts) in [
        (A, "shop://terms shop://me", "reply empty who"),
        (B, "shop://terms", "reply"),
    ] {
        for (method, field, name, expected) in [
            ("resources/list", "resources", "uri", resources),
            ("prompts/list", "prompts", "name", prompts),
        ] {
            let list = result(&function, key, method, json!({})).await;
            let items = list[field].as_array().unwrap().iter();
            let names: Vec<_> = items.map(|it| it[name].as_str().unwrap()).collect();
            assert_eq!(names.join(" "), expected, "{method}");
        }
    }
    let list = result(&function, B, "resources/list", json!({})).await;
    assert_eq!(list["resources"][0]["title"], "Terms");
}

#[tokio::test]
async fn a_read_brings_several_contents_and_a_prompt_several_messages() {
    let function = LambdaFunction::new(server());
    let order = json!({"uri": "shop://orders/7"});
    let read = result(&function, A, "resources/read", order).await;
    assert_eq!(read["contents"][0]["text"], "two lamps");
    let picture =
        json!({"uri": "shop://orders/7/picture", "mimeType": "image/png", "blob": "AQI="});
    assert_eq!(read["contents"][1], picture);
    let reply = json!({"name": "reply", "arguments": {"text": "Hi", "tone": "formal"}});
    for (params, role, text) in [
        (reply, "assistant", "Dear customer,"),
        (json!({"name": "who"}), "user", "key A"),
    ] {
        let prompt = result(&function, A, "prompts/get", params).await;
        let last = prompt["messages"].as_array().unwrap().last().unwrap();
        assert_eq!(last["role"], role);
        assert_eq!(last["content"]["text"], text);
    }
}

/// The requests that lead to errors: the key of their caller, the method and the params; the code and a
/// part of the message.
const ERRORS: &str = r#"
A | resources/read | {"uri": "shop://orders/7/8"} | -32002 | There is no resource with
A | resources/read | {"uri": "shop://orders/..%2F7"} | -32002 | There is no resource with
A | resources/read | {"uri": "shop://orders/{number}"} | -32002 | There is no resource with
A | resources/read | {"uri": "shop://orders/link"} | -32002 | There is no resource with
A | completion/complete | {"ref": {"type": "other"}} | -32602 | 'ref' must name
A | prompts/get | {"name": "empty"} | -32603 | The prompt has no messages
A | resources/read | {"uri": ""} | -32002 | There is no resource with
A | resources/read | {"uri": "shop://orders/panic"} | -32603 | internal error
A | resources/read | {"uri": "shop://orders/secret"} | -32603 | [secret]
A | resources/read | {"uri": "shop://orders/large"} | -32603 | too large to send
B | resources/read | {"uri": "shop://me"} | 403 | may not call Resources.me@1.0.0
A | prompts/get | {} | -32602 | There is no prompt with
A | prompts/get | {"name": "reply", "arguments": {"text": 1}} | -32602 | text: Must be a string
A | prompts/get | {"name": "reply", "arguments": []} | -32602 | 'arguments' must be an object
A | prompts/list | {"cursor": "9"} | -32602 | 'cursor' was not issued
B | prompts/get | {"name": "who"} | 403 | may not call Prompts.who@1.0.0
"#;

#[tokio::test]
async fn what_cannot_be_read_is_an_error() {
    let function = LambdaFunction::new(server());
    for row in ERRORS.trim().lines() {
        let [caller, method, params, code, text] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let key = if caller == "A" { A } else { B };
        let params: Value = serde_json::from_str(params).unwrap();
        let code: i32 = code.parse().unwrap();
        for is_modern in [false, true] {
            let response = send(&function, is_modern, key, method, params.clone()).await;
            let error = &response.body["error"];
            let is_unknown = code == -32002;
            let is_param = is_modern && is_unknown;
            let code = if is_param { -32602 } else { code };
            assert_eq!(error["code"], code, "{row} {response:?}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(text), "{row} {message}");
            if is_unknown {
                assert_eq!(error["data"], json!({"uri": params["uri"]}));
            }
        }
    }
    // Headers repeat the body.
    for (method, params) in [
        ("resources/read", json!({"uri": "shop://terms"})),
        ("prompts/get", json!({"name": "who"})),
    ] {
        let (mut headers, body) = modern(method, params, json!({}));
        headers.retain(|(name, _)| *name != "mcp-name");
        headers.push(("oxp-api-key", A.to_owned()));
        let headers: Vec<_> = headers.iter().map(|(name, it)| (*name, &**it)).collect();
        let response = post(&function, "/mcp", &headers, &body).await;
        assert_eq!(response.body["error"]["code"], -32020, "{response:?}");
    }
}

#[tokio::test]
async fn a_read_counts_as_a_call() {
    let function = LambdaFunction::new(server().quota(Quota::per_minute(2)));
    let terms = json!({"uri": "shop://terms"});
    let reply = json!({"name": "reply", "arguments": {"text": "x"}});
    for (is_exceeded, method, params) in [
        (false, "resources/read", &terms),
        (false, "prompts/get", &reply),
        (true, "resources/read", &terms),
    ] {
        let response = send(&function, true, A, method, params.clone()).await;
        let text = response.body.to_string();
        assert_eq!(text.contains("Too many calls"), is_exceeded, "{text}");
    }
}

/// A caller who may not use a prompt learns nothing about it.
#[tokio::test]
async fn the_texts_that_an_argument_allows_are_completed() {
    let reply = Prompt::new("reply", reply).declare(|it| it.allow(["caller:A"]));
    let toolkit = Toolkit::new([]).unwrap().prompts([reply]).unwrap();
    let server = Server::new(toolkit).auth(ApiKeys::with_ids(["A", "B"]));
    let function = LambdaFunction::new(server.secrets(Secrets::fixed([("A", A), ("B", B)])));
    for (key, argument, value, expected) in [
        (A, "tone", "", "friendly formal formal_and_short"),
        (A, "tone", "formal", "formal formal_and_short"),
        (A, "tone", "x", ""),
        (A, "text", "", ""),
        (A, "other", "", ""),
        (B, "tone", "", ""),
    ] {
        let reference = json!({"type": "ref/prompt", "name": "reply"});
        let params = json!({"ref": reference, "argument": {"name": argument, "value": value}});
        let result = result(&function, key, "completion/complete", params).await;
        let values = result["completion"]["values"].as_array().unwrap().iter();
        let values: Vec<_> = values.map(|it| it.as_str().unwrap()).collect();
        assert_eq!(values.join(" "), expected, "{argument} {value}");
    }
}

/// `events/mcp` has a list of resources.
#[tokio::test]
async fn a_server_without_them_does_not_know_their_methods() {
    let function = LambdaFunction::new(Server::new(Toolkit::new([]).unwrap()));
    for method in "resources/templates/list resources/read prompts/list prompts/get \
        completion/complete"
        .split(' ')
    {
        let response = send(&function, true, "", method, json!({"uri": "a://b"})).await;
        let code = &response.body["error"]["code"];
        assert_eq!(code, -32601, "{method} {response:?}");
    }
}

#[test]
fn mistakes_are_described() {
    /// Numbers.
    #[derive(Deserialize, JsonSchema)]
    struct Number {
        /// A number.
        _number: u8,
    }
    async fn number(_: Number) -> Result<String, Failure> {
        Ok(String::new())
    }
    let resources = Toolkit::new([]).unwrap().resources([
        Resource::text("terms", "terms", ""),
        Resource::text("shop://terms", "the terms", ""),
        Resource::text("shop://a", "a", ""),
        Resource::text("shop://a", "b", ""),
        Resource::with("shop://{order}", "order", order),
        Resource::with("shop://{_number}", "number", number),
        Resource::with("shop://{number}{x}", "adjacent", order),
    ]);
    let text = resources.unwrap_err().to_string();
    for part in [
        "its name must be letters, digits and underscores",
        "another one has its name or its URI",
        "its parameters must be the variables of its URI",
        "its parameters must be strings, or enums of strings",
    ] {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
    let part = "its URI needs a scheme, and may have variables such as {id}";
    assert_eq!(text.matches(part).count(), 2, "{text}");
    let prompts = Toolkit::new([]).unwrap().prompts([
        Prompt::new("reply", reply),
        Prompt::new("reply", reply),
        Prompt::new("later", reply).declare(Tool::background),
    ]);
    let text = prompts.unwrap_err().to_string();
    for part in [
        "another one has its name or its URI",
        "only tools can work in the background, or run equal calls once",
    ] {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
}
