//! What is served: a toolkit and the choices of its owner.
//!
//! A builder between [`Toolkit`] and [`serve`](crate::serve), for those who need more than the
//! defaults; everybody else hands the toolkit over directly.

use std::pin::Pin;

use axum::Router;

#[cfg(feature = "oauth")]
use crate::oauth::OAuth;
use crate::{
    Auth, ServerInfo, Toolkit, idempotency::Idempotency, observe::metrics::Metrics,
    payload::LARGEST_PAYLOAD, protocol::Protocol, secrets::Secrets,
};

/// How many bytes a body may have by default: far more than a model writes, far less than Lambda
/// takes.
const LARGEST_REQUEST: usize = 1 << 20;

/// What is done before the process ends.
pub(crate) type ShutdownHook = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// A toolkit with the choices of its owner.
///
/// ```no_run
/// # use lambda_tools::{Server, Toolkit, serve};
/// # async fn run(toolkit: Toolkit) -> Result<(), lambda_tools::Error> {
/// use axum::routing::get;
///
/// let server = Server::new(toolkit)
///     .base_path("/agents")
///     .map_router(|router| router.route("/about", get(|| async { "Tools of ours." })));
/// serve(server).await
/// # }
/// ```
pub struct Server {
    pub(crate) toolkit: Toolkit,
    pub(crate) base_path: Option<String>,
    pub(crate) auth: Option<Auth>,
    pub(crate) secrets: Option<Secrets>,
    pub(crate) idempotency: Option<Idempotency>,
    #[cfg(feature = "oauth")]
    pub(crate) oauth: Option<OAuth>,
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) info: ServerInfo,
    pub(crate) metrics: Option<Metrics>,
    pub(crate) shows_calls: bool,
    pub(crate) on_shutdown: Option<ShutdownHook>,
    pub(crate) max_request_size: usize,
    pub(crate) is_healthy: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    pub(crate) router_changes: Vec<Box<dyn FnOnce(Router) -> Router + Send>>,
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
            oauth: None,
            protocols: Protocol::ALL.to_vec(),
            info: ServerInfo::default(),
            metrics: None,
            shows_calls: false,
            on_shutdown: None,
            max_request_size: LARGEST_REQUEST,
            is_healthy: None,
            router_changes: Vec::new(),
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
    pub fn oauth(mut self, oauth: OAuth) -> Self {
        self.oauth = Some(oauth);
        self
    }

    /// Serves these protocols only. Without it a server serves [all](Protocol::ALL).
    ///
    /// ```no_run
    /// # use lambda_tools::{Protocol, Server, Toolkit};
    /// # fn server(toolkit: Toolkit) -> Server {
    /// Server::new(toolkit).protocols([Protocol::Oxp])
    /// # }
    /// ```
    #[must_use]
    pub fn protocols(mut self, protocols: impl IntoIterator<Item = Protocol>) -> Self {
        let chosen: Vec<_> = protocols.into_iter().collect();
        // In the order of all of them, and each once.
        let all = Protocol::ALL.iter().copied();
        self.protocols = all.filter(|protocol| chosen.contains(protocol)).collect();
        self
    }

    /// Describes the server, for `info` of OpenTool's `/opentool/load` and for `/opentool/version`.
    /// Without it, the title is `Tools` and the version `1.0.0`.
    #[must_use]
    pub fn info(mut self, info: ServerInfo) -> Self {
        self.info = info;
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
    pub fn max_request_size(mut self, bytes: usize) -> Self {
        self.max_request_size = bytes.min(LARGEST_PAYLOAD);
        self
    }

    /// Asks `ready` whether calls can be taken. While it says no, `/health` answers 503 and calls
    /// are refused with a 400. OXP 1.0, `GET /health`.
    #[must_use]
    pub fn healthy_when(mut self, ready: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.is_healthy = Some(Box::new(ready));
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
    pub fn map_router(mut self, change: impl FnOnce(Router) -> Router + Send + 'static) -> Self {
        self.router_changes.push(Box::new(change));
        self
    }

    pub(crate) fn toolkit(&self) -> &Toolkit {
        &self.toolkit
    }

    pub(crate) fn version(&self) -> &str {
        self.info.version()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.auth.as_ref().is_none_or(Auth::is_open)
    }
}

impl From<Toolkit> for Server {
    fn from(toolkit: Toolkit) -> Self {
        Self::new(toolkit)
    }
}
