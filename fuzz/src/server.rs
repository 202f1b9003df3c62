//! The servers of the targets, with tools of every kind.

mod tools;

use std::sync::LazyLock;

use lambda_tools::{
    ApiKeys, Auth, EventKind, Jwt, OAuth, Server, ServerInfo, idempotency::Idempotency,
    oauth::Provider, secrets::Secrets, testing::LambdaFunction,
};

use tools::toolkit;

use crate::{encodings::SecretSearch, store::ResettableStore};

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
