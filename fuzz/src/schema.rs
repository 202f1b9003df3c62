//! Schemas of dynamic tools: the library accepts exactly what the crate `jsonschema` accepts, its
//! messages and keywords name a reason for each rejection, and its changes of a value do not change
//! the result.
//!
//! An input is two JSON values, the schema and the value, with or without whitespace between them.

use jsonschema::{Draft, Validator};
use lambda_tools::fuzzing::Schema;
use serde_json::{Deserializer, Value};

use crate::{MemoryBound, bounded};

/// A compiled schema takes up to a few kilobytes for each keyword; the meta-schemas, which are
/// built with the first schema of a draft, take a megabyte.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 4096,
    base: 32 << 20,
};

pub fn run(data: &[u8]) {
    let mut values = Deserializer::from_slice(data).into_iter::<Value>();
    let (Some(Ok(schema)), Some(Ok(value))) = (values.next(), values.next()) else {
        return;
    };
    if !is_in_scope(&schema) {
        return;
    }
    bounded(data.len(), BOUND, || check(&schema, &value));
}

fn check(schema: &Value, value: &Value) {
    let Some(ours) = Schema::new(schema.clone()) else {
        return;
    };
    let Some(plain) = plain(schema) else {
        panic!("only the library accepts the schema {schema}");
    };
    let is_valid = plain.is_valid(value);
    let found = ours.check(value);
    assert_eq!(
        found.messages.is_none(),
        is_valid,
        "{schema} {value} {found:?}"
    );
    assert_eq!(
        found.keywords.is_none(),
        is_valid,
        "{schema} {value} {found:?}"
    );
    for names in found.messages.iter() {
        assert!(
            !names.is_empty() && names.len() <= 101,
            "{schema} {value} {found:?}"
        );
    }
    for keywords in found.keywords.iter() {
        let is_place = |it: &String| it.is_empty() || schema.pointer(it).is_some();
        assert!(
            !keywords.is_empty() && keywords.iter().all(is_place),
            "{schema} {value} {found:?}"
        );
    }
    assert_eq!(
        plain.is_valid(&found.normalized),
        is_valid,
        "{schema} {value} {found:?}"
    );
    let without_nulls = ours.without_optional_nulls(value.clone());
    assert!(
        !is_valid || plain.is_valid(&without_nulls),
        "{schema} {value} {without_nulls}"
    );
}

/// The keywords of draft 2020-12 that draft 7 does not have, from the specification: a keyword that
/// the library's own list loses is noticed.
const NEWER: [&str; 9] = [
    "$dynamicRef",
    "$vocabulary",
    "dependentRequired",
    "dependentSchemas",
    "maxContains",
    "minContains",
    "prefixItems",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// The validator of a schema. One that names no draft is read as draft 7, or as draft 2020-12 if it
/// uses that draft's keywords (`docs/tools.md`).
pub(crate) fn plain(schema: &Value) -> Option<Validator> {
    let mut options = jsonschema::options().should_validate_formats(true);
    if schema.get("$schema").is_none() {
        let draft = match uses_newer(schema) {
            true => Draft::Draft202012,
            false => Draft::Draft7,
        };
        options = options.with_draft(draft);
    }
    options.build(schema).ok()
}

/// True if a schema, or one inside it, has a keyword of draft 2020-12.
fn uses_newer(schema: &Value) -> bool {
    let Value::Object(fields) = schema else {
        return false;
    };
    fields
        .iter()
        .any(|(keyword, value)| match (keyword.as_str(), value) {
            (keyword, _) if NEWER.contains(&keyword) => true,
            // Values, and lists of names.
            ("const" | "default" | "enum" | "examples" | "required" | "type", _) => false,
            ("properties" | "patternProperties", Value::Object(schemas)) => {
                schemas.values().any(uses_newer)
            }
            ("allOf" | "anyOf" | "oneOf" | "items", Value::Array(schemas)) => {
                schemas.iter().any(uses_newer)
            }
            (
                "additionalItems"
                | "additionalProperties"
                | "contains"
                | "else"
                | "if"
                | "items"
                | "not"
                | "propertyNames"
                | "then",
                schema,
            ) => uses_newer(schema),
            _ => false,
        })
}

/// The owner of a server writes its schemas and answers for their patterns, which may take any
/// time.
fn is_in_scope(schema: &Value) -> bool {
    let text = schema.to_string();
    let quantifiers = text.bytes().filter(|it| b"*+?{".contains(it)).count();
    !text.contains("attern") || (text.len() < 256 && quantifiers < 12 && !text.contains('\\'))
}
