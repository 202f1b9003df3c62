//! Injects the deaths and faults of a plan into the requests to the store.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use test_support::dynamodb::{
    self, Applied, Interception, Interceptor, OnRequest, OnResponse, Operation,
};

use crate::{
    history::{Attempt, Request, What},
    instance::Instance,
    plan::{Fault, Step, StoreFault},
    run::Run,
};

/// Decides on the requests of a run.
#[derive(Default)]
pub(crate) struct Faults {
    /// Set when the run begins.
    pub(crate) run: std::sync::OnceLock<std::sync::Weak<Run>>,
    /// The requests in progress, by their numbers.
    requests: Mutex<BTreeMap<u64, InProgress>>,
    /// The number of requests of each attempt and purpose so far.
    counts: Mutex<BTreeMap<(Attempt, Request), usize>>,
}

/// A request in progress.
#[derive(Clone)]
struct InProgress {
    run: Arc<Run>,
    instance: Arc<Instance>,
    attempt: Attempt,
    request: Request,
    fault: Option<StoreFault>,
}

impl InProgress {
    fn log_fault(&self, fault: Fault) {
        self.run
            .log(What::StoreFault(self.attempt, self.request, fault));
    }

    /// Lets a fault happen to the request.
    async fn before(&self, StoreFault { fault, delay, .. }: StoreFault) -> OnRequest {
        match fault {
            Fault::RequestLost => OnRequest::Lose,
            Fault::Twice => OnRequest::ApplyTwice,
            Fault::Late => {
                self.run.awaited(tokio::time::sleep(delay)).await;
                OnRequest::Apply
            }
            Fault::Overtaken => {
                let overtaken = self.run.overtaken(self.attempt, delay);
                self.run.awaited(overtaken).await;
                OnRequest::Apply
            }
            Fault::Internal => OnRequest::Fail(dynamodb::Fault::Internal),
            Fault::Unavailable => OnRequest::Fail(dynamodb::Fault::Unavailable),
            Fault::ThroughputExceeded => OnRequest::Fail(dynamodb::Fault::ThroughputExceeded),
            Fault::Throttled => OnRequest::Fail(dynamodb::Fault::Throttling),
            Fault::Ignored => OnRequest::Ignore,
            Fault::ResponseLost
            | Fault::ResponseLate
            | Fault::InternalAfterwards
            | Fault::ResponseIgnored => OnRequest::Apply,
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
            let (attempt, kind) = (current.attempt, current.request);
            current.run.log(What::StoreReceived(attempt, kind));
            let step = match kind {
                Request::Claim => Step::BeforeClaim,
                Request::Record | Request::Release => Step::BeforeRecord,
            };
            if current.instance.reach(attempt, step).await {
                current.fault = None;
                self.requests
                    .lock()
                    .unwrap()
                    .insert(request.number, current.clone());
                let Some(time) = current.run.in_flight(attempt) else {
                    return OnRequest::Lose;
                };
                current.run.awaited(tokio::time::sleep(time)).await;
                return OnRequest::Apply;
            }
            match current.fault {
                Some(fault) => {
                    current.log_fault(fault.fault);
                    current.before(fault).await
                }
                None => OnRequest::Apply,
            }
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
            let (attempt, kind) = (current.attempt, current.request);
            current
                .run
                .log(What::StoreApplied(attempt, kind, applied.has_written));
            if kind == Request::Claim && applied.has_written {
                current.run.claimed(attempt);
            }
            let step = match kind {
                Request::Claim => Step::AfterClaim,
                Request::Record | Request::Release => Step::AfterRecord,
            };
            if current.instance.reach(attempt, step).await {
                return OnResponse::Lose;
            }
            match current.fault {
                Some(fault) => after(fault.fault, fault.delay).await,
                None => OnResponse::Send,
            }
        })
    }
}

impl Faults {
    fn begin(&self, request: &dynamodb::Request) -> Option<InProgress> {
        let run = self.run.get()?.upgrade()?;
        let instance = run.instance(request.access_key.parse().ok()?)?;
        let attempt = instance.attempt()?;
        let condition = request.body["ConditionExpression"]
            .as_str()
            .unwrap_or_default();
        let kind = match request.operation {
            Operation::DeleteItem => Request::Release,
            _ if condition.contains("attribute_not_exists") => Request::Claim,
            _ => Request::Record,
        };
        let number = {
            let mut counts = self.counts.lock().unwrap();
            let count = counts.entry((attempt, kind)).or_default();
            *count += 1;
            *count
        };
        let faults = run.plan.attempt(attempt).faults.iter();
        let mut faults = faults.filter(|it| it.request == kind && number <= it.count);
        let current = InProgress {
            fault: faults.next().copied(),
            run,
            instance,
            attempt,
            request: kind,
        };
        let mut requests = self.requests.lock().unwrap();
        requests.insert(request.number, current.clone());
        Some(current)
    }
}

async fn after(fault: Fault, delay: Duration) -> OnResponse {
    match fault {
        Fault::ResponseLost => OnResponse::Lose,
        Fault::ResponseLate => {
            tokio::time::sleep(delay).await;
            OnResponse::Send
        }
        Fault::InternalAfterwards => OnResponse::Fail(dynamodb::Fault::Internal),
        Fault::ResponseIgnored => OnResponse::Ignore,
        _ => OnResponse::Send,
    }
}
