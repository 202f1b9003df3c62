//! Schemas of dynamic tools: the library accepts exactly what the crate `jsonschema` accepts in one of
//! the drafts, its messages and keywords name a reason for each rejection, and its changes of a value
//! do not change the result.
//!
//! An input is two JSON values, the schema and the value, with or without whitespace between them.

use jsonschema::{Draft, Validator};
use lambda_tools_schema::{Schema, forbidden_reference};
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
    // No toolkit accepts such a schema.
    if forbidden_reference(schema).is_some() {
        return;
    }
    let ours = Schema::from_value(schema.clone());
    if ours.compile().is_err() {
        return;
    }
    let messages = |value: &Value| {
        let checked = ours.check(value, "input");
        checked.expect("the schema compiles").err()
    };
    let validators = [Draft::Draft7, Draft::Draft202012].map(|draft| validator(schema, draft));
    let verdicts = |value: &Value| {
        let validators = validators.iter().flatten();
        validators.map(|it| it.is_valid(value)).collect::<Vec<_>>()
    };
    let is_valid = |value: &Value| {
        let is_valid = messages(value).is_none();
        // A schema that names no draft is read in one of the two (`docs/tools.md`).
        assert!(verdicts(value).contains(&is_valid), "{schema} {value}");
        is_valid
    };
    let is_accepted = is_valid(value);
    let keywords = ours.rejecting_keywords(value);
    let keywords = keywords.expect("the schema compiles");
    let accepts = keywords.is_none();
    assert_eq!(accepts, is_accepted, "{schema} {value} {keywords:?}");
    if let (Some(names), Some(keywords)) = (messages(value), keywords) {
        let is_place = |it: &String| {
            it.is_empty() || it == "the schema as a whole" || schema.pointer(it).is_some()
        };
        let is_explained = (1..=101).contains(&names.len()) && !keywords.is_empty();
        assert!(
            is_explained && keywords.iter().all(is_place),
            "{schema} {value} {names:?} {keywords:?}"
        );
    }
    let mut normalized = value.clone();
    ours.normalize(&mut normalized);
    let accepts = is_valid(&normalized);
    assert_eq!(accepts, is_accepted, "{schema} {value} {normalized}");
    let mut without_nulls = value.clone();
    ours.drop_optional_nulls(&mut without_nulls);
    let accepts = !is_accepted || is_valid(&without_nulls);
    assert!(accepts, "{schema} {value} {without_nulls}");
}

/// Returns the crate's validator of a schema, in this draft unless the schema names another.
fn validator(schema: &Value, draft: Draft) -> Option<Validator> {
    let mut options = jsonschema::options().should_validate_formats(true);
    if schema.get("$schema").is_none() {
        options = options.with_draft(draft);
    }
    options.build(schema).ok()
}

/// Returns true for a schema whose patterns cannot take long: the owner of a server writes its
/// schemas and answers for their patterns.
fn is_in_scope(schema: &Value) -> bool {
    let text = schema.to_string();
    let quantifiers = text.bytes().filter(|it| b"*+?{".contains(it)).count();
    !text.contains("attern") || (text.len() < 256 && quantifiers < 12 && !text.contains('\\'))
}
