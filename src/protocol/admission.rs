//! The state of a server, and the admission of requests: their origin, their caller and their body.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, HttpBody},
    extract::Request,
};
use bytes::Bytes;
#[cfg(any(feature = "oauth", feature = "oidc"))]
use http::Extensions;
use http::{HeaderMap, header::CONTENT_ENCODING, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{
    Protocol,
    listed_tools::{ListedTools, ModelNames},
    origin::AllowedOrigins,
    problem::UNDECODABLE,
    refusal::Refusal,
    sign_in::sign_in,
};
#[cfg(any(feature = "oauth", feature = "oidc"))]
use crate::arrival::Invocation;
#[cfg(feature = "sign-in")]
use crate::auth::sign_in::AuthorizationServer;
use crate::{
    AgentCoreUser, Caller, DEFAULT_TIMEOUT, EventKind, PublicUrl, ServerInfo,
    arrival::Arrival,
    auth::CredentialRequest,
    call::{Engine, rejection::Rejection},
    clock::Clock,
    observe::request_log::Observer,
};

/// The maximum size, in bytes, of a body that is read although there are no credentials.
const LARGEST_HEALTH_CHECK: u64 = 1024;

/// The state that every request needs.
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
    pub(crate) large_bodies: LargeBodies,
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
    #[cfg(feature = "explorer")]
    pub(crate) has_explorer: bool,
    pub(crate) public_url: PublicUrl,
    #[cfg(feature = "sign-in")]
    pub(crate) authorization_server: Option<Arc<AuthorizationServer>>,
}

/// A request whose credentials are valid, with its whole body.
pub(super) struct AuthenticatedRequest {
    pub(super) parts: Parts,
    pub(super) body: Bytes,
    pub(super) caller: Caller,
    /// The room for a large body.
    pub(super) room: Option<OwnedSemaphorePermit>,
}

impl AuthenticatedRequest {
    /// Creates a request that needs no credentials; its body is not read.
    pub(super) fn anonymous(request: Request) -> Self {
        Self {
            parts: request.into_parts().0,
            body: Bytes::new(),
            caller: Caller::Anyone,
            room: None,
        }
    }
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

    /// Authenticates a request, then reads its body. A health check needs no credentials.
    pub(super) async fn admit(
        &self,
        request: Request,
        arrival: &Arrival,
        is_health_check: fn(&[u8]) -> bool,
    ) -> Result<AuthenticatedRequest, Refusal> {
        let (parts, body) = request.into_parts();
        let size = body.size_hint().upper();
        let is_small = size.is_some_and(|it| it <= LARGEST_HEALTH_CHECK);
        let caller = match self.caller_of(&parts.headers, arrival).await {
            Err(refusal) if !is_small || !refusal.lacks_credentials() => return Err(refusal),
            caller => caller,
        };
        let body = read_body(body, self.max_request_size).await?;
        let caller = match caller {
            Err(_) if is_health_check(&body) => Caller::Anyone,
            caller => caller?,
        };
        let mut encodings = parts.headers.get_all(CONTENT_ENCODING).iter();
        if !body.is_empty() && encodings.any(|it| !it.as_bytes().eq_ignore_ascii_case(b"identity"))
        {
            return Err(Refusal::Encoded);
        }
        Ok(AuthenticatedRequest {
            room: self.room_for(body.len(), arrival).await?,
            parts,
            body,
            caller,
        })
    }

    /// Waits for room for a body of this size, within the call's time.
    pub(super) async fn room_for(
        &self,
        size: usize,
        arrival: &Arrival,
    ) -> Result<Option<OwnedSemaphorePermit>, Rejection> {
        let left = arrival.invocation.time_left(self.engine.clock.now());
        let limit = left.unwrap_or(DEFAULT_TIMEOUT);
        self.large_bodies.room_for(size, limit).await
    }

    pub(super) async fn caller_of(
        &self,
        headers: &HeaderMap,
        arrival: &Arrival,
    ) -> Result<Caller, Refusal> {
        // IAM has decided who may invoke the function itself.
        if let Some(invoker @ Caller::Invoker) = &arrival.invocation.caller {
            return Ok(invoker.clone());
        }
        let now = self.wall_clock.now();
        let engine = &self.engine;
        let base = arrival.invocation.base_url.as_deref();
        let server_url = self.public_url.resolve(base);
        let request = CredentialRequest {
            headers,
            verified: arrival.invocation.verified.as_ref(),
            clock: &self.wall_clock,
            left: arrival.invocation.time_left(now),
            server_url: server_url.as_deref(),
        };
        Ok(match engine.auth.check(&request, &engine.secrets).await? {
            // The server requires no credentials; the platform may have authenticated the caller.
            Caller::Anyone => arrival.invocation.caller.clone().unwrap_or(Caller::Anyone),
            caller => caller,
        })
    }
}

async fn read_body(body: Body, largest: usize) -> Result<Bytes, Refusal> {
    match Limited::new(body, largest).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Refusal::TooLarge { largest }),
        Err(error) => Err(Refusal::malformed(UNDECODABLE, error.to_string())),
    }
}

/// A body is large if it has more bytes than this. Others need no room.
const LARGE: u32 = 32 * 1024;

/// The room for large bodies: for one of the maximum size, or for several that are smaller.
///
/// A value of JSON takes many times its size in memory while it is decoded and checked. So the
/// bodies of which that is true at once have a limit in bytes, and the others wait.
pub(crate) struct LargeBodies(Arc<Semaphore>);

impl LargeBodies {
    pub(crate) fn new(bytes: usize) -> Self {
        // More bytes than a semaphore can count are no limit.
        Self(Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))))
    }

    /// Waits for room for a body of this size, no longer than `limit`.
    async fn room_for(
        &self,
        size: usize,
        limit: Duration,
    ) -> Result<Option<OwnedSemaphorePermit>, Rejection> {
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        if size <= LARGE {
            return Ok(None);
        }
        let room = Arc::clone(&self.0).acquire_many_owned(size);
        let room = timeout(limit, room).await.ok().and_then(Result::ok);
        room.map(Some).ok_or(Rejection::Busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn large_bodies_wait_for_room_and_small_ones_need_none() {
        // Any size may be the limit.
        LargeBodies::new(usize::MAX);
        let bodies = LargeBodies::new(100_000);
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(5));
        let first = bodies.room_for(60_000, short).await.ok().flatten();
        let busy = bodies.room_for(60_000, short).await.err();
        let busy = busy.expect("there is no room for both");
        assert!(matches!(busy, Rejection::Busy) && busy.is_temporary());
        assert!(matches!(bodies.room_for(40_000, short).await, Ok(Some(_))));
        assert!(matches!(bodies.room_for(32 * 1024, short).await, Ok(None)));
        let release = async {
            tokio::time::sleep(short).await;
            drop(first);
        };
        let (next, ()) = tokio::join!(bodies.room_for(100_000, long), release);
        assert!(matches!(next, Ok(Some(_))));
        assert!(bodies.room_for(40_000, short).await.is_err());
    }
}
