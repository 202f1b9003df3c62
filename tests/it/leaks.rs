//! No secret reaches any output, whatever a tool does with it: response bodies, logs or spans.

mod inputs;

use std::{
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use lambda_tools::{
    Context, Failure, Secret, Server, Tool, Toolkit, http, secrets::Secrets, serve,
    testing::LambdaFunction,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
#[cfg(feature = "otlp")]
use test_support::marks::assert_unmarked;
use test_support::{
    assert_program,
    lambda::event,
    marks::{MARK, search},
};

#[cfg(feature = "otlp")]
use crate::collector::{Collector, attribute};
use crate::support::{Nothing, Reads, failure};

/// The delay of spawned tasks, which outlive their calls.
const LATER: Duration = Duration::from_millis(200);

/// Returns a tool that exposes its secrets, in every way that happens by mistake.
fn careless_tool() -> Tool {
    /// Exposes its secrets.
    #[derive(Deserialize, JsonSchema)]
    struct Fail {
        /// The mistake.
        way: String,
    }

    async fn fail(input: Fail, cx: Context) -> Result<(), Failure> {
        let (secret, token) = (cx.secret("KEY")?.expose(), cx.token("google")?.expose());
        let text = || format!("https://api.example/?key={secret}&t={token}");
        // What outlives a call may hold secrets of the server's store alone.
        let stored = format!("https://api.example/?key={secret}");
        match input.way.as_str() {
            "debug" => panic!("{cx:?} {:?}", cx.secret("KEY")),
            "panic" => panic!("no response from {}", text()),
            "expect" => {
                let content = std::fs::read_to_string(text());
                content.map_err(|_| text()).expect("a file");
            }
            "task" => {
                let _ = tokio::spawn(async move { panic!("in a task: {stored}") }).await;
            }
            "thread" => {
                let thread = move || panic!("in a thread: {stored}");
                let _ = tokio::task::spawn_blocking(thread).await;
            }
            "question-mark" => Err(std::io::Error::other(text()))?,
            "message" => {
                let failure = Failure::new(text()).prompt(text());
                return Err(failure.developer_message(text()));
            }
            // The text is longer than what is read of it, or its message is cut within the key.
            "api" | "api-cut" => {
                let text = match &*input.way {
                    "api" => text().repeat(200),
                    _ => format!("{} {}", "x".repeat(529), text()),
                };
                let body = json!({"message": text}).to_string();
                let response = http::Response::builder().status(422).body(body)?;
                return Err(Failure::from_response(response).await);
            }
            "trace" => {
                let _span = tracing::info_span!("own", text = text()).entered();
                tracing::info!(key = secret, "with {token}");
            }
            "later" => {
                tokio::spawn(async move {
                    tokio::time::sleep(LATER).await;
                    tracing::info!(text = stored, "later {stored:?}");
                    panic!("later: {stored}");
                });
            }
            "wait" => tokio::time::sleep(LATER * 3).await,
            "log" => println!("{cx:?}"),
            _ => unreachable!(),
        }
        Ok(())
    }

    let tool = Tool::new("Careless.Fail@1.0.0", fail);
    tool.secret("KEY").authorization("google", ["mail"])
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn careless_program_of_tests() {
    assert_program();
    let toolkit = Toolkit::new([careless_tool()]).unwrap();
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
    let with_stored = ["task", "thread", "later", "wait"];
    let none = json!([]);
    let from_caller = json!([{"id": "KEY", "value": "given Xmark \"0123\""}]);
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

/// A header's secret is one of the call's, in each of the ways in which a tool may show those.
#[tokio::test]
async fn a_careless_tool_does_not_leak_the_secret_in_a_header() {
    let ways = "debug panic expect question-mark message api api-cut log trace wait";
    let event = |way| {
        let mut event = careless_call(way, &json!([]));
        event["headers"]["x-customer-key"] = "given Xmark \"0123\"".into();
        event
    };
    let events: Vec<_> = ways.split(' ').map(event).collect();
    let environment = [
        ("TOOLS_AUTH", "none"),
        ("TOOLS_SECRET_HEADERS", "KEY=X-Customer-Key"),
        ("RUST_LOG", "trace"),
    ];
    let printed = search("header", careless_program(), &events, &environment).await;
    let shown = printed.iter().filter(|line| line.contains("[secret]"));
    // A failure's text for developers, and a line of the tool; other lines have no text of a tool.
    assert_eq!(shown.count(), 2, "{printed:#?}");
}

#[tokio::test]
async fn the_old_and_the_new_value_of_a_rotated_secret_are_redacted() {
    async fn show(_: Nothing, cx: Context) -> Result<(), Failure> {
        let first = cx.secret("KEY")?.expose().to_owned();
        let rotated = cx.secret_rejected("KEY").await.expect("another one");
        assert_ne!(rotated.expose(), first);
        Err(Failure::new("no").developer_message(format!("{first} and {}", rotated.expose())))
    }

    let tool = Tool::new("Careless.Show@1.0.0", show).secret("KEY");
    // Another value on each read.
    let reads = AtomicUsize::default();
    let value = move |_: &str| {
        let number = reads.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Secret::from(format!("{MARK}-0123456789-{number}"))))
    };
    let secrets = Secrets::from_store(Reads(value));
    let function = LambdaFunction::new(Server::new(Toolkit::new([tool]).unwrap()).secrets(secrets));
    let error = failure(&function, "Careless.Show", json!({})).await;
    assert_eq!(error["developer_message"], "[secret] and [secret]");
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
    for tool in ["Careless.Read", "Careless.Quote"] {
        let secrets = json!([{"id": "KEY", "value": "inner-part-of-it"}]);
        let body =
            json!({"tool_id": tool, "input": {"text": text}, "context": {"secrets": secrets}});
        let response = function.respond(&called(&body).to_string()).await.unwrap();
        assert_eq!(response.body["error"]["developer_message"], "<[secret]>");
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
        claims[name] = match name {
            "scope" => json!(marked),
            _ => json!([marked]),
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
