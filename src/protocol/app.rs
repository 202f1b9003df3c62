//! The running server: what requests and events of all kinds share.

use std::sync::Arc;

#[cfg(any(feature = "oauth", feature = "oidc"))]
use http::Extensions;
use http::HeaderMap;
use tokio::sync::Semaphore;

use super::{
    Protocol,
    listed_tools::{ListedTools, ModelNames},
    origin::AllowedOrigins,
};
#[cfg(any(feature = "oauth", feature = "oidc"))]
use crate::arrival::Invocation;
#[cfg(feature = "sign-in")]
use crate::auth::sign_in::AuthorizationServer;
use crate::{
    AgentCoreUser, Caller, EventKind, PublicUrl, ServerInfo, call::Engine, clock::Clock,
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

    /// Returns the tools that `reader` sees in lists; without a reader, all tools.
    pub(super) fn listed_tools<'a>(
        &'a self,
        reader: Option<&'a Caller>,
        server_url: Option<&'a str>,
    ) -> ListedTools<'a> {
        let (info, engine) = (&self.info, &self.engine);
        let reader = reader.filter(|_| engine.lists_callable);
        ListedTools::new(info, &engine.toolkit, &engine.auth, server_url, reader)
    }
}
