//! The servers of the targets, with tools of every kind.

mod tools;

use std::{
    collections::HashMap,
    future::ready,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
};

use lambda_tools::{
    ApiKeys, Auth, EventKind, Jwt, OAuth, Server, ServerInfo,
    idempotency::Idempotency,
    oauth::Provider,
    secrets::Secrets,
    store::{PutOutcome, Record, Store, StoreFuture, Write},
    testing::LambdaFunction,
};
use tokio::runtime::{Builder, Runtime};

use crate::encodings::SecretSearch;
use tools::toolkit;

/// The secrets in the store of the servers, by their ids. No response may contain one of them.
pub(crate) const SECRETS: [(&str, &str); 5] = [
    (
        "TWILIO_API_KEY",
        "AC-planted/1+2&3=4:token \"planted\"\\56789",
    ),
    ("API_KEY", "key-planted-of-the-caller-0123456789"),
    (JWT_SECRET_ID, JWT_SECRET),
    ("TOOLS_OAUTH_KEY", "oauth-key-planted-0123456789abcdef"),
    ("GOOGLE_CLIENT_SECRET", "client-secret-planted-0123456789"),
];
pub(crate) const JWT_SECRET_ID: &str = "JWT_SECRET";
pub(crate) const JWT_SECRET: &str = "jwt-planted-0123456789abcdef0123456789";

pub(crate) static SEARCH: LazyLock<SecretSearch> =
    LazyLock::new(|| SecretSearch::new(SECRETS.map(|(_, value)| value)));

/// Runs a future to its end, on one runtime for all inputs of a target.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_all().max_blocking_threads(2).build();
        runtime.expect("a runtime")
    });
    RUNTIME.block_on(future)
}

/// A function and its store of calls and challenges.
pub(crate) struct FuzzedFunction {
    pub(crate) function: LambdaFunction,
    pub(crate) store: ResettableStore,
}

/// The settings of a server, which the first byte of an event's input chooses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    Open,
    Protected,
    Small,
}

impl Setting {
    pub(crate) fn of(byte: u8) -> Self {
        match byte {
            b'k' => Self::Protected,
            b's' => Self::Small,
            _ => Self::Open,
        }
    }
}

/// Returns a provider whose addresses are never reached: no challenge of these servers can be
/// completed.
fn google() -> Provider {
    let (authorize, token) = (
        "https://accounts.example/authorize",
        "http://127.0.0.1:9/token",
    );
    Provider::new("google", "client", "GOOGLE_CLIENT_SECRET", authorize, token)
        .title("Google <&> \"Co\"")
}

pub(crate) fn function(setting: Setting) -> FuzzedFunction {
    let store = ResettableStore::default();
    let oauth = OAuth::with([google()]).in_store(store.clone());
    let server = Server::new(toolkit())
        .secrets(Secrets::fixed(SECRETS))
        .idempotency(Idempotency::in_store(store.clone()))
        .oauth(oauth)
        .public_url("https://tools.example")
        .serve_openapi(true)
        .info(ServerInfo::new("Tools <of> \"all\" & one", "1.0.0"));
    let server = match setting {
        Setting::Open => server.explorer(true),
        Setting::Protected => {
            let jwt = Jwt::with_secret_ids([JWT_SECRET_ID]).subject_is_user();
            let auth = Auth::from(ApiKeys::with_ids(["API_KEY"])).or(jwt);
            server.auth(auth).base_path("/agents")
        }
        Setting::Small => server
            .max_request_size(2048)
            .events([
                EventKind::RestApi,
                EventKind::HttpApi,
                EventKind::FunctionUrl,
                EventKind::LoadBalancer,
                EventKind::Direct,
            ])
            .base_path("/agents"),
    };
    let function = LambdaFunction::new(server);
    FuzzedFunction { function, store }
}

/// A store of records that every input finds empty, so that a finding is reproducible from its input
/// alone. The stores of the library cannot go back to an earlier state.
#[derive(Clone, Default)]
pub(crate) struct ResettableStore(Arc<Mutex<HashMap<String, Record>>>);

impl ResettableStore {
    fn records(&self) -> MutexGuard<'_, HashMap<String, Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes all records.
    pub(crate) fn reset(&self) {
        self.records().clear();
    }
}

impl Store for ResettableStore {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
        let record = self.records().get(id).cloned();
        Box::pin(ready(Ok(record)))
    }

    fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome> {
        let mut records = self.records();
        let current = records.get(write.id);
        let outcome = if write.may_replace(current) {
            records.insert(write.id.to_owned(), write.record.clone());
            PutOutcome::Written
        } else {
            PutOutcome::Conflict(current.cloned())
        };
        Box::pin(ready(Ok(outcome)))
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        let mut records = self.records();
        if records.get(id).is_some_and(|it| it.version == version) {
            records.remove(id);
        }
        Box::pin(ready(Ok(())))
    }
}
