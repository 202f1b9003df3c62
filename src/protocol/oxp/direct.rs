//! Direct calls: events that have the format of a body of `POST /tools/call`, in any dialect.

use serde_json::value::RawValue;

use super::{
    CALL_SPAN,
    error::ErrorBody,
    format::OxpFormat,
    request::{call_in, names_in},
    response,
};
use crate::{
    call::{Call, Outcome},
    observe::request_log::RequestNames,
    protocol::{
        codec::EncodedRequest, direct::CallFormat, json_response::to_raw_json, refusal::Refusal,
    },
};

/// The format of direct calls.
#[derive(Default)]
pub(crate) struct DirectCallFormat(OxpFormat);

impl DirectCallFormat {
    /// Returns true for the `$schema` of a call in an envelope: `urn:oxp:1.0`, `otc://1.0`, or
    /// OXP's URL.
    pub(crate) fn has_schema(schema: &str) -> bool {
        schema.starts_with("urn:oxp:") || schema.starts_with("otc://") || schema.contains("oxp")
    }
}

impl CallFormat for DirectCallFormat {
    fn span(&self) -> &'static str {
        CALL_SPAN
    }

    fn decode(&mut self, event: &EncodedRequest<'_>) -> Result<Box<Call>, Refusal> {
        Ok(Box::new(call_in(&mut self.0, event)?))
    }

    fn names(&self, event: &[u8]) -> RequestNames {
        names_in(event)
    }

    fn dialect(&self) -> &'static str {
        self.0.dialect.name()
    }

    fn outcome(&self, outcome: &Outcome) -> Box<RawValue> {
        to_raw_json(&response::body_of(self.0.dialect, outcome))
    }

    fn refusal(&self, refusal: &Refusal) -> Box<RawValue> {
        to_raw_json(&ErrorBody::of(refusal, &self.0))
    }
}
