//! Calls of the function of `tests/faults`, with what their answers must contain.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use fastrand::Rng;
use serde_json::{Value, json};
use test_support::dynamodb::DynamoDb;

use crate::{
    callers::{AUDIENCE, Callers, Credential, KEYS},
    format::{Call, Format},
    function::{Answer, Function, MARK},
    store::Failing,
};

const TABLE: &str = "soak";
/// The server's own secret of the load's tools.
const LOAD_KEY: &str = "marked-load-key-of-the-server";
/// The number of requests of the largest size with which a run begins: the heap gets the size that
/// they need.
const LARGEST_FIRST: u64 = 20;

/// The function, and what is known of its calls.
pub(crate) struct Calls {
    pub(crate) function: Function,
    callers: Callers,
    table: DynamoDb,
    failures: Arc<AtomicU64>,
    random: Rng,
    /// The number of the last call.
    last: u64,
    /// The number of the last run of the tool with an effect.
    last_run: Option<u64>,
}

impl Calls {
    /// Starts the function. In each cycle, the keys change, and the store fails for a while.
    pub(crate) async fn start(program: &Path, begin: Instant, cycle: Duration) -> Self {
        let failures = Arc::<AtomicU64>::default();
        let failing = Failing {
            begin,
            cycle,
            failures: Arc::clone(&failures),
        };
        let table = DynamoDb::intercepted(TABLE, Arc::new(failing)).await;
        let callers = Callers::new(cycle).await;
        let store = table.url();
        let environment = environment(&store, &callers.issuer.url);
        Self {
            function: Function::start(program, &environment, Arc::clone(&failures)).await,
            callers,
            table,
            failures,
            random: Rng::with_seed(1),
            last: 0,
            last_run: None,
        }
    }

    /// Sends the requests of the largest size.
    pub(crate) async fn largest(&mut self) {
        for _ in 0..LARGEST_FIRST {
            self.large().await;
        }
    }

    /// Sends a random call, and those that follow from it.
    pub(crate) async fn next(&mut self) {
        self.callers.rotate_keys();
        match self.random.u32(..1000) {
            0..450 => self.add().await,
            450..530 => self.whose().await,
            530..610 => self.secret().await,
            610..770 => drop(self.remembered().await),
            770..860 => self.unauthorized().await,
            860..930 => self.failing().await,
            930..995 => self.fault().await,
            _ => self.large().await,
        }
    }

    /// Creates a call in any format.
    fn call(&mut self, tool: &'static str, input: Value) -> Call {
        self.last += 1;
        Call {
            format: Format::ALL[self.random.usize(..Format::ALL.len())],
            tool,
            id: format!("call-{}", self.last),
            input,
            secret: None,
        }
    }

    fn format_over_http(&mut self) -> Format {
        Format::ALL[self.random.usize(..Format::OVER_HTTP)]
    }

    /// Sends a call, whose answer must contain a text.
    async fn send(
        &mut self,
        kind: &'static str,
        call: &Call,
        credential: &Credential,
        text: &str,
    ) -> Option<Answer> {
        let check = |answer: &Answer| {
            if answer.text.contains(MARK) {
                return Some("a secret".to_owned());
            }
            let is_right = answer.text.contains(text);
            (!is_right).then(|| format!("{:?} without {text:.200}", call.format))
        };
        self.function.ask(kind, call.event(credential), check).await
    }

    /// Does the same, from any caller.
    async fn expect(&mut self, kind: &'static str, call: Call, text: &str) {
        let credential = self.callers.any(&mut self.random);
        self.send(kind, &call, &credential, text).await;
    }

    async fn add(&mut self) {
        let (a, b) = (self.random.i64(-9999..9999), self.random.i64(..1 << 50));
        let client = self.last;
        let call = self.call("Load.Add", json!({"client": client, "a": a, "b": b}));
        let text = format!(r#""client":{client},"sum":{}}}"#, a + b);
        self.expect("sum", call, &text).await;
    }

    /// Asks for the user of a token.
    async fn whose(&mut self) {
        let mut call = self.call("Load.Whose", json!({"client": 1}));
        call.format = self.format_over_http();
        let user = self.random.usize(..self.callers.tokens.len());
        let token = self.callers.tokens[user].clone();
        let text = format!(r#""user":"user-{user}"}}"#);
        self.send("user of a call", &call, &token, &text).await;
    }

    /// Sends a secret of the call, or the server's own, of which the tool tells the length and a
    /// sum.
    async fn secret(&mut self) {
        let mut call = self.call("Load.Describe", json!({"client": 1}));
        let mut secret = LOAD_KEY.to_owned();
        if Format::WITH_CONTEXT.contains(&call.format) {
            secret = format!("{MARK}{}", self.random.u64(..));
            call.secret = Some(("LOAD_KEY", secret.clone()));
        }
        let sum: u64 = secret.bytes().map(u64::from).sum();
        let text = format!(r#""length":{},"sum":{sum}}}"#, secret.len());
        self.expect("secret", call, &text).await;
    }

    /// Makes a call that is remembered: the first one runs, its repetition in another format does
    /// not, and neither does another input with the same id; that of another caller runs.
    async fn remembered(&mut self) -> Option<()> {
        let mut call = self.call("Load.Act", json!({"client": 1, "number": self.last}));
        let number = self.random.usize(..KEYS.len());
        let key = Callers::key(number);
        let run = self.first(&call, &key).await?;
        let other_format = self.format_over_http();
        // A direct call has another caller.
        let is_direct = call.format == Format::Direct;
        call.format = if is_direct { call.format } else { other_format };
        let text = format!(r#""run":{run}}}"#);
        let answer = self.send("replay", &call, &key, &text).await?;
        if !is_direct && !answer.is_replay() {
            self.function.tally.wrong("replay", "no replay", &answer);
        }
        if self.random.bool() {
            call.input["number"] = u64::MAX.into();
            let text = "belongs to another call";
            self.send("conflict", &call, &key, text).await?;
        } else {
            call.format = other_format;
            self.first(&call, &Callers::key(1 - number)).await?;
        }
        Some(())
    }

    /// Sends a call that runs; returns the number of its run, which no earlier call has.
    async fn first(&mut self, call: &Call, caller: &Credential) -> Option<u64> {
        let text = r#""run":"#;
        let answer = self.send("first call", call, caller, text).await?;
        let (_, rest) = answer.text.split_once(text)?;
        let run = rest.split('}').next().and_then(|run| run.parse().ok());
        if run <= self.last_run || answer.is_replay() {
            let tally = &mut self.function.tally;
            tally.wrong("first call", "no new run", &answer);
            return None;
        }
        self.last_run = run;
        // The store may have kept the claim alone.
        run.filter(|_| answer.store_failures == 0)
    }

    async fn unauthorized(&mut self) {
        let mut call = self.call("Load.Add", json!({"client": 1, "a": 1, "b": 2}));
        call.format = self.format_over_http();
        let credentials = self.callers.wrong();
        let number = self.random.usize(..credentials.len());
        let check = |answer: &Answer| {
            // An unknown key is looked up once in a minute; until then, it may be a new one.
            let is_undecided =
                answer.status == 429 || answer.text.contains("cannot be checked yet");
            let is_right = answer.status == 401 || number == 3 && is_undecided;
            (!is_right).then(|| "not a 401".into())
        };
        let event = call.event(&credentials[number]);
        self.function.ask("unauthorized", event, check).await;
    }

    /// Makes a call that needs a grant, a scope or more time than it has, or that fails.
    async fn failing(&mut self) {
        let input = json!({"client": 1});
        let (kind, tool, text) = match self.random.u8(..4) {
            0 => ("challenge", "Load.Mail", "/authorization/challenges/"),
            1 => ("insufficient scope", "Load.Send", "mail.send"),
            2 => ("time limit", "Load.Hang", "The tool did not finish in time"),
            _ => {
                let input = json!({"client": 1, "a": i64::MAX, "b": 1});
                let call = self.call("Load.Add", input);
                return self.expect("failure", call, "The sum is too large").await;
            }
        };
        let mut call = self.call(tool, input);
        call.format = match kind {
            "challenge" => Format::WITH_CONTEXT[self.random.usize(..3)],
            _ => self.format_over_http(),
        };
        let token = self.callers.tokens[0].clone();
        self.send(kind, &call, &token, text).await;
    }

    /// Calls a tool that panics or leaks its secret.
    async fn fault(&mut self) {
        const STOPPED: &str = "The tool stopped because of an internal error";
        let (kind, text) = [
            ("panic", STOPPED),
            ("panic_with_secret", STOPPED),
            ("quote", "It does not work"),
            ("late_log", "done"),
            ("late_panic", "done"),
        ][self.random.usize(..5)];
        let mut call = self.call("Fault.Do", json!({"kind": kind}));
        // The log of a task that outlives its call is redacted for the server's own secrets.
        if Format::WITH_CONTEXT.contains(&call.format) && !kind.starts_with("late") {
            call.secret = Some(("KEY", format!("{MARK}{}", self.random.u64(..))));
        }
        self.expect(kind, call, text).await;
    }

    /// Sends an input of up to 900 KB, whose texts are returned.
    async fn large(&mut self) {
        let count = match self.last {
            ..LARGEST_FIRST => 10_000,
            _ => self.random.usize(1..=10_000),
        };
        let text = "The quick brown fox jumps over the lazy dog, \"quotes\" included.";
        let record = |id: usize| json!({"id": id, "text": text});
        let records: Vec<_> = (0..count).map(record).collect();
        let call = self.call("Load.Join", json!({"client": 1, "records": records}));
        let text = json!(text.repeat(count)).to_string();
        self.expect("large input and output", call, &text).await;
    }

    /// Stops the function, and describes what it was connected to.
    pub(crate) fn end(self) -> (Function, String) {
        let (requests, failed) = (self.table.requests(), self.failures.load(SeqCst));
        let fetches = self.callers.issuer.fetches();
        let text = format!(
            "{requests} requests to the store, of which {failed} failed; {fetches} fetches of the \
             issuer's keys"
        );
        (self.function, text)
    }
}

fn environment<'a>(store: &'a str, issuer: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut environment = vec![
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "soak"),
        ("AWS_SECRET_ACCESS_KEY", "marked-secret-access-key"),
        ("AWS_ENDPOINT_URL_DYNAMODB", store),
        ("LOAD_TOOLS", "yes"),
        ("TOOLS_AUTH", "api-key,oidc"),
        ("TOOLS_API_KEY_IDS", "KEY_ONE,KEY_TWO"),
        ("TOOLS_OIDC_ISSUERS", issuer),
        ("TOOLS_OIDC_AUDIENCES", AUDIENCE),
        ("TOOLS_METRICS", "cloudwatch"),
        ("TOOLS_IDEMPOTENCY", "dynamodb"),
        ("TOOLS_IDEMPOTENCY_TABLE", TABLE),
        ("TOOLS_OAUTH_TABLE", TABLE),
        (
            "TOOLS_OAUTH_KEY",
            "marked-oauth-0123456789abcdef0123456789abcdef",
        ),
        ("TOOLS_GOOGLE_CLIENT_ID", "soak.apps.googleusercontent.com"),
        ("TOOLS_GOOGLE_CLIENT_SECRET", "marked-google-client-secret"),
        ("KEY", "marked-key-of-the-server"),
        ("LOAD_KEY", LOAD_KEY),
    ];
    environment.extend(KEYS);
    environment
}
