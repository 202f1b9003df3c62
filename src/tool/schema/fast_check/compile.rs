//! Reads schemas strictly: whatever is not known or not valid leaves the schema to `jsonschema`,
//! which also knows why.

use serde_json::{Map, Value};

use super::{Keywords, Node, ObjectKeywords, Property, Types};

/// The keywords for objects.
const OBJECT: [&str; 3] = ["properties", "required", "additionalProperties"];

/// A schema; `None` if it has an unknown or an invalid keyword.
pub(super) fn node(schema: &Value) -> Option<Node> {
    match schema {
        Value::Bool(constant) => Some(Node::Constant(*constant)),
        Value::Object(object) => Some(Node::Keywords(Box::new(keywords(object)?))),
        _ => None,
    }
}

fn keywords(object: &Map<String, Value>) -> Option<Keywords> {
    let mut keywords = Keywords::default();
    for (keyword, value) in object {
        match keyword.as_str() {
            "type" => keywords.types = Some(types(value)?),
            "enum" => keywords.values = Some(values(value)?),
            "const" if !object.contains_key("enum") => keywords.values = Some(vec![value.clone()]),
            // Read together, below.
            keyword if OBJECT.contains(&keyword) => {}
            "items" => keywords.items = Some(node(value)?),
            "minItems" => keywords.item_count.set_least(count(value)?, false)?,
            "maxItems" => keywords.item_count.set_most(count(value)?, false)?,
            "minLength" => keywords.length.set_least(count(value)?, false)?,
            "maxLength" => keywords.length.set_most(count(value)?, false)?,
            "minimum" => keywords.number.set_least(value, false)?,
            "maximum" => keywords.number.set_most(value, false)?,
            "exclusiveMinimum" => keywords.number.set_least(value, true)?,
            "exclusiveMaximum" => keywords.number.set_most(value, true)?,
            "allOf" => keywords.all_of = nodes(value)?,
            "anyOf" => keywords.any_of = Some(nodes(value)?),
            "oneOf" => keywords.one_of = Some(nodes(value)?),
            "title" | "description" | "$comment" if value.is_string() => {}
            "examples" if value.is_array() => {}
            "deprecated" | "readOnly" | "writeOnly" if value.is_boolean() => {}
            "default" => {}
            "uniqueItems" if *value == false => {}
            _ => return None,
        }
    }
    if OBJECT.iter().any(|keyword| object.contains_key(*keyword)) {
        keywords.object = Some(object_keywords(object)?);
    }
    Some(keywords)
}

fn object_keywords(object: &Map<String, Value>) -> Option<ObjectKeywords> {
    let mut properties = match object.get("properties") {
        None => Vec::new(),
        Some(Value::Object(schemas)) => schemas.iter().map(property).collect::<Option<_>>()?,
        Some(_) => return None,
    };
    properties.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let required: &[Value] = match object.get("required") {
        None => &[],
        Some(Value::Array(names)) => names,
        Some(_) => return None,
    };
    for name in required {
        let name = name.as_str()?;
        let index = properties.binary_search_by(|it| (*it.name).cmp(name));
        let property = &mut properties[index.ok()?];
        if property.is_required {
            // A name that occurs twice makes the schema invalid.
            return None;
        }
        property.is_required = true;
    }
    let additional = match object.get("additionalProperties") {
        None => Node::Constant(true),
        Some(schema) => node(schema)?,
    };
    Some(ObjectKeywords {
        properties,
        required: required.len(),
        additional,
    })
}

fn property((name, schema): (&String, &Value)) -> Option<Property> {
    Some(Property {
        name: name.as_str().into(),
        is_required: false,
        node: node(schema)?,
    })
}

/// The limit of a count, a natural number.
fn count(value: &Value) -> Option<&Value> {
    value.is_u64().then_some(value)
}

fn types(value: &Value) -> Option<Types> {
    let mut types = Types::default();
    let names = match value {
        Value::String(_) => std::slice::from_ref(value),
        Value::Array(names) if !names.is_empty() => names,
        _ => return None,
    };
    for name in names {
        let is_allowed = match name.as_str()? {
            "null" => &mut types.null,
            "boolean" => &mut types.boolean,
            "string" => &mut types.string,
            "integer" => &mut types.integer,
            "number" => &mut types.number,
            "array" => &mut types.array,
            "object" => &mut types.object,
            _ => return None,
        };
        if std::mem::replace(is_allowed, true) {
            // A type that occurs twice makes the schema invalid.
            return None;
        }
    }
    Some(types)
}

/// The values of `enum`. The meta-schemas disagree about empty and repeated ones.
fn values(value: &Value) -> Option<Vec<Value>> {
    let values = value.as_array().filter(|it| !it.is_empty())?;
    let is_simple = |value: &Value| value.is_string() || value.is_null();
    let repeats = |index: usize| values[..index].contains(&values[index]);
    let is_known = values.iter().all(is_simple) && !(0..values.len()).any(repeats);
    is_known.then(|| values.clone())
}

fn nodes(value: &Value) -> Option<Vec<Node>> {
    let schemas = value.as_array().filter(|it| !it.is_empty())?;
    schemas.iter().map(node).collect()
}
