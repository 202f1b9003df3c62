//! AWS's APIs: an emulator from PyPI, and a gate before it that counts and can refuse.

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use aws_sdk_secretsmanager::{
    Client, Config,
    config::{BehaviorVersion, Credentials, Region},
};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
};
use serde_json::{Value, json};

use crate::support::{Running, installed};

/// moto, stopped when dropped.
pub(crate) struct Emulator {
    running: Running,
    url: String,
}

impl Emulator {
    /// Fails where moto is not installed or does not listen.
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// With the policies that AWS has made, which deployments refer to and which take time to load.
    pub(crate) async fn with_policies() -> Self {
        Self::start_with(&[("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")]).await
    }

    async fn start_with(environment: &[(&str, &str)]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let mut command = Command::new(installed("moto_server"));
        let port = address.port().to_string();
        command.args(["-H", "127.0.0.1", "-p", &port]);
        command.stderr(std::process::Stdio::null());
        command.envs(environment.iter().copied());
        let running = Running::start(&mut command);
        let ends = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < ends, "moto_server does not listen");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let url = format!("http://{address}");
        Self { running, url }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn stop(&mut self) {
        self.running.signal("KILL");
        assert!(self.running.has_ended_within(10));
    }

    /// A gate before it.
    pub(crate) async fn gate(&self) -> Gate {
        let state = Arc::new(GateState {
            behind: self.url.clone(),
            asked: Mutex::default(),
            refusal: Mutex::default(),
            loses: AtomicBool::default(),
        });
        let router = Router::new().fallback(pass).with_state(Arc::clone(&state));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Gate {
            address,
            state,
            server,
        }
    }
}

/// A server that passes requests on.
pub(crate) struct Gate {
    address: SocketAddr,
    state: Arc<GateState>,
    server: tokio::task::JoinHandle<()>,
}

struct GateState {
    behind: String,
    /// Action and body of each request.
    asked: Mutex<Vec<(String, Value)>>,
    refusal: Mutex<Option<(u16, Value)>>,
    loses: AtomicBool,
}

impl Gate {
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers itself from now on.
    pub(crate) fn refuse(&self, status: u16, code: &str, message: &str) {
        let body = json!({"__type": code, "Message": message});
        self.answer(status, body);
    }

    pub(crate) fn answer(&self, status: u16, body: Value) {
        *self.state.refusal.lock().unwrap() = Some((status, body));
    }

    /// Passes on again.
    pub(crate) fn open(&self) {
        *self.state.refusal.lock().unwrap() = None;
    }

    /// The actions asked for since the last time.
    pub(crate) fn asked(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.state.asked.lock().unwrap())
    }

    pub(crate) fn secrets_manager(&self) -> Client {
        let config = Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("test", "test", None, None, "test"))
            .endpoint_url(self.url())
            .build();
        Client::from_conf(config)
    }
}

impl Gate {
    /// Passes the next request on and loses the answer to it.
    pub(crate) fn lose_an_answer(&self) {
        self.state.loses.store(true, Ordering::Relaxed);
    }

    pub(crate) fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("test", "test", None, None, "test"))
            .endpoint_url(self.url())
            .build();
        aws_sdk_dynamodb::Client::from_conf(config)
    }

    /// Makes the table that calls are remembered in.
    pub(crate) async fn make_table(&self, name: &str) {
        let id = AttributeDefinition::builder()
            .attribute_name("id")
            .attribute_type(ScalarAttributeType::S);
        let key = KeySchemaElement::builder()
            .attribute_name("id")
            .key_type(KeyType::Hash);
        let table = self.dynamodb().create_table().table_name(name);
        let table = table
            .attribute_definitions(id.build().unwrap())
            .key_schema(key.build().unwrap())
            .billing_mode(BillingMode::PayPerRequest);
        table.send().await.unwrap();
        self.asked();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn pass(State(gate): State<Arc<GateState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 10_000_000).await.unwrap();
    let action = parts
        .headers
        .get("x-amz-target")
        .map(|it| it.to_str().unwrap());
    let action = action
        .and_then(|it| it.split('.').next_back())
        .unwrap_or_default();
    let asked = serde_json::from_slice(&body).unwrap_or_default();
    gate.asked.lock().unwrap().push((action.to_owned(), asked));
    let refusal = gate.refusal.lock().unwrap().clone();
    if let Some((status, body)) = refusal {
        let response = Response::builder().status(status);
        let response = response.header("content-type", "application/x-amz-json-1.1");
        return response.body(Body::from(body.to_string())).unwrap();
    }
    let url = format!("{}{}", gate.behind, parts.uri);
    let mut headers = parts.headers;
    headers.remove("host");
    let sent = reqwest::Client::new()
        .request(parts.method, url)
        .headers(headers);
    let answered = sent.body(body).send().await;
    if gate.loses.swap(false, Ordering::Relaxed) {
        return Response::builder().status(500).body(Body::empty()).unwrap();
    }
    match answered {
        Ok(answer) => {
            let mut response = Response::builder().status(answer.status());
            if let Some(kind) = answer.headers().get("content-type") {
                response = response.header("content-type", kind);
            }
            response
                .body(Body::from(answer.bytes().await.unwrap()))
                .unwrap()
        }
        // As if nobody listened.
        Err(_) => Response::builder().status(502).body(Body::empty()).unwrap(),
    }
}
