//! The assembly of the router from a server's configuration.
//!
//! Only this module combines stores, clocks and protocols: for Lambda, for the local server and for
//! replays.

use std::{collections::HashSet, sync::Arc};

use axum::{Router, body::Body};
use http::{Request, Uri};
use lambda_http::tower::ServiceExt;
use tokio::sync::Semaphore;

#[cfg(feature = "sign-in")]
use crate::auth::sign_in::AuthorizationServer;
use crate::{
    Auth, EventKind, PublicUrl, Server,
    call::Engine,
    clock::Clock,
    idempotency::{Idempotency, deduplication::Deduplication},
    observe::request_log::Observer,
    protocol::{self, app::AppState, listed_tools::ModelNames, origin::AllowedOrigins},
    quotas::Quotas,
    secrets::{SecretCache, Secrets},
    tool::repeats::RepeatPolicy,
};

/// Builds the router, and the state that it shares with direct calls.
///
/// `wall_clock` is the clock for checking credentials and caching secrets.
pub(crate) fn assemble(
    mut server: Server,
    clock: Clock,
    wall_clock: Clock,
) -> (Router, Arc<AppState>) {
    #[cfg(feature = "sign-in")]
    server.join_sign_in();
    let has_explorer = server.explorer.unwrap_or_default();
    let declared = declared_secrets(&server);
    let secrets = server.secrets.take().unwrap_or_else(Secrets::none);
    let secrets = SecretCache::new(secrets, declared, wall_clock.clone());
    let idempotency = server.idempotency.take().unwrap_or_else(Idempotency::none);
    let quotas = Quotas::new(
        std::mem::take(&mut server.quotas),
        idempotency.shared_store(),
    );
    let deduplication = Arc::new(Deduplication::new(idempotency, clock.clone()));
    let public_url = PublicUrl::new(server.public_url.as_deref(), server.base_path.as_deref());
    #[cfg(feature = "oauth")]
    let broker = server.oauth.take().map(|settings| {
        let needs = server
            .toolkit
            .all()
            .flat_map(|entry| &entry.tool.requirements.authorization);
        let scopes = needs.flat_map(|need| {
            let scopes = need.oauth2.scopes.iter();
            scopes.map(|scope| (need.id.clone(), scope.clone()))
        });
        Arc::new(crate::oauth::Broker {
            settings,
            secrets: Arc::clone(&secrets),
            clock: wall_clock.clone(),
            public_url: public_url.clone(),
            declared: scopes.collect(),
        })
    });
    #[cfg(feature = "sign-in")]
    let authorization_server = broker.as_ref().and_then(|broker| {
        let auth = server.auth.as_ref()?;
        let known = auth.known_scopes(&server.toolkit).map(str::to_owned);
        Some(AuthorizationServer::new(
            auth.sign_in()?.clone(),
            Arc::clone(broker),
            auth.scopes().to_vec(),
            known.collect(),
        ))
    });
    let engine = Arc::new(Engine {
        #[cfg(feature = "oauth")]
        broker,
        toolkit: server.toolkit,
        auth: server.auth.unwrap_or_default(),
        secrets,
        deduplication,
        quotas,
        clock: clock.clone(),
        is_healthy: server.is_healthy,
        lists_callable: server.lists_callable,
        secret_headers: server.secret_headers,
        shows_calls: server.shows_calls,
        watch: server.watch,
        worker: server.worker,
        task_after: server.task_after,
    });
    let observer = Observer {
        clock,
        wall_clock: wall_clock.clone(),
        metrics: server.metrics,
    };
    let app = Arc::new(AppState {
        info: server.info,
        protocols: server.protocols,
        engine,
        observer: Arc::new(observer),
        wall_clock,
        max_request_size: server.max_request_size,
        large_bodies: Arc::new(Semaphore::new(server.max_request_size)),
        events: server.events.unwrap_or_else(|| EventKind::DEFAULT.to_vec()),
        streaming: server.streaming.unwrap_or_default(),
        agentcore_user: server.agentcore_user,
        allowed_origins: AllowedOrigins(server.allowed_origins.unwrap_or_default()),
        readers: server.readers.map(AllowedOrigins),
        names: ModelNames::default(),
        has_openapi: server.openapi.unwrap_or_default(),
        #[cfg(feature = "explorer")]
        has_explorer,
        public_url,
        #[cfg(feature = "sign-in")]
        authorization_server,
    });
    let router = protocol::router(Arc::clone(&app));
    let apply = |router, change: Box<dyn FnOnce(Router) -> Router + Send>| change(router);
    let router = server.router_changes.into_iter().fold(router, apply);
    let router = with_base_path(server.base_path.as_deref(), router, has_explorer);
    (router, app)
}

/// Returns the ids of the secrets that authentication and OAuth read.
pub(crate) fn own_secrets(server: &Server) -> impl Iterator<Item = &str> {
    let ids = server.auth.iter().flat_map(Auth::secrets);
    #[cfg(feature = "oauth")]
    let ids = ids.chain(server.oauth.iter().flat_map(crate::OAuth::secrets));
    ids
}

/// Returns the ids of all secrets in the store that authentication, OAuth and the tools read, without
/// duplicates.
pub(crate) fn declared_secrets(server: &Server) -> Vec<String> {
    let tools = server.toolkit.all();
    let tools = tools.flat_map(|entry| &entry.tool.requirements.secrets);
    let comes = |id: &str| server.secret_headers.iter().any(|(it, _)| it == id);
    let tools = tools.filter(|it| !comes(&it.id));
    let mut seen = HashSet::new();
    own_secrets(server)
        .chain(tools.map(|it| &*it.id))
        .filter(|id| seen.insert(*id))
        .map(str::to_owned)
        .collect()
}

/// Serves the router under the base path as well, also `/` if the server itself has something
/// there.
fn with_base_path(base_path: Option<&str>, router: Router, serves_root: bool) -> Router {
    match base_path.map(|path| path.trim_matches('/')) {
        None | Some("") => router,
        Some(path) => {
            let base = format!("/{path}");
            let service =
                router.map_request(move |request| strip_base_path(request, &base, serves_root));
            Router::new().fallback_service(service)
        }
    }
}

/// Warms up for the first call: reads the secrets and the issuers' keys, and warms up the stores of
/// calls and of grants, concurrently. Errors are only logged: their causes may be gone by the first
/// call.
pub(crate) async fn warm_up(app: &AppState) {
    let engine = &app.engine;
    let secrets = async {
        let of_callers: Vec<_> = engine.auth.secrets().collect();
        engine.secrets.warm_up(&of_callers).await;
        let warning = engine.auth.warning_without_secrets(&engine.secrets);
        if let Some(warning) = warning.await {
            tracing::warn!("{warning}");
        }
    };
    let deduplication = async {
        let mut tools = engine.toolkit.entries().iter();
        let has_recorded = tools.any(|it| it.tool.policy != RepeatPolicy::Idempotent);
        if has_recorded || !engine.quotas.is_empty() {
            engine.deduplication.warm_up().await;
        }
    };
    let keys = engine.auth.warm_up(&app.wall_clock);
    let grants = async {
        #[cfg(feature = "oauth")]
        if let Some(broker) = &engine.broker {
            broker.warm_up().await;
        }
    };
    tokio::join!(secrets, deduplication, keys, grants);
}

/// Strips the base path if another path follows it; with `serves_root`, even if none does.
fn strip_base_path(mut request: Request<Body>, base: &str, serves_root: bool) -> Request<Body> {
    let whole = request.uri().path_and_query();
    let whole = whole.map_or("", |it| it.as_str());
    let rest = match whole.strip_prefix(base) {
        Some("" | "/") => serves_root.then_some("/"),
        rest => rest.filter(|rest| rest.starts_with('/')),
    };
    if let Some(Ok(rest)) = rest.map(Uri::try_from) {
        *request.uri_mut() = rest;
    }
    request
}
