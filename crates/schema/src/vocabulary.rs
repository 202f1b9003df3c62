//! The keywords of JSON Schema, and what this library has to know of each.
//!
//! Every pass over a schema reads this table, so that no pass forgets a keyword that another one
//! knows. Which keywords the API of a model or a client accepts is a matter of that format.

use std::slice;

use serde_json::{Value, json};

use crate::JsonObject;
use Holds::{Data, Named, Schemas};
use Role::{
    Annotation, Branch, Condition, Definitions, Identity, OtherPart, Part, Reference, Rule,
};

/// The content of a keyword's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Holds {
    /// No schemas.
    Data,
    /// A schema, or a list of schemas.
    Schemas,
    /// Schemas by name. `dependencies` has lists of names among them.
    Named,
}

/// The meaning of a keyword for a value of its schema.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    /// Nothing: it says something about the value.
    Annotation,
    /// Nothing: it identifies the schema.
    Identity,
    /// Nothing: other schemas refer to its schemas.
    Definitions,
    /// The value also has the schema that it refers to.
    Reference,
    /// The value also has its schemas, some or all of them.
    Branch,
    /// The value also has its schemas, or does not, as other schemas decide.
    Condition,
    /// A part of the value has its schema, which only the part's name or index chooses.
    Part,
    /// Parts of the value have its schemas, which more than their names and indices choose.
    OtherPart,
    /// The value must satisfy it.
    Rule,
}

/// The content and the role of a keyword, and the type of the values that it is about, or [`ANY`].
pub(super) type Keyword = (Holds, Role, &'static str);

pub(super) const ANY: &str = "";

/// Returns a keyword of any draft since draft 4.
pub(super) fn find(name: &str) -> Option<Keyword> {
    Some(match name {
        "$anchor" | "$comment" | "$dynamicAnchor" | "$id" | "$recursiveAnchor" | "$schema"
        | "$vocabulary" | "id" => (Data, Identity, ANY),
        "$dynamicRef" | "$recursiveRef" | "$ref" => (Data, Reference, ANY),
        "$defs" | "definitions" => (Named, Definitions, ANY),
        "default" | "deprecated" | "description" | "examples" | "readOnly" | "title"
        | "writeOnly" => (Data, Annotation, ANY),
        "contentSchema" => (Schemas, Annotation, "string"),
        "allOf" | "anyOf" | "oneOf" => (Schemas, Branch, ANY),
        "if" | "then" | "else" | "not" => (Schemas, Condition, ANY),
        "dependencies" | "dependentSchemas" => (Named, Condition, "object"),
        "properties" => (Named, Part, "object"),
        "additionalProperties" => (Schemas, Part, "object"),
        "items" => (Schemas, Part, "array"),
        "patternProperties" => (Named, OtherPart, "object"),
        "propertyNames" | "unevaluatedProperties" => (Schemas, OtherPart, "object"),
        "additionalItems" | "prefixItems" | "unevaluatedItems" => (Schemas, OtherPart, "array"),
        "contains" => (Schemas, Rule, "array"),
        "const" | "enum" | "type" => (Data, Rule, ANY),
        "dependentRequired" | "maxProperties" | "minProperties" | "required" => {
            (Data, Rule, "object")
        }
        "maxContains" | "maxItems" | "minContains" | "minItems" | "uniqueItems" => {
            (Data, Rule, "array")
        }
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" | "multipleOf" => {
            (Data, Rule, "number")
        }
        "contentEncoding" | "contentMediaType" | "format" | "maxLength" | "minLength"
        | "pattern" => (Data, Rule, "string"),
        _ => return None,
    })
}

/// The keywords whose branches describe the value itself.
pub const BRANCHES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Returns the content of a keyword's value: data, if the keyword is unknown.
pub(crate) fn holds(name: &str) -> Holds {
    find(name).map_or(Data, |(holds, ..)| holds)
}

/// Returns true if a keyword has one of these roles.
pub fn has_role(name: &str, roles: &[Role]) -> bool {
    find(name).is_some_and(|(_, role, _)| roles.contains(&role))
}

/// Returns true if a keyword may restrict values of a type.
pub fn applies_to(name: &str, kind: &str) -> bool {
    let about = find(name).map_or(ANY, |(.., kind)| kind);
    about == ANY || about == kind || (about, kind) == ("number", "integer")
}

/// Returns true if draft 7 does not have a keyword that decides which values are valid.
pub(super) fn is_newer(name: &str) -> bool {
    const NEWER: &str = "$dynamicRef $vocabulary dependentRequired dependentSchemas maxContains \
        minContains prefixItems unevaluatedItems unevaluatedProperties";
    NEWER.split(' ').any(|newer| newer == name)
}

/// The types of values.
pub const KINDS: [&str; 7] = [
    "object", "array", "string", "number", "integer", "boolean", "null",
];

/// Returns the types that a schema allows, without duplicates; all types if it does not restrict
/// them.
pub fn kinds_of(schema: &Value) -> Vec<&'static str> {
    let list = |keyword| list_in(schema.get(keyword)).iter();
    let named = named_kinds(schema.get("type"));
    let kinds = match (named, schema.as_object().and_then(values_of)) {
        (Some(named), _) => named,
        (None, Some(values)) => different(values.iter().map(kind_of)),
        _ if schema.get("properties").is_some() => vec!["object"],
        _ if schema.get("items").is_some() => vec!["array"],
        _ => {
            let parts = list("allOf").map(kinds_of);
            let unions = [list("oneOf"), list("anyOf")].into_iter();
            let unions = unions.filter(|branches| branches.len() > 0);
            let unions = unions.map(|branches| branches.flat_map(kinds_of).collect());
            let fewest = parts.chain(unions).min_by_key(Vec::len);
            different(fewest.unwrap_or_default())
        }
    };
    if kinds.is_empty() {
        KINDS.into()
    } else {
        kinds
    }
}

/// Returns the types in the value of `type`, without duplicates and unknown ones; `None` without a
/// value.
pub(crate) fn named_kinds(names: Option<&Value>) -> Option<Vec<&'static str>> {
    let names = match names? {
        Value::Array(several) => several,
        one => slice::from_ref(one),
    };
    let kind_named = |name| KINDS.into_iter().find(|kind| name == kind);
    Some(different(names.iter().filter_map(kind_named)))
}

fn different(kinds: impl IntoIterator<Item = &'static str>) -> Vec<&'static str> {
    let mut seen = Vec::new();
    for kind in kinds {
        if !seen.contains(&kind) {
            seen.push(kind);
        }
    }
    seen
}

/// Returns the type of a value.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns true if a value may be in the `enum` of a type: clients support scalar choices only.
pub fn fits(value: &Value, kind: &str) -> bool {
    !matches!(value, Value::Array(_) | Value::Null | Value::Object(_)) && is_of_kind(value, kind)
}

/// Returns true for a value of a type: an integer is a number, too.
pub(crate) fn is_of_kind(value: &Value, kind: &str) -> bool {
    let own = kind_of(value);
    own == kind || (own, kind) == ("integer", "number")
}

/// Returns the list in a keyword's value; an empty one if there is none.
pub fn list_in(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the values of `const` or `enum`.
pub fn values_of(schema: &JsonObject) -> Option<&[Value]> {
    let constant = schema.get("const").map(slice::from_ref);
    constant.or_else(|| Some(schema.get("enum")?.as_array()?))
}

/// Returns the values of branches, if all of them are constants, each with its branch's description.
pub fn constants_in(branches: &[Value]) -> Option<Vec<(&Value, Option<&str>)>> {
    let mut constants = Vec::new();
    for branch in branches {
        let text = branch.get("description").and_then(Value::as_str);
        let values = values_of(branch.as_object()?)?;
        constants.extend(values.iter().map(|value| (value, text)));
    }
    Some(constants)
}

/// Returns true if a schema has a type and no other keyword.
pub(crate) fn is_bare(schema: &Value) -> bool {
    matches!(schema, Value::Object(it) if it.len() == 1 && it.contains_key("type"))
}

/// Returns values as a text, with a separator between them.
pub fn listed(values: &[Value], separator: &str) -> String {
    let values: Vec<_> = values.iter().map(Value::to_string).collect();
    values.join(separator)
}

/// Returns the names in a list, such as that of `required`; none if it is no list of names.
pub fn names(list: Option<Value>) -> Vec<String> {
    let names = list.and_then(|list| serde_json::from_value(list).ok());
    names.unwrap_or_default()
}

/// Returns a schema as an object: `false` as one that no value satisfies, anything else that is no
/// object as one that any value satisfies.
pub fn object_of(schema: Value) -> JsonObject {
    match schema {
        Value::Object(schema) => schema,
        Value::Bool(false) => JsonObject::from_iter([("not".to_owned(), json!({}))]),
        _ => JsonObject::new(),
    }
}

#[cfg(test)]
pub(super) mod tests;
