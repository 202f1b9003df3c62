//! From an owner's choices to the router that answers.
//!
//! The one place where stores, clocks and protocols are put together: for Lambda, for the local
//! server and for replays.

use std::{collections::HashSet, sync::Arc};

use axum::{Router, body::Body};
use http::{Request, Uri};
use lambda_http::tower::ServiceExt;

#[cfg(feature = "oauth")]
use crate::authorization::{Authorization, Desk};
use crate::{
    Auth, Server, Toolkit,
    call::{Engine, heavy::Heavy},
    clock::Host,
    idempotency::{Idempotency, protection::Protection},
    observe::request_log::Observer,
    protocol::{self, http::App},
    secrets::{SecretCache, Secrets},
    tool::{repeats::Policy, toolkit::Entry},
};

/// The router, and what can be got ready before the first call.
///
/// `guard` is the host by whose clock credentials are checked and secrets kept.
pub(crate) fn assemble(mut server: Server, host: Host, guard: Host) -> (Router, WarmUp) {
    let declared = declared_secrets(&server);
    let secrets = server.secrets.take().unwrap_or_else(Secrets::none);
    let secrets = SecretCache::new(secrets, declared, guard.clone());
    let idempotency = server.idempotency.take().unwrap_or_else(Idempotency::none);
    let protection = Arc::new(Protection::new(idempotency, host.clone()));
    let warm_up = WarmUp {
        secrets: Arc::clone(&secrets),
        protection: Arc::clone(&protection),
        remembers: is_any_recorded(&server.toolkit),
    };
    let engine = Engine {
        #[cfg(feature = "oauth")]
        desk: desk_of(&mut server, &secrets, &guard),
        toolkit: Arc::new(server.toolkit),
        auth: server.auth.unwrap_or_default(),
        secrets,
        protection,
        host: host.clone(),
        heavy: Heavy::default(),
        is_healthy: server.is_healthy,
        shows_calls: server.shows_calls,
    };
    let observer = Observer {
        host,
        guard: guard.clone(),
        metrics: server.metrics,
    };
    let app = App {
        engine: Arc::new(engine),
        observer: Arc::new(observer),
        guard,
        largest_request: server.largest_request,
    };
    let router = protocol::router(Arc::new(app), &server.protocols, &server.about);
    let changed = |router, change: Box<dyn FnOnce(Router) -> Router + Send>| change(router);
    let router = server.with.into_iter().fold(router, changed);
    (below(server.base_path.as_deref(), router), warm_up)
}

/// The ids of all secrets that the tools or the authentication read, each once.
fn declared_secrets(server: &Server) -> Vec<String> {
    let keys = server.auth.iter().flat_map(Auth::secrets);
    let entries = server.toolkit.entries().iter();
    let tools = entries.flat_map(|entry| &entry.tool.requirements.secrets);
    #[cfg(feature = "oauth")]
    let keys = keys.chain(server.authorization.iter().flat_map(Authorization::secrets));
    let mut seen = HashSet::new();
    keys.chain(tools.map(|it| &*it.id))
        .filter(|id| seen.insert(*id))
        .map(str::to_owned)
        .collect()
}

fn is_any_recorded(toolkit: &Toolkit) -> bool {
    let is_recorded = |entry: &Entry| entry.tool.policy != Policy::Idempotent;
    toolkit.entries().iter().any(is_recorded)
}

#[cfg(feature = "oauth")]
fn desk_of(server: &mut Server, secrets: &Arc<SecretCache>, guard: &Host) -> Option<Arc<Desk>> {
    let settings = server.authorization.take()?;
    let entries = server.toolkit.entries().iter();
    let needs = entries.flat_map(|entry| &entry.tool.requirements.authorization);
    let scopes = needs.flat_map(|need| {
        let scopes = need.oauth2.scopes.iter();
        scopes.map(|scope| (need.id.clone(), scope.clone()))
    });
    let declared = scopes.collect();
    let base_path = server.base_path.as_deref();
    let desk = Desk::new(settings, secrets, guard.clone(), base_path, declared);
    Some(Arc::new(desk))
}

/// The router below its base path as well.
fn below(base_path: Option<&str>, router: Router) -> Router {
    match base_path.map(|path| path.trim_matches('/')) {
        None | Some("") => router,
        Some(path) => {
            let base = format!("/{path}");
            let service = router.map_request(move |request| without_base(request, &base));
            Router::new().fallback_service(service)
        }
    }
}

/// Prepares stores and connections before the first call.
pub(crate) struct WarmUp {
    secrets: Arc<SecretCache>,
    protection: Arc<Protection>,
    /// Whether there are calls to remember.
    remembers: bool,
}

impl WarmUp {
    pub(crate) fn secrets(&self) -> &Arc<SecretCache> {
        &self.secrets
    }

    pub(crate) fn protection(&self) -> Arc<Protection> {
        Arc::clone(&self.protection)
    }

    /// Both at once. What is wrong is logged: it may be right by the time of a call.
    pub(crate) async fn run(self) {
        let protection = async {
            if self.remembers {
                self.protection.warm().await;
            }
        };
        tokio::join!(self.secrets.warm(), protection);
    }
}

/// Takes the base path off, where there is something behind it.
fn without_base(mut request: Request<Body>, base: &str) -> Request<Body> {
    let whole = request
        .uri()
        .path_and_query()
        .map_or("", |whole| whole.as_str());
    let rest = whole
        .strip_prefix(base)
        .filter(|rest| rest.starts_with('/') && *rest != "/");
    if let Some(Ok(rest)) = rest.map(Uri::try_from) {
        *request.uri_mut() = rest;
    }
    request
}
