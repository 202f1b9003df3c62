//! JSON objects, and the size limits of requests and responses on AWS Lambda.

/// The maximum size, in bytes, of a request or a response on the platform: Lambda's quota for the
/// payload of a synchronous invocation.
pub(crate) const LARGEST_PAYLOAD: usize = 6_291_556;

/// An allowance for the headers of a response, in bytes.
const HEADERS: usize = 2048;

/// The size, in bytes, of a body that is sent to the platform as a JSON string, in which quotes and
/// backslashes are escaped, plus an allowance for the headers.
pub(crate) fn encoded_size(body: &[u8]) -> usize {
    let escaped = body.iter().filter(|byte| matches!(byte, b'"' | b'\\'));
    body.len() + escaped.count() + HEADERS
}

/// The size that [`encoded_size`] would at most find, without a look at the body.
pub(crate) fn largest_encoded_size(body: &[u8]) -> usize {
    2 * body.len() + HEADERS
}

/// The size, in bytes, of a body that is sent to the platform as base64, plus the same allowance.
pub(crate) fn encoded_size_of_binary(body: &[u8]) -> usize {
    body.len().div_ceil(3) * 4 + HEADERS
}

/// A JSON object.
pub(crate) type JsonObject = serde_json::Map<String, serde_json::Value>;
