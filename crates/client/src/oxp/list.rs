//! Decoding of the list of tools, in any dialect.

use http::StatusCode;
use lambda_tools_core::ToolDefinition;
use serde::Deserialize;
use serde_json::Value;

use crate::{ClientError, response::ReceivedResponse};

#[derive(Deserialize)]
struct ToolListBody {
    items: Option<Vec<ToolDefinition>>,
    tools: Option<Vec<ToolDefinition>>,
}

/// Reads OXP's `items` or OTC's `tools`; if a server sends both, they are the same list.
pub(super) fn tools_in(response: &ReceivedResponse) -> Result<Vec<ToolDefinition>, ClientError> {
    if response.status != StatusCode::OK {
        return Err(response.status_error());
    }
    let list: ToolListBody = response.decode()?;
    let missing = || ClientError::Unreadable("it has neither 'items' nor 'tools'".to_owned());
    let mut definitions = list.items.or(list.tools).ok_or_else(missing)?;
    for definition in &mut definitions {
        unwrap_parameters(&mut definition.input_schema);
    }
    Ok(definitions)
}

/// Removes a wrapper: two of the dialects send the schema as `{"parameters": …}`, which is not a
/// JSON Schema keyword.
fn unwrap_parameters(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut()
        && object.len() == 1
        && let Some(parameters) = object.get_mut("parameters")
    {
        *schema = parameters.take();
    }
}
