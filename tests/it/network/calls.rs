//! The requests of calls that are remembered, and of calls with secrets or access tokens.

use std::{sync::Arc, time::Duration};

use lambda_tools::{
    Context, Failure, Oidc, Server, Tool, Toolkit,
    idempotency::{DynamoDb, Idempotency},
    quotas::Quota,
    secrets::{Secrets, SecretsManager},
    testing::LambdaFunction,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use test_support::issuer::{Issuer, NOW, URL, claims};

use super::{Measured, Network, TABLE};
use crate::{
    aws,
    support::{function, post, server},
};

/// Returns tools that wait for a permit if their input says so.
fn tools(permits: &Arc<Semaphore>) -> Vec<Tool> {
    let permits = Arc::clone(permits);
    let act = move |input: Value, cx: Context| {
        let permits = Arc::clone(&permits);
        async move {
            match input["then"].as_str() {
                Some("wait") => permits.acquire().await.unwrap().forget(),
                Some("reject") => {
                    let rotated = cx.secret_rejected("KEY").await;
                    assert_eq!(rotated.unwrap().expose(), "rotated");
                }
                _ => {}
            }
            Ok::<_, Failure>(json!("done"))
        }
    };
    let object = json!({"type": "object"});
    let tool = |id: &'static str, act| Tool::dynamic(id, "Acts.", object.clone(), json!({}), act);
    vec![
        tool("Act.Do@1.0.0", act.clone()),
        tool("Act.Again@1.0.0", act.clone()).idempotent(),
        tool("Act.Secretly@1.0.0", act).idempotent().secret("KEY"),
    ]
}

fn no_permits() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(0))
}

fn served(permits: &Arc<Semaphore>, change: impl FnOnce(Server) -> Server) -> LambdaFunction {
    function(change(server(Toolkit::new(tools(permits)).unwrap())))
}

async fn call_with(function: &LambdaFunction, body: &Value, token: &str) -> Value {
    let token = format!("Bearer {token}");
    let headers = [("authorization", &*token)];
    post(function, "/tools/call", &headers, body).await.body
}

async fn succeed(function: &LambdaFunction, body: &Value) {
    let body = call_with(function, body, "").await;
    assert_eq!(body["success"], true, "{body}");
}

pub(super) async fn measure(network: &Network, measured: &mut Measured) {
    let mut add = |case: &str| measured.add(case, &network.recorder.take());
    Box::pin(remembered(network, &mut add)).await;
    counted(network, &mut add).await;
    with_secrets(network, &mut add).await;
    with_access_tokens(network, &mut add).await;
}

fn table(network: &Network) -> Idempotency {
    Idempotency::in_store(DynamoDb::new(TABLE).client(aws::dynamodb(&network.proxy)))
}

async fn remembered(network: &Network, add: &mut impl FnMut(&str)) {
    let permits = no_permits();
    let calls = table(network).wait_for(Duration::ZERO);
    let function = served(&permits, |server| server.idempotency(calls));
    let large = json!({"text": "x".repeat(1_000_000)});
    let large = json!({"tool_id": "Act.Again", "call_id": "large", "input": large});
    succeed(&function, &large).await;
    add("a call that needs none of the following, whatever the size of its input");
    let body = json!({"tool_id": "Act.Do", "call_id": "one", "input": {}});
    for case in ["a remembered call", "its repetition"] {
        succeed(&function, &body).await;
        add(case);
    }
    let body = json!({"tool_id": "Act.Do", "call_id": "two", "input": {"then": "wait"}});
    let repetition = async {
        while network.recorder.count() < 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The claim has been written.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(network.recorder.take().names(), ["PutItem"]);
        let running = call_with(&function, &body, "").await;
        assert_eq!(running["success"], false, "{running}");
        add("its repetition while it is running, each time it looks for the outcome");
        permits.add_permits(1);
    };
    tokio::join!(succeed(&function, &body), repetition);
    network.recorder.take();
}

async fn counted(network: &Network, add: &mut impl FnMut(&str)) {
    let calls = table(network);
    let function = served(&no_permits(), |server| {
        server.idempotency(calls).quota(Quota::per_day(1))
    });
    for case in [
        "a call, for each quota",
        "the first call that the quota rejects",
        "a later one, in the same window and instance",
    ] {
        call_with(&function, &json!({"tool_id": "Act.Again"}), "").await;
        add(case);
    }
}

async fn with_secrets(network: &Network, add: &mut impl FnMut(&str)) {
    network.proxy.put_secret("KEY", "first").await;
    let store = SecretsManager::new().client(aws::secrets_manager(&network.proxy));
    let secrets = Secrets::from_store(store);
    let function = served(&no_permits(), |server| server.secrets(secrets));
    let body = json!({"tool_id": "Act.Secretly"});
    succeed(&function, &body).await;
    network.recorder.take();
    succeed(&function, &body).await;
    add("a call with cached secrets");
    function.advance(Duration::from_mins(5));
    succeed(&function, &body).await;
    add("a call with secrets that were cached more than five minutes ago");
    network.proxy.change_secret("KEY", "rotated").await;
    let reject = json!({"tool_id": "Act.Secretly", "input": {"then": "reject"}});
    succeed(&function, &reject).await;
    add("`secret_rejected`");
}

async fn with_access_tokens(network: &Network, add: &mut impl FnMut(&str)) {
    let provider = Issuer::start_at("", Some(&network.recorder)).await;
    let mut claims = claims(&provider.url);
    claims["exp"] = (NOW + 100_000).into();
    let auth = Oidc::issuer(&provider.url).audience(URL);
    let function = served(&no_permits(), |server| server.auth(auth));
    let (body, token) = (json!({"tool_id": "Act.Again"}), provider.token(&claims));
    let call = async || {
        let body = call_with(&function, &body, &token).await;
        assert_eq!(body["success"], true, "{body}");
    };
    call().await;
    network.recorder.take();
    call().await;
    add("a call with an access token, while its issuer's keys are cached");
    function.advance(Duration::from_hours(1));
    call().await;
    add("a call with an access token, after that");
}
