//! The transport's rules: media types, the revision, the headers that repeat the body, and the errors
//! of requests that break them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    HeaderMap, HeaderName, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use serde_json::{Value, json};

use crate::{
    observe::spans::single,
    protocol::jsonrpc::{INVALID_PARAMS, INVALID_REQUEST, RpcError},
};

const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");

pub(super) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// There is no such resource (2025-11-25, Resources, Error Handling).
const RESOURCE_NOT_FOUND: i32 = -32002;
/// A header is missing, or it disagrees with the body (2026-07-28, Transports).
const HEADER_MISMATCH: i32 = -32020;
/// The client lacks a capability that the request requires (2026-07-28, Base Protocol, Error Codes).
pub(super) const MISSING_CAPABILITY: i32 = -32021;
/// The revision is not served (2026-07-28, Versioning).
const UNSUPPORTED_VERSION: i32 = -32022;

/// The error of a request that cannot be served, and its HTTP status.
pub(super) struct ErrorResponse {
    pub(super) status: StatusCode,
    pub(super) error: RpcError,
}

/// The message cannot be read.
impl From<RpcError> for ErrorResponse {
    fn from(error: RpcError) -> Self {
        let status = StatusCode::BAD_REQUEST;
        Self { status, error }
    }
}

impl ErrorResponse {
    pub(super) fn new(status: StatusCode, code: i32, message: impl Into<String>) -> Self {
        let error = RpcError::new(code, message);
        Self { status, error }
    }

    /// Creates a 400 for a request that violates the transport's rules.
    pub(super) fn bad_request(code: i32, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(StatusCode::OK, INVALID_PARAMS, message)
    }

    /// Creates the error of a resource that is not there (Resources, Error Handling).
    pub(super) fn no_resource(uri: &str, is_modern: bool) -> Self {
        let code = if is_modern {
            INVALID_PARAMS
        } else {
            RESOURCE_NOT_FOUND
        };
        let error = Self::new(StatusCode::OK, code, "There is no resource with this URI.");
        error.data(json!({"uri": uri}))
    }

    pub(super) fn data(mut self, data: Value) -> Self {
        self.error.data = Some(data);
        self
    }
}

/// A revision. The variants are in chronological order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl Revision {
    pub(super) const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision with `initialize`.
    pub(super) const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// The revision of a request that names none (2025-11-25, Transports, Protocol Version Header).
    pub(super) const UNNAMED: Self = Self::V2025_03_26;

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == text)
    }

    pub(super) fn as_str(self) -> &'static str {
        // Without the prefix of the log's dialect.
        &self.dialect()[4..]
    }

    /// Returns the name in the log.
    pub(super) fn dialect(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "mcp-2024-11-05",
            Self::V2025_03_26 => "mcp-2025-03-26",
            Self::V2025_06_18 => "mcp-2025-06-18",
            Self::V2025_11_25 => "mcp-2025-11-25",
            Self::V2026_07_28 => "mcp-2026-07-28",
        }
    }

    /// Returns the names of the revisions without a handshake.
    pub(super) fn modern() -> Vec<&'static str> {
        let modern = Self::ALL.into_iter().filter(|it| it.is_modern());
        modern.map(Self::as_str).collect()
    }

    /// Returns true for revisions without a handshake: each request carries its revision and its
    /// client's capabilities.
    pub(super) fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }
}

/// Returns true if a client with these capabilities supports tasks.
pub(super) fn supports_tasks(capabilities: &Value) -> bool {
    capabilities["extensions"][TASKS].is_object()
}

/// Rejects a client that does not accept JSON, or does not send it.
pub(super) fn check_media_types(headers: &HeaderMap) -> Result<(), ErrorResponse> {
    let refuse = |status, detail: &str| Err(ErrorResponse::new(status, INVALID_REQUEST, detail));
    let json = ["application/json", "application/*"];
    if headers.contains_key(ACCEPT) && !accepts(headers, &json) {
        let detail = "The Accept header must include application/json.";
        return refuse(StatusCode::NOT_ACCEPTABLE, detail);
    }
    let sent = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    if !sent.is_some_and(|it| media_type(it).eq_ignore_ascii_case("application/json")) {
        let detail = "The Content-Type header must be application/json.";
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail);
    }
    Ok(())
}

/// Returns true if a client accepts one of these media types, or all of them.
pub(super) fn accepts(headers: &HeaderMap, types: &[&str]) -> bool {
    let values = headers.get_all(ACCEPT).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let mut ranges = values.flat_map(|value| value.split(',')).map(media_type);
    let is_accepted = |range| types.iter().any(|it| it.eq_ignore_ascii_case(range));
    ranges.any(|range| range == "*/*" || is_accepted(range))
}

/// Returns a media type without its parameters.
fn media_type(text: &str) -> &str {
    text.split(';').next().unwrap_or_default().trim()
}

/// Returns the revision of a request. `_meta` decides; a request without a version there is legacy,
/// unless its header names a modern one. `initialize` negotiates, whatever its header names.
pub(super) fn revision_of(
    headers: &HeaderMap,
    method: &str,
    params: &Value,
    meta: &Value,
) -> Result<Revision, ErrorResponse> {
    let header = single(headers, &VERSION_HEADER);
    let named = &meta[VERSION];
    if named.is_null() {
        match header.map(Revision::parse) {
            None => return Ok(Revision::UNNAMED),
            _ if method == "initialize" => return Ok(Revision::UNNAMED),
            Some(Some(revision)) if !revision.is_modern() => return Ok(revision),
            Some(Some(_)) => {}
            Some(None) => {
                let served = Revision::ALL.map(Revision::as_str).join(", ");
                let detail = format!(
                    "The version in the header MCP-Protocol-Version is not supported; the supported \
                     versions are {served}."
                );
                return Err(ErrorResponse::bad_request(INVALID_REQUEST, detail));
            }
        }
    }
    let invalid = |detail: String| ErrorResponse::bad_request(INVALID_PARAMS, detail);
    let Some(version) = named.as_str() else {
        return Err(invalid(format!(
            "'_meta' must contain '{VERSION}' (a string)."
        )));
    };
    if !meta[CAPABILITIES].is_object() {
        return Err(invalid(format!(
            "'_meta' must contain '{CAPABILITIES}' (an object)."
        )));
    }
    check_headers(headers, header, version, method, params)?;
    match Revision::parse(version) {
        Some(revision) if revision.is_modern() => Ok(revision),
        _ => {
            let detail = "This version of the protocol is not supported.";
            let data = json!({"supported": Revision::modern(), "requested": version});
            Err(ErrorResponse::bad_request(UNSUPPORTED_VERSION, detail).data(data))
        }
    }
}

/// Checks the headers of a modern request, which repeat parts of its body, so that proxies and
/// gateways need not parse the body.
fn check_headers(
    headers: &HeaderMap,
    version_header: Option<&str>,
    version: &str,
    method: &str,
    params: &Value,
) -> Result<(), ErrorResponse> {
    let name = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        // FastMCP's client does not send it.
        "tasks/get" | "tasks/update" | "tasks/cancel" if headers.contains_key(&NAME_HEADER) => {
            params["taskId"].as_str()
        }
        _ => None,
    };
    let has_name = |name| repeats(single(headers, &NAME_HEADER), name);
    let mismatched = if !repeats(version_header, version) {
        "MCP-Protocol-Version"
    } else if !repeats(single(headers, &METHOD_HEADER), method) {
        "Mcp-Method"
    } else if !name.is_none_or(has_name) {
        "Mcp-Name"
    } else {
        return Ok(());
    };
    Err(self::mismatched(mismatched))
}

/// Checks the headers that repeat arguments whose schemas ask for it (`x-mcp-header`).
pub(super) fn check_arguments(
    headers: &HeaderMap,
    schema: &Value,
    input: &Value,
) -> Result<(), ErrorResponse> {
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let Some(suffix) = schema.get("x-mcp-header").and_then(Value::as_str) else {
            continue;
        };
        let header = HeaderName::try_from(format!("mcp-param-{suffix}"));
        let sent = header.as_ref().ok().filter(|it| headers.contains_key(*it));
        let sent = sent.map(|it| single(headers, it));
        let matches = match (&input[name], sent) {
            (Value::Null, sent) => sent.is_none(),
            (_, None) => false,
            (Value::String(text), Some(sent)) => repeats(sent, text),
            (other, Some(sent)) => repeats(sent, &other.to_string()),
        };
        if !matches {
            return Err(mismatched(&format!("Mcp-Param-{suffix}")));
        }
    }
    Ok(())
}

fn mismatched(header: &str) -> ErrorResponse {
    let detail = format!("The header {header} is missing or does not match the body.");
    ErrorResponse::bad_request(HEADER_MISMATCH, detail)
}

/// Returns true if a header's value, which may be `=?base64?…?=`, repeats a text of the body.
fn repeats(header: Option<&str>, text: &str) -> bool {
    header.is_some_and(|header| {
        let inner = header.strip_prefix("=?base64?");
        match inner.and_then(|it| it.strip_suffix("?=")) {
            None => header == text,
            Some(encoded) => STANDARD
                .decode(encoded)
                .is_ok_and(|it| it == text.as_bytes()),
        }
    })
}
