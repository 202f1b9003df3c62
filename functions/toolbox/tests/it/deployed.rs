//! The deployed binary, built by `sam build` with the profile, the features and the linker of
//! production, under a runtime API.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use test_support::{
    Running,
    aws::Emulator,
    built, isolated,
    lambda::{Platform, RUNTIME, Report, calling, event},
};

const SECRET: &str = "stored-Xmark-0123456789";
const MARK: &str = "Xmark";

/// Enough time for a limited call, even next to other tests on two cores. Without the limits, calls
/// took five to ten seconds or never ended.
const SOON: Duration = Duration::from_secs(2);

/// More than enough time for any call that completes in time.
const LIMIT: Option<Duration> = Some(Duration::from_secs(10));

const STOPPED: &str = "The tool stopped because of an internal error";
const OUT_OF_TIME: &str = "The tool did not finish in time";

/// Returns the function of faults, built as for deployment.
fn faults() -> Command {
    let mut command = isolated(Command::new(built("sam-faults/Faults/bootstrap")));
    command.env("KEY", SECRET);
    command
}

/// Returns the function on one thread, as `run` starts it, and on a runtime of its own, with
/// `serve`.
fn both_ways() -> [Command; 2] {
    let mut own_runtime = faults();
    own_runtime.env("OWN_RUNTIME", "1");
    [faults(), own_runtime]
}

/// Returns the same, with a limit on its data memory.
fn limited(command: &Command, megabytes: usize) -> Command {
    let mut limited = isolated(Command::new("prlimit"));
    limited.arg(format!("--data={}", megabytes << 20));
    limited.arg(command.get_program());
    limited.env("KEY", SECRET);
    limited
}

fn fault(tool: &str, kind: &str, call_id: &str) -> Value {
    let input = json!({"kind": kind});
    calling(
        &json!({"tool_id": tool, "call_id": call_id, "input": input}),
        &[],
    )
}

fn body_of(report: &Report) -> Value {
    let (failed, answer, in_time) = report;
    assert!(!failed && *in_time, "{answer}");
    serde_json::from_str(answer["body"].as_str().unwrap()).unwrap()
}

async fn call(platform: &mut Platform, event: Value, limit: Option<Duration>) -> Value {
    platform.send_events(&[(event, limit)]);
    body_of(&platform.reports(1).await[0])
}

async fn assert_healthy(platform: &mut Platform) {
    let answer = call(platform, fault("Fault.Do", "nothing", "well"), LIMIT).await;
    assert_eq!(answer["success"], true, "{answer}");
}

#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_panic_is_a_failure_and_the_process_continues() {
    for mut function in both_ways() {
        let mut platform = Platform::start(&mut function, &[], &[]).await;
        for number in 0..3 {
            let panic = fault("Fault.Do", "panic", &format!("panic-{number}"));
            let answer = call(&mut platform, panic, LIMIT).await;
            assert_eq!(answer["success"], false);
            assert_eq!(answer["error"]["message"], STOPPED);
            assert_healthy(&mut platform).await;
        }
        // The same call may be repeated.
        let again = call(&mut platform, fault("Fault.Do", "panic", "panic-0"), LIMIT).await;
        assert_eq!(again["error"]["message"], STOPPED);
        let printed = platform.end();
        let panics = printed.iter().filter(|it| it.contains("a tool panicked"));
        assert_eq!(panics.count(), 4, "{printed:#?}");
    }
}

#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_tool_that_never_ends_fails_in_time() {
    for mut function in both_ways() {
        let mut platform = Platform::start(&mut function, &[], &[]).await;
        for (tool, kind) in [
            ("Fault.Do", "hang"),
            ("Fault.Block", "block"),
            ("Fault.Block", "hang"),
        ] {
            let begun = Instant::now();
            let answer = call(&mut platform, fault(tool, kind, kind), LIMIT).await;
            assert!(begun.elapsed() < SOON, "{tool} {kind}");
            assert_eq!(answer["error"]["message"], OUT_OF_TIME);
            assert_eq!(answer["error"]["can_retry"], true);
            // Even while its thread is still blocked.
            let begun = Instant::now();
            assert_healthy(&mut platform).await;
            assert!(begun.elapsed() < SOON, "{tool} {kind}");
        }
        // The platform's deadline applies as well.
        let short = Some(Duration::from_millis(600));
        let answer = call(&mut platform, fault("Fault.Do", "hang", "short"), short).await;
        assert_eq!(answer["error"]["message"], OUT_OF_TIME);
    }
}

#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn the_log_names_an_async_tool_that_blocks_its_thread() {
    for mut function in both_ways() {
        let mut platform = Platform::start(&mut function, &[], &[]).await;
        call(&mut platform, fault("Fault.Do", "block", "block"), LIMIT).await;
        assert_healthy(&mut platform).await;
        let printed = platform.end();
        let is_report = |line: &&String| {
            line.contains("blocks its thread past its time limit") && line.contains("Fault.Do")
        };
        assert_eq!(printed.iter().filter(is_report).count(), 1, "{printed:#?}");
    }
}

/// Returns variables for a function that remembers calls in the emulator's table.
fn remembering(url: &str) -> [(&str, &str); 6] {
    [
        ("TOOLS_IDEMPOTENCY", "dynamodb"),
        ("TOOLS_IDEMPOTENCY_TABLE", "calls"),
        ("AWS_ENDPOINT_URL", url),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
    ]
}

/// A call that ends the process gets no response, but its claim works as `docs/idempotency.md` says.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs moto and what sam build makes; run tests/all"]
async fn a_tool_that_ends_the_process_does_not_run_again_before_its_claim_ends() {
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    proxy.create_table("calls").await;
    let url = proxy.url();
    let environment = remembering(&url);
    let limit = Some(Duration::from_secs(3));
    for kind in ["abort", "exit", "overflow", "panic_twice"] {
        let calls = ["Fault.Once", "Fault.Do"].map(|tool| (fault(tool, kind, kind), limit));
        let mut claimed = Instant::now();
        for call in &calls {
            let begun = std::slice::from_ref(call);
            claimed = Instant::now();
            let mut platform = Platform::start(&mut faults(), begun, &environment).await;
            assert!(platform.function.has_ended_within(10), "{kind}");
        }
        // Lambda starts another process, which finds the claims.
        let mut platform = Platform::start(&mut faults(), &[], &environment).await;
        assert_healthy(&mut platform).await;
        let again = call(&mut platform, calls[1].0.clone(), LIMIT).await;
        let is_claimed = claimed.elapsed() < Duration::from_secs(3);
        if is_claimed {
            assert_eq!(
                again["error"]["message"], "This call is still running",
                "{kind}"
            );
        }
        // After the deadline and the allowance for differing clocks.
        tokio::time::sleep(Duration::from_secs(6).saturating_sub(claimed.elapsed())).await;
        let again = call(&mut platform, calls[0].0.clone(), LIMIT).await;
        let message = "This call was cut off, and may have had its effect";
        assert_eq!(again["error"]["message"], message, "{kind}");
        // The other call runs again, and ends the process again.
        platform.send_events(&calls[1..]);
        assert!(platform.function.has_ended_within(10), "{kind}");
    }
}

#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn no_fault_reveals_the_secret() {
    let kinds = ["panic_with_secret", "quote", "late_log", "late_panic"];
    for format in ["JSON", "Text"] {
        let environment = [("AWS_LAMBDA_LOG_FORMAT", format)];
        let stderr = std::env::temp_dir().join(format!("faults-{format}-{}", std::process::id()));
        let mut command = faults();
        command.stderr(fs::File::create(&stderr).unwrap());
        let mut platform = Platform::start(&mut command, &[], &environment).await;
        for kind in kinds {
            let answer = call(&mut platform, fault("Fault.Do", kind, kind), LIMIT).await;
            assert!(!answer.to_string().contains(MARK), "{answer}");
        }
        // Tasks that outlive their call log after it.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let printed = platform.end();
        let errors = fs::read_to_string(&stderr).unwrap();
        fs::remove_file(&stderr).unwrap();
        assert!(!errors.contains(MARK), "{errors}");
        for line in &printed {
            assert!(!line.contains(MARK), "{line}");
        }
        // A log line and a panic.
        let late = printed
            .iter()
            .filter(|line| line.contains("late: [secret]"));
        assert_eq!(late.count(), 2, "{printed:#?}");
    }
}

#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn sigterm_ends_the_process_at_once() {
    let mut platform = Platform::start(&mut faults(), &[], &[]).await;
    assert_healthy(&mut platform).await;
    platform.function.signal("TERM");
    assert!(platform.function.has_ended_within(2));
}

#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_header_that_is_not_valid_http_fails_no_invocation() {
    let mut command = isolated(Command::new(built("sam/Toolbox/bootstrap")));
    let names = [
        "sources/http-api.invalid-headers",
        "sources/rest-api.invalid-headers",
        "sources/alb.invalid-headers",
    ];
    let events = names.map(|name| (event(name), LIMIT));
    let mut platform = Platform::start(&mut command, &events, &[]).await;
    for report in platform.reports(events.len()).await {
        assert_eq!(body_of(&report)["value"], 15);
    }
}

/// Returns a secret of many parts, each of which is searched for.
fn parts(count: usize) -> String {
    let parts: Vec<_> = (0..count).map(|number| format!("a{number:07}")).collect();
    parts.join(":")
}

fn with_secret(secret: &str) -> Value {
    json!({
        "tool_id": "Fault.Do", "input": {"kind": "quote"},
        "context": {"secrets": [{"id": "KEY", "value": secret}]},
    })
}

/// Returns bodies that are small on the wire and large in memory.
fn amplifying() -> Vec<(&'static str, String)> {
    let nested = "[[[[0]]]],".repeat(200_000) + "0";
    let empty = "{},".repeat(300_000) + "{}";
    let few = "{},".repeat(50_000) + "{}";
    let wrong = r#"{"circle":{"radius":"x"}},"#.repeat(17_000) + "{}";
    let deep = "[".repeat(900_000);
    let call = |input: &str| format!(r#"{{"tool_id": "Shapes.Draw", "input": {input}}}"#);
    let unknown = |json: &str| format!(r#"{{"tool_id": "Shapes.Draw", "x": [{json}]}}"#);
    let with_secret = |secret: &str| with_secret(secret).to_string();
    vec![
        ("2 MB of lists in an unknown field", unknown(&nested)),
        ("1 MB of them", unknown(&nested[..nested.len() / 2 - 1])),
        (
            "1 MB of them in the input",
            call(&format!(
                r#"{{"x": [{}]}}"#,
                &nested[..nested.len() / 2 - 1]
            )),
        ),
        (
            "1 MB of empty objects",
            call(&format!(r#"{{"shapes": [{empty}]}}"#)),
        ),
        (
            "empty objects within the budget",
            call(&format!(r#"{{"shapes": [{few}]}}"#)),
        ),
        (
            "wrong shapes within the budget",
            call(&format!(r#"{{"shapes": [{wrong}]}}"#)),
        ),
        ("1 MB of depth", call(&deep)),
        ("a secret of many parts", with_secret(&parts(100_000))),
        ("1 MB of depth in an unknown field", unknown(&deep)),
        ("6 MB", unknown(&"[[[[0]]]],".repeat(600_000))),
    ]
}

fn raw(body: &str) -> Value {
    let mut event = calling(&json!({}), &[]);
    event["body"] = json!(body);
    event
}

/// Returns resident memory, in bytes.
fn memory_of(running: &Running) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", running.child.id())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    let kilobytes = line.split_whitespace().nth(1).unwrap();
    kilobytes.parse::<usize>().unwrap() << 10
}

#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn no_body_exhausts_the_memory() {
    let mut command = limited(&faults(), 256);
    let mut platform = Platform::start(&mut command, &[], &[]).await;
    let bodies = amplifying();
    let round = async |platform: &mut Platform| {
        for (what, body) in &bodies {
            let begun = Instant::now();
            platform.send_events(&[(raw(body), LIMIT)]);
            let (failed, answer, _) = platform.reports(1).await.remove(0);
            assert!(!failed, "{what}: {answer}");
            let status = answer["statusCode"].as_u64().unwrap();
            assert!([400, 422].contains(&status), "{what}: {answer}");
            assert!(begun.elapsed() < SOON, "{what}: {:?}", begun.elapsed());
        }
    };
    assert_healthy(&mut platform).await;
    let before = memory_of(&platform.function);
    for _ in 0..100_usize.div_ceil(bodies.len()) {
        round(&mut platform).await;
    }
    assert_healthy(&mut platform).await;
    // A secret of the maximum size, in a tool that quotes it.
    let secret = parts(1800);
    for _ in 0..3 {
        let begun = Instant::now();
        let event = calling(&with_secret(&secret), &[]);
        let answer = call(&mut platform, event, LIMIT).await;
        assert_eq!(answer["error"]["developer_message"], "with [secret]");
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    }
    let after = memory_of(&platform.function);
    println!("{before} bytes, then {after}");
    assert!(after < before + (20 << 20), "{before} bytes, then {after}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn large_bodies_do_not_delay_other_requests() {
    let mut command = limited(&faults(), 256);
    command.envs(RUNTIME);
    let (running, url) = Running::serving(&mut command);
    let before = memory_of(&running);
    let bodies = amplifying();
    let mut senders = Vec::new();
    for (_, body) in bodies.iter().cycle().take(24).cloned() {
        let url = format!("{url}/tools/call");
        let sent = reqwest::Client::new().post(url).body(body).send();
        senders.push(tokio::spawn(sent));
    }
    let client = reqwest::Client::new();
    let mut slowest = Duration::ZERO;
    while !senders.iter().all(tokio::task::JoinHandle::is_finished) {
        let begun = Instant::now();
        let health = client.get(format!("{url}/health")).send().await.unwrap();
        assert_eq!(health.status(), 200);
        slowest = slowest.max(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(slowest < SOON, "{slowest:?}");
    let mut answered = 0;
    for sender in senders {
        // Sending fails if the server does not read the body to its end: it rejects bodies that are
        // too large before that.
        if let Ok(answer) = sender.await.unwrap() {
            let status = answer.status().as_u16();
            assert!([400, 422].contains(&status), "{answer:?}");
            answered += 1;
        }
    }
    assert!(answered >= 12, "{answered}");
    // Bodies in work together are no larger than the largest one.
    let after = memory_of(&running);
    println!("{before} bytes, then {after}");
    assert!(after < before + (30 << 20), "{before} bytes, then {after}");
}
