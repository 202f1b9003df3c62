//! Searches the interleavings of processes that share a store and get the same refresh token of a
//! signed-in user, whose identity provider rotates its own refresh tokens.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use lambda_tools::{
    OAuth, Server, SignIn, Toolkit,
    secrets::Secrets,
    store::{Over, Record},
    testing::LambdaFunction,
};
use serde_json::Value;
use test_support::{issuer::Issuer, sign_in::signed_in};

use crate::{
    Call, Scenario, Setup, bounds,
    execution::Execution,
    is_full,
    network::{Conditions, Connection},
    process::{START, instant},
    refreshes::{
        grant::send,
        provider::{ProviderState, transport},
    },
    search::{hold, violates},
    shared::Shared,
};

/// The time after which no lease is held any more, but the token before the current one can still be
/// used.
const FAR: Duration = Duration::from_secs(30);

/// Refreshes of one session.
struct Rotations {
    setup: Setup,
    /// The records of the session and of the user's grant at the provider.
    records: Vec<(String, Record)>,
    client: String,
    /// The refresh token that all processes get.
    token: String,
    functions: Vec<Arc<LambdaFunction>>,
    provider: Shared<ProviderState>,
}

/// Returns a server that keeps its records in a process's store.
fn server(sign_in: SignIn, process: &Connection) -> Server {
    let secrets = [
        ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
        ("CLIENT_SECRET", "secret"),
    ];
    Server::new(Toolkit::new([]).unwrap())
        .auth(sign_in.allow("anyone"))
        .oauth(OAuth::with([]).in_store(process.clone()))
        .secrets(Secrets::fixed(secrets))
        .public_url("http://127.0.0.1")
}

/// Sends a form to the token endpoint; returns the status and the response.
async fn token(function: &LambdaFunction, fields: &[(&str, &str)]) -> (u64, Value) {
    let pairs: Vec<_> = fields
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let response = send(function, "POST", "/token", "", &pairs.join("&")).await;
    let body = response["body"].as_str().unwrap_or_default();
    let body = serde_json::from_str(body).unwrap_or_default();
    (response["statusCode"].as_u64().unwrap(), body)
}

impl Rotations {
    fn new(leads: &[u64]) -> Self {
        let setup = Setup {
            leads: leads.to_vec(),
            calls: (0..leads.len()).collect(),
            ..Setup::default()
        };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        // A process of its own, whose requests to the store are answered at once.
        let process = setup.connection(usize::MAX);
        let (sign_in, (client, token), records) = runtime.block_on(async {
            let issuer = Issuer::start().await;
            let sign_in = SignIn::openid(&issuer.url, "client", "CLIENT_SECRET");
            let wall = || SystemTime::UNIX_EPOCH + START;
            let server = server(sign_in.clone(), &process);
            let function = LambdaFunction::with_clocks(server, wall, Instant::now);
            let answering = tokio::spawn(answer_all(process.clone()));
            let send = async |method: &str, url: &str, cookie: &str, body: &str| {
                send(&function, method, url, cookie, body).await
            };
            let (client, tokens) = signed_in(send, &issuer).await;
            let refresh = tokens["refresh_token"].as_str().unwrap().to_owned();
            let session = (client, refresh);
            answering.abort();
            let network = &setup.network;
            let records = network.with(|network| std::mem::take(&mut network.records));
            (sign_in, session, records)
        });
        let records = records.into_iter().map(|(id, (record, _))| (id, record));
        let is_kept = |id: &str| id.starts_with("session#") || id.starts_with("grant#");
        let records: Vec<_> = records.filter(|(id, _)| is_kept(id)).collect();
        assert_eq!(records.len(), 2);
        let provider = Shared::default();
        let function = |call| {
            let process = setup.connection(call);
            let (connection, state) = (process.clone(), Shared::clone(&provider));
            let send = move |request| transport(connection.clone(), Shared::clone(&state), request);
            let sign_in = sign_in.clone().provider(|it| it.transport(send));
            let server = server(sign_in, &process);
            let wall = move || process.wall();
            Arc::new(LambdaFunction::with_clocks(server, wall, instant))
        };
        Self {
            functions: (0..=leads.len()).map(function).collect(),
            setup,
            records,
            client,
            token,
            provider,
        }
    }

    /// Returns the newest refresh token that a process has got, if any has.
    fn successor(&self) -> Option<String> {
        let of = |provider: &mut ProviderState| {
            let mut all = provider.responses.values();
            all.find_map(|it| it.clone().ok().flatten())
        };
        self.provider.with(of)
    }
}

/// Answers all requests to the store, as a store without faults does.
async fn answer_all(process: Connection) {
    loop {
        while process.network.with(|network| !network.sent.is_empty()) {
            process.network.with(|network| {
                let sent = network.sent.remove(0);
                let response = network.carry_out(&sent);
                sent.answer(response);
            });
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

impl Scenario for Rotations {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn reset(&self) {
        self.provider.with(|provider| {
            *provider = ProviderState {
                is_repeatable: true,
                ..ProviderState::default()
            };
        });
        let network = &self.setup.network;
        for (id, record) in self.records.clone() {
            let writer = (usize::MAX, 0);
            network.with(|network| network.records.insert(id, (record, writer)));
        }
    }

    fn call(&self, number: usize) -> Call {
        let function = Arc::clone(&self.functions[number]);
        let (provider, network) = (self.provider.clone(), self.setup.network.clone());
        let (client, first) = (self.client.clone(), self.token.clone());
        // The client that has got a new token uses it.
        let is_last = number == self.setup.calls.len();
        let presented = self.successor().filter(|_| is_last).unwrap_or(first);
        Box::pin(async move {
            let fields = [
                ("grant_type", "refresh_token"),
                ("client_id", &*client),
                ("refresh_token", &*presented),
            ];
            let token = match token(&function, &fields).await {
                (200, tokens) => Ok(tokens["refresh_token"].as_str().map(str::to_owned)),
                (400, _) => Ok(None),
                _ => Err(()),
            };
            provider.with(|provider| {
                if let Ok(Some(token)) = &token {
                    let mut others = provider.responses.values();
                    let is_other = |it: &Result<Option<String>, ()>| {
                        matches!(it, Ok(Some(other)) if other != token)
                    };
                    if !is_last && others.any(is_other) {
                        network.violate("one refresh token has two successors");
                    }
                }
                provider.respond(number, token, &network);
            });
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
                Some(Ok(Some(_))) => Ok(()),
                Some(Ok(None)) if provider.is_lost(network) => Ok(()),
                other => Err(format!("{other:?}: a confirmed session is lost")),
            })
    }
}

#[test]
fn faults() {
    let (small, large) = (bounds(1, 0, &[]), bounds(2, 1, &[100]));
    hold("rotations, faults", &Rotations::new(&[0, 0]), small, large);
}

#[test]
fn machines_that_are_suspended() {
    let mut rotations = Rotations::new(&[0, if is_full() { 2000 } else { 0 }]);
    rotations.setup.suspends = true;
    let (small, large) = (bounds(1, 1, &[18_000]), bounds(1, 2, &[18_000]));
    hold("rotations, suspended", &rotations, small, large);
}

#[test]
fn a_store_that_ignores_versions_is_noticed() {
    let mut rotations = Rotations::new(&[0, 0]);
    rotations.setup.conditions = Conditions::WithoutVersion;
    assert!(violates("rotations", &rotations, bounds(1, 1, &[100])));
}
