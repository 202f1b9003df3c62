//! The form that asks a question.
//!
//! Clients show one field for each property, and refuse forms with anything that the specification
//! does not list (MCP 2026-07-28, Elicitation, Requested Schema).

use serde_json::{Map, Value, json};

use crate::tool::schema::vocabulary::{
    Role::{Branch, Condition, OtherPart, Reference},
    has_role,
};

const FORMATS: [&str; 4] = ["date", "date-time", "email", "uri"];

/// Returns the form for an answer with this schema, or the reason why there is none.
pub(super) fn form_of(schema: &Value) -> Result<Value, String> {
    let properties = schema["properties"].as_object();
    let properties = properties.filter(|it| !it.is_empty());
    let mut keywords = schema.as_object().into_iter().flatten();
    let decides_more =
        keywords.any(|(it, _)| has_role(it, &[Reference, Branch, Condition, OtherPart]));
    let Some(properties) = properties.filter(|_| !decides_more) else {
        return Err("An answer is a struct with at least one field, and no enum.".to_owned());
    };
    let mut fields = Map::new();
    for (name, property) in properties {
        let field = field_of(property).ok_or_else(|| {
            format!(
                "The answer's field '{name}' cannot be asked for: a form has only texts, numbers, \
                 booleans, constants (enums without data) and lists of constants."
            )
        })?;
        fields.insert(name.clone(), field);
    }
    let mut form = json!({"type": "object", "properties": fields});
    if let Some(required) = schema.get("required") {
        form["required"] = required.clone();
    }
    Ok(form)
}

/// Returns a field, without the keywords that a form cannot have; they become part of its
/// description.
fn field_of(property: &Value) -> Option<Value> {
    let is_allowed: fn(&str, &Value) -> bool = match property["type"].as_str()? {
        "string" if property.get("enum").is_some() => |keyword, _| keyword == "enum",
        "string" => |keyword, value| match keyword {
            "format" => FORMATS.iter().any(|format| value == format),
            _ => ["minLength", "maxLength"].contains(&keyword),
        },
        "number" | "integer" if property.get("enum").is_none() => {
            |keyword, _| ["minimum", "maximum"].contains(&keyword)
        }
        "boolean" if property.get("enum").is_none() => |_, _| false,
        "array" if is_constant(&property["items"]) => {
            |keyword, _| ["items", "minItems", "maxItems"].contains(&keyword)
        }
        _ => return None,
    };
    let mut field = Map::new();
    let mut others = Map::new();
    for (keyword, value) in property.as_object()? {
        let is_common = ["type", "description", "default"].contains(&&**keyword);
        let target = if is_common || is_allowed(keyword, value) {
            &mut field
        } else {
            &mut others
        };
        target.insert(keyword.clone(), value.clone());
    }
    if let Some(items) = field.get_mut("items") {
        *items = json!({"type": "string", "enum": items["enum"]});
    }
    if !others.is_empty() {
        let note = format!("JSON Schema: {}", Value::from(others));
        let description = match field.get("description").and_then(Value::as_str) {
            Some(description) => format!("{description} {note}"),
            None => note,
        };
        field.insert("description".into(), description.into());
    }
    Some(field.into())
}

fn is_constant(schema: &Value) -> bool {
    schema["type"] == "string" && schema["enum"].is_array()
}
