//! Searches the interleavings of refreshes of one grant, in processes that share a store, at a
//! provider that revokes the grant if a refresh token is used twice.

pub(crate) mod grant;
mod provider;

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use lambda_tools::{
    store::{Over, Record},
    testing::{LambdaFunction, TestOutcome},
};

use grant::{TOOL, USER, consent, server};
use provider::ProviderState;

use crate::{
    Call, Scenario, Setup, bounds,
    execution::Execution,
    network::Conditions,
    process::function,
    search::{hold, violates},
    shared::Shared,
};

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
    let mut refreshes = Refreshes::new(&[0, 2000]);
    refreshes.setup.suspends = true;
    hold("refreshes, leases", &refreshes, bounds(1, 1, &[18_000]));
}

#[test]
fn three_processes() {
    let refreshes = Refreshes::new(&[0, 0, 0]);
    hold("refreshes, three", &refreshes, bounds(0, 0, &[]));
}

#[test]
fn a_store_that_ignores_conditions_is_noticed() {
    let mut refreshes = Refreshes::new(&[0, 0]);
    refreshes.setup.conditions = Conditions::WithoutAbsence;
    assert!(violates("refreshes", &refreshes, bounds(1, 1, &[100])));
}
