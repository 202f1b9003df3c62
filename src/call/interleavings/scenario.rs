//! Repeated calls of one tool, in several processes.

use std::{
    hash::{Hash, Hasher},
    panic::resume_unwind,
    sync::Arc,
    time::Duration,
};

use http::HeaderMap;
use serde_json::{Value, json};

use super::{
    Ledger,
    ledger::{FAR, Response, RunResult},
    rules, with_ledger,
};
use crate::{
    Auth, Caller, Context, Failure, Tool, Toolkit,
    arrival::{Arrival, Invocation},
    call::{Call, ClientContext, Engine, large_requests::LargeRequests, watch::Watch},
    idempotency::{Idempotency, deduplication::Deduplication},
    observe::trail::Trail,
    secrets::{SecretCache, Secrets},
    store::{
        PutOutcome, Record,
        explorer::{
            self, CLOCK, Execution, Fault, Freeze, Identity, Scenario, Served, Setup, SharedStore,
            Treatment, request,
        },
    },
    tool::schema::RoundedNumbers,
};

/// Calls with one `call_id`.
pub(super) struct Calls {
    pub(super) is_at_most_once: bool,
    pub(super) setup: Setup,
    /// The input of each call. The calls after the end have that of the first one.
    pub(super) inputs: Vec<&'static str>,
    /// The time in which the platform wants a response.
    pub(super) deadline: Option<Duration>,
    /// The processes' engines, and one more for the calls after the end.
    pub(super) engines: Vec<Arc<Engine>>,
}

/// The time for which outcomes are recorded.
const EXPIRE_AFTER: Duration = Duration::from_hours(1);

fn tool(is_at_most_once: bool) -> Tool {
    let act = |input: Value, _: Context| async move {
        let run = Ledger::begin(input["text"].to_string());
        let (number, mut sent) = (run.0, format!("run {}", run.0));
        let result = loop {
            match request(sent).await.as_deref() {
                Some("value") => break RunResult::Value,
                Some("failure") => break RunResult::Failure,
                Some("retry") => break RunResult::RetryableFailure,
                Some("panic") => break RunResult::Panic,
                _ => sent = format!("run {number}"),
            }
        };
        with_ledger(|ledger| ledger.runs[number].result = Some(result));
        match result {
            RunResult::Value => Ok(json!(number)),
            RunResult::Failure => Err(Failure::new(number.to_string())),
            RunResult::RetryableFailure => Err(Failure::new(number.to_string()).retry()),
            // Without the message of a panic.
            RunResult::Panic => resume_unwind(Box::new(())),
        }
    };
    let text = json!({"type": "string", "description": "Distinguishes calls."});
    let object = json!({"type": "object", "properties": {"text": text}});
    let tool = Tool::dynamic("Act.Do@1.0.0", "Acts.", object, json!({}), act);
    if is_at_most_once {
        tool.run_at_most_once()
    } else {
        tool
    }
}

impl Calls {
    pub(super) fn new(is_at_most_once: bool, leads: &[u64], wait_for: Duration) -> Self {
        let engine = || {
            let idempotency = Idempotency::in_store(SharedStore)
                .wait_for(wait_for)
                .expire_after(EXPIRE_AFTER);
            Arc::new(Engine {
                toolkit: Arc::new(Toolkit::new([tool(is_at_most_once)]).unwrap()),
                auth: Auth::default(),
                secrets: SecretCache::new(Secrets::none(), Vec::new(), CLOCK),
                deduplication: Arc::new(Deduplication::new(idempotency, CLOCK)),
                #[cfg(feature = "oauth")]
                broker: None,
                clock: CLOCK,
                large_requests: LargeRequests::default(),
                is_healthy: None,
                shows_calls: false,
                lists_callable: false,
                watch: Watch::Off,
            })
        };
        Self {
            is_at_most_once,
            setup: Setup::new(leads),
            inputs: vec!["a"],
            deadline: Some(Duration::from_secs(4)),
            engines: (0..=leads.len()).map(|_| engine()).collect(),
        }
    }

    fn process_of(&self, call: usize) -> usize {
        let process = self.setup.calls.get(call).copied();
        process.unwrap_or(self.engines.len() - 1)
    }

    fn input_of(&self, call: usize) -> &'static str {
        self.inputs.get(call).copied().unwrap_or(self.inputs[0])
    }

    /// Makes a call after the end of an execution, and returns its response.
    fn probe(&self, execution: &mut Execution<'_>, call: usize) -> Result<Response, String> {
        execution.start(call, self.process_of(call));
        execution.drain()?;
        let response = with_ledger(|ledger| ledger.responses.get(&call).cloned());
        response.ok_or_else(|| "a call after the end got no response".to_owned())
    }
}

impl Scenario for Calls {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn reset(&self) {
        with_ledger(|ledger| {
            *ledger = Ledger {
                is_at_most_once: self.is_at_most_once,
                ..Ledger::default()
            };
        });
    }

    fn call(&self, number: usize) -> explorer::Call {
        let process = self.process_of(number);
        let engine = Arc::clone(&self.engines[process]);
        let lead = self.setup.leads.get(process).copied().unwrap_or_default();
        let (input, deadline) = (self.input_of(number), self.deadline);
        Box::pin(async move {
            let text = json!(input).to_string();
            with_ledger(|ledger| ledger.inputs.push(text.clone()));
            let call = Box::new(Call {
                selector: "Act.Do".parse().unwrap(),
                call_id: Some("same".to_owned()),
                trace_id: None,
                rounded: RoundedNumbers::default(),
                input: json!({"text": input}),
                client_context: ClientContext::default(),
                permit: None,
            });
            let invocation = Arc::new(Invocation {
                // By the platform's clock.
                deadline: deadline.map(|time| CLOCK.now() - lead + time),
                ..Invocation::default()
            });
            let mut trail = Trail::new(&HeaderMap::new(), &invocation, None);
            let at = CLOCK.instant();
            let arrival = Arrival { at, invocation };
            let result = engine.call(call, arrival, Caller::Anyone, &mut trail);
            let result = result.await;
            with_ledger(|ledger| ledger.respond(number, &text, result));
        })
    }

    fn treatments(&self, request: &str, is_late: bool) -> Vec<Treatment> {
        let names: &[&str] = match (is_late, request.starts_with("acted")) {
            (true, true) => &[],
            (true, false) => &["acts"],
            (false, true) => &["value"],
            (false, false) => &["value", "failure", "retry", "panic", "acts"],
        };
        let treatment = |name: &&'static str| Treatment {
            name,
            is_fault: !is_late && *name != "value",
        };
        names.iter().map(treatment).collect()
    }

    fn serve(&self, _: Identity, request: &str, treatment: &str) -> Served {
        let run = request.split_once(' ').and_then(|(_, it)| it.parse().ok());
        // A failure that may be retried says that nothing has happened.
        if treatment != "retry" && request.starts_with("run") {
            with_ledger(|ledger| ledger.act(run.unwrap()));
        }
        match treatment {
            "acts" => Served::Acted(request.replacen("run", "acted", 1)),
            answer => Served::Answer(answer.to_owned()),
        }
    }

    fn written(&self, _: &str, record: &Record, over: Option<u64>, outcome: &PutOutcome) {
        if *outcome == PutOutcome::Written {
            with_ledger(|ledger| ledger.write(record, over.is_none()));
        }
    }

    fn faulted(&self, process: usize, fault: Fault) {
        with_ledger(|ledger| {
            ledger.disturbed.insert(process);
            if fault == Fault::Freeze {
                ledger.frozen.insert(process);
            }
        });
    }

    fn thaws(&self, process: usize) {
        with_ledger(|ledger| ledger.frozen.remove(&process));
    }

    fn passed(&self, _: Duration) {}

    /// A tool cannot know that its process was suspended, so that its time limit has passed.
    fn may_freeze(&self, process: usize, freeze: Freeze) -> bool {
        let runs = |ledger: &mut Ledger| {
            let mut runs = ledger.runs.iter();
            runs.any(|run| run.is_active && run.process == process)
        };
        freeze == Freeze::Stopped || !with_ledger(runs)
    }

    fn has_ended(&self, call: usize) -> bool {
        with_ledger(|ledger| ledger.responses.contains_key(&call))
    }

    fn violation(&self) -> Option<String> {
        with_ledger(|ledger| ledger.violation.clone())
    }

    fn digest(&self, mut state: &mut dyn Hasher) {
        with_ledger(|ledger| {
            (&ledger.runs, &ledger.responses).hash(&mut state);
            (ledger.recorded_until, &ledger.disturbed, ledger.claims).hash(&mut state);
        });
    }

    fn end(&self, execution: &mut Execution<'_>) -> Result<(), String> {
        let first = self.setup.calls.len();
        let is_recorded = with_ledger(|ledger| ledger.recorded_until.is_some());
        rules::at_once(&self.probe(execution, first)?, is_recorded)?;
        execution.pass(FAR);
        rules::later(&self.probe(execution, first + 1)?)?;
        execution.pass(EXPIRE_AFTER + FAR);
        with_ledger(Ledger::expire);
        rules::after_expiry(&self.probe(execution, first + 2)?)
    }
}
