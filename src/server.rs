//! What is served: a toolkit and the choices of its owner.
//!
//! A builder between [`Toolkit`] and [`serve`](crate::serve), for those who need more than the
//! defaults; everybody else hands the toolkit over directly.

use std::sync::Arc;

use axum::{Router, body::Body};
use http::{Request, Uri};
use lambda_http::tower::ServiceExt;

use crate::{
    Auth, Toolkit,
    host::Host,
    serve,
    wire::{self, App},
};

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
    base_path: Option<String>,
    auth: Auth,
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
            auth: Auth::none(),
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

    /// Sets who may call. Without it everybody may.
    #[must_use]
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// Asks `ready` whether calls can be taken. While it says no, `/health` answers 503 and calls
    /// are refused with a 400. OXP 1.0, `GET /health`.
    #[must_use]
    pub fn ready_when(mut self, ready: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.ready = Some(Box::new(ready));
        self
    }

    /// Changes the router: adds layers (CORS, compression, limits) or routes of one's own.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(Router) -> Router + Send + 'static) -> Self {
        self.with.push(Box::new(change));
        self
    }

    /// The whole HTTP surface as one tower service, for a host of one's own.
    pub fn into_router(self) -> Router {
        self.router_on(serve::REAL)
    }

    pub(crate) fn toolkit(&self) -> &Toolkit {
        &self.toolkit
    }

    pub(crate) fn set_base_path(&mut self, path: String) {
        self.base_path = Some(path);
    }

    pub(crate) fn router_on(self, host: Host) -> Router {
        let app = App {
            toolkit: self.toolkit,
            catalogue: wire::oxp::Catalogue::default(),
            host,
            auth: self.auth,
            ready: self.ready,
        };
        let router = wire::router(Arc::new(app));
        let changed = |router, change: Box<dyn FnOnce(Router) -> Router + Send>| change(router);
        let router = self.with.into_iter().fold(router, changed);
        match self.base_path.as_deref().map(|path| path.trim_matches('/')) {
            None | Some("") => router,
            Some(path) => {
                let base = format!("/{path}");
                let service = router.map_request(move |request| without_base(request, &base));
                Router::new().fallback_service(service)
            }
        }
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
