//! What sends requests in place of an HTTP client.

use std::{
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

use bytes::Bytes;
use http::{Request, Response};
use reqwest::{Body, RequestBuilder};

#[derive(Clone)]
pub(super) struct Transport(pub(super) Arc<Exchange>);

type Exchange = dyn Fn(Request<Bytes>) -> Response<Bytes> + Send + Sync;

impl Transport {
    /// Sends a request. Its body is in memory, as all bodies of the clients are.
    pub(super) fn send(&self, request: RequestBuilder) -> reqwest::Result<reqwest::Response> {
        let request = Request::<Body>::try_from(request.build()?)?;
        let bytes = |body: Body| Bytes::copy_from_slice(body.as_bytes().unwrap_or_default());
        Ok((self.0)(request.map(bytes)).into())
    }
}

// Clients keep no state that a panic could leave halfway.
impl UnwindSafe for Transport {}
impl RefUnwindSafe for Transport {}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport")
    }
}
