//! Calls from an AgentCore Gateway: the event is the arguments, and the answer is the result of
//! `tools/call` without an envelope.

use http::HeaderMap;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    call::{output_kind_of, similar_to},
    format::{McpFormat, OutputKind},
    rejection::enclose_refusal,
    response::{CallResult, Envelope, Meta, encode_outcome},
    revision::Revision,
};
use crate::{
    call::{Call, ClientContext, Outcome, rejection::Rejection},
    observe::request_log::RequestNames,
    protocol::{
        codec::EncodedRequest,
        direct::CallFormat,
        idempotency_key::idempotency_key,
        integers,
        json::{self, JsonError, JsonScope},
        json_response::to_raw_json,
        refusal::Refusal,
        wording::Wording,
    },
    text::LONGEST_ID,
    tool::{id::Selector, reason::Reason},
};

/// No header of the client reaches the function by itself, so the client cannot send what is missing.
const NO_TOKEN: &str =
    "The user is not signed in: the gateway has passed on no valid token of the user.";

/// The format of a call from an AgentCore Gateway.
#[derive(Clone)]
pub(crate) struct AgentCoreFormat {
    /// The name of the tool, which the event cannot choose.
    tool: String,
    /// The header with the user's id.
    user_header: Option<String>,
    /// The call's id, once the event is decoded.
    call_id: Option<String>,
    output: OutputKind,
}

impl AgentCoreFormat {
    pub(crate) fn new(tool: String, user_header: Option<&str>) -> Self {
        Self {
            tool,
            user_header: user_header.map(str::to_owned),
            call_id: None,
            output: OutputKind::default(),
        }
    }

    /// Returns the format of the result. The gateway names no revision; those from 2026-07-28 on have
    /// fields that their clients ask for.
    fn result(&self) -> McpFormat {
        McpFormat {
            revision: Some(Revision::NEWEST_LEGACY),
            output: self.output,
            is_bare: true,
            ..McpFormat::default()
        }
    }

    /// Returns the user in the header that the owner has chosen.
    fn user_in(&self, headers: &HeaderMap) -> Result<Option<String>, String> {
        let Some(name) = &self.user_header else {
            return Ok(None);
        };
        let mut values = headers.get_all(name).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let text = value.to_str().ok().filter(|it| it.len() <= LONGEST_ID);
        match text {
            Some(text) if values.next().is_none() => {
                Ok(Some(text.to_owned()).filter(|it| !it.is_empty()))
            }
            _ => Err(format!(
                "The header {name} must occur once, with ASCII text of at most {LONGEST_ID} bytes."
            )),
        }
    }
}

impl CallFormat for AgentCoreFormat {
    const SPAN: &'static str = "agentcore";

    fn decode(&mut self, event: &EncodedRequest<'_>) -> Result<Box<Call>, Refusal> {
        self.call_id = idempotency_key(event.headers).map_err(refused)?;
        let user_id = self.user_in(event.headers).map_err(refused)?;
        let read = json::read(event.body, &JsonScope::Whole, event.max_values);
        let mut input = read.map_err(|error| match error {
            JsonError::Syntax(error) => refused(format!("The event is not valid JSON: {error}")),
            JsonError::Rejected(sentence) => refused(sentence),
        })?;
        if !input.is_object() {
            return Err(refused(
                "The event must be an object: the tool's arguments.",
            ));
        }
        let Some(entry) = event.tool_named(&self.tool) else {
            let rejection = Rejection::UnknownTool {
                closest: event.closest_name(&similar_to(&self.tool)),
                qualified: (&*self.tool).into(),
            };
            return Err(rejection.into());
        };
        self.output = output_kind_of(&entry.tool);
        Ok(Box::new(Call {
            selector: Selector {
                qualified: entry.id.shared(),
                version: None,
            },
            call_id: self.call_id.clone(),
            permit: None,
            rounded: integers::restore(event.body, &[""], &mut input),
            trace_id: None,
            input,
            client_context: ClientContext {
                user_id,
                ..ClientContext::default()
            },
        }))
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
        encode_outcome(&Bare, &self.result(), RawValue::NULL, outcome)
    }

    fn refusal(&self, refusal: &Refusal) -> (Box<RawValue>, String) {
        let format = self.result();
        let result = match refusal {
            Refusal::Unauthenticated(..) => {
                Bare.enclose(&CallResult::error(&format, NO_TOKEN, Meta::default()))
            }
            other => enclose_refusal(&Bare, &format, RawValue::NULL, other),
        };
        (result, Wording::of(refusal).into_detail())
    }
}

fn refused(detail: impl Into<String>) -> Refusal {
    Refusal::Invalid {
        reason: Reason::Malformed,
        message: "The call is not valid".to_owned(),
        detail: detail.into(),
    }
}

/// No envelope: the result is the whole answer.
struct Bare;

impl Envelope for Bare {
    type Message = Box<RawValue>;

    fn enclose(&self, result: &impl Serialize) -> Box<RawValue> {
        to_raw_json(result)
    }
}
