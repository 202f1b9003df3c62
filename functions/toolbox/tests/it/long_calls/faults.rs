//! Invocations that are refused or lost, and processes that are killed.

use test_support::invocations::Limits;

use super::*;

const CUT_OFF: &str = "This call was cut off, and may have had its effect";

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

/// Which is killed after its effect, with 10 seconds left.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what tests/all builds"]
async fn a_task_whose_process_is_killed_fails_and_does_not_run_twice_if_it_must_not() {
    let tools = Tools::start().await;
    tools.function.limit(Limits {
        event: Duration::from_secs(4),
        ..Limits::default()
    });
    tools.function.treat(Treatment::Hold);
    for (tool, runs) in [("Long_Once", 1), ("Long_Write", 2)] {
        let input = json!({"after_ms": 10_000});
        let task = tools.call(tool, input.clone(), tool).await;
        let id = task["taskId"].as_str().unwrap();
        let event = tools.function.invocations().pop().unwrap();
        let started = tools.deliver(&event);
        tools.effect_of(tool).await;
        assert!(tools.function.kill(&event), "{tool}");
        assert_eq!(started.await.unwrap(), End::Died, "{tool}");
        assert_eq!(tools.get(id).await["status"], "working", "{tool}");
        // Lambda delivers the event of an invocation that has failed once more.
        assert_eq!(tools.function.invoke(&event, None).await, NOTHING);
        let lost = tools.end_of(id).await;
        assert_eq!(lost["status"], "failed", "{lost}");
        assert_eq!(lost["error"]["code"], -32603, "{lost}");
        let message = lost["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(CUT_OFF), "{message}");
        assert_eq!(tools.effects_of(tool), 1);
        // The same call again.
        tools.function.treat(Treatment::Deliver);
        let again = tools.call(tool, input, tool).await;
        if runs == 1 {
            assert!(text_of(&again).starts_with(CUT_OFF), "{again}");
        } else {
            assert_eq!(again["resultType"], "task", "{again}");
        }
        assert_eq!(tools.effects_of(tool), runs, "{again}");
        tools.function.treat(Treatment::Hold);
    }
}
