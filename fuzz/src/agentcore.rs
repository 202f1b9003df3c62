//! Any text as the event of an AgentCore Gateway: with a client context that stays the same, it
//! changes neither the tool nor the caller nor the user, whatever event it poses as.

use std::sync::LazyLock;

use lambda_tools::{
    AgentCoreUser, Context, EventKind, Failure, Gateway, Server, Tool, Toolkit, http::HeaderName,
    testing::LambdaFunction,
};
use serde_json::{Map, Value, json};

use crate::{MemoryBound, bounded, runtime::wait};

/// A value of JSON takes up to a few hundred bytes, and two bytes of text.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 512,
    base: 16 << 20,
};

const CONTEXT: &str = r#"{"custom": {
    "bedrockAgentCoreToolName": "target___Any_Arguments",
    "bedrockAgentCoreGatewayId": "gateway",
    "bedrockAgentCoreTargetId": "target",
    "bedrockAgentCorePropagatedHeaders": {"x-user-id": "ada"}
}}"#;

static FUNCTION: LazyLock<LambdaFunction> = LazyLock::new(|| {
    let tool = |id: &'static str| {
        let run = move |arguments: Value, cx: Context| async move {
            Ok::<_, Failure>(json!({
                "tool": id,
                "caller": cx.caller().to_string(),
                "user": cx.user_id(),
                "arguments": arguments.as_object().map(Map::len),
            }))
        };
        let input = json!({"type": "object"});
        Tool::dynamic(id, "Takes any arguments.", input, json!({}), run)
    };
    let tools = Toolkit::new([tool("Any.Arguments@1.0.0"), tool("Calculator.Add@1.0.0")]);
    let server = Server::new(tools.expect("right definitions"))
        .auth(Gateway::new())
        .agentcore_user(AgentCoreUser::Header(HeaderName::from_static("x-user-id")))
        .events(
            [EventKind::AgentCore]
                .into_iter()
                .chain(EventKind::DEFAULT.iter().copied()),
        );
    LambdaFunction::new(server)
});

pub fn run(data: &[u8]) {
    if let Ok(event) = str::from_utf8(data) {
        LazyLock::force(&FUNCTION);
        bounded(data.len(), BOUND, || check(event));
    }
}

fn check(event: &str) {
    let answer = wait(FUNCTION.invoke_with_context(event, CONTEXT)).expect("an answer");
    let result = &answer["structuredContent"]["result"];
    if answer["isError"].as_bool().expect("a mark of errors") {
        assert!(result.is_null(), "{answer}");
        assert!(answer["content"][0]["text"].is_string(), "{answer}");
        return;
    }
    let arguments: Map<String, Value> = serde_json::from_str(event).expect("an object");
    let expected = json!({
        "tool": "Any.Arguments@1.0.0",
        "caller": "agentcore gateway target",
        "user": "ada",
        "arguments": arguments.len(),
    });
    assert_eq!(*result, expected);
}
