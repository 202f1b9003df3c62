//! Events that come twice, late, never or in another order; invocations that are refused; and
//! processes that are killed.

use futures_util::future::join_all;
use test_support::invocations::Limits;

use super::*;

/// More than the time within which a task has to start.
const TOO_LONG: Duration = Duration::from_secs(5 * 60 + 3);

const CUT_OFF: &str = "This call was cut off, and may have had its effect";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn an_event_that_comes_more_than_once_starts_its_task_once() {
    let tools = Tools::start().await;
    for tool in ["Long_Once", "Long_Write"] {
        let input = json!({"before_ms": 200});
        let task = tools.queue("", tool, input, tool).await;
        let (one, other) = tokio::join!(
            tools.function.invoke(&task.event, None),
            tools.function.invoke(&task.event, None),
        );
        assert_eq!([one, other], [NOTHING; 2], "{tool}");
        assert_written(&tools.get(&task.id).await, tool);
        assert_eq!(tools.function.invoke(&task.event, None).await, NOTHING);
        assert_eq!(tools.effects_of(tool), 1);
        // The caller still gets the outcome itself, in time.
        let answer = task.answer.await.unwrap();
        assert_eq!(answer["resultType"], "complete", "{answer}");
    }
    tools.function.treat(Treatment::DeliverTwice);
    let answer = tools.call("", "Long_Once", json!({}), "twice").await;
    let written = json!({"result": "written for twice"});
    assert_eq!(answer["structuredContent"], written, "{answer}");
    assert_eq!(tools.effects_of("twice"), 1);
    // Each task has one line in the log, besides those of the requests.
    let is_task = |line: &&String| {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        line["message"] == "call" && line["dialect"] == "task"
    };
    let mut lines = Vec::new();
    let logged = eventually("the log has all tasks", async || {
        lines.extend(tools.function.lines());
        let count = lines.iter().filter(is_task).count();
        (count >= 3).then_some(count)
    });
    assert_eq!(logged.await, 3);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_task_whose_event_is_late_or_lost_fails_and_runs_nothing() {
    let tools = Tools::start().await;
    for tool in ["Long_Once", "Long_Write"] {
        let task = tools.queue("", tool, json!({}), tool).await;
        let waiting = tools.get(&task.id).await;
        assert_eq!(waiting["status"], "working", "{waiting}");
        assert!(waiting["pollIntervalMs"].as_u64().unwrap() >= 1000);
        tools.age(&task.id, TOO_LONG);
        let lost = tools.get(&task.id).await;
        assert_eq!(lost["status"], "failed", "{lost}");
        assert_eq!(lost["error"]["code"], -32603, "{lost}");
        let message = "The task did not start in time, and nothing was run.";
        assert_eq!(lost["error"]["message"], message, "{lost}");
        // It comes after all.
        assert_eq!(tools.function.invoke(&task.event, None).await, NOTHING);
        assert_eq!(tools.get(&task.id).await["status"], "failed");
        assert_eq!(tools.effects_of(tool), 0);
        // Nothing has run, so the same call may be repeated, also at most once.
        let again = tools.queue("", tool, json!({}), tool).await;
        assert_ne!(again.id, task.id);
        // The event of the first task does not start the second one.
        let stray = tools.function.invoke(&task.event, None).await;
        assert!(matches!(stray, End::Error(_)), "{stray:?}");
        assert_eq!(tools.effects_of(tool), 0);
        assert_eq!(tools.function.invoke(&again.event, None).await, NOTHING);
        assert_written(&tools.get(&again.id).await, tool);
        assert_eq!(tools.effects_of(tool), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn events_in_another_order_start_their_own_tasks() {
    let tools = Tools::start().await;
    let first = tools.queue("", "Long_Write", json!({}), "first").await;
    let second = tools.queue("", "Long_Write", json!({}), "second").await;
    assert_eq!(tools.function.invoke(&second.event, None).await, NOTHING);
    assert_written(&tools.get(&second.id).await, "second");
    assert_eq!(tools.get(&first.id).await["status"], "working");
    assert_eq!(tools.function.invoke(&first.event, None).await, NOTHING);
    assert_written(&tools.get(&first.id).await, "first");
    assert_eq!(tools.effects(), ["second ", "first "]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_call_that_cannot_be_handed_over_is_rejected_and_may_be_repeated() {
    for (treatment, advice) in [
        (Treatment::Refuse(403, "AccessDeniedException"), ""),
        (
            Treatment::Refuse(500, "ServiceException"),
            " Try again in 1 second.",
        ),
        (
            Treatment::Refuse(429, "TooManyRequestsException"),
            " Try again in 1 second.",
        ),
        (Treatment::Ignore, " Try again in 1 second."),
    ] {
        let tools = Tools::start().await;
        tools.function.treat(treatment);
        let rejected = tools.call("", "Long_Once", json!({}), "refused").await;
        assert_eq!(rejected["isError"], true, "{treatment:?}: {rejected}");
        let text = format!("The tool server is temporarily unavailable.{advice}");
        assert_eq!(text_of(&rejected), text, "{treatment:?}");
        // The remaining record says that nothing runs or will run.
        for item in tools.table.items() {
            let is_sealed = item.get("sealed").is_some();
            assert!(!is_sealed && !is_running(&item), "{treatment:?}: {item}");
        }
        // An invocation without an answer may have been accepted.
        for event in tools.function.invocations() {
            let stray = tools.function.invoke(&event, None).await;
            assert_ne!(stray, End::Died, "{treatment:?}");
        }
        assert!(tools.effects().is_empty(), "{treatment:?}");
        tools.function.treat(Treatment::Deliver);
        let repeated = tools.call("", "Long_Once", json!({}), "refused").await;
        let written = json!({"result": "written for refused"});
        assert_eq!(repeated["structuredContent"], written, "{treatment:?}");
        assert_eq!(tools.effects_of("refused"), 1, "{treatment:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_call_whose_invocation_was_accepted_without_an_answer_goes_on() {
    let tools = Tools::start().await;
    tools.function.treat(Treatment::DeliverUnanswered);
    let input = json!({"after_ms": 4500});
    let answer = tools.call("", "Long_Once", input, "unanswered").await;
    // It must not say that nothing was run.
    assert_eq!(answer["resultType"], "task", "{answer}");
    let id = answer["taskId"].as_str().unwrap();
    assert_written(&tools.end_of(id).await, "unanswered");
    assert_eq!(tools.effects(), ["unanswered "]);
}

/// A tool that is killed, with what has happened until then.
struct Killed {
    tool: &'static str,
    call_id: String,
    input: Value,
    has_effect: bool,
}

impl Killed {
    async fn check(self, tools: &Arc<Tools>, task: Queued) {
        let Self {
            tool,
            call_id,
            input,
            has_effect,
        } = self;
        let started = tools.deliver(&task.event);
        tools.start_of(&task.id).await;
        if has_effect {
            eventually("the tool has its effect", async || {
                (tools.effects_of(&call_id) == 1).then_some(())
            })
            .await;
        }
        assert!(tools.function.kill(&task.event), "{call_id}");
        assert_eq!(started.await.unwrap(), End::Died, "{call_id}");
        assert_eq!(tools.get(&task.id).await["status"], "working", "{call_id}");
        // Lambda delivers the event of an invocation that has failed once more.
        assert_eq!(tools.function.invoke(&task.event, None).await, NOTHING);
        let lost = tools.end_of(&task.id).await;
        assert_eq!(lost["status"], "failed", "{call_id}: {lost}");
        assert_eq!(lost["error"]["code"], -32603, "{call_id}: {lost}");
        let message = lost["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(CUT_OFF), "{call_id}: {message}");
        let effects = usize::from(has_effect);
        assert_eq!(tools.effects_of(&call_id), effects, "{call_id}");
        if tool == "Long_Once" {
            let again = tools.call("", tool, input, &call_id).await;
            assert_eq!(again["isError"], true, "{call_id}: {again}");
            assert!(text_of(&again).starts_with(CUT_OFF), "{call_id}: {again}");
            assert_eq!(tools.effects_of(&call_id), effects, "{call_id}");
        } else {
            let again = tools.call("", tool, input, &call_id).await;
            assert_eq!(again["resultType"], "task", "{call_id}: {again}");
            let event = events_of(tools, &task.id).pop().unwrap();
            let runs = tools.deliver(&event);
            eventually("the tool has its effect again", async || {
                (tools.effects_of(&call_id) == effects + 1).then_some(())
            })
            .await;
            assert!(tools.function.kill(&event), "{call_id}");
            assert_eq!(runs.await.unwrap(), End::Died);
        }
        let events = events_of(tools, &task.id).len();
        assert_eq!(events, if tool == "Long_Once" { 1 } else { 2 }, "{call_id}");
    }
}

/// Returns the events of a call, of which a repeated one may have a second task.
fn events_of(tools: &Tools, id: &str) -> Vec<Value> {
    let events = tools.function.invocations().into_iter();
    let is_same = |event: &Value| {
        let task = event["lambda_tools"]["task"].as_str();
        task.unwrap().starts_with(&id[..64])
    };
    events.filter(is_same).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_task_whose_process_is_killed_fails_and_does_not_run_twice_if_it_must_not() {
    let tools = Tools::start().await;
    tools.function.limit(Limits {
        event: Duration::from_secs(4),
        ..Limits::default()
    });
    let mut all = Vec::new();
    for tool in ["Long_Once", "Long_Write"] {
        for (name, input) in [
            ("before", json!({"before_ms": 1200, "after_ms": 10_000})),
            ("after", json!({"after_ms": 10_000})),
            ("between", json!({"before_ms": 100, "after_ms": 10_000})),
        ] {
            let killed = Killed {
                tool,
                call_id: format!("{tool}-{name}"),
                input,
                has_effect: name != "before",
            };
            let (input, call_id) = (killed.input.clone(), killed.call_id.clone());
            let task = tools.queue("", tool, input, &call_id).await;
            all.push(killed.check(&tools, task));
        }
    }
    join_all(all).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_call_in_the_background_is_counted_once_and_one_beyond_a_quota_is_not_handed_over() {
    let tools = Tools::with(&[("TOOLS_QUOTAS", "tool:Long.Once=1/day")]).await;
    let call = async |call_id: &str| {
        let input = json!({"text": "counted", "after_ms": 100});
        tools.call("", "Long_Once", input, call_id).await
    };
    for _ in 0..2 {
        let result = call("first").await;
        assert_eq!(result["isError"], false, "{result}");
    }
    for _ in 0..2 {
        let result = call("second").await;
        assert!(text_of(&result).starts_with("Too many calls. "), "{result}");
    }
    assert_eq!(
        (tools.effects_of("first"), tools.effects_of("second")),
        (1, 0)
    );
    assert_eq!(tools.function.invocations().len(), 1);
    let items = tools.table.items();
    let counts = items.iter().filter_map(|item| item.get("count"));
    assert_eq!(counts.collect::<Vec<_>>(), [&json!({"N": "1"})]);
}
