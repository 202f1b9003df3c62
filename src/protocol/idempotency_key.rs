//! The header `Idempotency-Key`: the call's id where the body has no place for it.
//!
//! Reference: draft-ietf-httpapi-idempotency-key-header.

use http::{HeaderMap, HeaderName};

use crate::{text::LONGEST_ID, wire::IDEMPOTENCY_KEY};

const HEADER: HeaderName = HeaderName::from_static(IDEMPOTENCY_KEY);

/// Returns the key, without the quotes that many clients leave out. A key that is ignored would let
/// a repeated call run twice, so an unusable one is an error; an empty one counts as absent.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, String> {
    let key = id_in(headers, &HEADER, "Idempotency-Key", &['"'])?;
    Ok(key.map(str::to_owned))
}

/// Returns the id in a header, without these quotes; an empty one counts as absent.
pub(super) fn id_in<'a>(
    headers: &'a HeaderMap,
    header: &HeaderName,
    name: &str,
    quotes: &[char],
) -> Result<Option<&'a str>, String> {
    let mut values = headers.get_all(header).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(format!("The header {name} occurs twice."));
    }
    match value.to_str().map(|it| it.trim().trim_matches(quotes)) {
        Ok(text) if text.len() <= LONGEST_ID => Ok(Some(text).filter(|it| !it.is_empty())),
        Ok(_) => Err(format!("The header {name} is longer than 256 bytes.")),
        Err(_) => Err(format!("The header {name} must be ASCII text.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn quotes_are_optional_and_a_key_that_cannot_be_used_is_an_error() {
        let (long, longer) = ("k".repeat(256), "k".repeat(257));
        let quoted = format!("\"{long}\"");
        let table: [(&[&[u8]], _); 9] = [
            (&[], Ok(None)),
            (&[b"\"\""], Ok(None)),
            (&[b"call-1"], Ok(Some("call-1"))),
            (&[b"\"call-1\""], Ok(Some("call-1"))),
            (&[b" call-1 "], Ok(Some("call-1"))),
            (&[quoted.as_bytes()], Ok(Some(&*long))),
            (&[longer.as_bytes()], Err(())),
            (&[b"call-1", b"call-1"], Err(())),
            (&[b"\xff"], Err(())),
        ];
        for (values, expected) in table {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(HEADER, HeaderValue::from_bytes(value).unwrap());
            }
            let key = idempotency_key(&headers);
            assert_eq!(key.as_ref().map(Option::as_deref).map_err(|_| ()), expected);
        }
    }
}
