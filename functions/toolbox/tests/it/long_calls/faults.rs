//! Invocations that are refused or lost.

use super::*;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what tests/all builds"]
async fn a_call_that_cannot_be_handed_over_is_rejected_and_may_be_repeated() {
    for (treatment, advice) in [
        (Treatment::Refuse(403, "AccessDeniedException"), ""),
        (
            Treatment::Refuse(429, "TooManyRequestsException"),
            " Try again in 1 second.",
        ),
        (Treatment::Ignore, " Try again in 1 second."),
    ] {
        let tools = Tools::start().await;
        tools.function.treat(treatment);
        let rejected = tools.call("Long_Once", json!({}), "refused").await;
        assert_eq!(rejected["isError"], true, "{treatment:?}: {rejected}");
        let text = format!("The tool server is temporarily unavailable.{advice}");
        assert_eq!(text_of(&rejected), text, "{treatment:?}");
        // An invocation without an answer may have been accepted, and come later.
        for event in tools.function.invocations() {
            tools.function.invoke(&event, None).await;
        }
        assert_eq!(tools.effects_of("refused"), 0, "{treatment:?}");
        tools.function.treat(Treatment::Deliver);
        let repeated = tools.call("Long_Once", json!({}), "refused").await;
        let written = json!({"result": "written for refused"});
        assert_eq!(repeated["structuredContent"], written, "{treatment:?}");
        assert_eq!(tools.effects_of("refused"), 1, "{treatment:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what tests/all builds"]
async fn a_call_whose_invocation_was_accepted_without_an_answer_goes_on() {
    let tools = Tools::start().await;
    tools.function.treat(Treatment::DeliverUnanswered);
    let input = json!({"after_ms": 4500});
    let answer = tools.call("Long_Once", input, "unanswered").await;
    // It must not say that nothing was run.
    assert_eq!(answer["resultType"], "task", "{answer}");
    let ended = tools.end_of(answer["taskId"].as_str().unwrap()).await;
    let written = json!({"result": "written for unanswered"});
    assert_eq!(ended["result"]["structuredContent"], written, "{ended}");
    assert_eq!(tools.effects_of("unanswered"), 1);
}
