//! The admission of requests and events: their origin, their caller and their body.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, HttpBody},
    extract::Request,
};
use bytes::Bytes;
use http::{HeaderMap, header::CONTENT_ENCODING, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{app::AppState, problem::UNDECODABLE, refusal::Refusal};
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

impl AuthenticatedRequest {
    /// Returns a request that needs no credentials, and whose body is not read.
    pub(super) fn anonymous(request: Request) -> Self {
        Self {
            parts: request.into_parts().0,
            body: Bytes::new(),
            caller: Caller::Anyone,
            room: None,
        }
    }
}

/// The admission of an event's caller.
pub(crate) enum Admission {
    /// The platform has admitted this caller.
    Admitted(Caller),
    /// The server checks these credentials.
    Credentials(HeaderMap),
}

impl AppState {
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
        room_in(&self.large_bodies, size, left.unwrap_or(DEFAULT_TIMEOUT)).await
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

/// A body is large if it has more bytes than this. Others need no room.
const LARGE: u32 = 32 * 1024;

/// Waits for room for a body of this size, no longer than `limit`.
///
/// A value of JSON takes many times its size in memory while it is decoded and checked. So the
/// bodies of which that is true at once have a limit in bytes, and the others wait.
async fn room_in(
    large_bodies: &Arc<Semaphore>,
    size: usize,
    limit: Duration,
) -> Result<Option<OwnedSemaphorePermit>, Rejection> {
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    if size <= LARGE {
        return Ok(None);
    }
    let room = Arc::clone(large_bodies).acquire_many_owned(size);
    let room = timeout(limit, room).await.ok().and_then(Result::ok);
    room.map(Some).ok_or(Rejection::Busy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn large_bodies_wait_for_room_and_small_ones_need_none() {
        let bodies = Arc::new(Semaphore::new(100_000));
        let room_for = |size, limit| room_in(&bodies, size, limit);
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(5));
        let first = room_for(60_000, short).await.ok().flatten();
        let busy = room_for(60_000, short).await.err();
        let busy = busy.expect("there is no room for both");
        assert!(matches!(busy, Rejection::Busy) && busy.is_temporary());
        assert!(matches!(room_for(40_000, short).await, Ok(Some(_))));
        assert!(matches!(room_for(32 * 1024, short).await, Ok(None)));
        let release = async {
            tokio::time::sleep(short).await;
            drop(first);
        };
        let (next, ()) = tokio::join!(room_for(100_000, long), release);
        assert!(matches!(next, Ok(Some(_))));
        assert!(room_for(40_000, short).await.is_err());
    }
}
