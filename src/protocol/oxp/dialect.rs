//! The three dialects, and which versions of the protocol are served.
//!
//! OXP 1.0 exists in a header form and in a `$schema` form, and was first called Open Tool Calling
//! (OTC). All three say the same things in different wrappings.

use http::{HeaderMap, HeaderName};

use crate::call::rejection::Rejection;

/// Says the protocol's version in OXP's header form, both ways.
pub(super) const VERSION_HEADER: HeaderName = HeaderName::from_static("oxp-version");

/// How a request was wrapped, and so how its answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// OXP 1.0, header form: bodies are bare.
    Header,
    /// OXP 1.0, `$schema` form: `request` and `result` envelopes.
    Schema,
    /// OTC 1.0: the same envelopes under its own name.
    Otc,
}

impl Dialect {
    /// A word for logs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Header => "oxp-header",
            Self::Schema => "oxp-schema",
            Self::Otc => "otc",
        }
    }

    /// The `$schema` of an answer.
    pub(super) fn schema(self) -> Option<&'static str> {
        match self {
            Self::Header => None,
            Self::Schema => Some("urn:oxp:1.0"),
            Self::Otc => Some("otc://1.0"),
        }
    }

    /// The dialect of an envelope, by its `$schema`; the specification takes none as the latest.
    pub(super) fn of_envelope(schema: Option<&str>) -> Self {
        match schema {
            Some(schema) if schema.starts_with("otc://") => Self::Otc,
            _ => Self::Schema,
        }
    }
}

/// Whether the version in the `OXP-Version` header, if there is one, is served.
pub(super) fn check_header(headers: &HeaderMap) -> Result<(), Rejection> {
    let served = |value: &http::HeaderValue| value.to_str().is_ok_and(|v| is_one(v.trim()));
    if headers.get_all(VERSION_HEADER).iter().all(served) {
        Ok(())
    } else {
        Err(Rejection::UnsupportedVersion)
    }
}

/// Whether the version that a `$schema` names is served.
pub(super) fn check_schema(schema: Option<&str>) -> Result<(), Rejection> {
    let Some(schema) = schema else {
        return Ok(());
    };
    let version = schema
        .strip_prefix("otc://")
        .or_else(|| schema.strip_prefix("urn:oxp:"));
    let served = match version {
        Some(version) => is_one(version),
        None => is_document_of_one(schema),
    };
    if served {
        Ok(())
    } else {
        Err(Rejection::UnsupportedVersion)
    }
}

/// `1`, `1.0` and `1.0.0` are the same version, and the only one.
fn is_one(version: &str) -> bool {
    matches!(version, "1" | "1.0" | "1.0.0")
}

/// The URL of the `OpenAPI` document, `…/spec/http/1.0/openapi.json`. One whose path names another
/// version is refused; one that names none is taken for the current version, as no `$schema` is.
fn is_document_of_one(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://").filter(|(scheme, _)| {
        scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")
    }) else {
        return false;
    };
    let version_in = |part| {
        let version = str::strip_prefix(part, 'v').unwrap_or(part);
        let is_version = version
            .split('.')
            .all(|number| number.parse::<u32>().is_ok());
        is_version.then_some(version)
    };
    rest.split('/').skip(1).filter_map(version_in).all(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_version_in_every_spelling() {
        for schema in [
            "otc://1",
            "otc://1.0",
            "otc://1.0.0",
            "urn:oxp:1",
            "urn:oxp:1.0",
            "urn:oxp:1.0.0",
            "https://example.org/spec/http/1.0/openapi.json",
            "https://example.org/oxp",
        ] {
            assert!(check_schema(Some(schema)).is_ok(), "{schema}");
        }
        assert!(check_schema(None).is_ok());
    }

    #[test]
    fn other_versions_and_garbage_are_refused() {
        for schema in [
            "otc://2.0",
            "otc://",
            "otc://1.1",
            "urn:oxp:9.1",
            "urn:oxp:",
            "urn:other:1.0",
            "1.0",
            "",
            "garbage",
            "https://example.org/spec/http/2.0/openapi.json",
            "https://example.org/2/openapi.json",
            "https://example.org/v1.1/openapi.json",
            "ftp://example.org/1.0",
        ] {
            assert!(check_schema(Some(schema)).is_err(), "{schema}");
        }
    }

    #[test]
    fn the_header_is_optional_and_exact() {
        let mut headers = HeaderMap::new();
        assert!(check_header(&headers).is_ok());
        headers.append(VERSION_HEADER, "1".parse().unwrap());
        assert!(check_header(&headers).is_ok());
        headers.append(VERSION_HEADER, "2.0".parse().unwrap());
        assert!(check_header(&headers).is_err());
        let bytes = http::HeaderValue::from_bytes(b"\xff").unwrap();
        assert!(check_header(&HeaderMap::from_iter([(VERSION_HEADER, bytes)])).is_err());
    }
}
