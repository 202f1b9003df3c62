//! The results of a model's calls, as the API takes them.

use serde_json::{Value, json};

use super::{ModelApi, ModelCall, ModelTools};

impl ModelTools {
    /// Returns the messages or items with the results of calls, to be appended to the conversation
    /// after the model's reply. A result is a value, or a message for the model about why there is
    /// none.
    ///
    /// The results of all calls of one reply must be passed together. Anthropic, Gemini and Bedrock
    /// take them in one message; for OpenAI, each is a message or an item. Without results, there
    /// are no messages.
    pub fn messages(
        &self,
        results: impl IntoIterator<Item = (ModelCall, Result<Value, String>)>,
    ) -> Vec<Value> {
        let blocks = results.into_iter();
        let blocks: Vec<_> = blocks
            .map(|(call, result)| self.block(&call, result))
            .collect();
        if blocks.is_empty() {
            return blocks;
        }
        match self.api {
            ModelApi::OpenAi { .. } | ModelApi::OpenAiResponses { .. } | ModelApi::AgentCore => {
                blocks
            }
            ModelApi::Anthropic | ModelApi::Bedrock => {
                vec![json!({"role": "user", "content": blocks})]
            }
            ModelApi::Gemini => vec![json!({"role": "user", "parts": blocks})],
        }
    }

    fn block(&self, call: &ModelCall, result: Result<Value, String>) -> Value {
        let id = call.id.as_deref().unwrap_or_default();
        let is_error = result.is_err();
        match self.api {
            // A list for AgentCore has no calls.
            ModelApi::OpenAi { .. } | ModelApi::AgentCore => {
                json!({"role": "tool", "tool_call_id": id, "content": text_of(result)})
            }
            ModelApi::OpenAiResponses { .. } => {
                json!({"type": "function_call_output", "call_id": id, "output": text_of(result)})
            }
            ModelApi::Anthropic => {
                let mut block =
                    json!({"type": "tool_result", "tool_use_id": id, "content": text_of(result)});
                if is_error {
                    block["is_error"] = true.into();
                }
                block
            }
            ModelApi::Gemini => {
                let response = match result {
                    Ok(value) => json!({"output": value}),
                    Err(message) => json!({"error": message}),
                };
                let mut response = json!({"name": call.name, "response": response});
                if let Some(id) = &call.id {
                    response["id"] = id.as_str().into();
                }
                json!({"functionResponse": response})
            }
            ModelApi::Bedrock => {
                let mut block = json!({"toolUseId": id, "content": [{"text": text_of(result)}]});
                // Some models accept no status.
                if is_error {
                    block["status"] = "error".into();
                }
                json!({"toolResult": block})
            }
        }
    }
}

/// Encodes a result. A text is sent as it is, unless it is blank, which Bedrock does not accept;
/// any other value is sent as JSON.
fn text_of(result: Result<Value, String>) -> String {
    match result {
        Ok(Value::String(text)) | Err(text) if !text.trim().is_empty() => text,
        Ok(value) => value.to_string(),
        Err(_) => "The tool failed.".to_owned(),
    }
}
