//! Repeated calls of one tool, in several processes.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use lambda_tools::{
    Context, Server, Toolkit,
    idempotency::Idempotency,
    store::{Over, Record},
    testing::LambdaFunction,
};
use serde_json::{Value, json};

use super::ledger::{Ledger, Response};
use crate::{
    Call, Scenario, Setup, execution::Execution, process::function, service, shared::Shared,
};

/// Calls with one `call_id`.
pub(super) struct Calls {
    is_at_most_once: bool,
    pub(super) setup: Setup,
    /// The function that each call is sent to, so that its tool knows the call; also three more.
    functions: Vec<Arc<LambdaFunction>>,
    ledger: Shared<Ledger>,
}

/// The time in which the platform wants a response.
const DEADLINE: Duration = Duration::from_secs(4);

/// The time for which outcomes are recorded.
const EXPIRE_AFTER: Duration = Duration::from_hours(1);

/// The time after which a record matters to no process.
const FAR: Duration = Duration::from_secs(40);

impl Calls {
    /// A call in each of the processes, whose clocks are ahead by some milliseconds.
    pub(super) fn new(is_at_most_once: bool, leads: &[u64]) -> Self {
        let setup = Setup::new(leads, (0..leads.len()).collect());
        let ledger = Shared::<Ledger>::default();
        let function_of = |call| {
            let (process, shared) = (setup.connection(call), ledger.clone());
            let idempotency = Idempotency::in_store(process.clone()).expire_after(EXPIRE_AFTER);
            let running = process.clone();
            let act = move |_: Value, _: Context| {
                let (process, ledger) = (running.clone(), shared.clone());
                async move {
                    let number = ledger.with(|ledger| ledger.begin(call, &process));
                    let note = |result| ledger.with(|it| it.runs[number].result = Some(result));
                    service::run(number, &process, note).await
                }
            };
            let tool = service::tool(is_at_most_once, act);
            function(
                Server::new(Toolkit::new([tool]).unwrap()).idempotency(idempotency),
                process,
            )
        };
        Self {
            is_at_most_once,
            functions: (0..leads.len() + 3).map(function_of).collect(),
            setup,
            ledger,
        }
    }
}

impl Scenario for Calls {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn reset(&self) {
        let is_at_most_once = self.is_at_most_once;
        self.ledger.with(|ledger| {
            *ledger = Ledger {
                is_at_most_once,
                ..Ledger::default()
            };
        });
    }

    fn call(&self, number: usize) -> Call {
        let function = Arc::clone(&self.functions[number]);
        let process = self.setup.connection(number);
        let (lead, ledger) = (self.setup.lead(process.process), self.ledger.clone());
        Box::pin(async move {
            ledger.with(|ledger| ledger.calls += 1);
            let call = function.call("Act.Do", json!({})).call_id("same");
            // By the platform's clock.
            let outcome = call.deadline(process.wall() - lead + DEADLINE).await;
            ledger.with(|ledger| ledger.respond(number, &outcome, &process));
        })
    }

    fn acted(&self, run: usize) {
        let network = &self.setup.network;
        self.ledger.with(|ledger| ledger.act(run, network));
    }

    fn written(&self, _: &str, record: &Record, over: Over) {
        let (network, is_claim) = (&self.setup.network, over == Over::Nothing);
        self.ledger.with(|it| it.write(record, is_claim, network));
    }

    fn digest(&self, mut state: &mut dyn Hasher) {
        self.ledger.with(|ledger| {
            (&ledger.runs, &ledger.responses).hash(&mut state);
            (ledger.recorded_until, ledger.claim.is_some()).hash(&mut state);
        });
    }

    fn end(&self, execution: &mut Execution<'_>) -> Result<(), String> {
        let is_recorded = self.ledger.with(|ledger| ledger.recorded_until.is_some());
        let at_once = |(kind, has_run): Response| {
            !is_recorded || (!has_run && ["outcome", "interrupted"].contains(&kind))
        };
        // Nobody waits for a call that is over.
        let later = |(kind, _): Response| !["running", "no time", "unprotected"].contains(&kind);
        let expired = |response: Response| response == ("outcome", true);
        let checks: [(_, &dyn Fn(Response) -> bool); 3] = [
            (Duration::ZERO, &at_once),
            (FAR, &later),
            (EXPIRE_AFTER + FAR, &expired),
        ];
        for (number, (time, is_allowed)) in checks.into_iter().enumerate() {
            execution.pass(time);
            if time > EXPIRE_AFTER {
                let ledger = &self.ledger;
                ledger.with(|it| (it.is_at_most_once, it.recorded_until) = (false, None));
            }
            let call = self.setup.calls.len() + number;
            execution.start(call);
            execution.drain()?;
            let response = self.ledger.with(|it| it.responses.get(&call).copied());
            if !response.is_some_and(is_allowed) {
                return Err(format!("{response:?} after {time:?}"));
            }
        }
        Ok(())
    }
}
