//! The properties of a request that its response depends on.
//!
//! Besides the form, these are mistakes that the specification tolerates but that explain why a
//! call was rejected.

use super::{catalogue::OxpForm, dialect::Dialect};
use crate::protocol::{
    codec::Operation,
    json::{self, JsonScope},
};

/// The form of a request, and its mistakes.
#[derive(Default)]
pub(crate) struct RequestForm {
    pub(super) form: OxpForm,
    pub(super) path: OxpPath,
    /// A sentence about a field that has the input in place of `input`.
    pub(super) misplaced_input: Option<String>,
}

/// The path of a request, if its response depends on the path.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum OxpPath {
    /// `/tools` and `/tools/call`, whose responses depend on the body and the headers.
    #[default]
    Tools,
    /// `/tools/{tool_id}/call`.
    SingleTool,
    /// `/openapi.json`.
    #[cfg(feature = "openapi")]
    OpenApi,
}

impl From<OxpPath> for RequestForm {
    fn from(path: OxpPath) -> Self {
        Self {
            path,
            ..Self::default()
        }
    }
}

impl RequestForm {
    /// The form of a request for a call, with this body.
    pub(super) fn of_call(form: OxpForm, operation: &Operation, body: &[u8]) -> Self {
        let has_input = match operation {
            Operation::Call(call) => call.input.as_object().is_none_or(|it| !it.is_empty()),
            _ => true,
        };
        let misplaced_input = if has_input {
            None
        } else {
            misplaced_input(body)
        };
        Self {
            form,
            misplaced_input,
            ..Self::default()
        }
    }

    pub(super) fn dialect(&self) -> Dialect {
        if self.path == OxpPath::SingleTool {
            Dialect::Path
        } else {
            self.form.dialect()
        }
    }
}

impl From<OxpForm> for RequestForm {
    fn from(form: OxpForm) -> Self {
        Self {
            form,
            ..Self::default()
        }
    }
}

/// The fields in which other protocols and model APIs have the input of a call.
const MISTAKEN: [&str; 5] = ["arguments", "args", "parameters", "params", "tool_input"];

macro_rules! input_fields {
    ($($more:expr),*) => {
        JsonScope::Fields(&[
            ("input", JsonScope::Scalar),
            ("inputs", JsonScope::Scalar),
            (MISTAKEN[0], JsonScope::Scalar),
            (MISTAKEN[1], JsonScope::Scalar),
            (MISTAKEN[2], JsonScope::Scalar),
            (MISTAKEN[3], JsonScope::Scalar),
            (MISTAKEN[4], JsonScope::Scalar),
            $($more),*
        ])
    };
}

const INPUT_FIELDS: JsonScope = input_fields!(("request", input_fields!()));

/// A sentence about the field that a body without an input has in place of it.
fn misplaced_input(body: &[u8]) -> Option<String> {
    let body = json::read_leniently(body, &INPUT_FIELDS)?;
    let (call, path) = match body.get("request") {
        Some(request) => (request, "request."),
        None => (&body, ""),
    };
    if call.get("input").or_else(|| call.get("inputs")).is_some() {
        return None;
    }
    // An object, or JSON as a text, as in OpenAI's API.
    let has = |name: &&&str| call.get(**name).is_some_and(|value| !value.is_null());
    let name = MISTAKEN.iter().find(has)?;
    Some(format!(
        "The body has '{path}{name}', but a call's input is in '{path}input'."
    ))
}
