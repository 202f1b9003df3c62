//! What is served: a toolkit and the choices of its owner.
//!
//! A builder between [`Toolkit`] and [`serve`](crate::serve), for those who need more than the
//! defaults; everybody else hands the toolkit over directly.

use std::{collections::HashSet, sync::Arc};

use axum::{Router, body::Body};
use http::{Request, Uri};
use lambda_http::tower::ServiceExt;

#[cfg(feature = "oauth")]
use crate::authorization::{Authorization, Desk};
use crate::{
    Auth, Error, Toolkit,
    call::heavy::Heavy,
    host::{Host, LARGEST_PAYLOAD},
    idempotency::{Idempotency, Policy, protection::Protection},
    metrics::Metrics,
    secrets::{SecretCache, Secrets},
    serve::{self, shutdown},
    toolkit::Entry,
    wire::{
        self, App,
        opentool::{About, Document},
    },
};

/// How many bytes a body may have by default: far more than a model writes, far less than Lambda
/// takes.
const LARGEST_REQUEST: usize = 1 << 20;

/// A toolkit with the choices of its owner.
///
/// ```no_run
/// # use lambda_tools::{Server, Toolkit, serve};
/// # async fn run(toolkit: Toolkit) -> Result<(), lambda_tools::Error> {
/// use axum::routing::get;
///
/// let server = Server::new(toolkit)
///     .base_path("/agents")
///     .with(|router| router.route("/about", get(|| async { "Tools of ours." })));
/// serve(server).await
/// # }
/// ```
pub struct Server {
    toolkit: Toolkit,
    pub(crate) base_path: Option<String>,
    pub(crate) auth: Option<Auth>,
    pub(crate) secrets: Option<Secrets>,
    pub(crate) idempotency: Option<Idempotency>,
    #[cfg(feature = "oauth")]
    pub(crate) authorization: Option<Authorization>,
    opentool: bool,
    about: About,
    pub(crate) metrics: Option<Metrics>,
    pub(crate) shows_calls: bool,
    pub(crate) on_shutdown: Option<shutdown::Hook>,
    largest_request: usize,
    ready: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    with: Vec<Box<dyn FnOnce(Router) -> Router + Send>>,
}

impl Server {
    /// A server with the defaults.
    #[must_use]
    pub fn new(toolkit: Toolkit) -> Self {
        Self {
            toolkit,
            base_path: None,
            auth: None,
            secrets: None,
            idempotency: None,
            #[cfg(feature = "oauth")]
            authorization: None,
            opentool: true,
            about: About::default(),
            metrics: None,
            shows_calls: false,
            on_shutdown: None,
            largest_request: LARGEST_REQUEST,
            ready: None,
            with: Vec::new(),
        }
    }

    /// Serves below this path as well, such as `/agents` for `/agents/tools/call`: for custom
    /// domains whose base path mapping stays in the path. Names of API Gateway's stages need
    /// none; they are taken off by themselves.
    #[must_use]
    pub fn base_path(mut self, path: impl Into<String>) -> Self {
        self.base_path = Some(path.into());
        self
    }

    /// Sets who may call. Without it the environment says who (see [`serve`](crate::serve)).
    #[must_use]
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = Some(auth);
        self
    }

    /// Sets where secrets come from that calls do not bring. Without it the environment says
    /// where (see [`serve`](crate::serve)); [`testing`](crate::testing) then has no store.
    #[must_use]
    pub fn secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = Some(secrets);
        self
    }

    /// Sets where calls are remembered, so that a repeated one has no second effect. Without it
    /// the environment says where (see [`serve`](crate::serve));
    /// [`testing`](crate::testing) then remembers nothing.
    #[must_use]
    pub fn idempotency(mut self, idempotency: Idempotency) -> Self {
        self.idempotency = Some(idempotency);
        self
    }

    /// Sets where users allow tools to act for them. Without it the environment says which
    /// providers there are (see [`serve`](crate::serve)); [`testing`](crate::testing) then has
    /// none.
    #[cfg(feature = "oauth")]
    #[must_use]
    pub fn authorization(mut self, authorization: Authorization) -> Self {
        self.authorization = Some(authorization);
        self
    }

    /// Does not serve OpenTool: there is nothing below `/opentool`.
    #[must_use]
    pub fn without_opentool(mut self) -> Self {
        self.opentool = false;
        self
    }

    /// Says what is served, for OpenTool's `/opentool/load` (`info`) and `/opentool/version`: a title,
    /// a description, and the version of the whole, `x.y.z`. Without it `Tools`, `Tools for AI
    /// agents.`, `1.0.0`.
    ///
    /// A version that is none ends the start, as wrong choices in the environment do.
    #[must_use]
    pub fn about(
        mut self,
        title: impl Into<String>,
        description: impl Into<String>,
        version: impl Into<String>,
    ) -> Self {
        self.about = About {
            title: title.into(),
            description: description.into(),
            version: version.into(),
        };
        self
    }

    /// Prints metrics from which CloudWatch makes its own, a line for each request, under this
    /// namespace: how many calls, failures, rejections and replays, and how long they took, by tool
    /// and version. Without it the environment says (see [`serve`](crate::serve)).
    ///
    /// AWS charges for each metric of each tool and version; the list is in `docs/operations.md`.
    #[must_use]
    pub fn cloudwatch_metrics(mut self, namespace: impl Into<String>) -> Self {
        self.metrics = Some(Metrics::in_namespace(namespace));
        self
    }

    /// Sets how many bytes a request's body may have: 1 MiB, unless this says otherwise, and never
    /// more than the 6 MB that Lambda takes. A larger one is a 400, and so is one of more than a
    /// value for every 20 bytes of it (52,428 in 1 MiB), because a value of two bytes takes hundreds
    /// in memory.
    #[must_use]
    pub fn largest_request(mut self, bytes: usize) -> Self {
        self.largest_request = bytes.min(LARGEST_PAYLOAD);
        self
    }

    /// Asks `ready` whether calls can be taken. While it says no, `/health` answers 503 and calls
    /// are refused with a 400. OXP 1.0, `GET /health`.
    #[must_use]
    pub fn ready_when(mut self, ready: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.ready = Some(Box::new(ready));
        self
    }

    /// Does something before the process ends: Lambda sends SIGTERM and gives half a second, of
    /// which this has 450 ms; the local server does it when it is stopped. Spans are exported by
    /// themselves.
    ///
    /// On Lambda it registers an internal extension, without which there is no signal.
    ///
    /// ```no_run
    /// # use lambda_tools::{Server, Toolkit};
    /// # fn server(toolkit: Toolkit) -> Server {
    /// Server::new(toolkit).on_shutdown(|| async { println!("Closing connections") })
    /// # }
    /// ```
    #[cfg(feature = "graceful-shutdown")]
    #[must_use]
    pub fn on_shutdown<F>(mut self, hook: impl FnOnce() -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.on_shutdown = Some(Box::new(move || Box::pin(hook())));
        self
    }

    /// Changes the router: adds layers (CORS, compression, limits) or routes of one's own.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(Router) -> Router + Send + 'static) -> Self {
        self.with.push(Box::new(change));
        self
    }

    /// The whole HTTP surface as one tower service, for a host of one's own. What the program has
    /// not chosen comes from the environment, as for [`serve`](crate::serve). Nothing is read or
    /// connected ahead of the first call, and the panic hook is not set.
    ///
    /// # Errors
    /// A choice in the environment that is none, or that is missing on Lambda; a
    /// [version](Self::about) that is none.
    pub fn into_router(mut self) -> Result<Router, Error> {
        serve::settings::apply(&mut self)?;
        Ok(self.served_on(serve::REAL, serve::REAL).0)
    }

    pub(crate) fn toolkit(&self) -> &Toolkit {
        &self.toolkit
    }

    pub(crate) fn version(&self) -> &str {
        &self.about.version
    }

    pub(crate) fn is_open(&self) -> bool {
        self.auth.as_ref().is_none_or(Auth::is_open)
    }

    /// The ids of all secrets that the tools or the authentication read, each once.
    fn declared_secrets(&self) -> Vec<String> {
        let keys = self.auth.iter().flat_map(Auth::secrets);
        let entries = self.toolkit.entries().iter();
        let tools = entries.flat_map(|entry| &entry.tool.requirements.secrets);
        #[cfg(feature = "oauth")]
        let keys = keys.chain(self.authorization.iter().flat_map(Authorization::secrets));
        let mut seen = HashSet::new();
        keys.chain(tools.map(|it| &*it.id))
            .filter(|id| seen.insert(*id))
            .map(str::to_owned)
            .collect()
    }

    /// The router, and what it can get ready before the first call.
    ///
    /// `guard` is the host by whose clock credentials are checked and secrets kept.
    pub(crate) fn served_on(self, host: Host, guard: Host) -> (Router, WarmUp) {
        let declared = self.declared_secrets();
        let secrets = self.secrets.unwrap_or_else(Secrets::none);
        let secrets = SecretCache::new(secrets, declared, guard.clone());
        let idempotency = self.idempotency.unwrap_or_else(Idempotency::none);
        let is_recorded = |entry: &Entry| entry.tool.policy != Policy::Idempotent;
        let remembers = self.toolkit.entries().iter().any(is_recorded);
        let protection = Arc::new(Protection::new(idempotency, host.clone()));
        let warm_up = WarmUp {
            secrets: Arc::clone(&secrets),
            protection: Arc::clone(&protection),
            remembers,
        };
        #[cfg(feature = "oauth")]
        let desk = self.authorization.map(|settings| {
            let base_path = self.base_path.as_deref();
            let entries = self.toolkit.entries().iter();
            let needs = entries.flat_map(|entry| &entry.tool.requirements.authorization);
            let scopes = needs.flat_map(|need| {
                let scopes = need.oauth2.scopes.iter();
                scopes.map(|scope| (need.id.clone(), scope.clone()))
            });
            let declared = scopes.collect();
            Arc::new(Desk::new(
                settings,
                &secrets,
                guard.clone(),
                base_path,
                declared,
            ))
        });
        #[cfg(not(feature = "oauth"))]
        let desk = None;
        let app = App {
            desk,
            toolkit: Arc::new(self.toolkit),
            catalogue: wire::oxp::Catalogue::default(),
            opentool: self.opentool.then(|| Document::new(self.about)),
            protection,
            host,
            guard,
            auth: self.auth.unwrap_or_default(),
            secrets: Arc::clone(&secrets),
            ready: self.ready,
            metrics: self.metrics,
            shows_calls: self.shows_calls,
            largest_request: self.largest_request,
            heavy: Heavy::default(),
        };
        let router = wire::router(Arc::new(app));
        let changed = |router, change: Box<dyn FnOnce(Router) -> Router + Send>| change(router);
        let router = self.with.into_iter().fold(router, changed);
        match self.base_path.as_deref().map(|path| path.trim_matches('/')) {
            None | Some("") => (router, warm_up),
            Some(path) => {
                let base = format!("/{path}");
                let service = router.map_request(move |request| without_base(request, &base));
                (Router::new().fallback_service(service), warm_up)
            }
        }
    }
}

/// What can be got ready before the first call.
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

impl From<Toolkit> for Server {
    fn from(toolkit: Toolkit) -> Self {
        Self::new(toolkit)
    }
}
