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

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
};
use serde_json::{Value, json};

use crate::{Running, installed};

/// moto, stopped when dropped.
pub struct Emulator {
    running: Running,
    url: String,
}

impl Emulator {
    /// Fails where moto is not installed or does not listen.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// With the policies that AWS has made, which deployments refer to and which take time to load.
    pub async fn with_policies() -> Self {
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

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Stops it while others still talk to it.
    pub fn stop(&mut self) {
        self.running.signal("KILL");
        assert!(self.running.has_ended_within(10));
    }

    /// A gate before it.
    pub async fn gate(&self) -> Gate {
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
pub struct Gate {
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
    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers itself from now on.
    pub fn refuse(&self, status: u16, code: &str, message: &str) {
        let body = json!({"__type": code, "Message": message});
        self.answer(status, body);
    }

    /// The same with a body of one's own.
    pub fn answer(&self, status: u16, body: Value) {
        *self.state.refusal.lock().unwrap() = Some((status, body));
    }

    /// Passes on again.
    pub fn open(&self) {
        *self.state.refusal.lock().unwrap() = None;
    }

    /// The actions asked for since the last time.
    pub fn asked(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.state.asked.lock().unwrap())
    }

    /// Passes the next request on and loses the answer to it.
    pub fn lose_an_answer(&self) {
        self.state.loses.store(true, Ordering::Relaxed);
    }

    /// Asks what is behind, past everything that this gate does. The clients of AWS are part of
    /// what is tested, so that tests do not use them to prepare and to look.
    async fn ask(&self, action: &str, body: Value) -> Value {
        let service = match action.split('_').next() {
            Some("DynamoDB") => "dynamodb",
            _ => "secretsmanager",
        };
        let credential = format!("test/20260101/us-east-1/{service}/aws4_request");
        let asked = reqwest::Client::new()
            .post(&self.state.behind)
            .header("x-amz-target", action)
            .header("content-type", "application/x-amz-json-1.1")
            .header(
                "authorization",
                format!("AWS4-HMAC-SHA256 Credential={credential}"),
            )
            .body(body.to_string());
        let answer = asked.send().await.unwrap();
        let status = answer.status();
        let body = answer.text().await.unwrap();
        assert!(status.is_success(), "{action}: {status} {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Makes a secret.
    pub async fn put_secret(&self, name: &str, value: &str) {
        let secret = json!({"Name": name, "SecretString": value});
        self.ask("secretsmanager.CreateSecret", secret).await;
    }

    /// Makes a secret that is no text; in base64.
    pub async fn put_binary_secret(&self, name: &str, value: &str) {
        let secret = json!({"Name": name, "SecretBinary": value});
        self.ask("secretsmanager.CreateSecret", secret).await;
    }

    /// Gives a secret another value.
    pub async fn change_secret(&self, name: &str, value: &str) {
        let secret = json!({"SecretId": name, "SecretString": value});
        self.ask("secretsmanager.PutSecretValue", secret).await;
    }

    /// Makes a table as the template does.
    pub async fn make_table(&self, name: &str) {
        let table = json!({
            "TableName": name,
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        });
        self.ask("DynamoDB_20120810.CreateTable", table).await;
    }

    /// All items of a table.
    pub async fn items(&self, table: &str) -> Vec<Value> {
        let table = json!({"TableName": table});
        let found = self.ask("DynamoDB_20120810.Scan", table).await;
        found["Items"].as_array().unwrap().clone()
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
