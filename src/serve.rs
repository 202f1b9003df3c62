//! Running: on Lambda where there is Lambda, else as a local HTTP server.
//!
//! The only place that reads the clock, the environment and randomness, and that knows of AWS.

pub(crate) mod lambda;
mod local;
mod sample;
pub(crate) mod settings;
pub(crate) mod shutdown;

use std::env;

use crate::{Error, Server, assemble::assemble, clock::REAL, observe::panics};
use axum::Router;

/// Serves tools: as a Lambda function where `AWS_LAMBDA_RUNTIME_API` is set, else over HTTP on
/// 127.0.0.1:9000 until Ctrl-C or SIGTERM.
///
/// | environment variable | meaning | default |
/// | --- | --- | --- |
/// | `TOOLS_AUTH` | who may call: `none`, `api-key`, `jwt` (cargo feature `jwt`) or `api-key,jwt`, as [`Server::auth`] | on Lambda none: it has to be chosen; else `none` |
/// | `TOOLS_API_KEY_IDS` | ids of the secrets that are API keys, comma-separated; `A\|B` are two keys of one caller | `TOOLS_API_KEY` |
/// | `TOOLS_JWT_SECRET_IDS` | ids of the secrets that sign JWTs, comma-separated; `A\|B` are two of one signer | `TOOLS_JWT_SECRET` |
/// | `TOOLS_JWT_AUDIENCES` | audiences, comma-separated, one of which a JWT's `aud` has to name; without any, a JWT must have none | |
/// | `TOOLS_JWT_SUBJECT_IS_USER` | `yes` takes a JWT's `sub` for the call's user, as [`Auth::subject_is_user`](crate::Auth::subject_is_user) | `no` |
/// | `TOOLS_SECRETS` | where secrets come from: `environment`, `secrets-manager` (cargo feature of that name) or `none`, as [`Server::secrets`] | `environment` |
/// | `TOOLS_SECRETS_FILE` | a file in dotenv's format beside the environment | `.env`, none on Lambda |
/// | `TOOLS_SECRETS_PREFIX` | what stands before a secret's id in its name in Secrets Manager | |
/// | `TOOLS_SECRETS_JSON` | name or ARN of one JSON secret with all of them | |
/// | `TOOLS_SECRETS_CACHE_SECONDS` | how long values from elsewhere than the environment are used before they are read again | 300 |
/// | `TOOLS_SECRETS_FROM_CALLS` | `no` ignores the secrets that calls bring | `yes` |
/// | `TOOLS_IDEMPOTENCY` | where calls are remembered: `memory`, `dynamodb` (cargo feature of that name) or `none`, as [`Server::idempotency`] | `memory` |
/// | `TOOLS_IDEMPOTENCY_TABLE` | the table in DynamoDB | |
/// | `TOOLS_IDEMPOTENCY_SECONDS` | how long calls are remembered | 3600 |
/// | `TOOLS_IDEMPOTENCY_WAIT_SECONDS` | how long a call waits for the same one that is still running | 5 |
/// | `TOOLS_IDEMPOTENCY_REQUIRED` | `no` runs calls without protection while the store cannot be reached (not while it is full) | `yes` |
/// | `TOOLS_GOOGLE_CLIENT_ID`, and the same with `GITHUB`, `MICROSOFT`, `SLACK` | this server's client id at a provider (cargo feature `oauth`); the client secret is the secret `TOOLS_GOOGLE_CLIENT_SECRET`. As `Server::authorization` | |
/// | `TOOLS_GOOGLE_ISSUER`, and the same with the others | another issuer in the provider's place, by `OpenID` discovery | |
/// | `TOOLS_AUTHORIZATION_KEY_IDS` | ids of the secrets that encrypt what is kept of users, the newest first | `TOOLS_AUTHORIZATION_KEY` |
/// | `TOOLS_AUTHORIZATION_TABLE` | the table in DynamoDB with challenges and grants | memory; on Lambda it has to be chosen |
/// | `TOOLS_AUTHORIZATION_CHECKS` | `authenticated` asks for credentials at `check_url` | `open` |
/// | `TOOLS_PUBLIC_URL` | the URL under which users reach this server | the domain in the event, the local address |
/// | `TOOLS_BASE_PATH` | as [`Server::base_path`] | |
/// | `TOOLS_METRICS` | `cloudwatch` prints metrics, as [`Server::cloudwatch_metrics`]; `none` | `none` |
/// | `TOOLS_METRICS_NAMESPACE` | the metrics' namespace | `lambda_tools` |
/// | `HOST`, `PORT` | where the local server listens; port 0 takes a free one | `127.0.0.1`, `9000` |
/// | `ALLOWED_HOSTS` | hosts, comma-separated, under which a local server may be called, and whose pages may call it, besides `localhost`; `*` is all. A server that listens on another than a loopback address may be called under every IP address, too | |
/// | `RECORD_EVENTS` | a folder: the local server writes every request there as an event with its expected answer | |
/// | `LOG_CALLS` | `yes`: the local server logs inputs and outputs | `no` |
/// | `AWS_LAMBDA_LOG_LEVEL`, `RUST_LOG` | what is logged | `info` |
/// | `AWS_LAMBDA_LOG_FORMAT` | `Text` for lines of text on Lambda | JSON |
///
/// What the program itself chooses stands; the `TOOLS_` variables fill in what it leaves open.
/// Secrets from elsewhere than the environment are read during initialisation, all that tools
/// declare, and a table for calls is connected to; what does not go well then is logged and tried
/// again by the calls that need it.
///
/// Lambda's own variables and OpenTelemetry's are in [`operations`](crate::operations), with
/// everything that is logged, measured and traced.
///
/// A panic in a tool is logged without the call's secrets; the panic hook that the program has set
/// goes on handling all others, but for those whose text has a known secret in it.
///
/// A subscriber for [`tracing`] is installed unless there is one already.
///
/// # Errors
/// Mistakes in the definitions (see [`Toolkit::check`](crate::Toolkit::check); not on Lambda), a
/// choice that is missing on Lambda or cannot be understood, a [version](Server::about) that is none, an address that cannot be listened
/// on, a runtime API that fails.
pub async fn serve(server: impl Into<Server>) -> Result<(), Error> {
    let mut server = server.into();
    settings::apply(&mut server)?;
    panics::log();
    if env::var_os("AWS_LAMBDA_RUNTIME_API").is_some() {
        lambda::run(server).await
    } else {
        local::run(server).await
    }
}

impl Server {
    /// The whole HTTP surface as one tower service, for a host of one's own. What the program has
    /// not chosen comes from the environment, as for [`serve`](crate::serve). Nothing is read or
    /// connected ahead of the first call, and the panic hook is not set.
    ///
    /// # Errors
    /// A choice in the environment that is none, or that is missing on Lambda; a
    /// [version](Self::about) that is none.
    pub fn into_router(mut self) -> Result<Router, Error> {
        settings::apply(&mut self)?;
        Ok(assemble(self, REAL, REAL).0)
    }
}
