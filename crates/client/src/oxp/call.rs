//! Encoding of a call in one of the dialects.

use std::collections::BTreeMap;

use lambda_tools_core::{
    Secret,
    wire::oxp::{OTC_SCHEMA, SCHEMA},
};
use serde_json::{Map, Value, json};

use crate::call::CallRequest;

/// A dialect of calls; all three carry the same data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// OXP 1.0, header dialect: `OXP-Version: 1.0`, calls without an envelope.
    #[default]
    Header,
    /// OXP 1.0, `$schema` dialect: `"$schema": "urn:oxp:1.0"`, calls in `request`.
    Schema,
    /// Open Tool Calling 1.0: `"$schema": "otc://1.0"`, calls in `request`.
    Otc,
}

impl CallRequest {
    pub(super) fn encode(&self, call_id: &str, dialect: Dialect) -> Vec<u8> {
        let mut request = json!({
            "tool_id": self.tool_id,
            "call_id": call_id,
            "input": self.input,
        });
        if let Some(trace_id) = &self.trace_id {
            request["trace_id"] = json!(trace_id);
        }
        let context = self.context();
        if !context.is_empty() {
            request["context"] = Value::Object(context);
        }
        let body = match dialect {
            Dialect::Header => request,
            Dialect::Schema => json!({"$schema": SCHEMA, "request": request}),
            Dialect::Otc => json!({"$schema": OTC_SCHEMA, "request": request}),
        };
        body.to_string().into_bytes()
    }

    fn context(&self) -> Map<String, Value> {
        let list = |secrets: &BTreeMap<String, Secret>, name: &str| {
            let item = |(id, value): (&String, &Secret)| json!({"id": id, name: value.expose()});
            secrets.iter().map(item).collect::<Vec<_>>()
        };
        let mut context = Map::new();
        if let Some(user_id) = &self.user_id {
            context.insert("user_id".into(), json!(user_id));
        }
        if !self.tokens.is_empty() {
            context.insert("authorization".into(), json!(list(&self.tokens, "token")));
        }
        if !self.secrets.is_empty() {
            context.insert("secrets".into(), json!(list(&self.secrets, "value")));
        }
        context
    }
}
