//! The answers to a call, in the form of its protocol.

use serde_json::{Value, json};

use super::{Call, Protocol};
use crate::answer::{Expected, expect};

/// A tool's failure.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolFailure {
    pub(crate) message: String,
    pub(crate) developer_message: Option<String>,
    pub(crate) prompt: Option<String>,
    pub(crate) can_retry: bool,
    pub(crate) retry_after_ms: Option<u64>,
}

/// The error of every call that is rejected because the store does not respond.
const UNAVAILABLE: &str = "The tool server is temporarily unavailable";

impl Call {
    /// The answer to a call whose tool returns this value.
    pub(crate) fn value(&self, value: &Value) -> Expected {
        let is_object = value.is_object();
        match self.protocol {
            Protocol::SingleTool => expect(200, value.clone()),
            Protocol::OpenTool if !is_object => self.value(&json!({"value": value})),
            Protocol::McpModern | Protocol::McpLegacy if !is_object => {
                self.value(&json!({"result": value}))
            }
            Protocol::OpenTool => expect(
                200,
                json!({"jsonrpc": "2.0", "id": self.id, "result": value, "error": null}),
            ),
            Protocol::McpModern | Protocol::McpLegacy => self.mcp_result(json!({
                "content": [{"type": "text", "text": value}],
                "structuredContent": value,
                "isError": false,
                "_meta": {"lambda-tools/call-id": self.id},
            })),
            _ => self.outcome(json!({"success": true, "value": value})),
        }
    }

    /// The answer to a call whose tool fails.
    pub(crate) fn failure(&self, failure: &ToolFailure) -> Expected {
        let ToolFailure {
            message, prompt, ..
        } = failure;
        match self.protocol {
            Protocol::SingleTool => expect(424, failure.body()),
            Protocol::OpenTool => {
                let prompt = prompt.as_ref().map(|prompt| format!(" ({prompt})"));
                let message = format!("{message}{}", prompt.unwrap_or_default());
                self.opentool_error(500, &message)
            }
            Protocol::McpModern | Protocol::McpLegacy => {
                let mut meta = json!({"lambda-tools/call-id": self.id});
                if let Some(wait) = failure.retry_after_ms {
                    meta["lambda-tools/retry-after-ms"] = wait.into();
                }
                self.mcp_error(&failure.for_models(), &meta)
            }
            _ => self.outcome(json!({"success": false, "error": failure.body()})),
        }
    }

    /// The answer to a call that needs the store while the store fails. `detail` begins the text for
    /// developers.
    pub(crate) fn unavailable(&self, detail: &'static str) -> Expected {
        let expected = match self.protocol {
            Protocol::OpenTool => self.opentool_error(-32000, UNAVAILABLE),
            Protocol::McpModern | Protocol::McpLegacy => self.mcp_error(
                &format!("{UNAVAILABLE}. Try again in 1 second."),
                &json!({"lambda-tools/retry-after-ms": 1000}),
            ),
            _ => {
                let body = self.with_schema(json!({"message": UNAVAILABLE}));
                expect(400, body).developer_message(detail)
            }
        };
        if self.protocol == Protocol::Direct {
            return expected;
        }
        expected.header("retry-after", "1")
    }

    /// The answer to a call whose id belongs to another call.
    pub(crate) fn id_reused(&self) -> Expected {
        const DETAIL: &str = "A call with this call_id had another version, input or user, or \
                              other credentials. Nothing was run; a new call needs a new call_id.";
        match self.protocol {
            Protocol::OpenTool => self.opentool_error(
                -32002,
                "This id belongs to another call: an earlier call with the same id had different \
                 arguments. Nothing was run; a new call needs a new id.",
            ),
            Protocol::McpModern | Protocol::McpLegacy => self.mcp_error(
                "This call id belongs to another call, which had another input, user or version. \
                 Nothing was run; a new call needs a new id.",
                &Value::Null,
            ),
            _ => self.rejection(
                400,
                json!({"message": "This call_id belongs to another call",
                       "developer_message": DETAIL}),
            ),
        }
    }

    /// The answer to a call whose parameters have these errors.
    pub(crate) fn invalid_input(&self, errors: &[(&str, &str)]) -> Expected {
        const MESSAGE: &str = "Some input parameters are invalid";
        let joined = |format: fn(&(&str, &str)) -> String, separator: &str| {
            errors
                .iter()
                .map(format)
                .collect::<Vec<_>>()
                .join(separator)
        };
        match self.protocol {
            Protocol::OpenTool => {
                let errors = joined(|(name, error)| format!("{name}: {error}"), "; ");
                self.opentool_error(-32602, &format!("{MESSAGE}: {errors}"))
            }
            Protocol::McpModern | Protocol::McpLegacy => {
                let errors = joined(|(name, error)| format!("- {name}: {error}."), "\n");
                self.mcp_error(&format!("The input is invalid:\n{errors}"), &Value::Null)
            }
            _ => {
                let errors = errors.iter().map(|(name, error)| (*name, *error));
                let errors: serde_json::Map<_, _> = errors
                    .map(|(name, error)| (name.to_owned(), Value::from(error)))
                    .collect();
                self.rejection(422, json!({"message": MESSAGE, "parameter_errors": errors}))
            }
        }
    }

    /// The answer to a call of a tool that does not exist and resembles no other.
    pub(crate) fn unknown_tool(&self) -> Expected {
        let (tool, name) = (self.tool, self.name());
        match self.protocol {
            Protocol::OpenTool => {
                self.opentool_error(-32601, &format!("Tool '{name}' was not found"))
            }
            Protocol::McpModern | Protocol::McpLegacy => {
                let message = format!("{name} is not a tool of this server.");
                expect(
                    200,
                    json!({"jsonrpc": "2.0", "id": 7, "error": {"code": -32602, "message": message}}),
                )
            }
            _ => self.rejection(
                400,
                json!({"message": format!("Tool '{name}' was not found"),
                       "developer_message": format!("{tool} is not a tool of this server.")}),
            ),
        }
    }

    /// A rejection in OXP's forms.
    fn rejection(&self, status: u16, body: Value) -> Expected {
        expect(status, self.with_schema(body))
    }

    fn with_schema(&self, mut body: Value) -> Value {
        if let Some(schema) = self.schema() {
            body["$schema"] = schema.into();
        }
        body
    }

    fn schema(&self) -> Option<&'static str> {
        match self.protocol {
            Protocol::OxpSchema => Some("urn:oxp:1.0"),
            Protocol::OpenToolCalling => Some("otc://1.0"),
            _ => None,
        }
    }

    fn outcome(&self, mut result: Value) -> Expected {
        result["call_id"] = self.id.clone().into();
        match self.schema() {
            Some(schema) => expect(200, json!({"$schema": schema, "result": result})),
            None => expect(200, result),
        }
    }

    fn opentool_error(&self, code: i32, message: &str) -> Expected {
        let error = json!({"code": code, "message": message});
        expect(
            200,
            json!({"jsonrpc": "2.0", "id": self.id, "result": {}, "error": error}),
        )
    }

    fn mcp_error(&self, text: &str, meta: &Value) -> Expected {
        self.mcp_result(json!({
            "content": [{"type": "text", "text": text}], "isError": true, "_meta": meta,
        }))
    }

    fn mcp_result(&self, mut result: Value) -> Expected {
        if self.protocol == Protocol::McpModern {
            result["resultType"] = "complete".into();
            result["_meta"]["io.modelcontextprotocol/serverInfo"] =
                json!({"name": "Tools", "version": "1.0.0"});
        }
        if result["_meta"].is_null()
            && let Some(result) = result.as_object_mut()
        {
            result.remove("_meta");
        }
        expect(200, json!({"jsonrpc": "2.0", "id": 7, "result": result}))
    }

    /// The expectation, with the marks of a replay.
    pub(crate) fn replayed(&self, mut expected: Expected) -> Expected {
        if self.protocol.is_mcp() {
            expected.json_mut()["result"]["_meta"]["lambda-tools/replay"] = true.into();
        }
        if self.protocol == Protocol::Direct {
            return expected;
        }
        expected.header("idempotent-replay", "true")
    }
}

impl ToolFailure {
    fn body(&self) -> Value {
        let mut body = json!({"message": self.message, "can_retry": self.can_retry});
        if let Some(text) = &self.developer_message {
            body["developer_message"] = text.clone().into();
        }
        if let Some(text) = &self.prompt {
            body["additional_prompt_content"] = text.clone().into();
        }
        if let Some(wait) = self.retry_after_ms {
            body["retry_after_ms"] = wait.into();
        }
        body
    }

    fn for_models(&self) -> String {
        let mut text = self.message.clone();
        if let Some(prompt) = &self.prompt {
            text = format!("{text}\n{prompt}");
        }
        match self.retry_after_ms {
            Some(_) => format!("{text}\nTry again in 1 second."),
            None if self.can_retry => format!("{text}\nThe same call may succeed later."),
            None => text,
        }
    }
}
