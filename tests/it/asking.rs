//! Tools that ask their user a question.

use lambda_tools::{
    Context, Failure, Server, Tool, Toolkit, idempotency::Idempotency, secrets::Secrets, testing,
    testing::LambdaFunction,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Nothing, function, mcp_call};

#[derive(Deserialize, JsonSchema)]
struct Guests {
    /// Including yourself.
    #[schemars(range(min = 1, max = 8))]
    guests: u8,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    confirmed: bool,
}

async fn book(_: Nothing, cx: Context) -> Result<String, Failure> {
    let declined = || Failure::new("The user does not want a table");
    let guests = cx.ask::<Guests>("guests", "A table for how many?")?;
    let guests = guests.ok_or_else(declined)?.guests;
    let message = format!("Book a table for {guests}?");
    match cx.ask::<Confirmation>("confirm", message)? {
        Some(answer) if answer.confirmed => Ok(format!("A table for {guests} is booked.")),
        _ => Err(declined()),
    }
}

fn tools() -> LambdaFunction {
    let book = Tool::new("T.Book@1.0.0", book).run_at_most_once();
    let server = Server::new(Toolkit::new([book]).unwrap());
    function(server.idempotency(Idempotency::in_memory()))
}

/// Returns params of a call by a client that shows forms.
fn with_forms(mut more: Value) -> Value {
    let capabilities = json!({"elicitation": {"form": {}}});
    more["_meta"] = json!({
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "lambda-tools/call-id": "call-1",
    });
    more
}

/// Returns params that answer the question in a response.
fn answering(response: &Value, key: &str, answer: &Value) -> Value {
    let state = &response["result"]["requestState"];
    with_forms(json!({"inputResponses": {key: answer}, "requestState": state}))
}

fn accepted(content: &Value) -> Value {
    json!({"action": "accept", "content": content})
}

fn question<'a>(response: &'a Value, key: &str) -> &'a Value {
    let result_type = &response["result"]["resultType"];
    assert_eq!(result_type, "input_required", "{response}");
    let request = &response["result"]["inputRequests"][key];
    assert_eq!(request["method"], "elicitation/create", "{response}");
    assert_eq!(request["params"]["mode"], "form", "{response}");
    &request["params"]
}

#[tokio::test]
async fn questions_are_asked_one_after_the_other() {
    let tools = tools();
    let first = mcp_call(&tools, "T_Book", with_forms(json!({}))).await;
    let params = question(&first, "guests");
    assert_eq!(params["message"], "A table for how many?");
    let field = json!({"type": "integer", "minimum": 1, "maximum": 8,
        "description": "Including yourself."});
    let form = json!({"type": "object", "properties": {"guests": field}, "required": ["guests"]});
    assert_eq!(params["requestedSchema"], form);

    let second = answering(&first, "guests", &accepted(&json!({"guests": 4})));
    let second = mcp_call(&tools, "T_Book", second).await;
    let message = &question(&second, "confirm")["message"];
    assert_eq!(message, "Book a table for 4?");

    // Only the latest answer is repeated; the state brings the first. The call ran neither time, so
    // its id is free.
    let third = answering(&second, "confirm", &accepted(&json!({"confirmed": true})));
    let third = mcp_call(&tools, "T_Book", third).await;
    let booked = json!({"result": "A table for 4 is booked."});
    assert_eq!(third["result"]["structuredContent"], booked);

    let replay = mcp_call(&tools, "T_Book", with_forms(json!({}))).await;
    assert_eq!(replay["result"]["structuredContent"], booked);
    assert_eq!(replay["result"]["_meta"]["lambda-tools/replay"], true);
}

#[tokio::test]
async fn a_user_answers_again_or_declines() {
    for (answer, is_asked_again) in [
        (accepted(&json!({"guests": 9})), true),
        (json!({"action": "decline"}), false),
        (json!({"action": "cancel"}), false),
    ] {
        let tools = tools();
        let first = mcp_call(&tools, "T_Book", with_forms(json!({}))).await;
        let params = answering(&first, "guests", &answer);
        let response = mcp_call(&tools, "T_Book", params).await;
        if is_asked_again {
            let message = question(&response, "guests")["message"].as_str().unwrap();
            assert!(message.contains("The previous answer was invalid:"));
        } else {
            let text = &response["result"]["content"][0]["text"];
            assert_eq!(text, "The user does not want a table");
        }
    }
}

#[tokio::test]
async fn a_client_that_cannot_ask_gets_a_failure_with_the_question() {
    let expected = "The tool has to ask the user, but this client cannot: A table for how many?";
    for capabilities in [json!({}), json!({"elicitation": {"url": {}}})] {
        let meta = json!({"io.modelcontextprotocol/clientCapabilities": capabilities});
        let response = mcp_call(&tools(), "T_Book", json!({"_meta": meta})).await;
        assert_eq!(response["result"]["isError"], true, "{response}");
        assert_eq!(response["result"]["content"][0]["text"], expected);
    }
}

#[tokio::test]
async fn responses_and_states_that_cannot_be_read_are_errors() {
    let tools = tools();
    let large = accepted(&json!({"x": "x".repeat(40_000)}));
    let first = mcp_call(&tools, "T_Book", with_forms(json!({}))).await;
    for params in [
        json!({"requestState": "x"}),
        json!({"requestState": "[]"}),
        json!({"requestState": 1}),
        json!({"inputResponses": []}),
        answering(&first, "guests", &large),
    ] {
        let response = mcp_call(&tools, "T_Book", with_forms(params)).await;
        assert_eq!(response["error"]["code"], -32602, "{response}");
    }
}

#[tokio::test]
async fn a_state_counts_only_for_its_own_call() {
    let book = Tool::new("T.Book@1.0.0", book);
    let open = json!({"type": "object", "additionalProperties": true});
    let echo = Tool::dynamic("T.Echo@1.0.0", "Asks.", open, json!({}), echo);
    let tools = function(Toolkit::new([book, echo]).unwrap());
    let asking = |arguments: Value| with_forms(json!({"arguments": arguments}));
    let first = mcp_call(&tools, "T_Echo", asking(json!({"project": "A"}))).await;
    let answered = |arguments: Value| {
        let mut params = answering(&first, "guests", &accepted(&json!({"guests": 4})));
        params["arguments"] = arguments;
        params
    };
    let same = mcp_call(&tools, "T_Echo", answered(json!({"project": "A"}))).await;
    assert_eq!(same["result"]["structuredContent"]["result"], 4, "{same}");
    let other = mcp_call(&tools, "T_Echo", answered(json!({"project": "B"}))).await;
    assert_eq!(other["error"]["code"], -32602, "{other}");
    let other = mcp_call(&tools, "T_Book", answered(json!({}))).await;
    assert_eq!(other["error"]["code"], -32602, "{other}");
}

async fn echo(_: Value, cx: Context) -> Result<Value, Failure> {
    let guests = cx.ask::<Guests>("guests", "A table for how many?")?;
    Ok(guests.map(|it| it.guests).into())
}

async fn ask_with_secret(_: Nothing, cx: Context) -> Result<u8, Failure> {
    let key = format!("guests-{}", cx.secret("KEY")?.expose());
    let guests = cx.ask::<Guests>(&key, "A table for how many?")?;
    Ok(guests.map_or(0, |it| it.guests))
}

/// A secret in a question's key reaches nobody, and the answer still finds its question.
#[tokio::test]
async fn a_key_is_redacted() {
    let tool = Tool::new("T.Ask@1.0.0", ask_with_secret).secret("KEY");
    let server = Server::new(Toolkit::new([tool]).unwrap());
    let tools = function(server.secrets(Secrets::fixed([("KEY", "a-secret-0123456789")])));
    let first = mcp_call(&tools, "T_Ask", with_forms(json!({}))).await;
    question(&first, "guests-[secret]");
    assert!(!first.to_string().contains("a-secret"), "{first}");
    let answered = answering(&first, "guests-[secret]", &accepted(&json!({"guests": 4})));
    let answered = mcp_call(&tools, "T_Ask", answered).await;
    let value = &answered["result"]["structuredContent"]["result"];
    assert_eq!(*value, 4, "{answered}");
}

#[tokio::test]
async fn a_unit_test_answers_questions() {
    let cx = testing::context().build();
    assert!(!cx.can_ask());
    let cx = testing::context()
        .answer("guests", Some(json!({"guests": 2})))
        .answer("confirm", Some(json!({"confirmed": true})))
        .build();
    assert!(cx.can_ask());
    let booked = book(Nothing {}, cx).await.unwrap();
    assert_eq!(booked, "A table for 2 is booked.");
    let cx = testing::context().can_ask().build();
    let failure = book(Nothing {}, cx).await.unwrap_err();
    assert_eq!(failure.question(), Some("guests"));
    let cx = testing::context().answer("guests", None).build();
    assert!(book(Nothing {}, cx).await.is_err());
}
