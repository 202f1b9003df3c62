//! The transport's rules: media types, the revision, and the headers that repeat the body.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    HeaderMap, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use serde_json::{Value, json};

use super::{
    error::{ErrorResponse, HEADER_MISMATCH, UNSUPPORTED_VERSION},
    revision::Revision,
};
use crate::protocol::jsonrpc::{INVALID_PARAMS, INVALID_REQUEST};

const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";

pub(super) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The client must accept JSON, and send it.
pub(super) fn check_media_types(headers: &HeaderMap) -> Result<(), ErrorResponse> {
    let mut accepted = headers.get_all(ACCEPT).iter().peekable();
    let accepts_json = accepted.peek().is_none()
        || accepted.any(|value| {
            let ranges = value.to_str().unwrap_or_default().split(',');
            ranges.map(media_type).any(|it| {
                ["application/json", "application/*", "*/*"]
                    .iter()
                    .any(|accepted| it.eq_ignore_ascii_case(accepted))
            })
        });
    if !accepts_json {
        return Err(ErrorResponse::new(
            StatusCode::NOT_ACCEPTABLE,
            INVALID_REQUEST,
            "The Accept header must include application/json.",
        ));
    }
    let sent = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    if !sent.is_some_and(|it| media_type(it).eq_ignore_ascii_case("application/json")) {
        return Err(ErrorResponse::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            INVALID_REQUEST,
            "The Content-Type header must be application/json.",
        ));
    }
    Ok(())
}

/// A media type without its parameters.
fn media_type(text: &str) -> &str {
    text.split(';').next().unwrap_or_default().trim()
}

/// The revision of a request. `_meta` decides; a request without a version there is legacy, unless
/// its header names a version that is not a legacy one.
pub(super) fn revision_of(
    headers: &HeaderMap,
    method: &str,
    params: &Value,
) -> Result<Revision, ErrorResponse> {
    let header = header_text(headers, VERSION_HEADER);
    let named = &params["_meta"][VERSION];
    let legacy = |text: &str| Revision::parse(text).filter(|it| !it.is_modern());
    if named.is_null() {
        match header {
            None => return Ok(Revision::UNNAMED),
            Some(text) => {
                if let Some(revision) = legacy(text) {
                    return Ok(revision);
                }
            }
        }
    }
    let invalid = |detail: String| ErrorResponse::bad_request(INVALID_PARAMS, detail);
    let Some(version) = named.as_str() else {
        return Err(invalid(format!(
            "'_meta' must contain '{VERSION}' (a string)."
        )));
    };
    if !params["_meta"][CAPABILITIES].is_object() {
        return Err(invalid(format!(
            "'_meta' must contain '{CAPABILITIES}' (an object)."
        )));
    }
    check_headers(headers, version, method, params)?;
    match Revision::parse(version) {
        Some(revision) if revision.is_modern() => Ok(revision),
        _ => {
            let modern = Revision::ALL.into_iter().filter(|it| it.is_modern());
            let supported: Vec<_> = modern.map(Revision::as_str).collect();
            let detail = "This version of the protocol is not supported.";
            let data = json!({"supported": supported, "requested": version});
            Err(ErrorResponse::bad_request(UNSUPPORTED_VERSION, detail).data(data))
        }
    }
}

/// The headers of a modern request repeat parts of its body, so that proxies and gateways need not
/// parse the body.
fn check_headers(
    headers: &HeaderMap,
    version: &str,
    method: &str,
    params: &Value,
) -> Result<(), ErrorResponse> {
    let name = params["name"].as_str().filter(|_| method == "tools/call");
    let expected = [
        (VERSION_HEADER, "MCP-Protocol-Version", Some(version)),
        (METHOD_HEADER, "Mcp-Method", Some(method)),
        (NAME_HEADER, "Mcp-Name", name),
    ];
    for (header, shown, expected) in expected {
        let Some(expected) = expected else {
            continue;
        };
        let sent = header_text(headers, header).and_then(decoded);
        if sent.as_deref() != Some(expected) {
            let detail = format!("The header {shown} is missing or does not match the body.");
            return Err(ErrorResponse::bad_request(HEADER_MISMATCH, detail));
        }
    }
    Ok(())
}

/// The trimmed value of a header that occurs once.
pub(super) fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    value.to_str().ok().map(str::trim)
}

/// A header's value, which may be `=?base64?…?=`.
fn decoded(value: &str) -> Option<String> {
    let inner = value.strip_prefix("=?base64?");
    match inner.and_then(|it| it.strip_suffix("?=")) {
        None => Some(value.to_owned()),
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
    }
}
