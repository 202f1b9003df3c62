//! The running server: what requests and events of all kinds share.

use std::sync::Arc;

use axum::response::Response;
#[cfg(any(feature = "oauth", feature = "oidc"))]
use http::Extensions;
use http::HeaderMap;
use tokio::sync::Semaphore;

use super::{
    Protocol,
    listed_tools::{ListedTools, ModelNames},
    origin::AllowedOrigins,
    problem,
    refusal::Refusal,
    sign_in::sign_in,
};
#[cfg(any(feature = "oauth", feature = "oidc"))]
use crate::arrival::Invocation;
#[cfg(feature = "sign-in")]
use crate::auth::sign_in::AuthorizationServer;
use crate::{
    AgentCoreUser, Caller, EventKind, PublicUrl, ServerInfo,
    call::{Engine, rejection::Rejection},
    clock::Clock,
    observe::request_log::Observer,
};

/// The running server, which [`assemble`](crate::assemble) makes of a [`Server`](crate::Server).
pub(crate) struct AppState {
    /// The server's description for its users and for models.
    pub(crate) info: ServerInfo,
    /// The protocols that are served.
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) observer: Arc<Observer>,
    /// The clock for checking credentials, which runs even while events are recorded.
    pub(crate) wall_clock: Clock,
    /// The maximum size of a body, in bytes.
    pub(crate) max_request_size: usize,
    /// The room for large bodies, in bytes: for one of the maximum size, or for several that are smaller.
    pub(crate) large_bodies: Arc<Semaphore>,
    pub(crate) allowed_origins: AllowedOrigins,
    /// Those that may read responses, if not all of these.
    pub(crate) readers: Option<AllowedOrigins>,
    /// The names of the tools, for protocols without versions and for clients that send them as
    /// ids.
    pub(crate) names: ModelNames,
    pub(crate) events: Vec<EventKind>,
    /// The kinds of events whose responses are streams.
    pub(crate) streaming: Vec<EventKind>,
    pub(crate) agentcore_user: Option<AgentCoreUser>,
    /// True if there is `GET /openapi.json`.
    pub(crate) has_openapi: bool,
    #[cfg(feature = "explorer")]
    pub(crate) has_explorer: bool,
    pub(crate) public_url: PublicUrl,
    #[cfg(feature = "sign-in")]
    pub(crate) authorization_server: Option<Arc<AuthorizationServer>>,
}

impl AppState {
    /// Responds to a request for a path that has no route.
    pub(super) fn not_found(&self) -> Response {
        problem::not_found(&self.protocols, self.has_openapi)
    }

    /// Returns true for a request from no web page, or from an allowed one. This is checked before the
    /// credentials, which a browser may add to any page's request. `base` is the function's URL
    /// according to the platform.
    pub(super) fn allows_origin(&self, headers: &HeaderMap, base: Option<&str>) -> bool {
        let public = self.public_url.resolve(None);
        self.allowed_origins
            .allow(headers, [base, public.as_deref()])
    }

    /// Returns true if the web page that sends a request may read its response.
    pub(super) fn shares_with(&self, headers: &HeaderMap, base: Option<&str>) -> bool {
        let public = self.public_url.resolve(None);
        let readers = self.readers.as_ref().unwrap_or(&self.allowed_origins);
        readers.allow(headers, [base, public.as_deref()])
    }

    /// Returns the server's URL, as browsers and clients reach it.
    #[cfg(any(feature = "oauth", feature = "oidc"))]
    pub(super) fn base_url(&self, request: &Extensions) -> Option<String> {
        let invocation = request.get::<Arc<Invocation>>();
        let event_base = invocation.and_then(|it| it.base_url.as_deref());
        self.public_url.resolve(event_base)
    }

    /// Adds to a refusal how to obtain a token, if an issuer is configured.
    pub(super) fn with_sign_in(
        &self,
        mut refusal: Refusal,
        base: Option<&str>,
        resource_path: &str,
    ) -> Refusal {
        if let Refusal::Unauthenticated(_, hint)
        | Refusal::Rejected(Rejection::InsufficientScope { .. }, hint) = &mut refusal
        {
            *hint = sign_in(&self.engine.auth, &self.public_url, base, resource_path);
        }
        refusal
    }

    /// Returns the tools that `reader` sees in lists.
    pub(super) fn listed_tools<'a>(
        &'a self,
        reader: &'a Caller,
        server_url: Option<&'a str>,
    ) -> ListedTools<'a> {
        let engine = &self.engine;
        let reader = engine.lists_callable.then_some(reader);
        ListedTools::new(&engine.toolkit, &engine.auth, server_url, reader)
    }
}
