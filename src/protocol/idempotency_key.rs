//! The header `Idempotency-Key`: the call's id where the body has no place for it.
//!
//! Reference: draft-ietf-httpapi-idempotency-key-header.

use http::{HeaderMap, HeaderName};

use crate::{text::LONGEST_ID, wire::IDEMPOTENCY_KEY};

const HEADER: HeaderName = HeaderName::from_static(IDEMPOTENCY_KEY);

/// Returns the key, without the quotes that many clients leave out. A key that is ignored would let
/// a repeated call run twice, so an unusable one is an error; an empty one counts as absent.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, &'static str> {
    let mut values = headers.get_all(&HEADER).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err("The header Idempotency-Key occurs twice.");
    }
    let Ok(text) = value.to_str() else {
        return Err("The header Idempotency-Key must be ASCII text.");
    };
    let key = text.trim().trim_matches('"');
    if key.len() > LONGEST_ID {
        return Err("The header Idempotency-Key is longer than 256 bytes.");
    }
    Ok((!key.is_empty()).then(|| key.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn key_in(values: &[&[u8]]) -> Result<Option<String>, &'static str> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HEADER, HeaderValue::from_bytes(value).unwrap());
        }
        idempotency_key(&headers)
    }

    #[test]
    fn quotes_are_optional() {
        for value in [&b"call-1"[..], b"\"call-1\"", b" call-1 "] {
            assert_eq!(key_in(&[value]), Ok(Some("call-1".to_owned())));
        }
        assert_eq!(key_in(&[]), Ok(None));
        assert_eq!(key_in(&[b"\"\""]), Ok(None));
    }

    #[test]
    fn a_key_that_cannot_be_used_is_an_error() {
        assert!(key_in(&[b"call-1", b"call-1"]).is_err());
        assert!(key_in(&[b"\xff"]).is_err());
        assert!(key_in(&[&[b'k'; 257]]).is_err());
        assert!(key_in(&[&[b'k'; 256]]).is_ok());
    }
}
