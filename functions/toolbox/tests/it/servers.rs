//! The servers that the folders of events are for.

use std::{
    collections::HashMap,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use lambda_tools::{
    Auth, Context, Failure, OAuth, Secret, Server, StoreError, Tool,
    idempotency::Idempotency,
    oauth::Provider,
    secrets::{ReadFuture, ReadResult, SecretStore, Secrets},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::stub::Stub;

/// What Twilio's stub accepts.
pub(crate) const TWILIO_KEY: &str = "AC00000000000000000000000000000000:auth-token:+15005550006";

const KEYS: [(&str, &str); 6] = [
    ("KEY_OF_TODAY", "key-of-today"),
    ("KEY_OF_TOMORROW", "key-of-tomorrow"),
    ("JWT_OF_TODAY", "jwt-secret-of-today-0123456789abcdef"),
    ("JWT_OF_TOMORROW", "jwt-secret-of-tomorrow-0123456789abcdef"),
    ("KEY_OF_ANOTHER", "key-of-another"),
    ("JWT_OF_TENANT_B", "jwt-secret-of-tenant-b-0123456789abcdef"),
];

/// The server for a folder of `events`, or for one below it.
pub(crate) fn server_of(folder: &Path, stub: &Stub) -> Server {
    let mut tools = toolbox::tools(stub.endpoints());
    let keys = || Auth::api_key_ids(["KEY_OF_TODAY", "KEY_OF_TOMORROW"]);
    let jwt = || {
        Auth::jwt_secret_ids(["JWT_OF_TODAY", "JWT_OF_TOMORROW"])
            .audience("https://tools.example")
            .audience("https://other.example")
    };
    let all = Secrets::fixed(KEYS);
    let twilio = |read: ReadResult| Secrets::from_store(Says::of([("TWILIO_API_KEY", read)]));
    let there = |value: &str| Ok(Some(Secret::from(value)));
    let name = folder.file_name().unwrap().to_str().unwrap();
    let below_secrets = folder.parent().is_some_and(|it| it.ends_with("secrets"));
    if below_secrets {
        tools.extend(reports());
    }
    if name == "authorization" {
        tools.push(with_two_accounts());
    }
    if name == "opentool-user" {
        tools.push(whoami());
    }
    if ["platform", "tenants"].contains(&name) {
        tools.push(caller());
    }
    let server = toolbox::server(tools).unwrap();
    let server = if name == "authorization" {
        server
    } else {
        server.base_path("/agents")
    };
    match name {
        "authentication" | "opentool-key" => server.auth(keys()).secrets(all),
        "jwt" => server.auth(jwt()).secrets(all),
        "key-or-jwt" => server.auth(keys().or(jwt())).secrets(all),
        "undecided" => server.auth(keys()).secrets(Secrets::from_store(Says::of([
            (
                "KEY_OF_TODAY",
                Err(StoreError::throttled("too many requests")),
            ),
            ("KEY_OF_TOMORROW", there("key-of-tomorrow")),
        ]))),
        "authorization" => server
            .secrets(Secrets::fixed([
                ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
                ("GOOGLE_CLIENT_SECRET", "a-client-secret"),
            ]))
            .oauth(OAuth::with([
                Provider::google("client-id", "GOOGLE_CLIENT_SECRET"),
                Provider::github("client-id", "GITHUB_CLIENT_SECRET"),
            ])),
        // Two secrets of one caller, and another caller, of each kind.
        "tenants" => server
            .auth(
                Auth::api_key_ids(["KEY_OF_TODAY|KEY_OF_TOMORROW", "KEY_OF_ANOTHER"]).or(
                    Auth::jwt_secret_ids(["JWT_OF_TODAY | JWT_OF_TOMORROW", "JWT_OF_TENANT_B"]),
                ),
            )
            .secrets(all)
            .idempotency(Idempotency::in_memory()),
        "opentool-off" => server.protocols([lambda_tools::Protocol::Oxp]),
        "opentool-user" => server.auth(keys().or(jwt()).subject_is_user()).secrets(all),
        "idempotency" | "opentool-idempotency" | "platform" => {
            server.idempotency(Idempotency::in_memory())
        }
        "stored" => server.secrets(twilio(there(TWILIO_KEY))),
        "only-from-store" => server.secrets(twilio(there(TWILIO_KEY)).only_from_store()),
        "absent" => server.secrets(Secrets::from_store(Says::of([]))),
        "denied" => server.secrets(twilio(Err(StoreError::denied(
            "allow secretsmanager:GetSecretValue on \
             arn:aws:secretsmanager:us-east-1:*:secret:TWILIO_API_KEY-??????",
        )))),
        "throttled" => server.secrets(twilio(Err(StoreError::throttled("too many requests")))),
        "unavailable" => {
            server.secrets(twilio(Err(StoreError::unavailable("it cannot be reached"))))
        }
        "undecodable" => server.secrets(twilio(Err(StoreError::undecodable(
            "the secret 'tools' is not a JSON object",
        )))),
        "rotated" => {
            let old = TWILIO_KEY.replace("auth-token", "old-token");
            server.secrets(Secrets::from_store(Rotated {
                values: [old, TWILIO_KEY.to_owned()],
                reads: AtomicUsize::new(0),
            }))
        }
        "several" => server.secrets(Secrets::from_store(Says::of([
            ("REPORT_KEY", Err(StoreError::denied("allow it"))),
            ("REPORT_URL", there("https://reports.example")),
        ]))),
        _ => server,
    }
}

/// A store that says what it was told to.
struct Says(HashMap<&'static str, ReadResult>);

impl Says {
    fn of<const N: usize>(reads: [(&'static str, ReadResult); N]) -> Self {
        Self(reads.into())
    }
}

impl SecretStore for Says {
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        let one = |id: &String| self.0.get(id.as_str()).cloned().unwrap_or(Ok(None));
        Box::pin(async move { ids.iter().map(one).collect() })
    }

    fn location(&self, id: &str) -> String {
        format!("the store, as '{id}'")
    }
}

/// A store whose value was changed after it was first read.
struct Rotated {
    values: [String; 2],
    reads: AtomicUsize,
}

impl SecretStore for Rotated {
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        let read = self.reads.fetch_add(1, Ordering::Relaxed).min(1);
        let one = move |_: &String| Ok(Some(Secret::from(&*self.values[read])));
        Box::pin(async move { ids.iter().map(one).collect() })
    }

    fn location(&self, id: &str) -> String {
        format!("the store, as '{id}'")
    }
}

/// A tool that needs tokens of three providers, one of which nobody knows.
fn with_two_accounts() -> Tool {
    /// Copies from one account to another.
    #[derive(Deserialize, JsonSchema)]
    struct Copy {}

    async fn copy(_: Copy) -> Result<(), Failure> {
        Ok(())
    }

    Tool::new("Accounts.Copy@1.0.0", copy)
        .authorization("google", ["mail"])
        .authorization("unknown", ["all"])
        .authorization("github", ["repo"])
}

/// A tool that says for whom it runs.
fn whoami() -> Tool {
    /// Says who the user is.
    #[derive(Deserialize, JsonSchema)]
    struct Whoami {}

    async fn whoami(_: Whoami, cx: Context) -> Result<String, Failure> {
        Ok(cx.user_id().unwrap_or_default().to_owned())
    }

    Tool::new("Whoami.Get@1.0.0", whoami).user_id()
}

/// A tool that says who calls.
fn caller() -> Tool {
    /// Says who calls.
    #[derive(Deserialize, JsonSchema)]
    struct WhoCalls {}

    async fn caller(_: WhoCalls, cx: Context) -> Result<String, Failure> {
        Ok(cx.caller().to_string())
    }

    Tool::new("Whoami.Caller@1.0.0", caller)
}

/// Tools with several secrets.
fn reports() -> Vec<Tool> {
    /// Sends a report.
    #[derive(Deserialize, JsonSchema)]
    struct Send {}

    async fn send(_: Send, cx: Context) -> Result<String, Failure> {
        Ok(cx.secret("REPORT_URL")?.expose().to_owned())
    }

    let tool = |id: &'static str| {
        Tool::new(id, send)
            .secret("REPORT_KEY")
            .secret("REPORT_URL")
            .secret("REPORT_SIGNATURE")
    };
    let for_somebody = tool("Report.SendAs@1.0.0")
        .user_id()
        .authorization("google", ["mail"]);
    vec![tool("Report.Send@1.0.0"), for_somebody]
}
