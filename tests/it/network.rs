//! The requests that calls cost, of which `docs/production.md` has a summary: calls that are
//! remembered, counted or have users' grants, and cold starts, which read secrets and issuers' keys. The
//! tests of their caches show when these are read again.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use lambda_tools::{
    Failure, Server, Tool, Toolkit,
    idempotency::{DynamoDb, Idempotency},
    quotas::Quota,
    serve,
    testing::LambdaFunction,
};
use serde_json::{Value, json};
use test_support::{
    assert_program,
    aws::{AwsProxy, CREDENTIALS, Emulator},
    issuer::{Issuer, tokens_for},
    lambda::{calling, invoke_on},
    program,
    requests::{Recorded, Recorder},
};
use tokio::sync::Semaphore;

use crate::{
    aws,
    consent_page::local::{Local, oauth_at},
    support::{function, idle, post, server},
};

const TABLE: &str = "records";

/// The number of requests in each case, and of those that wait for each other.
const EXPECTED: &str = "\
0 0 a cold start that needs none of the following
1 1 a cold start with up to 20 secrets
3 1 a cold start with 45 secrets
1 1 a cold start with any number of secrets in one JSON secret
1 1 a cold start with up to 10 secrets in Parameter Store
5 1 a cold start with 45 secrets in Parameter Store
1 1 a cold start with a table of calls
1 1 a cold start with a table of grants
2 2 a cold start with an issuer of access tokens
7 2 a cold start with 45 secrets, both tables and an issuer
0 0 a call that needs none of the following, whatever the size of its input
2 2 a remembered call
1 1 its repetition
1 1 its repetition while it is running, each time it looks for the outcome
1 1 a call, for each quota
1 1 the first call that the quota rejects
0 0 a later one, in the same window and instance
1 1 a call with a user's grant
7 7 a call with a user's grant whose token expires within a minute
3 3 the same while another instance refreshes the token, if one look is enough
3 3 a call whose user has not given a grant yet
2 2 another call whose user has not given a grant yet
2 2 the consent page
3 3 its button
7 7 the provider's redirect back
1 1 the status of a challenge";

/// The time that a request takes at least.
const SHORT: Duration = Duration::from_millis(100);

/// The measured cases, each as a line of the expected ones.
#[derive(Default)]
struct Measured(BTreeSet<String>);

impl Measured {
    fn add(&mut self, case: &str, recorded: &Recorded) {
        let names = recorded.names();
        println!("{case}: {} waits, {names:?}", recorded.waits());
        // Some cases are measured in several ways.
        let line = format!("{} {} {case}", names.len(), recorded.waits());
        self.0.insert(line);
    }
}

/// The emulator behind a proxy that records requests, with a table.
struct Network {
    emulator: Emulator,
    proxy: AwsProxy,
    recorder: Recorder,
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs moto; run tests/all"]
async fn calls_cost_the_expected_requests() {
    let expected: BTreeSet<_> = EXPECTED.lines().map(str::to_owned).collect();
    let (emulator, recorder) = (Emulator::start().await, Recorder::with_delay(SHORT));
    let proxy = emulator.recorded_proxy(&recorder).await;
    proxy.create_table(TABLE).await;
    let network = Network {
        emulator,
        proxy,
        recorder,
    };
    let mut measured = Measured::default();
    cold_starts(&network, &mut measured).await;
    let mut add = |case: &str| measured.add(case, &network.recorder.take());
    Box::pin(remembered(&network, &mut add)).await;
    counted(&network, &mut add).await;
    with_grants(&network, &mut measured).await;
    assert_eq!(measured.0, expected);
}

/// Returns tools that wait for a permit if their input says so.
fn tools(permits: &Arc<Semaphore>) -> Vec<Tool> {
    let permits = Arc::clone(permits);
    let act = move |input: Value| {
        let permits = Arc::clone(&permits);
        async move {
            if input["then"] == "wait" {
                permits.acquire().await.unwrap().forget();
            }
            Ok::<_, Failure>(json!("done"))
        }
    };
    let object = json!({"type": "object"});
    let tool = |id: &'static str, act| Tool::dynamic(id, "Acts.", object.clone(), json!({}), act);
    vec![
        tool("Act.Do@1.0.0", act.clone()),
        tool("Act.Again@1.0.0", act).idempotent(),
    ]
}

fn served(change: impl FnOnce(Server) -> Server) -> (LambdaFunction, Arc<Semaphore>) {
    let permits = Arc::new(Semaphore::new(0));
    let server = server(Toolkit::new(tools(&permits)).unwrap());
    (function(change(server)), permits)
}

async fn call(function: &LambdaFunction, body: &Value) -> Value {
    post(function, "/tools/call", &[], body).await.body
}

async fn succeed(function: &LambdaFunction, body: &Value) {
    let body = call(function, body).await;
    assert_eq!(body["success"], true, "{body}");
}

fn calls_of(network: &Network) -> Idempotency {
    Idempotency::in_store(store_at(&network.proxy))
}

fn store_at(proxy: &AwsProxy) -> DynamoDb {
    DynamoDb::new(TABLE).client(aws::dynamodb(proxy))
}

async fn remembered(network: &Network, add: &mut impl FnMut(&str)) {
    let calls = calls_of(network).wait_for(Duration::ZERO);
    let (function, permits) = served(|server| server.idempotency(calls));
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
        let running = call(&function, &body).await;
        assert_eq!(running["success"], false, "{running}");
        add("its repetition while it is running, each time it looks for the outcome");
        permits.add_permits(1);
    };
    tokio::join!(succeed(&function, &body), repetition);
    network.recorder.take();
}

async fn counted(network: &Network, add: &mut impl FnMut(&str)) {
    let calls = calls_of(network);
    let (function, _) = served(|it| it.idempotency(calls).quota(Quota::per_day(1)));
    for case in [
        "a call, for each quota",
        "the first call that the quota rejects",
        "a later one, in the same window and instance",
    ] {
        call(&function, &json!({"tool_id": "Act.Again"})).await;
        add(case);
    }
}

fn instance(proxy: &AwsProxy, provider: &Issuer) -> Local {
    Local::with_oauth(oauth_at(provider).in_store(store_at(proxy)))
}

async fn succeed_for_alice(instance: &Local) {
    let called = instance.call("alice").await;
    assert!(called["value"].is_string(), "{called}");
}

async fn with_grants(network: &Network, measured: &mut Measured) {
    let provider = Issuer::start_at("", Some(&network.recorder)).await;
    let instance = instance(&network.proxy, &provider);
    // Tokens that are refreshed by the next call.
    provider.change(|it| it.tokens = |_| tokens_for(30));
    let mut add = |case: &str| measured.add(case, &network.recorder.take());
    let id = instance.challenge("alice").await;
    add("a call whose user has not given a grant yet");
    instance.challenge("alice").await;
    add("another call whose user has not given a grant yet");
    let page = instance.open(&id).await;
    add("the consent page");
    let redirect = instance.press(&id, &page).await;
    add("its button");
    let query = format!("code=c&state={}", redirect.state());
    instance.back(redirect.cookie(), &query).await;
    add("the provider's redirect back");
    assert_eq!(instance.status(&id).await, "completed");
    add("the status of a challenge");
    succeed_for_alice(&instance).await;
    add("a call with a user's grant whose token expires within a minute");
    while_another_refreshes(network, (&instance, &provider), measured).await;
    succeed_for_alice(&instance).await;
    measured.add("a call with a user's grant", &network.recorder.take());
}

async fn while_another_refreshes(
    network: &Network,
    (refreshing, provider): (&Local, &Issuer),
    measured: &mut Measured,
) {
    let recorder = Recorder::with_delay(SHORT);
    let proxy = network.emulator.recorded_proxy(&recorder).await;
    let other = instance(&proxy, provider);
    let wait_until = async |recorder: &Recorder, count: usize| {
        while recorder.count() < count {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let held = provider.issuing.lock().await;
    let waiting = async {
        // The lease is taken once the provider has been asked.
        wait_until(&network.recorder, 4).await;
        let release = async {
            wait_until(&recorder, 2).await;
            provider.change(|it| it.tokens = |_| tokens_for(3600));
            drop(held);
        };
        tokio::join!(succeed_for_alice(&other), release);
    };
    tokio::join!(succeed_for_alice(refreshing), waiting);
    let case = "the same while another instance refreshes the token, if one look is enough";
    measured.add(case, &recorder.take());
    network.recorder.take();
}

/// The number of secrets that need several requests.
const MANY: usize = 45;

/// All that a function can have.
const EVERYTHING: &str = "many manager recorded calls grants issuer";

const KEY: &str = "a-key-of-this-server-0123456789abcdef";

/// A function whose tools the test chooses.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn cold_program_of_tests() {
    assert_program();
    let all = std::env::var("HAS").unwrap();
    let has = |name: &str| all.split(' ').any(|it| it == name);
    let ids = (0..MANY).map(|number| format!("SECRET_{number}"));
    let secrets = if has("many") {
        MANY
    } else {
        3 * usize::from(has("few"))
    };
    let plain = idle("Plain.Do@1.0.0", "Does nothing.").idempotent();
    let mut tools = vec![ids.take(secrets).fold(plain, Tool::secret)];
    if has("recorded") {
        tools.push(idle("Recorded.Do@1.0.0", "Does nothing."));
    }
    if has("grants") {
        let tool = idle("Granted.Do@1.0.0", "Does nothing.")
            .idempotent()
            .user_id();
        tools.push(tool.authorization("google", ["mail"]));
    }
    serve(Toolkit::new(tools).unwrap()).await.unwrap();
}

async fn cold_starts(network: &Network, measured: &mut Measured) {
    for number in 0..MANY {
        let id = format!("SECRET_{number}");
        network.proxy.put_secret(&id, "value").await;
        let parameter = network.proxy.put_parameter(&id, "SecureString", "value");
        parameter.await;
    }
    for id in ["TOOLS_OAUTH_KEY", "TOOLS_GOOGLE_CLIENT_SECRET"] {
        network.proxy.put_secret(id, KEY).await;
    }
    network.proxy.put_secret("together", "{}").await;
    for (case, has) in [
        // Stores that no tool needs get no requests.
        ("that needs none of the following", "manager calls"),
        ("that needs none of the following", "parameters calls"),
        ("with up to 20 secrets", "few manager"),
        ("with 45 secrets", "many manager"),
        ("with any number of secrets in one JSON secret", "many json"),
        ("with up to 10 secrets in Parameter Store", "few parameters"),
        ("with 45 secrets in Parameter Store", "many parameters"),
        ("with a table of calls", "recorded calls"),
        ("with a table of grants", "grants"),
        ("with an issuer of access tokens", "issuer"),
        ("with 45 secrets, both tables and an issuer", EVERYTHING),
    ] {
        // A process that is not optimized takes long to create several clients.
        let delay = if has == EVERYTHING { 800 } else { 200 };
        let recorder = Recorder::with_delay(Duration::from_millis(delay));
        start_cold(network, &recorder, has).await;
        measured.add(&format!("a cold start {case}"), &recorder.take());
    }
}

/// Returns the variables for one of the things that a function has.
fn settings_of(name: &str) -> &'static [(&'static str, &'static str)] {
    match name {
        "manager" => &[("TOOLS_SECRETS", "secrets-manager")],
        "json" => &[
            ("TOOLS_SECRETS", "secrets-manager"),
            ("TOOLS_SECRETS_JSON", "together"),
        ],
        "parameters" => &[("TOOLS_SECRETS", "parameter-store")],
        "calls" => &[
            ("TOOLS_IDEMPOTENCY", "dynamodb"),
            ("TOOLS_IDEMPOTENCY_TABLE", TABLE),
        ],
        "grants" => &[
            ("TOOLS_OAUTH_TABLE", TABLE),
            ("TOOLS_GOOGLE_CLIENT_ID", "client"),
        ],
        "issuer" => &[
            ("TOOLS_AUTH", "oidc"),
            ("TOOLS_OIDC_AUDIENCES", "api://tools"),
        ],
        _ => &[],
    }
}

/// Starts a function and waits until it has responded to an event that needs no request.
async fn start_cold(network: &Network, recorder: &Recorder, has: &str) {
    let provider = Issuer::start_at("", Some(recorder)).await;
    let proxy = network.emulator.recorded_proxy(recorder).await;
    let url = proxy.url();
    let mut environment = vec![
        ("AWS_ENDPOINT_URL", &*url),
        ("TOOLS_AUTH", "none"),
        ("TOOLS_SECRETS", "environment"),
        ("TOOLS_OAUTH_KEY", KEY),
        ("TOOLS_IDEMPOTENCY", "none"),
        ("TOOLS_PUBLIC_URL", "https://tools.example"),
        ("HAS", has),
    ];
    if has.contains("issuer") {
        environment.push(("TOOLS_OIDC_ISSUERS", &*provider.url));
    }
    environment.extend(CREDENTIALS);
    for name in has.split(' ') {
        environment.extend_from_slice(settings_of(name));
    }
    let mut function = program("network::cold_program_of_tests");
    let unknown = calling(&json!({"tool_id": "Nothing.Do"}), &[]);
    let (reports, lines) = invoke_on(&mut function, &[(unknown, None)], &environment).await;
    let (has_failed, response, _) = &reports[0];
    let is_rejected = !has_failed && response["statusCode"] != 200;
    assert!(is_rejected, "{response} {lines:?}");
}
