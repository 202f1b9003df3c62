//! Injects the deaths and faults of a plan into the requests to the store.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, Weak},
};

use serde_json::Value;
use test_support::dynamodb::{
    self, Applied, Interception, Interceptor, OnRequest, OnResponse, Operation,
};

use crate::{
    plan::{Fault, Request, Step, StoreFault},
    run::Run,
};

/// Decides on the requests of a run.
#[derive(Default)]
pub(crate) struct Faults {
    /// Set when the run begins.
    pub(crate) run: OnceLock<Weak<Run>>,
    /// The requests in progress, by their numbers.
    requests: Mutex<BTreeMap<u64, InProgress>>,
}

/// A request in progress.
#[derive(Clone)]
struct InProgress {
    run: Arc<Run>,
    process: usize,
    attempt: usize,
    request: Request,
    fault: Option<StoreFault>,
}

impl InProgress {
    /// Lets the process die at one of two steps, depending on the request.
    async fn reach(&self, at_claim: Step, at_record: Step) -> bool {
        let step = match self.request {
            Request::Claim => at_claim,
            Request::Record | Request::Release => at_record,
            Request::Read => return false,
        };
        self.run.reach(self.process, self.attempt, step).await
    }

    async fn treat(&self) -> OnRequest {
        let Some(StoreFault { fault, delay, .. }) = self.fault else {
            return OnRequest::Apply;
        };
        let request = self.request;
        self.run.note(self.attempt, |it, _| it.faults.push(request));
        match fault {
            Fault::Before(treatment) => {
                self.run.late(tokio::time::sleep(delay)).await;
                treatment
            }
            Fault::After(_) => OnRequest::Apply,
        }
    }
}

impl Interceptor for Faults {
    fn on_request<'a>(&'a self, request: &'a dynamodb::Request) -> Interception<'a, OnRequest> {
        Box::pin(async {
            // The process is starting.
            let Some(mut current) = self.begin(request) else {
                return OnRequest::Apply;
            };
            let treatment = if current.reach(Step::BeforeClaim, Step::BeforeRecord).await {
                current.fault = None;
                let death = current.run.plan_of(current.attempt).death;
                match death.and_then(|death| death.in_flight) {
                    Some(time) => {
                        current.run.late(tokio::time::sleep(time)).await;
                        OnRequest::Apply
                    }
                    None => OnRequest::Lose,
                }
            } else {
                current.treat().await
            };
            self.requests
                .lock()
                .unwrap()
                .insert(request.number, current);
            treatment
        })
    }

    fn on_response<'a>(
        &'a self,
        request: &'a dynamodb::Request,
        applied: &'a Applied,
    ) -> Interception<'a, OnResponse> {
        Box::pin(async {
            let current = self.requests.lock().unwrap().remove(&request.number);
            let Some(current) = current else {
                return OnResponse::Send;
            };
            if applied.has_written {
                current.run.note(current.attempt, |it, now| {
                    let time = match current.request {
                        Request::Claim => &mut it.claimed,
                        Request::Record => &mut it.recorded,
                        Request::Release => &mut it.released,
                        Request::Read => return,
                    };
                    time.get_or_insert(now);
                });
            }
            if current.reach(Step::AfterClaim, Step::AfterRecord).await {
                return OnResponse::Lose;
            }
            match current.fault {
                Some(StoreFault {
                    fault: Fault::After(treatment),
                    delay,
                    ..
                }) => {
                    tokio::time::sleep(delay).await;
                    treatment
                }
                _ => OnResponse::Send,
            }
        })
    }
}

impl Faults {
    fn begin(&self, request: &dynamodb::Request) -> Option<InProgress> {
        let run = self.run.get()?.upgrade()?;
        let process = request.access_key.parse().ok()?;
        let attempt = run.attempt_of(process)?;
        let kind = kind_of(request);
        let count = {
            let attempt = &run.history.lock().unwrap().attempts[attempt];
            // A question about a task is not planned.
            Some(attempt).filter(|it| it.kind.is_planned())?;
            attempt.faults.iter().filter(|it| **it == kind).count()
        };
        let faults = run.plan_of(attempt).faults.into_iter();
        let mut faults = faults.filter(|it| it.request == kind && count < it.count);
        Some(InProgress {
            fault: faults.next(),
            run,
            process,
            attempt,
            request: kind,
        })
    }
}

fn is_running(item: &Value) -> bool {
    let call = item["call"]["S"].as_str().unwrap_or_default();
    let call: Value = serde_json::from_str(call).unwrap_or_default();
    call["state"]["running"].is_object()
}

fn kind_of(request: &dynamodb::Request) -> Request {
    let item = &request.body["Item"];
    let number = |name: &str| {
        item[name]["N"]
            .as_str()
            .and_then(|it| it.parse::<u64>().ok())
    };
    match request.operation {
        Operation::DeleteItem => Request::Release,
        Operation::GetItem => Request::Read,
        Operation::UpdateItem => unreachable!("the server has no quotas"),
        Operation::PutItem if is_running(item) => Request::Claim,
        // The end of a task is kept for its client, although the call may be repeated.
        Operation::PutItem => match (number("free_at"), number("expires_at")) {
            (Some(free_at), Some(expires_at)) if free_at / 1000 + 1 < expires_at => {
                Request::Release
            }
            _ => Request::Record,
        },
    }
}
