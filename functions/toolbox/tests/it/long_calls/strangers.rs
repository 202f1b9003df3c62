//! Callers who know too little: another caller's task, and the event that starts one.

use std::time::SystemTime;

use test_support::issuer::sign_with_secret;

use super::*;

/// Checks that a caller learns nothing about the task of another one, and cannot cancel it.
async fn assert_hidden(tools: &Arc<Tools>, owner: &str, stranger: &str) {
    let task = tools.queue(owner, "Long_Write", json!({}), "owned").await;
    // It differs from the id in one digit.
    let last = if task.id.ends_with('0') { '1' } else { '0' };
    let similar = format!("{}{last}", &task.id[..task.id.len() - 1]);
    let made_up = "0".repeat(task.id.len());
    let ids = [
        task.id.as_str(),
        &similar,
        &made_up,
        &task.id[..64],
        "",
        "no task",
        "é",
    ];
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let mut answers = Vec::new();
        for id in ids {
            let params = json!({"taskId": id, "inputResponses": {}});
            // As a client does whose names are not ASCII.
            let answer = tools.mcp_named(stranger, method, params, id).await;
            let names = answer.headers.keys().map(ToString::to_string);
            let names: Vec<_> = names.collect();
            answers.push((answer.status, names, answer.text));
        }
        assert!(answers[0].2.contains("-32602"), "{:?}", answers[0]);
        for (answer, id) in answers.iter().zip(ids) {
            assert_eq!(*answer, answers[0], "{method} {id:?}");
        }
    }
    let params = || json!({"taskId": task.id});
    let seen = tools.mcp(owner, "tasks/get", params(), true).await.json();
    assert_eq!(seen["result"]["status"], "working", "{seen}");
    assert_eq!(tools.function.invoke(&task.event, None).await, NOTHING);
    let seen = tools.mcp(owner, "tasks/get", params(), true).await.json();
    assert_written(&seen["result"], "owned");
    // The same call of another caller is another call.
    let other = tools
        .queue(stranger, "Long_Write", json!({}), "owned")
        .await;
    assert_ne!(other.id, task.id);
}

impl Tools {
    /// Sends a request whose header `Mcp-Name` may have any text.
    async fn mcp_named(&self, token: &str, method: &str, mut params: Value, name: &str) -> Answer {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}},
        });
        let name = format!("=?base64?{}?=", BASE64_STANDARD.encode(name));
        let authorization = format!("Bearer {token}");
        let headers = [
            ("accept", "application/json, text/event-stream"),
            ("authorization", &*authorization),
            ("mcp-protocol-version", MODERN),
            ("mcp-method", method),
            ("mcp-name", &name),
        ];
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post("/mcp", &headers, &body).await
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_task_exists_only_for_the_caller_with_its_key() {
    let environment = [
        ("TOOLS_AUTH", "api-key"),
        ("TOOLS_API_KEY_IDS", "ONE,OTHER"),
        ("ONE", "one-key-0123456789"),
        ("OTHER", "other-key-0123456789"),
    ];
    let tools = Tools::with(&environment).await;
    assert_hidden(&tools, "one-key-0123456789", "other-key-0123456789").await;
    let params = json!({"taskId": "0".repeat(96)});
    let nobody = tools.mcp("wrong", "tasks/get", params, true).await;
    assert_eq!(nobody.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_task_exists_only_for_the_user_of_its_token() {
    const SECRET: &str = "a-signing-secret-0123456789abcdefgh";
    let environment = [
        ("TOOLS_AUTH", "jwt"),
        ("TOOLS_JWT_SUBJECT_IS_USER", "yes"),
        ("TOOLS_JWT_SECRET", SECRET),
    ];
    let tools = Tools::with(&environment).await;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let expires_at = now.unwrap().as_secs() + 300;
    let token = |user: &str| sign_with_secret(SECRET, &json!({"sub": user, "exp": expires_at}));
    assert_hidden(&tools, &token("alice"), &token("bob")).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn only_the_event_of_the_function_itself_starts_a_task() {
    let kinds = "function-url,direct,agentcore";
    let tools = Tools::with(&[("TOOLS_EVENTS", kinds)]).await;
    let task = tools.queue("", "Long_Write", json!({}), "task").await;
    let other = tools.queue("", "Long_Write", json!({}), "other").await;
    let code = |queued: &Queued| queued.event["lambda_tools"]["code"].clone();
    let ticket = &task.event["lambda_tools"];
    let wrong = "A".repeat(code(&task).as_str().unwrap().len());
    let assert_waiting = async |what: &str| {
        assert!(tools.item(&task.id).get("sealed").is_some(), "{what}");
        assert_eq!(tools.get(&task.id).await["status"], "working", "{what}");
        assert!(tools.effects().is_empty(), "{what}");
    };

    for forged in [
        json!({"task": task.id, "code": wrong}),
        json!({"task": task.id, "code": code(&other)}),
        json!({"task": task.id, "code": ""}),
        json!({"task": task.id, "code": null}),
        json!({"task": task.id}),
        json!({"task": other.id, "code": code(&task)}),
        json!({"task": "é".repeat(64), "code": code(&task)}),
        json!({"code": code(&task)}),
        json!(task.id),
        Value::Null,
    ] {
        let event = json!({"lambda_tools": forged});
        let End::Error(error) = tools.function.invoke(&event, None).await else {
            panic!("{forged} starts something");
        };
        assert_eq!(error["errorType"], "UnsupportedEvent", "{forged}: {error}");
        let message = "The event belongs to no task.";
        assert_eq!(error["errorMessage"], message, "{forged}: {error}");
        assert_waiting(&forged.to_string()).await;
    }

    for context in [
        json!({}),
        json!({"custom": {"a": "b"}}),
        json!({"client": {}}),
    ] {
        let end = tools.function.invoke(&task.event, Some(&context)).await;
        assert!(matches!(end, End::Error(_)), "{context}: {end:?}");
        assert_waiting(&context.to_string()).await;
    }

    let counting = json!({"to": 1, "step_ms": 1});
    let mut arguments = counting.clone();
    arguments["lambda_tools"] = ticket.clone();
    let context = json!({"custom": {"bedrockAgentCoreToolName": "long___Long_Count"}});
    let end = tools.function.invoke(&arguments, Some(&context)).await;
    assert!(matches!(end, End::Response(_)), "{end:?}");
    assert_waiting("arguments of an AgentCore Gateway").await;
    // Even if the arguments are nothing else.
    let end = tools.function.invoke(&task.event, Some(&context)).await;
    assert!(matches!(end, End::Response(_)), "{end:?}");
    assert_waiting("nothing but the event, from an AgentCore Gateway").await;

    for direct in [
        json!({"tool_id": "Long.Count", "input": counting, "lambda_tools": ticket}),
        json!({"lambda_tools": ticket, "tool_id": "Long.Count", "input": counting}),
        json!({"tool_id": "Long.Count", "input": arguments}),
        json!({"Records": [task.event], "lambda_tools": ticket}),
    ] {
        tools.function.invoke(&direct, None).await;
        assert_waiting(&direct.to_string()).await;
    }

    let event = task.event.to_string();
    for path in ["/mcp", "/tools/call", "/opentool/call", "/"] {
        for headers in [
            &[][..],
            &[
                ("lambda_tools", &*event),
                ("x-amz-invocation-type", "Event"),
            ],
            &[
                ("accept", "application/json, text/event-stream"),
                ("mcp-protocol-version", MODERN),
                ("lambda-tools", &*event),
            ],
        ] {
            let answer = tools.post(path, headers, &task.event).await;
            assert!(answer.status >= 400, "{path}: {}", answer.text);
            assert_waiting(path).await;
        }
    }

    assert_eq!(tools.function.invoke(&task.event, None).await, NOTHING);
    assert_written(&tools.get(&task.id).await, "task");
    assert_eq!(tools.effects(), ["task "]);
}
