//! Calls that need the token of one grant, which must be refreshed.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use super::{ProviderState, with_provider};
use crate::{
    AuthorizationRequirement,
    oauth::{
        GrantRequest, OAuth, Provider,
        broker::{Broker, grant_record_id},
        grant::{GRANT_LIFE, Grant, Grants},
        records::{EncryptedRecords, LIMITS},
    },
    public_url::PublicUrl,
    secrets::{SecretCache, Secrets},
    store::{
        PutOutcome, Record, Store,
        explorer::{
            CLOCK, Call, Execution, Fault, Freeze, Identity, START, Scenario, Served, Setup,
            SharedStore, Treatment, seed,
        },
        memory::Memory,
    },
};

/// Calls that need one grant.
pub(super) struct Refreshes {
    pub(super) setup: Setup,
    pub(super) grant: (String, Record),
}

/// The time that a call has.
const LEFT: Duration = Duration::from_secs(10);
/// The time after which no lease is held any more.
const FAR: Duration = Duration::from_secs(30);

fn broker(store: impl Store + 'static) -> Arc<Broker> {
    let values = [
        ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
        ("CLIENT_SECRET", "secret"),
    ];
    let secrets = SecretCache::new(Secrets::fixed(values), Vec::new(), CLOCK);
    let (authorize, token) = ("https://p.example/authorize", "https://p.example/token");
    let provider = Provider::new("p", "client", "CLIENT_SECRET", authorize, token);
    let settings = OAuth::with([provider]).in_store(store);
    let url = PublicUrl::default();
    Arc::new(Broker::new(settings, &secrets, CLOCK, url, Vec::new()))
}

/// The record of a grant whose access token expires within the margin for refreshes.
fn grant() -> (String, Record) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let record_id = grant_record_id("caller", "user", "p");
    let grant = Grant {
        access: "a0".to_owned(),
        refresh: Some("r0".to_owned()),
        expires_at: Some(START.as_secs() + 3),
        scopes: vec!["mail".to_owned()],
    };
    let record = runtime.unwrap().block_on(async {
        let store: Arc<dyn Store> = Arc::new(Memory::new(LIMITS));
        let clock = crate::clock::FIXED;
        let values = [("K", "a-key-of-this-server-0123456789abcdef")];
        let secrets = SecretCache::new(Secrets::fixed(values), Vec::new(), clock.clone());
        let ids = ["K".to_owned()];
        let keys = crate::oauth::keys::EncryptionKeys::read(&secrets, &ids, None).await;
        let records = EncryptedRecords { store, clock };
        let (keys, grants) = (keys.unwrap(), Grants(vec![grant]));
        let saved = records.save(&keys, &record_id, &grants, GRANT_LIFE, None);
        saved.await.unwrap();
        records.store.get(&record_id).await.unwrap().unwrap()
    });
    (record_id, record)
}

impl Refreshes {
    pub(super) fn new(leads: &[u64]) -> Self {
        Self {
            setup: Setup::new(leads),
            grant: grant(),
        }
    }
}

impl Scenario for Refreshes {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn reset(&self) {
        with_provider(|provider| *provider = ProviderState::default());
        seed(&self.grant.0, self.grant.1.clone());
    }

    fn call(&self, number: usize) -> Call {
        Box::pin(async move {
            let need = serde_json::json!({"id": "p", "oauth2": {"scopes": ["mail"]}});
            let need: AuthorizationRequirement = serde_json::from_value(need).unwrap();
            let request = GrantRequest {
                caller: "caller",
                user: "user",
                need: &need,
                base: None,
                left: LEFT,
            };
            let token = broker(SharedStore).token(request).await;
            let token = token.map(|token| token.map(|it| it.expose().to_owned()));
            with_provider(|provider| provider.respond(number, token.map_err(|_| ())));
        })
    }

    fn treatments(&self, request: &str, is_late: bool) -> Vec<Treatment> {
        let names: &[&str] = match (is_late, request.starts_with('{')) {
            (true, true) => &[],
            (true, false) => &["arrives late"],
            (false, true) => &["answers", "loses"],
            (false, false) => &["answers", "acts", "refuses"],
        };
        let treatment = |name: &&'static str| Treatment {
            name,
            is_fault: !is_late && *name != "answers",
        };
        names.iter().map(treatment).collect()
    }

    fn serve(&self, (process, _): Identity, request: &str, treatment: &str) -> Served {
        with_provider(|provider| match treatment {
            "refuses" => Served::Answer(String::new()),
            "loses" => {
                provider.lose("the provider's response was lost");
                Served::Answer(String::new())
            }
            "answers" if request.starts_with('{') => Served::Answer(request.to_owned()),
            "answers" => Served::Answer(provider.refresh(process, request)),
            "arrives late" => {
                let reason = "a request to the provider arrived after its sender had given up";
                provider.loss.get_or_insert(reason);
                Served::Acted(provider.refresh(process, request))
            }
            _ => Served::Acted(provider.refresh(process, request)),
        })
    }

    fn written(&self, id: &str, _: &Record, _: Option<u64>, outcome: &PutOutcome) {
        if id.starts_with("grant#") && *outcome == PutOutcome::Written {
            with_provider(ProviderState::save);
        }
    }

    fn faulted(&self, process: usize, fault: Fault) {
        with_provider(|provider| {
            provider.is_disturbed = true;
            if fault == Fault::Crash && provider.unsaved == Some(process) {
                provider.lose("the process crashed before it saved the tokens");
            }
        });
    }

    fn thaws(&self, _: usize) {}

    fn passed(&self, time: Duration) {
        with_provider(|provider| provider.pass(time));
    }

    /// A process that stops between its request to the provider and the end of its write cannot
    /// know that its lease has expired.
    fn may_freeze(&self, process: usize, _: Freeze) -> bool {
        let requests = crate::store::explorer::service_requests();
        let has_sent = requests.iter().any(|((from, _), ..)| *from == process);
        !has_sent && with_provider(|provider| provider.unsaved != Some(process))
    }

    fn has_ended(&self, call: usize) -> bool {
        with_provider(|provider| provider.response_to(call).is_some())
    }

    fn violation(&self) -> Option<String> {
        with_provider(|provider| {
            provider.check_requests();
            provider.violation.clone()
        })
    }

    fn digest(&self, mut state: &mut dyn Hasher) {
        with_provider(|provider| provider.hash(&mut state));
    }

    fn end(&self, execution: &mut Execution<'_>) -> Result<(), String> {
        execution.pass(FAR);
        let (call, process) = (self.setup.calls.len(), self.setup.leads.len());
        execution.start(call, process);
        execution.drain()?;
        with_provider(|provider| match provider.response_to(call) {
            Some(Ok(Some(number))) if number == provider.refreshes => Ok(()),
            Some(Ok(_)) if provider.loss.is_some() => Ok(()),
            other => Err(format!("{other:?} after all leases have expired")),
        })
    }
}
