//! Searches the interleavings of refreshes of one grant, in processes that share a store, at a
//! provider that revokes the grant if a refresh token is used twice.

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use http::{Request, Response};
use lambda_tools::{
    Context, Failure, OAuth, Server, Tool, Toolkit,
    oauth::Provider,
    secrets::Secrets,
    store::{Over, Record},
    testing::{LambdaFunction, TestOutcome},
};
use lambda_tools_accounts::oauth::{TransportError, with_transport};
use serde_json::{Value, json};
use test_support::openid::form_in;

use crate::{
    Call, Scenario, Setup, bounds,
    execution::{Execution, hold, violates},
    network::{Connection, Network, Shared},
    process::{function, send},
};

/// The time in which the store must respond after a refresh, or the new tokens are lost.
const TO_SAVE: Duration = Duration::from_secs(6);

/// The time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(8);

/// The provider's view of the grant, and the reasons for which it may be lost.
#[derive(Default, Hash)]
struct ProviderState {
    /// The number of refreshes so far. The tokens that they return have their number.
    refreshes: usize,
    is_revoked: bool,
    /// The process that caused the last refresh, and when, until the store has its tokens.
    unsaved: Option<(usize, Duration)>,
    /// True if nobody could save the tokens of a refresh.
    is_lost: bool,
    /// The responses to calls: the token, if there is one; an error.
    responses: BTreeMap<usize, Result<Option<String>, ()>>,
}

fn tokens(number: usize, expires_in: u64) -> Value {
    json!({
        "access_token": format!("a{number}"),
        "refresh_token": format!("r{number}"),
        "token_type": "bearer",
        "expires_in": expires_in,
        "scope": "mail",
    })
}

/// Sends a request of a process for tokens, as the library's HTTP client does.
async fn transport(
    process: Connection,
    provider: Shared<ProviderState>,
    sent: Request<Vec<u8>>,
) -> Result<Response<Vec<u8>>, TransportError> {
    let body = String::from_utf8(sent.into_body()).unwrap();
    if body.contains("authorization_code") {
        // Expires within the margin for refreshes.
        return Ok(Response::new(tokens(0, 3).to_string().into_bytes()));
    }
    let network = &process.network;
    if network.with(|network| network.served().next().is_some()) {
        network.violate("two processes refresh at once");
    }
    let holds_lease = network.with(|network| {
        let mut records = network.records.iter();
        let lease = records.find(|(id, _)| id.starts_with("refresh#"));
        lease.is_some_and(|(_, (_, writer))| writer.0 == process.process)
    });
    if !holds_lease {
        network.violate("a process refreshes without the lease");
    }
    let Ok(received) = tokio::time::timeout(TIMEOUT, process.request(body)).await else {
        provider.with(ProviderState::lose);
        return Err(TransportError("did not answer in time"));
    };
    let body = received.filter(|body| !body.is_empty());
    let body = body.ok_or(TransportError("is not available at the moment"))?;
    let status = if body.contains("\"error\"") { 400 } else { 200 };
    let response = Response::builder().status(status).body(body.into_bytes());
    Ok(response.expect("the status is valid"))
}

impl ProviderState {
    /// Uses the refresh token in the body of a request. Returns the body of the response.
    fn refresh(&mut self, process: usize, body: &str, network: &Shared<Network>) -> String {
        let mut fields = body.split('&');
        let number = fields.find_map(|it| it.strip_prefix("refresh_token=r"));
        let number: usize = number.and_then(|it| it.parse().ok()).unwrap_or(usize::MAX);
        if number < self.refreshes && !self.is_revoked {
            self.is_revoked = true;
            if !self.is_lost(network) {
                network.violate("a refresh token is used twice");
            }
        } else if number > 0 {
            // Only a process that knows the new tokens, which last an hour, can send this one.
            network.violate("a fresh grant is refreshed again");
        }
        if self.is_revoked {
            return json!({"error": "invalid_grant"}).to_string();
        }
        self.refreshes += 1;
        self.unsaved = Some((process, network.with(|network| network.now)));
        tokens(self.refreshes, 3600).to_string()
    }

    /// Returns true if nobody could save the tokens of a refresh.
    fn is_lost(&mut self, network: &Shared<Network>) -> bool {
        self.is_lost |= self.unsaved.is_some_and(|(process, at)| {
            network.with(|network| {
                network.crashed.contains(&process) || network.now.saturating_sub(at) >= TO_SAVE
            })
        });
        self.is_lost
    }

    /// Records that the tokens of the last refresh cannot be saved any more.
    fn lose(&mut self) {
        self.is_lost |= self.unsaved.is_some();
    }

    /// Records the response to a call: the token, if there is one.
    fn respond(
        &mut self,
        call: usize,
        token: Result<Option<String>, ()>,
        network: &Shared<Network>,
    ) {
        match &token {
            Ok(None) if !self.is_lost(network) => network.violate("a grant was forgotten"),
            Err(()) if network.with(|network| network.disturbed.is_empty()) => {
                network.violate("a call failed although everything responded");
            }
            _ => {}
        }
        self.responses.insert(call, token);
    }
}

/// The tool that returns the user's token.
const TOOL: &str = "Mail.Read";
const USER: &str = "user";

/// Returns the server in a process.
fn server(process: &Connection, state: &Shared<ProviderState>) -> Server {
    let read = |_: Value, cx: Context| async move {
        let token = cx.token("p")?;
        Ok::<_, Failure>(json!(token.expose()))
    };
    let object = json!({"type": "object", "properties": {}});
    let tool = Tool::dynamic("Mail.Read@1.0.0", "Reads mail.", object, json!({}), read);
    let tool = tool.authorization("p", ["mail"]).idempotent();
    let (authorize, token) = ("https://p.example/authorize", "https://p.example/token");
    let provider = Provider::new("p", "client", "CLIENT_SECRET", authorize, token);
    let (connection, state) = (process.clone(), state.clone());
    let send = move |request| transport(connection.clone(), state.clone(), request);
    let oauth = OAuth::with([with_transport(provider, send)]);
    let secrets = [
        ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
        ("CLIENT_SECRET", "secret"),
    ];
    Server::new(Toolkit::new([tool.timeout(LEFT)]).unwrap())
        .secrets(Secrets::fixed(secrets))
        .public_url("http://127.0.0.1")
        .oauth(oauth.in_store(process.clone()))
}

/// Lets the user consent.
async fn consent(function: &LambdaFunction) {
    let send = async |method: &str, url: &str, cookie: &str, body: &str| {
        let headers = json!({"content-type": "application/json", "cookie": cookie});
        send(function, method, url, &headers, body).await
    };
    let call = json!({"tool_id": TOOL, "context": {"user_id": USER}}).to_string();
    let response = send("POST", "/tools/call", "", &call).await;
    let body: Value = serde_json::from_str(response["body"].as_str().unwrap()).unwrap();
    let challenge = &body["missing_requirements"]["authorization"][0];
    let id = challenge["id"].as_str().unwrap();
    let path = format!("/authorization/challenges/{id}/start");
    let page = send("GET", &path, "", "").await;
    let cookie = page["cookies"][0].as_str().unwrap();
    let (cookie, _) = cookie.split_once(';').unwrap();
    let form = form_in(page["body"].as_str().unwrap()).unwrap();
    let redirect = send("POST", &path, cookie, &format!("form={form}")).await;
    let location = redirect["headers"]["location"].as_str().unwrap();
    let (_, state) = location.split_once("state=").unwrap();
    let (state, _) = state.split_once('&').unwrap();
    let callback = format!("/authorization/p/callback?code=c&state={state}");
    send("GET", &callback, cookie, "").await;
}

/// The time that a call has.
const LEFT: Duration = Duration::from_secs(10);
/// The time after which no lease is held any more.
const FAR: Duration = Duration::from_secs(30);

/// Calls that need the token of one grant, which must be refreshed.
struct Refreshes {
    setup: Setup,
    /// `None` until the user has consented.
    grant: Option<(String, Record)>,
    /// The function in each process, and one more for the call after the end.
    functions: Vec<Arc<LambdaFunction>>,
    provider: Shared<ProviderState>,
}

impl Refreshes {
    fn new(leads: &[u64]) -> Self {
        let setup = Setup::new(leads, (0..leads.len()).collect());
        let provider = Shared::default();
        let function_of = |call| {
            let process = setup.connection(call);
            function(server(&process, &provider), process)
        };
        let mut refreshes = Self {
            grant: None,
            functions: (0..=leads.len()).map(function_of).collect(),
            setup,
            provider,
        };
        let mut execution = Execution::new(&refreshes, bounds(0, 0, &[]));
        execution.start(0);
        execution.drain().unwrap();
        drop(execution);
        let network = &refreshes.setup.network;
        let records = network.with(|network| std::mem::take(&mut network.records));
        let mut records = records.into_iter().map(|(id, (record, _))| (id, record));
        refreshes.grant = records.find(|(id, _)| id.starts_with("grant#"));
        assert!(refreshes.grant.is_some(), "the user has consented");
        refreshes
    }
}

impl Scenario for Refreshes {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn reset(&self) {
        let provider = &self.provider;
        provider.with(|provider| *provider = ProviderState::default());
        if let Some((id, record)) = self.grant.clone() {
            let writer = (usize::MAX, 0);
            let network = &self.setup.network;
            network.with(|network| network.records.insert(id, (record, writer)));
        }
    }

    fn call(&self, number: usize) -> Call {
        let function = Arc::clone(&self.functions[number]);
        if self.grant.is_none() {
            return Box::pin(async move { consent(&function).await });
        }
        let (provider, network) = (self.provider.clone(), self.setup.network.clone());
        Box::pin(async move {
            let call = function.call(TOOL, serde_json::json!({}));
            let token = match call.user_id(USER).await {
                TestOutcome::Value(token) => Ok(token.as_str().map(str::to_owned)),
                TestOutcome::Rejection(it) if it.reason == "missing_requirements" => Ok(None),
                _ => Err(()),
            };
            provider.with(|provider| provider.respond(number, token, &network));
        })
    }

    fn treatments(&self, request: &str) -> &'static [&'static str] {
        if request.starts_with('{') {
            &["answers", "loses"]
        } else {
            &["answers", "acts", "refuses"]
        }
    }

    fn serve(&self, process: usize, request: &str, treatment: &str) -> Result<String, String> {
        let network = &self.setup.network;
        self.provider.with(|provider| match treatment {
            "refuses" => Ok(String::new()),
            "loses" => {
                provider.lose();
                Ok(String::new())
            }
            "answers" if request.starts_with('{') => Ok(request.to_owned()),
            "answers" => Ok(provider.refresh(process, request, network)),
            _ => Err(provider.refresh(process, request, network)),
        })
    }

    fn written(&self, id: &str, _: &Record, _: Over) {
        if id.starts_with("grant#") {
            // Too late, if another process has the old token by now.
            let network = &self.setup.network;
            let provider = &self.provider;
            provider.with(|it| (it.is_lost, it.unsaved) = (it.is_lost(network), None));
        }
    }

    fn digest(&self, mut state: &mut dyn Hasher) {
        self.provider.with(|provider| provider.hash(&mut state));
    }

    fn end(&self, execution: &mut Execution<'_>) -> Result<(), String> {
        execution.pass(FAR);
        let (call, network) = (self.setup.calls.len(), &self.setup.network);
        execution.start(call);
        execution.drain()?;
        self.provider
            .with(|provider| match provider.responses.get(&call).cloned() {
                Some(Ok(Some(token))) if token == format!("a{}", provider.refreshes) => Ok(()),
                Some(Ok(_)) if provider.is_lost(network) => Ok(()),
                other => Err(format!("{other:?} after all leases have expired")),
            })
    }
}

#[test]
fn faults() {
    let refreshes = Refreshes::new(&[0, 0]);
    hold("refreshes, faults", &refreshes, bounds(1, 0, &[]));
}

/// No response takes longer than the time limit of its request.
#[test]
fn slow_responses_within_their_limits() {
    let (refreshes, bounds) = (Refreshes::new(&[0]), bounds(0, 3, &[2900, 7900]));
    assert!(!violates("refreshes, slow", &refreshes, bounds));
}

#[test]
fn leases_that_expire() {
    let refreshes = Refreshes::new(&[0, 2000]);
    let mut bounds = bounds(1, 1, &[18_000]);
    bounds.suspends = true;
    hold("refreshes, leases", &refreshes, bounds);
}

#[test]
fn three_processes() {
    let refreshes = Refreshes::new(&[0, 0, 0]);
    hold("refreshes, three", &refreshes, bounds(0, 0, &[]));
}

/// The search would notice if a process took the lease of another one.
#[test]
fn clocks_that_differ_too_much_are_noticed() {
    let refreshes = Refreshes::new(&[0, 60_000]);
    assert!(violates("refreshes, clocks", &refreshes, bounds(0, 0, &[])));
}
