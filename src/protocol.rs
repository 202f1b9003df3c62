//! The protocols: each is a codec between bytes and calls, and all share one driver.
//!
//! The HTTP surface is one [`Router`], so it can be layered, merged with your own routes and tested
//! without a socket. Each protocol has a folder here and a variant of [`Protocol`].

pub(crate) mod admission;
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
#[cfg(any(feature = "explorer", feature = "oauth"))]
mod pages;
pub(crate) mod problem;
mod refusal;
#[cfg(feature = "oidc")]
mod resource_metadata;
mod sign_in;
#[cfg(feature = "oauth")]
mod user_page;
pub(crate) mod wording;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{Method, Uri},
    middleware,
};
use lambda_http::tower::ServiceExt;

use admission::AppState;
use codec::{Codec, Declaration};
use mcp::McpCodec;
pub(crate) use mcp::agentcore;
use opentool::OpenToolCodec;
use oxp::OxpCodec;
#[cfg(feature = "openapi")]
pub(crate) use oxp::openapi::document as openapi;
pub(crate) use oxp::{answer_direct_call, is_schema_of_call};

use crate::{ServerInfo, json};

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

    fn mount(self, router: Router<Arc<AppState>>, info: &ServerInfo) -> Router<Arc<AppState>> {
        match self {
            Self::Oxp => driver::mount(router, OxpCodec::new(info)),
            Self::Mcp => driver::mount(router, McpCodec::new(info)),
            Self::OpenTool => driver::mount(router, OpenToolCodec::new(info)),
        }
    }

    fn declarations() -> impl Iterator<Item = &'static Declaration> {
        Self::ALL.iter().map(|protocol| protocol.declaration())
    }

    /// Returns the methods and paths of this protocol, without the additional paths of a route.
    pub(crate) fn routes(self) -> impl Iterator<Item = (&'static Method, &'static str)> {
        self.declaration().advertised()
    }

    /// Returns the request headers whose values are not secret.
    pub(crate) fn request_headers() -> impl Iterator<Item = &'static str> {
        Self::declarations()
            .flat_map(|declaration| declaration.request_headers)
            .copied()
    }

    /// Returns the response headers that clients read.
    pub(crate) fn response_headers() -> impl Iterator<Item = &'static str> {
        let specific = Self::declarations().flat_map(|declaration| declaration.response_headers);
        exchange::RESPONSE_HEADERS.iter().chain(specific).copied()
    }

    /// Returns the places of tokens and secrets in calls: a JSON pointer to a list, and the name of
    /// a field of its items.
    pub(crate) fn secrets() -> impl Iterator<Item = (&'static str, &'static str)> {
        Self::declarations()
            .flat_map(|declaration| declaration.secrets)
            .copied()
    }
}

/// Returns the routes of the served protocols, and those for users who authorize tools.
pub(crate) fn router(app: Arc<AppState>) -> Router {
    let served = app.protocols.iter();
    let router = served.fold(Router::new(), |router, it| it.mount(router, &app.info));
    #[cfg(feature = "oauth")]
    let router = match &app.engine.broker {
        Some(broker) => router.merge(challenges::routes(&app, broker)),
        None => router,
    };
    #[cfg(feature = "oidc")]
    let router = router.merge(resource_metadata::routes(&app));
    #[cfg(feature = "sign-in")]
    let router = match &app.authorization_server {
        Some(issuer) => router.merge(authorization_server::routes(&app, issuer)),
        None => router,
    };
    let others = Router::new();
    #[cfg(feature = "explorer")]
    let others = if app.has_explorer {
        explorer::routes()
    } else {
        others
    };
    let others = others
        .fallback(async |State(app): State<Arc<AppState>>| problem::not_found(&app.protocols))
        .method_not_allowed_fallback(async || problem::method_not_allowed())
        .with_state(Arc::clone(&app));
    let router = router
        .method_not_allowed_fallback(async || problem::method_not_allowed())
        .with_state(Arc::clone(&app))
        .fallback_service(others);
    let declared = router.clone();
    router
        .fallback(move |request| declared.oneshot(without_slash(request)))
        .layer(middleware::from_fn_with_state(app, cors::share))
}

/// Removes the slash at the end of a path that has no route, so that the path without it may have
/// one.
fn without_slash(mut request: Request) -> Request {
    let uri = request.uri();
    let query = uri.query().map_or(String::new(), |it| format!("?{it}"));
    let path = uri.path().strip_suffix('/').filter(|it| !it.is_empty());
    if let Some(Ok(uri)) = path.map(|it| Uri::try_from(format!("{it}{query}"))) {
        *request.uri_mut() = uri;
    }
    request
}
