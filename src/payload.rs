//! Payloads: JSON objects, and how large requests and responses may be on AWS Lambda.

/// What the platform takes at most, request or answer: Lambda's quota for the payload of a
/// synchronous invocation, in bytes.
pub(crate) const LARGEST_PAYLOAD: usize = 6_291_556;

/// How many bytes the body takes in the event that carries it to the platform: there it is a JSON
/// string, in which quotes and backslashes are escaped, beside the headers.
pub(crate) fn size_as_sent(body: &[u8]) -> usize {
    const BESIDE: usize = 2048;
    let escaped = body.iter().filter(|byte| matches!(byte, b'"' | b'\\'));
    body.len() + escaped.count() + BESIDE
}

/// A JSON object.
pub(crate) type JsonObject = serde_json::Map<String, serde_json::Value>;
