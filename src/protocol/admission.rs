//! The admission of requests and events: their origin, their caller and their body.

use axum::{
    body::{Body, HttpBody},
    extract::Request,
};
use bytes::Bytes;
use http::{HeaderMap, header::CONTENT_ENCODING, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::OwnedSemaphorePermit;

use super::{app::AppState, codec::Purpose, problem::UNDECODABLE, refusal::Refusal};
use crate::{
    Caller, DEFAULT_TIMEOUT,
    arrival::Arrival,
    auth::{AuthError, CredentialRequest},
    call::rejection::Rejection,
};

/// The maximum size, in bytes, of a body that is read although there are no credentials.
const LARGEST_HEALTH_CHECK: u64 = 1024;

/// A request whose credentials are valid, with its whole body.
pub(super) struct AuthenticatedRequest {
    pub(super) parts: Parts,
    pub(super) body: Bytes,
    pub(super) caller: Caller,
    /// The room for a large body.
    pub(super) room: Option<OwnedSemaphorePermit>,
}

/// The admission of an event's caller.
pub(crate) enum Admission {
    /// The platform has admitted this caller.
    Admitted(Caller),
    /// The server checks these credentials.
    Credentials(HeaderMap),
}

impl AppState {
    /// Admits a request to a route. A health check needs no credentials, and its body is not read; others
    /// have to come from no web page, or from an allowed one.
    pub(super) async fn admit_to(
        &self,
        purpose: Purpose,
        request: Request,
        arrival: &Arrival,
        is_health_check: fn(&[u8]) -> bool,
    ) -> Result<AuthenticatedRequest, Refusal> {
        if purpose == Purpose::Health {
            return Ok(AuthenticatedRequest {
                parts: request.into_parts().0,
                body: Bytes::new(),
                caller: Caller::Anyone,
                room: None,
            });
        }
        if !self.allows_origin(request.headers(), arrival.invocation.base_url.as_deref()) {
            return Err(Refusal::ForbiddenOrigin);
        }
        self.admit(request, arrival, is_health_check).await
    }

    /// Admits the caller of an event, and its body.
    pub(super) async fn admit_event(
        &self,
        request: http::Request<Bytes>,
        admission: Admission,
        arrival: &Arrival,
    ) -> Result<AuthenticatedRequest, Refusal> {
        let (parts, body) = request.into_parts();
        let caller = match admission {
            Admission::Admitted(caller) => caller,
            Admission::Credentials(_) if !self.engine.auth.reads_headers() => {
                return Err(AuthError::missing("the server checks no tokens").into());
            }
            Admission::Credentials(credentials) => self.caller_of(&credentials, arrival).await?,
        };
        let largest = self.max_request_size;
        if body.len() > largest {
            return Err(Refusal::TooLarge { largest });
        }
        Ok(AuthenticatedRequest {
            room: self.room_for(body.len(), arrival).await?,
            parts,
            body,
            caller,
        })
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
    async fn room_for(
        &self,
        size: usize,
        arrival: &Arrival,
    ) -> Result<Option<OwnedSemaphorePermit>, Rejection> {
        let left = arrival.invocation.time_left(self.engine.clock.now());
        let limit = left.unwrap_or(DEFAULT_TIMEOUT);
        self.large_bodies.room_for(size, limit).await
    }

    async fn caller_of(&self, headers: &HeaderMap, arrival: &Arrival) -> Result<Caller, Refusal> {
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
