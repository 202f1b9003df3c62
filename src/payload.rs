//! JSON objects, and the size limits of requests and responses on AWS Lambda.

/// The largest request or response that the platform accepts: Lambda's quota for the payload of a
/// synchronous invocation, in bytes.
pub(crate) const LARGEST_PAYLOAD: usize = 6_291_556;

/// The size of a body, in bytes, in the event that carries it to the platform: a JSON string, in
/// which quotes and backslashes are escaped, with an allowance for the headers.
pub(crate) fn encoded_size(body: &[u8]) -> usize {
    const HEADERS: usize = 2048;
    let escaped = body.iter().filter(|byte| matches!(byte, b'"' | b'\\'));
    body.len() + escaped.count() + HEADERS
}

/// A JSON object.
pub(crate) type JsonObject = serde_json::Map<String, serde_json::Value>;
