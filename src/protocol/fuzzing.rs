//! Decoding of calls, for the fuzz targets.

use std::sync::Arc;

use http::request::Parts;

use super::{
    codec::{Codec, EncodedRequest, Operation, Task},
    json::max_values,
};
use crate::{
    Caller, ServerInfo,
    call::{Call, Engine},
};

/// The size limit of the requests, in bytes.
const MAX_REQUEST_SIZE: usize = 1 << 20;

/// Decodes the request to a route for calls; `None` if it is not a valid call.
pub(crate) type CallDecoder = Box<dyn Fn(&Parts, &[u8]) -> Option<Box<Call>> + Send + Sync>;

pub(super) fn decoder<P: Codec>(engine: &Arc<Engine>) -> CallDecoder {
    let engine = Arc::clone(engine);
    let codec = P::new(&ServerInfo::default());
    Box::new(move |parts, body| {
        let mut routes = P::DECLARATION.routes.iter();
        let path = parts.uri.path();
        let is_call = |task| matches!(task, Task::Call(_));
        let route = routes.find(|route| route.path == path && is_call(route.task))?;
        let request = EncodedRequest {
            parts,
            body,
            engine: &engine,
            caller: &Caller::Anyone,
            max_values: max_values(MAX_REQUEST_SIZE),
        };
        match codec.decode(route.task, &request).operation {
            Operation::Call(call) => Some(call),
            _ => None,
        }
    })
}
