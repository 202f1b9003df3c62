//! The names that servers and clients write and read: headers, and keys of JSON objects.

/// The header with the id of a call: draft-ietf-httpapi-idempotency-key-header.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The header of a replayed response: OXP 1.0, Call Tool.
pub const REPLAY: &str = "idempotent-replay";

/// JSON-RPC 2.0, on which MCP and OpenTool are based.
pub mod jsonrpc {
    /// The value of `jsonrpc` in every message.
    pub const VERSION: &str = "2.0";
}

/// The names of OXP 1.0 and Open Tool Calling 1.0.
pub mod oxp {
    /// The header with an API key.
    pub const API_KEY: &str = "oxp-api-key";
    /// The header with the protocol's version, in requests and responses.
    pub const VERSION_HEADER: &str = "oxp-version";
    /// The version in that header.
    pub const VERSION: &str = "1.0";
    /// The header of temporary rejections.
    pub const SHOULD_RETRY: &str = "x-should-retry";
    /// The `$schema` of OXP's envelopes.
    pub const SCHEMA: &str = "urn:oxp:1.0";
    /// The `$schema` of Open Tool Calling's envelopes.
    pub const OTC_SCHEMA: &str = "otc://1.0";
}

/// The keys in `_meta` of MCP's messages that this library defines.
pub mod mcp {
    /// The `call_id`; MCP does not define one.
    pub const CALL_ID: &str = "lambda-tools/call-id";
    /// Tells a client that it may repeat calls with the same `call_id`. A gateway that combines
    /// servers does not pass it on, and might drop the ids as well.
    pub const RECOGNIZES_CALL_IDS: &str = "lambda-tools/recognizes-call-ids";
    /// The media type of a text that is not `text/plain`.
    pub const MEDIA_TYPE: &str = "lambda-tools/media-type";
    /// The mark of a replayed outcome.
    pub const REPLAY: &str = "lambda-tools/replay";
    /// The time to wait before a retry, in milliseconds.
    pub const RETRY_AFTER: &str = "lambda-tools/retry-after-ms";
    /// The reasons why an input is invalid, by the paths of its values.
    pub const PARAMETER_ERRORS: &str = "lambda-tools/parameter-errors";
    /// The id of a listed tool.
    pub const TOOL_ID: &str = "lambda-tools/id";
    /// The version of a listed tool.
    pub const TOOL_VERSION: &str = "lambda-tools/version";
    /// The requirements of a listed tool.
    pub const REQUIREMENTS: &str = "lambda-tools/requirements";
}
