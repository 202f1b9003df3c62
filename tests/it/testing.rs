//! The library's own means of testing tools.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lambda_tools::{
    ApiKeys, Context, Failure, Server, Tool, Toolkit,
    idempotency::Idempotency,
    secrets::Secrets,
    testing::{self, LambdaFunction, TestOutcome},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

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

#[tokio::test]
async fn a_call_brings_what_its_tool_needs() {
    let call = testing::call(shop(), "Shop.Show", json!({"article": "tea"}));
    let call = call.user_id("user_1").token("shop", "token").call_id("c-1");
    let expected = json!({
        "article": "tea", "user": "user_1", "key": "value-of-the-key", "token": "token",
        "call_id": "c-1", "now": 1_696_507_200,
    });
    assert_eq!(call.await.value(), expected);
}

#[tokio::test]
async fn a_rejection_is_data() {
    let rejection = |input: Value| async { testing::call(shop(), "Shop.Show@1", input).await };
    let rejected = rejection(json!({"artikel": "tea"})).await.rejection();
    assert_eq!(rejected.reason, "invalid_input");
    let errors = json!(rejected.parameter_errors);
    let expected = json!({
        "article": "Is required",
        "artikel": "Is not a parameter of this tool; did you mean 'article'?",
    });
    assert_eq!(errors, expected);
    let rejected = rejection(json!({"article": "tea"})).await.rejection();
    assert_eq!(rejected.reason, "missing_requirements");
    let detail = rejected.developer_message.unwrap();
    assert!(detail.contains("context.user_id"), "{detail}");
    for (tool, reason) in [("Shop", "invalid_tool_id"), ("Shop.Shoo", "unknown_tool")] {
        let rejected = testing::call(shop(), tool, json!({})).await.rejection();
        assert_eq!(rejected.reason, reason);
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

#[tokio::test]
async fn calls_to_one_function_share_what_it_remembers() {
    let effects = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&effects);
    let act = move |_: Value| {
        let counted = Arc::clone(&counted);
        async move { Ok::<_, Failure>(json!(counted.fetch_add(1, Ordering::SeqCst))) }
    };
    let object = json!({"type": "object"});
    let tool = Tool::dynamic("Effect.Act@1.0.0", "Acts.", object, json!({}), act);
    let server = Server::new(Toolkit::new([tool]).unwrap());
    let server = server.idempotency(Idempotency::in_memory());
    let function = LambdaFunction::new(server);
    let call = || async {
        let call = function.call("Effect.Act", json!({})).call_id("once");
        call.await.value()
    };
    assert_eq!((call().await, call().await), (json!(0), json!(0)));
    function.advance(Duration::from_hours(2));
    assert_eq!(call().await, json!(1));
    let other = function.call("Effect.Act", json!({})).await;
    assert!(matches!(other, TestOutcome::Value(it) if it == 2));
}
