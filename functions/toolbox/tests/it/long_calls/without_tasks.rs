//! Calls of tools in the background that become no tasks.

use test_support::{invocations::Limits, mcp::LEGACY};

use super::*;

/// Calls a tool as a client of MCP that takes no tasks; returns the result.
async fn legacy_call(tools: &Tools, tool: &str, input: &Value, call_id: Option<&str>) -> Value {
    let mut params = json!({"name": tool, "arguments": input});
    if let Some(call_id) = call_id {
        params["_meta"] = json!({"lambda-tools/call-id": call_id});
    }
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", LEGACY),
    ];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    tools.post("/mcp", &headers, &body).await["result"].take()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what tests/all builds"]
async fn a_call_that_outlasts_its_request_goes_on_and_its_repetition_gets_the_outcome() {
    let tools = Tools::start().await;
    tools.function.limit(Limits {
        request: Duration::from_secs(2),
        ..Limits::default()
    });
    let input = json!({"before_ms": 2500});
    let body = json!({"tool_id": "Long.Once", "call_id": "oxp", "input": input});
    let (oxp, mcp, without_id) = tokio::join!(
        tools.post("/tools/call", &[], &body),
        legacy_call(&tools, "Long_Once", &input, Some("mcp")),
        legacy_call(&tools, "Long_Once", &input, None),
    );
    let goes_on = "The work goes on: repeat the same call, with the same call id, to get its \
                   outcome.";
    let error = &oxp["error"];
    assert_eq!(error["message"], "The tool is still working", "{oxp}");
    assert_eq!(error["can_retry"], true, "{oxp}");
    assert_eq!(error["retry_after_ms"], 5000, "{oxp}");
    assert_eq!(error["additional_prompt_content"], goes_on, "{oxp}");
    assert!(text_of(&mcp).contains(goes_on), "{mcp}");
    assert!(text_of(&mcp).ends_with("Try again in 5 seconds."), "{mcp}");
    // Nobody can repeat it: a model cannot send an id, and would start the work again.
    let text = "The work goes on. Do not call the tool again for its effect.";
    assert!(text_of(&without_id).ends_with(text), "{without_id}");
    let repeated = eventually("the outcomes are there", async || {
        let oxp = tools.post("/tools/call", &[], &body).await["value"].take();
        let mcp = legacy_call(&tools, "Long_Once", &input, Some("mcp")).await;
        let mcp = mcp["structuredContent"]["result"].clone();
        (!oxp.is_null() && !mcp.is_null()).then_some([oxp, mcp])
    });
    assert_eq!(repeated.await, ["written for oxp", "written for mcp"]);
    assert_eq!((tools.effects_of("oxp"), tools.effects_of("mcp")), (1, 1));
}

/// Without a table for all instances, and with an input that is too large for an item in it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what tests/all builds"]
async fn a_call_that_cannot_be_kept_for_another_instance_runs_in_its_request() {
    for (store, input) in [
        // Longer than the time after which a client would get a task.
        ("memory", json!({"before_ms": 2300})),
        ("none", json!({"before_ms": 2300})),
        ("dynamodb", json!({"text": "x".repeat(420_000)})),
    ] {
        let tools = Tools::with(&[("TOOLS_IDEMPOTENCY", store)]).await;
        let discovered = tools.mcp("server/discover", json!({})).await;
        let has_tasks = discovered["capabilities"]["extensions"][TASKS].is_object();
        assert_eq!(has_tasks, store == "dynamodb", "{discovered}");
        let result = tools.call("Long_Once", input, "direct").await;
        let written = json!({"result": "written for direct"});
        assert_eq!(result["structuredContent"], written, "{store}: {result}");
        assert!(tools.function.invocations().is_empty(), "{store}");
        assert_eq!(tools.effects_of("direct"), 1, "{store}");
    }
}
