//! The merging of schemas that apply to the same value: the subset has no `allOf`.

use std::collections::HashSet;

use lambda_tools_core::{
    json::JsonObject,
    tool::schema::reduced::keywords::{names, object_of},
};
use serde_json::Value;

use super::is_closed;
use crate::{budget::CopyBudget, references};

/// The maximum number of references that are followed to merge two schemas.
const MAX_REFERENCES: usize = 8;

/// Returns the schema without `allOf`, or `None` if its parts cannot be merged.
pub(super) fn all_of(
    mut schema: JsonObject,
    defs: &JsonObject,
    copies: &CopyBudget,
) -> Option<JsonObject> {
    let mut steps = 0;
    while let Some(parts) = schema.shift_remove("allOf") {
        steps += 1;
        if steps > MAX_REFERENCES {
            return None;
        }
        for part in parts.as_array()? {
            let part = part.as_object()?.clone();
            schema = if schema.keys().all(|it| it == "description") {
                let description = schema.shift_remove("description");
                let mut part = part;
                part.extend(description.map(|it| ("description".to_owned(), it)));
                part
            } else {
                both(
                    resolved(schema, defs, copies)?,
                    resolved(part, defs, copies)?,
                )?
            };
        }
    }
    Some(schema)
}

/// Returns the schema with the target of its reference in place of the reference.
pub(super) fn resolved(
    mut schema: JsonObject,
    defs: &JsonObject,
    copies: &CopyBudget,
) -> Option<JsonObject> {
    for _ in 0..MAX_REFERENCES {
        let Some(reference) = schema.shift_remove("$ref") else {
            return Some(schema);
        };
        schema = both(schema, references::copied(&reference, defs, copies)?)?;
    }
    None
}

/// Combines the rules of both schemas in one.
pub(super) fn both(mut one: JsonObject, other: JsonObject) -> Option<JsonObject> {
    if !are_combinable(&one, &other) {
        return None;
    }
    for (keyword, value) in other {
        let Some(known) = one.get_mut(&keyword) else {
            one.insert(keyword, value);
            continue;
        };
        if *known == value {
            continue;
        }
        *known = match keyword.as_str() {
            "description" | "title" | "default" | "examples" => continue,
            "properties" => properties(object_of(known.take()), object_of(value))?.into(),
            "required" => {
                let mut all = names(Some(known.take()));
                all.extend(names(Some(value)));
                let mut unique = HashSet::new();
                all.retain(|name| unique.insert(name.clone()));
                all.into()
            }
            _ => return None,
        };
    }
    Some(one)
}

/// Returns true unless one schema is closed, and so forbids properties that only the other has.
fn are_combinable(one: &JsonObject, other: &JsonObject) -> bool {
    let has_all = |closed: &JsonObject, open: &JsonObject| {
        let open = open.get("properties").and_then(Value::as_object);
        let closed_properties = closed.get("properties");
        let mut open = open.into_iter().flatten();
        !is_closed(closed)
            || open.all(|(name, _)| closed_properties.is_some_and(|it| it.get(name).is_some()))
    };
    has_all(one, other) && has_all(other, one)
}

fn properties(mut one: JsonObject, other: JsonObject) -> Option<JsonObject> {
    for (name, property) in other {
        match one.get_mut(&name) {
            None => {
                one.insert(name, property);
            }
            Some(known) if *known == property => {}
            Some(known) => match (known.take(), property) {
                (Value::Object(a), Value::Object(b)) => *known = both(a, b)?.into(),
                _ => return None,
            },
        }
    }
    Some(one)
}
