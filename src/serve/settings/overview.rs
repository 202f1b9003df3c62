//! The settings in the log, when the server starts.

use tracing::Level;

use super::{
    unknown,
    variables::{is_on_lambda, set},
};
use crate::{Auth, DEFAULT_TIMEOUT, EventKind, Server, oauth::OAuth};

/// Warns of unknown settings and, at level `debug`, shows the settings in force.
pub(in crate::serve) fn log(server: &Server) {
    for sentence in unknown::sentences(server) {
        tracing::warn!("{sentence}");
    }
    let idempotency = server.idempotency.as_ref();
    let is_shared = idempotency.is_some_and(|it| it.shared_store().is_some());
    if !server.quotas.is_empty() && !is_shared && is_on_lambda() {
        tracing::warn!(
            "each instance of this function counts by itself, from zero: quotas need a table \
             (TOOLS_IDEMPOTENCY=dynamodb)"
        );
    }
    if tracing::enabled!(Level::DEBUG) {
        show(server);
    }
}

fn show(server: &Server) {
    let variables: Vec<_> = set()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let providers = server.oauth.iter().flat_map(OAuth::provider_ids);
    tracing::debug!(
        variables = variables.join(" "),
        auth = server.auth.as_ref().map(Auth::summary),
        secrets = ?server.secrets,
        idempotency = ?server.idempotency,
        oauth = ?providers.collect::<Vec<_>>(),
        protocols = ?server.protocols,
        base_path = server.base_path,
        allowed_origins = ?server.allowed_origins.as_deref().unwrap_or_default(),
        events = ?server.events.as_deref().unwrap_or(EventKind::DEFAULT),
        explorer = server.explorer.unwrap_or_default(),
        metrics = server.metrics,
        max_request_size = server.max_request_size,
        timeout = ?DEFAULT_TIMEOUT,
        "settings in force"
    );
}
