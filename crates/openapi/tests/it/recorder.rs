//! A server in place of an API: it records requests, and answers each with the same response.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::Request,
    response::Response,
};
use lambda_tools_core::{Context, Failure, Toolkit, testing, tool::toolkit::ToolEntry};
use lambda_tools_openapi::ApiTools;
use serde_json::Value;
use test_support::{Served, answer};

/// A request that has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) method: String,
    /// The path and the query.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

impl Recorded {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(it, _)| it == name);
        header.map(|(_, value)| &**value)
    }
}

/// The server.
pub(crate) struct Recorder {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Recorded>>>,
    _served: Served,
}

impl Recorder {
    /// Starts a server that answers with an empty object.
    pub(crate) async fn start() -> Self {
        Self::answering(|_| json_answer(200, "{}")).await
    }

    pub(crate) async fn answering(
        answer: impl Fn(&Recorded) -> Response + Clone + Send + Sync + 'static,
    ) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&requests);
        let app = Router::new().fallback(move |request: Request| {
            let (answer, recorded) = (answer.clone(), Arc::clone(&recorded));
            async move {
                let request = record(request).await;
                recorded.lock().unwrap().push(request.clone());
                answer(&request)
            }
        });
        let served = Served::start(app).await;
        Self {
            url: served.url.clone(),
            requests,
            _served: served,
        }
    }

    /// Returns the requests since the last time.
    pub(crate) fn take(&self) -> Vec<Recorded> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

/// Returns a response with JSON.
pub(crate) fn json_answer(status: u16, body: impl Into<Body>) -> Response {
    answer(status, &[("content-type", "application/json")], body)
}

async fn record(request: Request) -> Recorded {
    let (head, body) = request.into_parts();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = head
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), text(value.as_bytes())));
    Recorded {
        method: head.method.to_string(),
        target: head.uri.path_and_query().unwrap().to_string(),
        headers: headers.collect(),
        body: to_bytes(body, usize::MAX).await.unwrap(),
    }
}

/// Returns a context with all credentials that the tools may need.
pub(crate) fn context(tools: &ApiTools) -> Context {
    let mut context = testing::context().user_id("ada");
    for id in tools.secrets() {
        context = context.secret(id, "user:secret-value");
    }
    for provider in tools.providers() {
        context = context.token(provider.id, "token-of-the-user");
    }
    context.build()
}

/// Returns the toolkit of an API that is at this URL.
pub(crate) fn toolkit(tools: ApiTools, url: impl Into<String>) -> Toolkit {
    let tools = tools.base_url(url).allow_private().tools();
    Toolkit::new(tools.unwrap()).unwrap()
}

/// Calls a tool with an input that its schema allows.
pub(crate) async fn call(entry: &ToolEntry, input: Value, cx: &Context) -> Result<Value, Failure> {
    let run = entry
        .tool
        .decode(input)
        .map_err(|errors| Failure::new(format!("{errors:?}")))?;
    run(cx.clone()).await
}
