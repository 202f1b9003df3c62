use std::collections::BTreeMap;

use referencing::meta;
use serde_json::{Value, json};

use super::*;
use crate::{
    reduced::{self, SchemaFormat},
    walk,
};

/// Returns what the meta-schemas of some drafts say that the values of their keywords hold.
fn holds_in(meta_schemas: &[&Value]) -> BTreeMap<String, Holds> {
    fn is_schema(definition: &Value) -> bool {
        let target = ["$ref", "$dynamicRef", "$recursiveRef"]
            .iter()
            .find_map(|it| definition.get(it));
        let is_target = |it: &str| it == "#" || it == "#meta" || it.ends_with("/schemaArray");
        let branches = definition["anyOf"].as_array().into_iter().flatten();
        target.and_then(Value::as_str).is_some_and(is_target) || branches.into_iter().any(is_schema)
    }
    let keywords = meta_schemas
        .iter()
        .flat_map(|it| it["properties"].as_object().unwrap());
    let holds = keywords.map(|(name, definition)| {
        let holds = match (is_schema(definition), &definition["additionalProperties"]) {
            (true, _) => Schemas,
            (false, named) if is_schema(named) => Named,
            _ => Data,
        };
        (name.clone(), holds)
    });
    holds.collect()
}

fn of_2020_12() -> BTreeMap<String, Holds> {
    holds_in(&[
        &meta::DRAFT202012_CORE,
        &meta::DRAFT202012_APPLICATOR,
        &meta::DRAFT202012_UNEVALUATED,
        &meta::DRAFT202012_VALIDATION,
        &meta::DRAFT202012_META_DATA,
        &meta::DRAFT202012_FORMAT_ANNOTATION,
        &meta::DRAFT202012_CONTENT,
    ])
}

/// Returns the keywords of all drafts. Where drafts differ, draft 7 counts.
fn of_all_drafts() -> BTreeMap<String, Holds> {
    let mut all = of_2020_12();
    all.extend(holds_in(&[
        &meta::DRAFT201909,
        &meta::DRAFT201909_CORE,
        &meta::DRAFT201909_APPLICATOR,
        &meta::DRAFT201909_VALIDATION,
    ]));
    for older in [&meta::DRAFT4, &meta::DRAFT6, &meta::DRAFT7] {
        all.extend(holds_in(&[older]));
    }
    all
}

/// A walk enters the value of each keyword that holds schemas.
#[test]
fn the_table_has_the_keywords_of_all_drafts() {
    let inner = json!({"type": "integer"});
    let all = of_all_drafts();
    assert_eq!(all.len(), 63);
    for (name, holds) in all {
        assert_eq!(find(&name).map(|it| it.0), Some(holds), "{name}");
        let (values, count) = match holds {
            Data => (vec![inner.clone(), json!([inner])], 0),
            Schemas => (vec![inner.clone(), json!([inner])], 1),
            Named => (vec![json!({"type": inner})], 1),
        };
        for value in values {
            let mut schema = json!({&name: value});
            assert_eq!(walk::any_type(&schema, "integer"), count == 1, "{schema}");
            let mut changed = Vec::new();
            let object = schema.as_object_mut().unwrap();
            walk::each_inner(object, &mut |_, inner| changed.push(inner.clone()));
            assert_eq!(changed, vec![inner.clone(); count], "{schema}");
        }
    }
}

#[test]
fn newer_keywords_are_those_of_draft_2020_12_that_decide_something() {
    // They identify, define or describe schemas.
    let undecisive = "$anchor $defs $dynamicAnchor contentSchema deprecated";
    let known = holds_in(&[&meta::DRAFT7]);
    let current = of_2020_12();
    let is_undecisive = |it: &str| undecisive.split(' ').any(|name| name == it);
    let is_expected =
        |it: &str| current.contains_key(it) && !known.contains_key(it) && !is_undecisive(it);
    for name in of_all_drafts().keys() {
        assert_eq!(is_newer(name), is_expected(name), "{name}");
    }
}

#[test]
fn branches_are_the_keywords_of_that_role() {
    for name in of_all_drafts().keys() {
        let is_branch = BRANCHES.contains(&&**name);
        assert_eq!(is_branch, has_role(name, &[Branch]), "{name}");
    }
}

/// For each keyword that decides which values are valid: a schema and a value that it rejects.
const DECISIVE: &str = include_str!("decisive.txt");

fn decisive() -> Vec<(&'static str, Value, Value)> {
    let rows = DECISIVE.lines().map(|row| {
        let cells: Vec<_> = row.split(" | ").collect();
        let [name, schema, rejected] = cells[..] else {
            panic!("{row}");
        };
        let parse = |json: &str| serde_json::from_str(json).unwrap();
        (name, parse(schema), parse(rejected))
    });
    rows.collect()
}

/// Returns each keyword's kind of values, with its schema and value.
pub(crate) fn deciding() -> Vec<(&'static str, Value, Value)> {
    let decides = [Reference, Branch, Condition, Part, OtherPart, Rule];
    let mut deciding: Vec<_> = of_all_drafts().into_keys().collect();
    deciding.retain(|it| has_role(it, &decides) && !it.starts_with('$'));
    let samples = decisive();
    assert!(deciding.iter().eq(samples.iter().map(|it| it.0)));
    let kind = |name| find(name).unwrap().2;
    let samples = samples.into_iter();
    let samples = samples.map(|(name, schema, rejected)| (kind(name), schema, rejected));
    samples.collect()
}

/// Keywords that a format lacks are in its descriptions.
#[test]
fn no_format_loses_a_keyword() {
    for (name, schema, _) in decisive() {
        let mut without = schema.clone();
        without.as_object_mut().unwrap().shift_remove(name);
        for format in [SchemaFormat::OpenTool, SchemaFormat::AgentCore] {
            let [with, without] =
                [&schema, &without].map(|schema| reduced::reduced(schema.clone(), format));
            assert_ne!(with, without, "{name}");
        }
    }
}
