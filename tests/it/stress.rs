//! Many calls with few ids, on several processes that are killed while they run the calls.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::{
        OpenOptions, {self},
    },
    hash::{BuildHasher, RandomState},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lambda_tools::{Context, Failure, Tool, Toolkit, idempotency::Idempotency, serve};
use serde_json::{Value, json};

use crate::support::server;
use test_support::{Running, aws::Emulator, function, installed, repository};

/// The maximum number of killed processes, so that the test ends.
const MAX_KILLS: usize = 6;

/// True with this probability in percent.
fn chance(percent: u64) -> bool {
    RandomState::new().hash_one(()) % 100 < percent
}

/// Appends a line in one write, because processes share the file.
fn append(file: &Path, line: &str) {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Kills this process.
fn kill(folder: &Path) {
    if lines(&folder.join("killed")).len() < MAX_KILLS {
        let id = std::process::id().to_string();
        append(&folder.join("killed"), &id);
        append(&folder.join("effects"), &format!("killed {id}"));
        Command::new("kill").args(["-KILL", &id]).status().unwrap();
        std::thread::sleep(Duration::from_secs(10));
    }
}

/// Not a test: the function that the test below runs in several processes.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the test below"]
async fn effects_function() {
    let Some(folder) = std::env::var_os("EFFECTS") else {
        return;
    };
    let folder = PathBuf::from(folder);
    let tool = |id: &'static str| {
        let folder = folder.clone();
        let act = move |_: Value, cx: Context| {
            let folder = folder.clone();
            async move {
                let may_die = cx.call_id().starts_with("deadly");
                if chance(20) {
                    return Err(Failure::new("not now").retry_after(Duration::from_millis(50)));
                }
                // At least two processes must be killed.
                let is_early = || lines(&folder.join("killed")).len() < 2;
                if may_die && chance(30) {
                    kill(&folder);
                }
                let line = format!("{} {}", cx.call_id(), std::process::id());
                append(&folder.join("effects"), &line);
                if may_die && (is_early() || chance(30)) {
                    kill(&folder);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok(json!(cx.call_id()))
            }
        };
        let tool = Tool::dynamic(id, "Acts.", json!({"type": "object"}), json!({}), act);
        tool.timeout(Duration::from_secs(3))
    };
    let tools = [
        tool("Effect.Do@1.0.0"),
        tool("Effect.Once@1.0.0").run_at_most_once(),
    ];
    serve(Toolkit::new(tools).unwrap()).await.unwrap();
}

/// A process that is replaced after it was killed.
struct Slot {
    running: Running,
    url: String,
}

impl Slot {
    fn start(folder: &Path, emulator: &str) -> Self {
        let mut command = function("stress::effects_function");
        command
            .env("EFFECTS", folder)
            .env("PORT", "0")
            .env("TOOLS_AUTH", "none")
            .env("TOOLS_IDEMPOTENCY", "dynamodb")
            .env("TOOLS_IDEMPOTENCY_TABLE", "calls")
            .env("AWS_ENDPOINT_URL", emulator)
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env_remove("AWS_LAMBDA_RUNTIME_API");
        let running = Running::start(&mut command);
        let line = running.line_with("Serving tools on", 20);
        let url = line.split_once("on ").unwrap().1.to_owned();
        Self { running, url }
    }
}

type Slots = Arc<Mutex<Vec<Slot>>>;

fn url_of(slots: &Slots, folder: &Path, emulator: &str) -> String {
    let mut slots = slots.lock().unwrap();
    let count = slots.len() as u64;
    let place = usize::try_from(RandomState::new().hash_one(()) % count).unwrap();
    let slot = &mut slots[place];
    if slot.running.has_ended_within(0) {
        *slot = Slot::start(folder, emulator);
    }
    slot.url.clone()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs moto; run tests/all"]
async fn two_hundred_calls_with_twenty_ids_have_twenty_effects() {
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    proxy.create_table("calls").await;
    let folder = std::env::temp_dir().join(format!("effects-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let start = || Slot::start(&folder, emulator.url());
    let slots: Slots = Arc::new(Mutex::new(vec![start(), start(), start()]));

    let mut calls: Vec<(u64, String)> = (0..200)
        .map(|i| {
            let kind = ["deadly-do", "do", "deadly-once", "once"][i % 4];
            (RandomState::new().hash_one(i), format!("{kind}-{}", i % 20))
        })
        .collect();
    calls.sort();
    let mut tasks = tokio::task::JoinSet::new();
    for (_, id) in calls {
        let (slots, folder) = (Arc::clone(&slots), folder.clone());
        let emulator = emulator.url().to_owned();
        tasks.spawn(async move {
            let tool = if id.contains("once") {
                "Effect.Once"
            } else {
                "Effect.Do"
            };
            let body = json!({"tool_id": tool, "call_id": id}).to_string();
            for _ in 0..400 {
                let url = url_of(&slots, &folder, &emulator);
                let request = reqwest::Client::new().post(format!("{url}/tools/call"));
                // A killed process does not respond.
                if let Ok(response) = request.body(body.clone()).send().await
                    && let Ok(outcome) = response.json::<Value>().await
                {
                    // A 400 without `success` means that the store is unavailable.
                    if outcome["success"].is_boolean() && outcome["error"]["can_retry"] != true {
                        return (id, outcome);
                    }
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            panic!("{id} does not end");
        });
    }
    let results = tasks.join_all().await;
    // For each id, the processes that had the effect. Before another process may have it, the
    // previous one must have been killed.
    let mut killed = BTreeSet::new();
    let mut effects: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines(&folder.join("effects")) {
        let (id, process) = line.split_once(' ').unwrap();
        if id == "killed" {
            killed.insert(process.to_owned());
            continue;
        }
        let processes = effects.entry(id.to_owned()).or_default();
        if let Some(previous) = processes.last() {
            assert!(!id.contains("once"), "{id} ran twice");
            assert!(
                killed.contains(previous),
                "{id} ran twice, although {previous} was not killed"
            );
        }
        processes.push(process.to_owned());
    }
    drop(slots);
    fs::remove_dir_all(&folder).unwrap();

    assert!(killed.len() >= 2, "{} processes were killed", killed.len());
    let mut outcomes: HashMap<String, Value> = HashMap::new();
    for (id, result) in results {
        let outcome = (result["value"].clone(), result["error"].clone());
        let first = outcomes.entry(id.clone()).or_insert_with(|| json!(outcome));
        assert_eq!(
            *first,
            json!(outcome),
            "{id}: all calls get the same outcome"
        );
        if result["success"] == true {
            assert_eq!(result["value"], id.as_str());
            assert!(effects.contains_key(&id), "{id}");
        } else {
            let message = result["error"]["message"].as_str().unwrap();
            assert!(
                id.contains("once") && message.contains("was cut off"),
                "{result}"
            );
        }
    }
    assert_eq!(outcomes.len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Python client oxp; run tests/all"]
async fn a_call_that_the_published_client_retries_has_one_effect() {
    let effects = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&effects);
    let slow = move |_: Value, _: Context| {
        let counted = Arc::clone(&counted);
        async move {
            counted.fetch_add(1, Ordering::SeqCst);
            // Longer than the client waits.
            tokio::time::sleep(Duration::from_millis(1500)).await;
            Ok::<_, Failure>(json!("done"))
        }
    };
    let object = json!({"type": "object"});
    let tool = Tool::dynamic("Effect.Slow@1.0.0", "Acts.", object, json!({}), slow);
    let server = server(Toolkit::new([tool]).unwrap());
    let router = server
        .idempotency(Idempotency::in_memory())
        .into_router()
        .unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let run = move || {
        Command::new(installed("python"))
            .arg(repository("tests/it/oxp_retries.py"))
            .arg(url)
            .output()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // The number of requests, and the value.
    assert_eq!(stdout, "2 done\n");
    assert_eq!(effects.load(Ordering::SeqCst), 1);
}
