//! OpenAI's Structured Outputs: the subset of JSON Schema for functions with `strict`.
//!
//! In the subset, objects are closed and all properties are required; optional ones are nullable.
//! A tool without a schema in the subset is listed as not strict, so that no list is rejected.

mod limits;
mod merge;
mod unions;

use std::collections::HashSet;

use lambda_tools_core::{
    json::JsonObject,
    tool::schema::{
        reduced::{
            keywords::{KINDS, fits, kinds_of, names, object_of, values_of},
            sentences, take_description,
        },
        vocabulary::{Role, applies_to, has_role},
    },
};
use serde_json::{Value, json};

use super::{budget::CopyBudget, portable::InputSchema, references};

/// Returns the schema in the subset, or `None` if the subset cannot express it. What a sentence
/// states is not enforced.
pub(super) fn schema_of(input: &InputSchema, copies: &CopyBudget) -> Option<JsonObject> {
    let mut root = input.schema.clone();
    let defs = root
        .shift_remove("$defs")
        .map(object_of)
        .unwrap_or_default();
    let mut strict = Strict {
        defs: &defs,
        budget: MAX_SCHEMAS,
        copies,
        depth: 0,
    };
    let Value::Object(mut schema) = strict.schema(&root.into(), false)? else {
        return None;
    };
    if !defs.is_empty() {
        let mut listed = JsonObject::new();
        for (name, target) in &defs {
            listed.insert(name.clone(), strict.schema(target, false)?);
        }
        schema.insert("$defs".into(), listed.into());
    }
    // "Root objects must not be anyOf and must be an object"
    (schema["type"] == "object" && limits::fits(&schema)).then_some(schema)
}

/// The maximum number of schemas in an input's schema, which merging may multiply.
const MAX_SCHEMAS: usize = 20_000;
/// The maximum depth of schemas, which references in unions may make infinite.
const MAX_DEPTH: usize = 64;

/// "Supported `string` properties: `format`"
const FORMATS: [&str; 9] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];
const NUMBERS: [&str; 5] = [
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
];

struct Strict<'a> {
    defs: &'a JsonObject,
    budget: usize,
    copies: &'a CopyBudget,
    depth: usize,
}

impl Strict<'_> {
    /// Converts a schema to one in the subset, which also allows `null` if `is_nullable`.
    fn schema(&mut self, schema: &Value, is_nullable: bool) -> Option<Value> {
        self.budget = self.budget.checked_sub(1)?;
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let strict = self.part(schema, is_nullable);
        self.depth -= 1;
        strict
    }

    fn part(&mut self, schema: &Value, is_nullable: bool) -> Option<Value> {
        let mut rest = merge::all_of(schema.as_object()?.clone(), self.defs, self.copies)?;
        if let Some(reference) = rest.shift_remove("$ref") {
            return self.reference(&reference, rest, is_nullable);
        }
        if rest.contains_key("anyOf") || rest.contains_key("oneOf") {
            return self.union(rest, is_nullable);
        }
        let mut kinds = kinds_of(&rest.clone().into());
        if kinds.len() == KINDS.len() {
            // Any value, which the subset cannot express.
            return None;
        }
        // An integer is a number.
        if kinds.contains(&"number") {
            kinds.retain(|kind| *kind != "integer");
        }
        let is_nullable = is_nullable || kinds.contains(&"null");
        kinds.retain(|kind| *kind != "null");
        match kinds.as_slice() {
            [] => Some(described(json!({"type": "null"}), rest, Vec::new())),
            [kind] => self.of_kind(kind, rest, is_nullable),
            several => self.of_kinds(several, &rest, is_nullable),
        }
    }

    /// Converts a reference. Nothing may stand next to it: it gets a union of its own.
    fn reference(
        &mut self,
        reference: &Value,
        mut rest: JsonObject,
        is_nullable: bool,
    ) -> Option<Value> {
        let annotations = take_annotations(&mut rest);
        if !rest.is_empty() {
            return None;
        }
        let target = references::target(reference, self.defs)?;
        let mut branches = vec![json!({"$ref": reference})];
        if is_nullable && !allows_null(target) {
            branches.push(json!({"type": "null"}));
        }
        if branches.len() == 1 && annotations.is_empty() {
            return branches.pop();
        }
        let union = json!({"anyOf": branches});
        Some(described(union, annotations, Vec::new()))
    }

    /// Converts a schema of several types to a union of single types.
    fn of_kinds(&mut self, kinds: &[&str], rest: &JsonObject, is_nullable: bool) -> Option<Value> {
        let mut rules = rest.clone();
        let annotations = take_annotations(&mut rules);
        let mut branches = Vec::new();
        for kind in kinds {
            let mut branch = rules.clone();
            branch.insert("type".into(), (*kind).into());
            branch.retain(|keyword, _| applies_to(keyword, kind));
            if let Some(values) = values_of(&rules) {
                branch.shift_remove("const");
                let values = values
                    .iter()
                    .filter(|it| kinds_of(&json!({"const": it})) == [*kind]);
                let values: Vec<_> = values.cloned().collect();
                if values.is_empty() {
                    continue;
                }
                branch.insert("enum".into(), values.into());
            }
            branches.push(self.of_kind(kind, branch, false)?);
        }
        if is_nullable {
            branches.push(json!({"type": "null"}));
        }
        let union = json!({"anyOf": branches});
        Some(described(union, annotations, Vec::new()))
    }

    fn of_kind(&mut self, kind: &str, mut rest: JsonObject, is_nullable: bool) -> Option<Value> {
        rest.shift_remove("type");
        let kind_or_null = if is_nullable {
            json!([kind, "null"])
        } else {
            kind.into()
        };
        let mut schema = json!({"type": kind_or_null});
        match kind {
            "object" => self.take_object(&mut rest, &mut schema)?,
            "array" => self.take_array(&mut rest, &mut schema)?,
            _ => take_scalar(kind, &mut rest, &mut schema)?,
        }
        if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
            values.retain(|value| !value.is_null());
            values.extend(is_nullable.then_some(Value::Null));
        }
        Some(described(schema, rest, Vec::new()))
    }

    fn take_object(&mut self, rest: &mut JsonObject, schema: &mut Value) -> Option<()> {
        let properties = rest
            .shift_remove("properties")
            .map(object_of)
            .unwrap_or_default();
        let required: HashSet<_> = names(rest.shift_remove("required")).into_iter().collect();
        let is_closed = is_closed(rest);
        let is_restricted = values_of(rest).is_some() || rest.contains_key("patternProperties");
        let is_free = properties.is_empty() && !is_closed;
        let is_open = ["additionalProperties", "unevaluatedProperties"]
            .iter()
            .any(|it| rest.get(*it).is_some_and(|it| *it != false));
        let is_undeclared = |name: &String| !properties.contains_key(name);
        if is_restricted || is_free || is_open || required.iter().any(is_undeclared) {
            return None;
        }
        rest.retain(|keyword, _| {
            !["additionalProperties", "unevaluatedProperties"].contains(&keyword.as_str())
        });
        let mut listed = JsonObject::new();
        for (name, property) in &properties {
            let property = self.schema(property, !required.contains(name))?;
            listed.insert(name.clone(), property);
        }
        let names: Vec<_> = properties.keys().cloned().collect();
        schema["properties"] = listed.into();
        schema["required"] = names.into();
        schema["additionalProperties"] = false.into();
        Some(())
    }

    fn take_array(&mut self, rest: &mut JsonObject, schema: &mut Value) -> Option<()> {
        if values_of(rest).is_some() {
            return None;
        }
        let items = match rest.shift_remove("prefixItems") {
            // A tuple of equal items, such as a point, is a list of that length.
            Some(Value::Array(prefix)) => {
                let count = prefix.len();
                let is_exact = rest.get("maxItems").and_then(Value::as_u64) == Some(count as u64)
                    || rest.get("items") == Some(&Value::Bool(false));
                let first = prefix.first()?.clone();
                if !is_exact || prefix.iter().any(|it| *it != first) {
                    return None;
                }
                rest.shift_remove("items");
                rest.insert("maxItems".into(), count.into());
                first
            }
            _ => rest.shift_remove("items")?,
        };
        schema["items"] = self.schema(&items, false)?;
        for keyword in ["minItems", "maxItems"] {
            if let Some(count) = rest.shift_remove(keyword) {
                schema[keyword] = count;
            }
        }
        Some(())
    }
}

/// Returns true if a schema's type or one of its branches is known to allow `null`; a reference is
/// not followed.
fn allows_null(schema: &Value) -> bool {
    match schema.get("anyOf").and_then(Value::as_array) {
        Some(branches) => branches.iter().any(allows_null),
        None => schema.get("type").is_some() && kinds_of(schema).contains(&"null"),
    }
}

fn is_closed(object: &JsonObject) -> bool {
    let keywords = ["additionalProperties", "unevaluatedProperties"];
    keywords
        .iter()
        .any(|it| object.get(*it) == Some(&Value::Bool(false)))
}

fn take_scalar(kind: &str, rest: &mut JsonObject, schema: &mut Value) -> Option<()> {
    if let Some(values) = values_of(rest) {
        let mut values: Vec<_> = values.to_vec();
        values.retain(|value| value.is_null() || fits(value, kind));
        if values.iter().all(Value::is_null) {
            return None;
        }
        rest.retain(|keyword, _| keyword != "enum" && keyword != "const");
        schema["enum"] = values.into();
    }
    if kind == "string" {
        let format = rest.get("format").and_then(Value::as_str);
        if format.is_some_and(|it| FORMATS.contains(&it)) {
            schema["format"] = rest.shift_remove("format")?;
        }
        let pattern = rest.get("pattern").and_then(Value::as_str);
        if pattern.is_some_and(is_plain_pattern) {
            schema["pattern"] = rest.shift_remove("pattern")?;
        }
    } else {
        // "float" and "int32" say nothing that a model needs.
        rest.shift_remove("format");
    }
    if kind == "integer" || kind == "number" {
        for keyword in NUMBERS {
            if let Some(limit) = rest.shift_remove(keyword).filter(Value::is_number) {
                schema[keyword] = limit;
            }
        }
    }
    Some(())
}

/// Returns true for a pattern without lookaround or references to groups; others are stated in
/// descriptions.
fn is_plain_pattern(pattern: &str) -> bool {
    let is_reference =
        |pair: &[u8]| pair[0] == b'\\' && pair[1].is_ascii_digit() && pair[1] != b'0';
    let groups = pattern.replace("(?:", "(");
    !groups.contains("(?")
        && !pattern.as_bytes().windows(2).any(is_reference)
        && !pattern.contains("\\k<")
}

/// Removes the keywords that say something about the values and restrict none.
fn take_annotations(schema: &mut JsonObject) -> JsonObject {
    let is_annotation =
        |(name, _): &(String, Value)| has_role(name, &[Role::Annotation, Role::Identity]);
    let annotations;
    (annotations, *schema) = std::mem::take(schema).into_iter().partition(is_annotation);
    annotations
}

/// Returns a schema with a description of the other keywords.
fn described(schema: Value, mut rest: JsonObject, mut sentences: Vec<String>) -> Value {
    let text = take_description(&mut rest);
    rest.retain(|keyword, _| !["type", "deprecated"].contains(&keyword.as_str()));
    sentences::add(rest, &mut sentences);
    let text = sentences::appended(text, &sentences);
    let mut schema = object_of(schema);
    if !text.is_empty() {
        let after_type = usize::from(schema.contains_key("type"));
        schema.shift_insert(after_type, "description".into(), text.into());
    }
    schema.into()
}

#[cfg(test)]
mod tests;
