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

use test_support::issuer::{Issuer, NOW, claims};

use super::{Measured, Network, TABLE};
use crate::{
    aws,
    support::{event, function, server},
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

fn served(permits: &Arc<Semaphore>, change: impl FnOnce(Server) -> Server) -> LambdaFunction {
    function(change(server(Toolkit::new(tools(permits)).unwrap())))
}

async fn call_with(function: &LambdaFunction, body: Value, token: Option<&str>) -> Value {
    let event = event("POST", "/tools/call", &body.to_string());
    let mut event: Value = serde_json::from_str(&event).unwrap();
    if let Some(token) = token {
        event["headers"]["authorization"] = format!("Bearer {token}").into();
    }
    let response = function.respond(&event.to_string()).await.unwrap();
    assert_eq!(response.status, 200, "{response:?}");
    response.body
}

async fn succeed(function: &LambdaFunction, body: Value) {
    let body = call_with(function, body, None).await;
    assert_eq!(body["success"], true, "{body}");
}

pub(super) async fn measure(network: &Network, measured: &mut Measured) {
    remembered(network, measured).await;
    counted(network, measured).await;
    with_secrets(network, measured).await;
    with_access_tokens(network, measured).await;
}

async fn remembered(network: &Network, measured: &mut Measured) {
    let permits = Arc::new(Semaphore::new(0));
    let store = DynamoDb::new(TABLE).client(aws::dynamodb(&network.proxy));
    let calls = Idempotency::in_store(store).wait_for(Duration::ZERO);
    let function = served(&permits, |server| server.idempotency(calls));
    let mut add = |case: &str| measured.add(case, &network.recorder.take());

    let large = json!({"tool_id": "Act.Again", "call_id": "large",
        "input": {"text": "x".repeat(1_000_000)}});
    succeed(&function, large).await;
    add("a call that needs none of the following, whatever the size of its input");

    let body = json!({"tool_id": "Act.Do", "call_id": "one", "input": {}});
    succeed(&function, body.clone()).await;
    add("a remembered call");
    succeed(&function, body).await;
    add("its repetition");

    let body = json!({"tool_id": "Act.Do", "call_id": "two", "input": {"then": "wait"}});
    let repetition = async {
        while network.recorder.count() < 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The claim has been written.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let claim = network.recorder.take();
        assert_eq!(claim.names(), ["PutItem"]);
        let running = call_with(&function, body.clone(), None).await;
        assert_eq!(running["success"], false, "{running}");
        add("its repetition while it is running, each time it looks for the outcome");
        permits.add_permits(1);
    };
    tokio::join!(succeed(&function, body.clone()), repetition);
    network.recorder.take();
}

async fn counted(network: &Network, measured: &mut Measured) {
    let permits = Arc::new(Semaphore::new(0));
    let store = DynamoDb::new(TABLE).client(aws::dynamodb(&network.proxy));
    let calls = Idempotency::in_store(store);
    let function = served(&permits, |server| {
        server.idempotency(calls).quota(Quota::per_day(1))
    });
    let body = json!({"tool_id": "Act.Again", "input": {}});
    let mut measure = async |case: &str| {
        let call = event("POST", "/tools/call", &body.to_string());
        function.respond(&call).await.unwrap();
        measured.add(case, &network.recorder.take());
    };
    measure("a call, for each quota").await;
    measure("the first call that the quota rejects").await;
    measure("a later one, in the same window and instance").await;
}

async fn with_secrets(network: &Network, measured: &mut Measured) {
    network.proxy.put_secret("KEY", "first").await;
    let store = SecretsManager::new().client(aws::secrets_manager(&network.proxy));
    let secrets = Secrets::from_store(store);
    let function = served(&Arc::new(Semaphore::new(0)), |server| {
        server.secrets(secrets)
    });
    let mut add = |case: &str| measured.add(case, &network.recorder.take());
    let body = json!({"tool_id": "Act.Secretly", "input": {}});
    succeed(&function, body.clone()).await;
    network.recorder.take();
    succeed(&function, body.clone()).await;
    add("a call with cached secrets");
    function.advance(Duration::from_mins(5));
    succeed(&function, body).await;
    add("a call with secrets that were cached more than five minutes ago");
    network.proxy.change_secret("KEY", "rotated").await;
    succeed(
        &function,
        json!({"tool_id": "Act.Secretly", "input": {"then": "reject"}}),
    )
    .await;
    add("`secret_rejected`");
}

async fn with_access_tokens(network: &Network, measured: &mut Measured) {
    let provider = Issuer::start_at("", Some(&network.recorder)).await;
    let auth = Oidc::issuer(&provider.url);
    let mut claims = claims(&provider.url);
    claims["exp"] = (NOW + 100_000).into();
    let auth = auth.audience(claims["aud"].as_str().unwrap().to_owned());
    let function = served(&Arc::new(Semaphore::new(0)), |server| server.auth(auth));
    let token = provider.token(&claims);
    let mut add = |case: &str| measured.add(case, &network.recorder.take());
    let body = json!({"tool_id": "Act.Again", "input": {}});
    call_with(&function, body.clone(), Some(&token)).await;
    network.recorder.take();
    call_with(&function, body.clone(), Some(&token)).await;
    add("a call with an access token, while its issuer's keys are cached");
    function.advance(Duration::from_hours(1));
    call_with(&function, body, Some(&token)).await;
    add("a call with an access token, after that");
}
