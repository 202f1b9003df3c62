//! Calls from an AgentCore Gateway: the event is the arguments, and the answer is the result of
//! `tools/call` alone.

use http::HeaderName;
use serde_json::value::RawValue;

use super::{
    call::{call_of, output_kind_of, similar_to},
    format::{McpFormat, OutputKind},
    rejection::encode_refusal,
    response::encode_outcome,
    revision::Revision,
};
use crate::{
    call::{Call, ClientContext, Outcome, rejection::Rejection},
    observe::request_log::RequestNames,
    protocol::{
        codec::EncodedRequest,
        direct::CallFormat,
        idempotency_key::{id_in, idempotency_key},
        json::{self, JsonError, JsonScope},
        refusal::Refusal,
    },
    tool::reason::Reason,
};

/// The format of a call from an AgentCore Gateway.
#[derive(Default)]
pub(crate) struct AgentCoreFormat {
    /// The name of the tool, which the event cannot choose.
    pub(crate) tool: String,
    /// The header with the user's id.
    pub(crate) user_header: Option<HeaderName>,
    /// The call's id, once the event is decoded.
    call_id: Option<String>,
    output: OutputKind,
}

impl AgentCoreFormat {
    /// Returns the format of the result. The gateway names no revision, and the fields that
    /// 2026-07-28 added are for clients that ask for that revision.
    fn result(&self) -> McpFormat {
        McpFormat {
            revision: Some(Revision::NEWEST_LEGACY),
            output: self.output,
            is_bare: true,
            ..McpFormat::default()
        }
    }
}

impl CallFormat for AgentCoreFormat {
    fn span(&self) -> &'static str {
        "agentcore"
    }

    fn decode(&mut self, event: &EncodedRequest<'_>) -> Result<Box<Call>, Refusal> {
        self.call_id = idempotency_key(event.headers).map_err(refused)?;
        let user = self.user_header.as_ref();
        let user = user.map(|header| id_in(event.headers, header, header.as_str(), &[]));
        let user = user.transpose().map_err(refused)?.flatten();
        let read = json::read(event.body, &JsonScope::Whole, event.max_values);
        let input = read.map_err(|error| match error {
            JsonError::Syntax(error) => refused(format!("The event is not valid JSON: {error}")),
            JsonError::Rejected(sentence) => refused(sentence),
        })?;
        if !input.is_object() {
            let detail = "The event must be an object: the tool's arguments.";
            return Err(refused(detail.to_owned()));
        }
        let Some(entry) = event.tool_named(&self.tool) else {
            let rejection = Rejection::UnknownTool {
                closest: event.closest_name(&similar_to(&self.tool)),
                qualified: (&*self.tool).into(),
            };
            return Err(rejection.into());
        };
        self.output = output_kind_of(&entry.tool);
        let client_context = ClientContext {
            user_id: user.map(str::to_owned),
            ..ClientContext::default()
        };
        let call_id = self.call_id.clone();
        Ok(call_of(entry, call_id, input, client_context))
    }

    fn names(&self, _: &[u8]) -> RequestNames {
        RequestNames {
            tool: Some(self.tool.clone()),
            call_id: self.call_id.clone(),
            trace_id: None,
        }
    }

    fn dialect(&self) -> &'static str {
        "agentcore"
    }

    fn outcome(&self, outcome: &Outcome) -> Box<RawValue> {
        raw(&encode_outcome(&self.result(), RawValue::NULL, outcome))
    }

    fn refusal(&self, refusal: &Refusal) -> Box<RawValue> {
        let (_, result) = encode_refusal(&self.result(), RawValue::NULL, refusal);
        raw(&result)
    }
}

fn raw(json: &[u8]) -> Box<RawValue> {
    serde_json::from_slice(json).expect("our own JSON is valid")
}

fn refused(detail: String) -> Refusal {
    Refusal::Invalid {
        reason: Reason::Malformed,
        message: "The call is not valid".to_owned(),
        detail,
    }
}
