//! The protocols: each is a codec between bytes and calls, and all share one driver.
//!
//! The HTTP surface is one [`Router`], so it can be layered, merged with your own routes and tested
//! without a socket. Each protocol has a folder here and a variant of [`Protocol`].

mod admission;
pub(crate) mod app;
#[cfg(feature = "sign-in")]
mod authorization_server;
mod body;
#[cfg(feature = "oauth")]
mod challenges;
mod codec;
mod cors;
pub(crate) mod driver;
mod encoded_list;
mod exchange;
#[cfg(feature = "explorer")]
pub(crate) mod explorer;
mod idempotency_key;
mod json_response;
mod jsonrpc;
pub(crate) mod listed_tools;
mod mcp;
mod opentool;
pub(crate) mod origin;
mod oxp;
#[cfg(feature = "oauth")]
mod pages;
pub(crate) mod problem;
mod refusal;
#[cfg(feature = "oidc")]
mod resource_metadata;
mod sign_in;
pub(crate) mod wording;

use std::{
    future::ready,
    sync::{Arc, OnceLock},
};

use axum::{
    Router,
    extract::{Request, State},
    http::{Method, Uri},
    response::Response,
};
use lambda_http::tower::ServiceExt;

use app::AppState;
use codec::{Codec, Declaration};
use mcp::McpCodec;
pub(crate) use mcp::agentcore;
use opentool::OpenToolCodec;
use oxp::OxpCodec;
#[cfg(feature = "openapi")]
pub(crate) use oxp::openapi::document as openapi;
pub(crate) use oxp::{answer_direct_call, is_schema_of_call};

use crate::json;

/// A protocol for serving tools; see [`Server::protocols`](crate::Server::protocols).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// OXP 1.0 in its header and `$schema` dialects, and its predecessor Open Tool Calling 1.0.
    Oxp,
    /// Model Context Protocol at `POST /mcp`: revisions 2026-07-28, 2025-11-25, 2025-06-18,
    /// 2025-03-26 and 2024-11-05.
    Mcp,
    /// OpenTool 1.0.0: JSON-RPC below `/opentool`.
    OpenTool,
}

/// The protocol that encodes responses that belong to no protocol.
type First = OxpCodec;

impl Protocol {
    /// All protocols: the default for a server.
    pub const ALL: &[Self] = &[Self::Oxp, Self::Mcp, Self::OpenTool];

    fn declaration(self) -> &'static Declaration {
        match self {
            Self::Oxp => OxpCodec::DECLARATION,
            Self::Mcp => McpCodec::DECLARATION,
            Self::OpenTool => OpenToolCodec::DECLARATION,
        }
    }

    fn mount(self, router: Router<Arc<AppState>>, app: &AppState) -> Router<Arc<AppState>> {
        match self {
            Self::Oxp => driver::mount(router, OxpCodec::default(), app),
            Self::Mcp => driver::mount(router, McpCodec::default(), app),
            Self::OpenTool => driver::mount(router, OpenToolCodec::default(), app),
        }
    }

    /// Returns the properties of all protocols.
    pub(crate) fn declarations() -> impl Iterator<Item = &'static Declaration> {
        Self::ALL.iter().map(|protocol| protocol.declaration())
    }

    /// Returns the methods and paths of this protocol, without the additional paths of a route.
    pub(crate) fn routes(
        self,
        has_openapi: bool,
    ) -> impl Iterator<Item = (&'static Method, &'static str)> {
        let routes = self.declaration().routes(has_openapi);
        routes.map(|route| (&route.method, route.path))
    }

    /// Returns the response headers that clients read.
    pub(crate) fn response_headers() -> impl Iterator<Item = &'static str> {
        let specific = Self::declarations().flat_map(|declaration| declaration.response_headers);
        exchange::RESPONSE_HEADERS.iter().chain(specific).copied()
    }
}

/// Returns the routes of the served protocols, and those for users who authorize tools.
pub(crate) fn router(app: Arc<AppState>) -> Router {
    routed(app, Some(Arc::default()))
}

/// Returns the same routes. `slashed` has room for those of paths that end in a slash; with `None`,
/// such a path is unknown.
fn routed(app: Arc<AppState>, slashed: Option<Arc<OnceLock<Router>>>) -> Router {
    let served = app.protocols.iter();
    let router = served.fold(Router::new(), |router, it| it.mount(router, &app));
    #[cfg(any(feature = "oauth", feature = "oidc"))]
    let shared = axum::middleware::from_fn_with_state(Arc::clone(&app), cors::layer);
    #[cfg(feature = "oauth")]
    let router = match &app.engine.broker {
        Some(broker) => router.merge(challenges::routes(&app, broker).layer(shared.clone())),
        None => router,
    };
    #[cfg(feature = "oidc")]
    let router = router.merge(resource_metadata::routes(&app).layer(shared.clone()));
    #[cfg(feature = "sign-in")]
    let router = match &app.authorization_server {
        Some(issuer) => {
            router.merge(authorization_server::routes(&app, issuer).layer(shared.clone()))
        }
        None => router,
    };
    let unrouted =
        async move |State(app): State<_>, request| unrouted(app, slashed.as_deref(), request).await;
    let not_allowed = async |State(app): State<Arc<AppState>>, request| {
        cors::share(&app, request, |_| ready(problem::method_not_allowed())).await
    };
    router
        .method_not_allowed_fallback(not_allowed)
        .fallback(unrouted)
        .with_state(app)
}

/// Responds to a request for a path that has no route. If the path ends in a slash, the one without
/// it may have one; few clients send such a path, so its router is made for the first of them.
async fn unrouted(
    app: Arc<AppState>,
    slashed: Option<&OnceLock<Router>>,
    mut request: Request,
) -> Response {
    let uri = request.uri();
    let query = uri.query().map_or(String::new(), |it| format!("?{it}"));
    let path = uri.path().strip_suffix('/').filter(|it| !it.is_empty());
    let uri = path.map(|it| Uri::try_from(format!("{it}{query}")));
    if let (Some(slashed), Some(Ok(uri))) = (slashed, uri) {
        *request.uri_mut() = uri;
        let router = slashed.get_or_init(|| routed(app, None)).clone();
        let Ok(response) = router.oneshot(request).await;
        return response;
    }
    let others = async |request| {
        #[cfg(feature = "explorer")]
        if app.has_explorer {
            let Ok(response) = explorer::router(Arc::clone(&app)).oneshot(request).await;
            return response;
        }
        drop::<Request>(request);
        problem::not_found(&app)
    };
    cors::share(&app, request, others).await
}
