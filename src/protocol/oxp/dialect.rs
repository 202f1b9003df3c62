//! The three dialects, the formats of responses, and the supported versions of the protocol.
//!
//! OXP 1.0 has a header and a `$schema` dialect, and was first called Open Tool Calling (OTC).
//! All three have the same content in different formats.

use http::{HeaderMap, HeaderName};

use crate::{protocol::refusal::Refusal, tool::reason::Reason, wire};

/// The protocol version in OXP's header dialect, in requests and responses.
pub(super) const VERSION_HEADER: HeaderName = HeaderName::from_static(wire::oxp::VERSION_HEADER);

/// The wire format of a request and its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// OXP 1.0, header dialect: bodies are bare.
    #[default]
    Header,
    /// OXP 1.0, `$schema` dialect: `request` and `result` envelopes.
    Schema,
    /// OTC 1.0: the same envelopes, with its own `$schema`.
    Otc,
    /// The path of a single tool: the bodies are its input and its value.
    Path,
}

impl Dialect {
    /// Returns the name in logs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Header => "oxp-header",
            Self::Schema => "oxp-schema",
            Self::Otc => "otc",
            Self::Path => "oxp-path",
        }
    }

    /// Returns the `$schema` of a response.
    pub(super) fn schema(self) -> Option<&'static str> {
        match self {
            Self::Header | Self::Path => None,
            Self::Schema => Some(wire::oxp::SCHEMA),
            Self::Otc => Some(wire::oxp::OTC_SCHEMA),
        }
    }

    /// Returns the dialect of an envelope with this `$schema`; without one, the specification
    /// assumes the latest.
    pub(super) fn of_envelope(schema: Option<&str>) -> Self {
        match schema {
            Some(schema) if schema.starts_with("otc://") => Self::Otc,
            _ => Self::Schema,
        }
    }
}

/// The format of a response, as its request determines it.
#[derive(Clone, Default)]
pub(crate) struct OxpFormat {
    pub(super) dialect: Dialect,
    pub(super) list: ListFormat,
    /// A sentence about a field that has the input in place of `input`. The specification tolerates
    /// such a field, but it explains why the call was rejected.
    pub(super) misplaced_input: Option<String>,
}

impl From<ListFormat> for OxpFormat {
    fn from(list: ListFormat) -> Self {
        Self {
            dialect: list.dialect(),
            list,
            ..Self::default()
        }
    }
}

/// The format of a list or a document.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) enum ListFormat {
    /// OXP 1.0, header dialect: `items` with bare schemas.
    #[default]
    Header,
    /// OTC 1.0: `tools` with input schemas wrapped in `parameters`.
    Otc,
    /// OXP 1.0, `$schema` dialect, with both `items` and `tools`, because clients do not say which
    /// they read: the SDKs read `items`, the documentation's text says `tools`.
    Universal,
    /// The `OpenAPI` document.
    OpenApi,
}

impl ListFormat {
    pub(super) fn dialect(self) -> Dialect {
        match self {
            Self::Otc => Dialect::Otc,
            Self::Universal => Dialect::Schema,
            _ => Dialect::Header,
        }
    }
}

/// Rejects an unsupported version in the `OXP-Version` header, if present.
pub(super) fn check_header(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_supported =
        |value: &http::HeaderValue| value.to_str().is_ok_and(|v| is_supported_version(v.trim()));
    let all_are = headers.get_all(VERSION_HEADER).iter().all(is_supported);
    all_are.then_some(()).ok_or_else(unsupported_version)
}

/// Rejects an unsupported version in a `$schema`.
pub(super) fn check_schema(schema: Option<&str>) -> Result<(), Refusal> {
    let Some(schema) = schema else {
        return Ok(());
    };
    let version = schema
        .strip_prefix("otc://")
        .or_else(|| schema.strip_prefix("urn:oxp:"));
    let is_supported = match version {
        Some(version) => is_supported_version(version),
        None => is_supported_document(schema),
    };
    is_supported.then_some(()).ok_or_else(unsupported_version)
}

fn unsupported_version() -> Refusal {
    Refusal::Invalid {
        reason: Reason::UnsupportedVersion,
        message: "This version of the protocol is not supported".to_owned(),
        detail:
            "The supported versions are OXP 1.0 (OXP-Version: 1.0 or urn:oxp:1.0) and Open Tool \
                 Calling 1.0 (otc://1.0)."
                .to_owned(),
    }
}

/// Returns true for `1`, `1.0` and `1.0.0`, which are the same version, and the only supported one.
fn is_supported_version(version: &str) -> bool {
    matches!(version, "1" | "1.0" | "1.0.0")
}

/// Checks the URL of the `OpenAPI` document, `…/spec/http/1.0/openapi.json`. A path with another
/// version is rejected; a path without one means the current version, like a missing `$schema`.
fn is_supported_document(url: &str) -> bool {
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
    rest.split('/')
        .skip(1)
        .filter_map(version_in)
        .all(is_supported_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_the_version_is_accepted_and_nothing_else() {
        let schemas = "otc://1 otc://1.0 otc://1.0.0 urn:oxp:1 urn:oxp:1.0 urn:oxp:1.0.0 \
            https://example.org/spec/http/1.0/openapi.json https://example.org/oxp";
        for schema in schemas.split(' ').map(Some).chain([None]) {
            assert!(check_schema(schema).is_ok(), "{schema:?}");
        }
        let schemas = "otc://2.0 otc:// otc://1.1 urn:oxp:9.1 urn:oxp: urn:other:1.0 1.0 garbage \
            https://example.org/spec/http/2.0/openapi.json \
            https://example.org/2/openapi.json https://example.org/v1.1/openapi.json \
            ftp://example.org/1.0";
        for schema in schemas.split(' ').chain([""]) {
            assert!(check_schema(Some(schema)).is_err(), "{schema}");
        }
    }
}
