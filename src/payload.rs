//! JSON objects, and the size limits of requests and responses on AWS Lambda.

/// The maximum size, in bytes, of a request or a response on the platform: Lambda's quota for the
/// payload of a synchronous invocation.
pub(crate) const LARGEST_PAYLOAD: usize = 6_291_556;

/// An allowance for the headers of a response, in bytes.
const HEADERS: usize = 2048;

/// The size, in bytes, of a body that is sent to the platform as a JSON string, in which quotes and
/// backslashes are escaped, plus an allowance for the headers.
pub(crate) fn encoded_size(body: &[u8]) -> usize {
    body.len() + escaped_bytes(body) + HEADERS
}

/// The number of quotes and backslashes. Counted in words of eight bytes: a list of megabytes
/// should not cost milliseconds before it is sent.
fn escaped_bytes(body: &[u8]) -> usize {
    const QUOTES: u64 = u64::from_ne_bytes([b'"'; 8]);
    const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);
    let (words, rest) = body.as_chunks();
    let in_word = |word: &[u8; 8]| {
        let word = u64::from_ne_bytes(*word);
        let found = zero_bytes(word ^ QUOTES) | zero_bytes(word ^ BACKSLASHES);
        found.count_ones() as usize
    };
    let in_rest = rest.iter().filter(|byte| matches!(byte, b'"' | b'\\'));
    words.iter().map(in_word).sum::<usize>() + in_rest.count()
}

/// A word with one bit for each byte of `word` that is zero.
fn zero_bytes(word: u64) -> u64 {
    const LOW: u64 = u64::from_ne_bytes([0x7f; 8]);
    !(((word & LOW) + LOW) | word | LOW)
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

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;

    proptest! {
        #[test]
        fn quotes_and_backslashes_are_counted(
            body in vec(select(&[b'"', b'\\', b'!', b'#', b'[', b']', 0, 0x80, 0xA2, 0xDC, 0xFF, b'a'][..]), 0..40),
        ) {
            let expected = body.iter().filter(|byte| matches!(byte, b'"' | b'\\')).count();
            prop_assert_eq!(escaped_bytes(&body), expected);
        }
    }
}
