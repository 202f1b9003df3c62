//! No secret reaches any output, whatever a tool does with it: response bodies, logs or spans.

use std::{
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use lambda_tools::{
    Context, Failure, Protocol, Secret, Server, Tool, Toolkit, http,
    secrets::{ReadFuture, SecretStore, Secrets},
    serve,
    testing::LambdaFunction,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
#[cfg(feature = "otlp")]
use test_support::marks::{TWILIO, assert_unmarked, marked_events, special_events};
use test_support::{
    assert_program,
    lambda::{LONG, event, invoke_on},
    marks::{MARK, Scratch, search},
};

#[cfg(feature = "otlp")]
use crate::{
    collector::{Collector, attribute},
    tools::program,
};

#[cfg(feature = "otlp")]
#[tokio::test]
async fn no_event_puts_a_secret_into_a_span() {
    let collector = Collector::start().await;
    let spans = collector.url();
    let mut events = marked_events();
    events.extend(special_events());
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*spans),
        ("TOOLS_AUTH", "none"),
        ("TOOLS_BASE_PATH", "/agents"),
        ("TWILIO_API_KEY", TWILIO),
    ];
    search("spans", program(), &events, &environment).await;
    let exported = collector.texts();
    assert!(exported.len() > events.len() / 2, "spans are exported");
    assert_unmarked("spans", exported);
}

/// The delay of spawned tasks, which outlive their calls.
const LATER: Duration = Duration::from_millis(200);

/// Returns a tool that exposes its secrets, in every way that happens by mistake.
fn careless_tools() -> Vec<Tool> {
    /// Exposes its secrets.
    #[derive(Deserialize, JsonSchema)]
    struct Fail {
        /// The mistake.
        way: String,
    }

    async fn fail(input: Fail, cx: Context) -> Result<String, Failure> {
        let secret = cx.secret("KEY")?;
        let token = cx.token("google")?;
        let text = || {
            format!(
                "https://api.example/?key={}&t={}",
                secret.expose(),
                token.expose()
            )
        };
        // What outlives a call may hold secrets of the server's store alone.
        let stored = format!("https://api.example/?key={}", secret.expose());
        match input.way.as_str() {
            "debug" => panic!("{cx:?} {secret:?}"),
            "panic" => panic!("no response from {}", text()),
            "expect" => {
                let content = std::fs::read_to_string(text());
                Ok(content.map_err(|_| text()).expect("a file"))
            }
            "task" => {
                let _ = tokio::spawn(async move { panic!("in a task: {stored}") }).await;
                Ok(String::new())
            }
            "thread" => {
                let thread = move || panic!("in a thread: {stored}");
                let _ = tokio::task::spawn_blocking(thread).await;
                Ok(String::new())
            }
            "question-mark" => Err(std::io::Error::other(text()))?,
            "message" => Err(Failure::new(text())
                .prompt(text())
                .developer_message(text())),
            // The text is longer than what is read of it, or its message is cut within the key.
            "api" | "api-cut" => {
                let (before, times) = if input.way == "api" {
                    (0, 200)
                } else {
                    (529, 1)
                };
                let text = format!("{} {}", "x".repeat(before), text().repeat(times));
                let body = json!({"message": text}).to_string();
                let response = http::Response::builder().status(422).body(body)?;
                Err(Failure::from_response(response).await)
            }
            "trace" => {
                let _span = tracing::info_span!("own", text = text()).entered();
                tracing::info!(key = secret.expose(), "with {}", token.expose());
                Ok(String::new())
            }
            "later-log" => {
                tokio::spawn(async move {
                    tokio::time::sleep(LATER).await;
                    tracing::info!(text = stored, "later {stored:?}");
                });
                Ok(String::new())
            }
            "later-panic" => {
                tokio::spawn(async move {
                    tokio::time::sleep(LATER).await;
                    panic!("later: {stored}");
                });
                Ok(String::new())
            }
            "wait" => {
                tokio::time::sleep(LATER * 3).await;
                Ok(String::new())
            }
            "log" => {
                println!("{cx:?}");
                Ok(String::new())
            }
            _ => unreachable!(),
        }
    }

    let tool = Tool::new("Careless.Fail@1.0.0", fail);
    vec![tool.secret("KEY").authorization("google", ["mail"])]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn careless_program_of_tests() {
    assert_program();
    let toolkit = Toolkit::new(careless_tools()).unwrap();
    serve(toolkit).await.unwrap();
}

/// Returns a call of OXP.
fn called(body: &Value) -> Value {
    let mut event = event("calculator/add.header-form");
    event["body"] = body.to_string().into();
    event
}

fn careless_program() -> Command {
    test_support::program("leaks::careless_program_of_tests")
}

fn careless_call(way: &str, secrets: &Value) -> Value {
    let token = json!([{"id": "google", "token": "token-Xmark-01234567"}]);
    let context = json!({"authorization": token, "secrets": secrets});
    called(&json!({"tool_id": "Careless.Fail", "input": {"way": way}, "context": context}))
}

#[tokio::test]
async fn a_careless_tool_does_not_leak_its_secrets() {
    let ways = "debug panic expect question-mark message api api-cut log trace";
    let with_stored = ["task", "thread", "later-log", "later-panic", "wait"];
    let (none, from_caller) = (
        json!([]),
        json!([{"id": "KEY", "value": "given Xmark \"0123\""}]),
    );
    let both = |way| [careless_call(way, &none), careless_call(way, &from_caller)];
    let mut events: Vec<_> = ways.split(' ').flat_map(both).collect();
    events.extend(with_stored.map(|way| careless_call(way, &none)));
    #[cfg(feature = "otlp")]
    let collector = Collector::start().await;
    #[cfg(feature = "otlp")]
    let url = collector.url();
    for format in ["JSON", "Text"] {
        let environment = [
            ("TOOLS_AUTH", "none"),
            ("KEY", "stored-Xmark-0123456789"),
            ("AWS_LAMBDA_LOG_FORMAT", format),
            #[cfg(feature = "otlp")]
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &*url),
        ];
        let printed = search("careless", careless_program(), &events, &environment).await;
        let lines_with =
            |text: &str| -> Vec<_> { printed.iter().filter(|line| line.contains(text)).collect() };
        assert_eq!(lines_with("with [secret]").len(), 2, "{format}");
        let later = lines_with("later ");
        assert_eq!(later.len(), 1, "{format}");
        assert_eq!(later[0].matches("key=[secret]").count(), 2, "{later:?}");
        // Three ways to panic in a call, with a secret from the call and from the environment, and
        // three elsewhere.
        let panics = lines_with("a tool panicked");
        assert_eq!(panics.len(), 9, "{format}");
        // Those in a call are put together of inputs, which are not logged.
        let shown = panics.iter().filter(|it| it.contains("[secret]"));
        assert_eq!(shown.count(), 3, "{panics:#?}");
    }
    #[cfg(feature = "otlp")]
    {
        let own = collector.span("own").await;
        let text = attribute(&own.attributes, "text").unwrap();
        assert_eq!(text, "https://api.example/?key=[secret]&t=[secret]");
        assert_unmarked("spans", collector.texts());
    }
}

/// A store that returns another value on each read.
struct Rotated(AtomicUsize);

impl SecretStore for Rotated {
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        let reads = self.0.fetch_add(1, Ordering::Relaxed);
        let value = move |_: &String| Ok(Some(Secret::from(format!("{MARK}-0123456789-{reads}"))));
        Box::pin(async move { ids.iter().map(value).collect() })
    }

    fn location(&self, _: &str) -> String {
        String::new()
    }
}

#[tokio::test]
async fn the_old_and_the_new_value_of_a_rotated_secret_are_redacted() {
    /// Shows its secrets.
    #[derive(Deserialize, JsonSchema)]
    struct Show {}

    async fn show(_: Show, cx: Context) -> Result<(), Failure> {
        let first = cx.secret("KEY")?.expose().to_owned();
        let rotated = cx.secret_rejected("KEY").await.expect("another one");
        assert_ne!(rotated.expose(), first);
        Err(Failure::new("no").developer_message(format!("{first} and {}", rotated.expose())))
    }

    let tool = Tool::new("Careless.Show@1.0.0", show).secret("KEY");
    let secrets = Secrets::from_store(Rotated(AtomicUsize::default()));
    let function = LambdaFunction::new(Server::new(Toolkit::new([tool]).unwrap()).secrets(secrets));
    let event = called(&json!({"tool_id": "Careless.Show"}));
    let response = function.respond(&event.to_string()).await.unwrap();
    let message = &response.body["error"]["developer_message"];
    assert_eq!(message, "[secret] and [secret]");
}

/// A tool may quote a secret of another tool, which it keeps in memory, around its own.
#[tokio::test]
async fn a_stored_secret_that_contains_a_secret_of_the_call_is_redacted_whole() {
    /// Quotes a text.
    #[derive(Deserialize, JsonSchema)]
    struct Quote {
        /// The text.
        text: String,
    }

    async fn quote(input: Quote) -> Result<(), Failure> {
        Err(Failure::new("no").developer_message(input.text))
    }

    let stored = "outer-part-of-it:inner-part-of-it:other-part-of-it";
    let tools = [
        Tool::new("Careless.Read@1.0.0", quote).secret("STORED"),
        Tool::new("Careless.Quote@1.0.0", quote).secret("KEY"),
    ];
    let secrets = Secrets::fixed([("STORED", stored.replace(':', "\u{1}"))]);
    let function = LambdaFunction::new(Server::new(Toolkit::new(tools).unwrap()).secrets(secrets));
    let text = format!("<{}>", stored.replace(':', "\u{1}"));
    for tool in ["Read", "Quote"] {
        let secrets = json!([{"id": "KEY", "value": "inner-part-of-it"}]);
        let body = json!({"tool_id": format!("Careless.{tool}"), "input": {"text": text},
            "context": {"secrets": secrets}});
        let response = function.respond(&called(&body).to_string()).await.unwrap();
        let message = &response.body["error"]["developer_message"];
        assert_eq!(message, "<[secret]>", "{tool}");
    }
}

#[tokio::test]
async fn secrets_beyond_256_kib_are_reported_once_and_redacted_as_they_are() {
    let events = [(); 3].map(|()| careless_call("message", &json!([])));
    let key = format!("{MARK}{}", "-%k:".repeat(20_000));
    let environment = [("TOOLS_AUTH", "none"), ("KEY", &*key)];
    let printed = search("large", careless_program(), &events, &environment).await;
    let warnings = printed.iter().filter(|it| it.contains("256 KiB"));
    assert_eq!(warnings.count(), 1, "{printed:#?}");
}

/// Neither accepted tokens nor the claims of rejected ones are shown.
#[cfg(feature = "oidc")]
#[tokio::test]
async fn no_access_token_is_revealed() {
    use std::time::SystemTime;

    use jsonwebtoken::Algorithm;
    use test_support::issuer::{Issuer, URL, claims};

    let issuer = Issuer::start().await;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.unwrap().as_secs();
    let mut valid = claims(&issuer.url);
    valid["exp"] = (now + 600).into();
    let key = issuer.key(Algorithm::ES256);
    let marked = format!("{MARK}-0123456789");
    let mut tokens = vec![
        key.sign(&valid),
        format!("{}{MARK}", key.sign(&valid)),
        key.sign_as(&json!({"alg": "ES256", "kid": marked}), &valid),
        key.sign_as(&json!({"alg": "ES256", "typ": marked}), &valid),
    ];
    for name in ["iss", "aud", "exp", "scope", "nonce", "token_use"] {
        let mut claims = valid.clone();
        // A token with this scope is accepted, but not for a tool that requires another.
        let is_scope = name == "scope";
        claims[name] = if is_scope {
            json!(marked)
        } else {
            json!([marked])
        };
        tokens.push(key.sign(&claims));
    }
    let call = called(&json!({"tool_id": "Careless.Fail", "input": {"way": "debug"}}));
    let with = |token| {
        let mut event = call.clone();
        event["headers"]["authorization"] = format!("Bearer {token}").into();
        event
    };
    let events: Vec<_> = tokens.iter().map(with).collect();
    let environment = [
        ("TOOLS_AUTH", "oidc"),
        ("TOOLS_OIDC_ISSUERS", &*issuer.url),
        ("TOOLS_OIDC_AUDIENCES", URL),
        ("TOOLS_OIDC_SCOPES", "tools.call"),
    ];
    let printed = search("access-tokens", careless_program(), &events, &environment).await;
    let caller = format!("token {} alice", issuer.url);
    let accepted = printed.iter().filter(|line| line.contains(&caller));
    assert!(accepted.count() >= 2, "two tokens are valid");
    for token in &tokens {
        for part in token.split('.').filter(|part| part.len() > 20) {
            assert!(!printed.iter().any(|line| line.contains(part)), "{part}");
        }
    }
}

/// The text of an input, in a type that shows it whenever it can.
#[derive(JsonSchema)]
#[schemars(transparent)]
struct Shown(String);

impl<'de> Deserialize<'de> for Shown {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        assert!(!text.starts_with("panic"), "{text} is not accepted");
        if text.starts_with("reject") {
            return Err(serde::de::Error::custom(format!("{text} is not accepted")));
        }
        Ok(Self(text))
    }
}

/// Shows its input.
#[derive(Deserialize, JsonSchema)]
struct Show {
    /// How.
    way: String,
    /// What.
    text: Shown,
    /// A number.
    number: Option<u8>,
}

async fn show_input(input: Show) -> Result<String, Failure> {
    let text = input.text.0;
    match &*input.way {
        "message" => Err(Failure::new(&text).prompt(text)),
        "retry" => Err(Failure::new(text).retry()),
        "developer" => Err(Failure::new("no").developer_message(text)),
        "panic" => panic!("{text} is wrong"),
        "unwrap" => Err::<String, _>(text).map(Ok).unwrap(),
        "literal" => panic!("a text of the program"),
        "number" => Ok(format!("{:?}", input.number)),
        _ => Ok(text),
    }
}

fn show_tools() -> Vec<Tool> {
    async fn quote(input: Value) -> Result<Value, Failure> {
        Ok(input)
    }
    let input = json!({"type": "object"});
    let output = json!({"type": "object", "properties": {"text": {"type": "integer"}}});
    let wrong = Tool::dynamic(
        "Input.Wrong@1.0.0",
        "Returns its input.",
        input,
        output,
        quote,
    );
    vec![Tool::new("Input.Show@1.0.0", show_input), wrong]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn input_program_of_tests() {
    assert_program();
    let server = Server::new(Toolkit::new(show_tools()).unwrap());
    let all = [Protocol::Mcp, Protocol::Oxp, Protocol::OpenTool];
    serve(server.protocols(all)).await.unwrap();
}

/// Returns a request with this body.
fn posted(path: &str, headers: Value, body: String) -> Value {
    let mut event = event("calculator/add.header-form");
    event["rawPath"] = path.into();
    event["requestContext"]["http"]["path"] = path.into();
    event["headers"] = headers;
    event["headers"]["content-type"] = "application/json".into();
    event["body"] = body.into();
    event
}

/// Returns calls of a tool in every protocol.
fn in_every_protocol(tool: &str, input: &Value) -> Vec<Value> {
    let modern = test_support::mcp::MODERN;
    let (id, name) = (format!("Input.{tool}"), format!("Input_{tool}"));
    let call = json!({"tool_id": id, "input": input});
    let rpc = |method: &str, params: Value| {
        // OpenTool's id is that of the call.
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let id = NUMBER.fetch_add(1, Ordering::Relaxed);
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let both = json!({"accept": "application/json, text/event-stream"});
    let mut params = json!({"name": name, "arguments": input});
    let legacy = posted("/mcp", both.clone(), rpc("tools/call", params.clone()));
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": modern,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut headers = both;
    headers["mcp-protocol-version"] = modern.into();
    headers["mcp-method"] = "tools/call".into();
    headers["mcp-name"] = name.clone().into();
    let in_schema = |schema: &str| {
        let body = json!({"$schema": schema, "request": call});
        posted("/tools/call", json!({}), body.to_string())
    };
    let version = json!({"oxp-version": "1.0"});
    vec![
        posted("/tools/call", version, call.to_string()),
        in_schema("urn:oxp:1.0"),
        in_schema("otc://1.0"),
        posted(&format!("/tools/{id}/call"), json!({}), input.to_string()),
        posted("/opentool/call", json!({}), rpc(&name, input.clone())),
        legacy,
        posted("/mcp", headers, rpc("tools/call", params)),
        // A direct call.
        call,
    ]
}

#[tokio::test]
async fn no_input_reaches_the_log_the_metrics_or_a_span() {
    let mark = format!("{MARK}-4711");
    let show = |way: &str| json!({"way": way, "text": mark});
    let ways: Vec<_> = "value message retry developer panic unwrap literal"
        .split(' ')
        .collect();
    let mut inputs: Vec<_> = ways.iter().map(|way| ("Show", show(way))).collect();
    inputs.extend([
        ("Show", json!({"way": mark, "text": mark})),
        ("Show", json!({"way": "", "text": format!("panic {mark}")})),
        ("Show", json!({"way": "", "text": format!("reject {mark}")})),
        ("Show", json!({"way": "", "text": {"a": mark}})),
        ("Show", json!({"way": "", "text": {mark.clone(): 1}})),
        ("Show", json!({"way": "", "text": "", mark.clone(): 1})),
        ("Show", json!({"way": "", "text": "", "number": mark})),
        ("Show", json!({"way": [mark], "number": 256})),
        ("Show", json!(mark)),
        ("Show", json!([mark])),
        ("Wrong", json!({"text": mark})),
    ]);
    let calls = inputs
        .iter()
        .map(|(tool, input)| in_every_protocol(tool, input));
    let calls: Vec<Vec<_>> = calls.collect();
    let protocols = calls[0].len();
    let mut events: Vec<_> = calls.concat();
    let accepts = json!({"accept": "application/json, text/event-stream"});
    for path in ["/tools/call", "/opentool/call", "/mcp"] {
        for body in [
            format!("{{\"tool_id\": \"Input.Show\", \"{mark}"),
            json!(mark).to_string(),
            json!({"tool_id": "Input.Show", "input": mark, "method": {mark.clone(): 1}})
                .to_string(),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": mark}})
                .to_string(),
        ] {
            let mut event = posted(path, accepts.clone(), body);
            event["rawQueryString"] = format!("q={mark}").into();
            events.push(event);
        }
    }
    let stderr = Scratch::new("stderr-inputs");
    let mut function = test_support::program("leaks::input_program_of_tests");
    function.stderr(std::fs::File::create(&stderr.0).unwrap());
    #[cfg(feature = "otlp")]
    let collector = Collector::start().await;
    #[cfg(feature = "otlp")]
    let url = collector.url();
    let environment = [
        ("TOOLS_AUTH", "none"),
        ("TOOLS_EVENTS", "http-api,direct"),
        ("TOOLS_METRICS", "cloudwatch"),
        ("AWS_LAMBDA_LOG_LEVEL", "trace"),
        ("RUST_BACKTRACE", "1"),
        #[cfg(feature = "otlp")]
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*url),
    ];
    let events: Vec<_> = events.into_iter().map(|it| (it, LONG)).collect();
    let (reports, printed) = invoke_on(&mut function, &events, &environment).await;
    assert_eq!(reports.len(), events.len());
    let (marked, others): (Vec<_>, Vec<_>) = printed.iter().partition(|it| it.contains(MARK));
    // Only what a tool has written for the log.
    for line in &marked {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert_eq!(line["developer_message"], *mark, "{line}");
        assert_eq!(line["reason"], "failed", "{line}");
    }
    assert_eq!(marked.len(), protocols, "{marked:#?}");
    assert!(!stderr.text().contains(MARK), "{}", stderr.text());
    let count = |text: &str| others.iter().filter(|it| it.contains(text)).count();
    // Two ways to panic with the input, one with a literal, and one while the input is decoded.
    assert_eq!(count("a tool panicked"), 4 * protocols);
    assert_eq!(count("a text of the program"), protocols);
    // A failure without a text for the log is a problem, too.
    for line in others.iter().filter(|it| it.contains("\"failed\"")) {
        assert!(
            line.contains("\"WARN\"") && !line.contains("developer_message"),
            "{line}"
        );
    }
    assert_eq!(count("\"reason\":\"failed\""), 2 * protocols);
    #[cfg(feature = "otlp")]
    {
        let exported = collector.texts();
        assert!(exported.len() > protocols * ways.len());
        assert_unmarked("spans", exported);
    }
}

/// Only the local server shows inputs, and only if it is asked to.
#[tokio::test(flavor = "multi_thread")]
async fn the_local_server_shows_the_texts_of_panics_if_it_shows_calls() {
    for (shows, is_shown) in [("yes", true), ("no", false)] {
        let mut command = test_support::program("leaks::input_program_of_tests");
        command.env("LOG_CALLS", shows).env("NO_COLOR", "1");
        let (running, url) = test_support::Running::serving(&mut command);
        let input = json!({"way": "panic", "text": MARK});
        let body = json!({"tool_id": "Input.Show", "input": input}).to_string();
        let request = reqwest::Client::new().post(format!("{url}/tools/call"));
        request.body(body).send().await.unwrap();
        let line = running.line_with("a tool panicked", 5);
        assert!(line.contains("leaks.rs"), "{line}");
        assert_eq!(line.contains(MARK), is_shown, "{line}");
    }
}
