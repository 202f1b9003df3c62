//! The size limits of requests and responses on AWS Lambda.

pub(crate) use crate::json::JsonObject;

/// The maximum size, in bytes, of a request or a response on the platform: Lambda's quota for the
/// payload of a synchronous invocation.
pub(crate) const LARGEST_PAYLOAD: usize = 6_291_556;

/// An allowance for the headers of a response, in bytes.
const HEADERS: usize = 2048;

/// Returns the size, in bytes, of a body that is sent to the platform as a JSON string, in which
/// quotes and backslashes are escaped, plus an allowance for the headers.
pub(crate) fn encoded_size(body: &[u8]) -> usize {
    let escaped = body.iter().filter(|byte| matches!(byte, b'"' | b'\\'));
    body.len() + escaped.count() + HEADERS
}

/// Returns true if the encoded size of a body is at most `largest`.
pub(crate) fn fits(body: &[u8], largest: usize) -> bool {
    // Most bodies fit even if every byte is escaped, and need not be read.
    body.len() * 2 + HEADERS <= largest || encoded_size(body) <= largest
}
