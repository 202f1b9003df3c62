//! AWS APIs: an emulator from PyPI, and a proxy for it that records requests and can inject errors.

use std::{
    process::Command,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
};
use serde_json::{Value, json};

use crate::{Running, Served, answer, free_address, installed, requests::Recorder};

/// Variables with the region and the credentials of an AWS client.
pub const CREDENTIALS: [(&str, &str); 3] = [
    ("AWS_REGION", "us-east-1"),
    ("AWS_ACCESS_KEY_ID", "test"),
    ("AWS_SECRET_ACCESS_KEY", "test"),
];

/// The moto server, stopped when dropped.
pub struct Emulator {
    _running: Running,
    url: String,
}

/// Starts an emulator, and a proxy for it.
pub async fn emulated() -> (Emulator, AwsProxy) {
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    (emulator, proxy)
}

impl Emulator {
    /// Panics if moto is not installed or does not listen.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts an emulator with the AWS managed policies, which deployments refer to and which take
    /// time to load.
    pub async fn with_policies() -> Self {
        Self::start_with(&[("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")]).await
    }

    async fn start_with(environment: &[(&str, &str)]) -> Self {
        let address = free_address();
        let mut command = Command::new(installed("moto_server"));
        let port = address.port().to_string();
        command.args(["-H", "127.0.0.1", "-p", &port]);
        command.stderr(std::process::Stdio::null());
        command.envs(environment.iter().copied());
        let running = Running::listening(&mut command, address, 30).await;
        let url = format!("http://{address}");
        Self {
            _running: running,
            url,
        }
    }

    /// Returns its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Starts a proxy for it.
    pub async fn proxy(&self) -> AwsProxy {
        self.proxy_with(None).await
    }

    /// Starts a proxy for it that also records the times of requests.
    pub async fn recorded_proxy(&self, recorder: &Recorder) -> AwsProxy {
        self.proxy_with(Some(recorder)).await
    }

    async fn proxy_with(&self, recorder: Option<&Recorder>) -> AwsProxy {
        let state = Arc::new(GateState {
            emulator: self.url.clone(),
            requests: Mutex::default(),
            fixed_response: Mutex::default(),
            refused: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            recorder: recorder.cloned(),
        });
        let router = Router::new()
            .fallback(receive)
            .with_state(Arc::clone(&state));
        let served = Served::start(router).await;
        AwsProxy { state, served }
    }
}

/// A proxy that forwards requests to the emulator.
pub struct AwsProxy {
    state: Arc<GateState>,
    served: Served,
}

struct GateState {
    /// The emulator's URL.
    emulator: String,
    /// The action and body of each request.
    requests: Mutex<Vec<(String, Value)>>,
    fixed_response: Mutex<Option<(u16, Value)>>,
    /// A text, and the error for requests that contain it.
    refused: Mutex<Option<(String, Value)>>,
    /// Held during a write: the emulator checks a condition and writes in two steps, but DynamoDB
    /// in one.
    writing: tokio::sync::Mutex<()>,
    recorder: Option<Recorder>,
}

impl AwsProxy {
    /// Returns its URL.
    pub fn url(&self) -> String {
        self.served.url.clone()
    }

    /// Responds to all further requests with this error.
    pub fn fail_with(&self, status: u16, code: &str, message: &str) {
        let body = json!({"__type": code, "Message": message});
        self.respond_with(status, body);
    }

    /// Responds with this error to all further requests that contain the text, such as the name of
    /// something that the client may not read.
    pub fn refuse(&self, text: &str, code: &str, message: &str) {
        let body = json!({"__type": code, "message": message});
        *self.state.refused.lock().unwrap() = Some((text.to_owned(), body));
    }

    /// Responds to all further requests with this body.
    pub fn respond_with(&self, status: u16, body: Value) {
        *self.state.fixed_response.lock().unwrap() = Some((status, body));
    }

    /// Takes the action and body of each request since the previous call.
    pub fn take_requests(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.state.requests.lock().unwrap())
    }

    /// Takes the action of each request since the previous call.
    pub fn take_actions(&self) -> Vec<String> {
        let requests = self.take_requests().into_iter();
        requests.map(|(action, _)| action).collect()
    }

    /// Sends a request to the emulator, bypassing this proxy. Tests prepare and inspect data
    /// without the AWS clients, because those are under test.
    async fn send(&self, action: &str, body: Value) -> Value {
        let service = match action.split(['_', '.']).next() {
            Some("AmazonSSM") => "ssm",
            Some("DynamoDB") => "dynamodb",
            _ => "secretsmanager",
        };
        let credential = format!("Credential=test/20260101/us-east-1/{service}/aws4_request");
        let request = reqwest::Client::new()
            .post(&self.state.emulator)
            .header("x-amz-target", action)
            .header("content-type", "application/x-amz-json-1.1")
            .header("authorization", format!("AWS4-HMAC-SHA256 {credential}"))
            .body(body.to_string());
        let response = request.send().await.unwrap();
        let status = response.status();
        let body = response.text().await.unwrap();
        assert!(status.is_success(), "{action}: {status} {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Creates a secret.
    pub async fn put_secret(&self, name: &str, value: &str) {
        let secret = json!({"Name": name, "SecretString": value});
        self.send("secretsmanager.CreateSecret", secret).await;
    }

    /// Creates a binary secret from base64.
    pub async fn put_binary_secret(&self, name: &str, value: &str) {
        let secret = json!({"Name": name, "SecretBinary": value});
        self.send("secretsmanager.CreateSecret", secret).await;
    }

    /// Creates a parameter of this type.
    pub async fn put_parameter(&self, name: &str, kind: &str, value: &str) {
        let parameter = json!({"Name": name, "Type": kind, "Value": value});
        self.send("AmazonSSM.PutParameter", parameter).await;
    }

    /// Creates a table like those of the template.
    pub async fn create_table(&self, name: &str) {
        let table = json!({
            "TableName": name,
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        });
        self.send("DynamoDB_20120810.CreateTable", table).await;
    }

    /// Returns all items of a table.
    pub async fn items(&self, table: &str) -> Vec<Value> {
        let table = json!({"TableName": table});
        let scan = self.send("DynamoDB_20120810.Scan", table).await;
        scan["Items"].as_array().unwrap().clone()
    }
}

async fn receive(State(proxy): State<Arc<GateState>>, request: Request) -> Response {
    let action = request.headers().get("x-amz-target");
    let action = action.map(|it| it.to_str().unwrap());
    let action = action.and_then(|it| it.split('.').next_back());
    let action = action.unwrap_or_default().to_owned();
    let response = forward(&proxy, &action, request);
    match &proxy.recorder {
        Some(recorder) => recorder.record(&action, response).await,
        None => response.await,
    }
}

async fn forward(proxy: &GateState, action: &str, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 10_000_000).await.unwrap();
    let is_write = ["PutItem", "DeleteItem"].contains(&action);
    let json = serde_json::from_slice(&body).unwrap_or_default();
    let recorded = (action.to_owned(), json);
    proxy.requests.lock().unwrap().push(recorded);
    let fixed = proxy.fixed_response.lock().unwrap().clone();
    let refused = proxy.refused.lock().unwrap().clone();
    let refused = refused.filter(|(text, _)| String::from_utf8_lossy(&body).contains(text));
    let fixed = fixed.or(refused.map(|(_, error)| (400, error)));
    if let Some((status, body)) = fixed {
        let headers = [("content-type", "application/x-amz-json-1.1")];
        return answer(status, &headers, body.to_string());
    }
    let url = format!("{}{}", proxy.emulator, parts.uri);
    let mut headers = parts.headers;
    headers.remove("host");
    let forwarded = reqwest::Client::new()
        .request(parts.method, url)
        .headers(headers);
    let writing = proxy.writing.lock();
    let writing = if is_write { Some(writing.await) } else { None };
    let received = forwarded.body(body).send().await;
    drop(writing);
    match received {
        Ok(received) => {
            let kind = received.headers().get("content-type").cloned();
            let kind = kind.iter().map(|it| ("content-type", it.to_str().unwrap()));
            let (status, headers) = (received.status().as_u16(), kind.collect::<Vec<_>>());
            answer(status, &headers, received.bytes().await.unwrap())
        }
        // The emulator is down.
        Err(_) => answer(502, &[], ""),
    }
}
