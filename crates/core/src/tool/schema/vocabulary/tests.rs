use std::collections::BTreeMap;

use referencing::meta;
use serde_json::{Value, json};

use super::*;
use crate::tool::schema::{
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

#[test]
fn the_table_has_the_keywords_of_all_drafts() {
    assert!(KEYWORDS.is_sorted_by(|one, other| one.name < other.name));
    let mut expected = of_2020_12();
    expected.extend(holds_in(&[
        &meta::DRAFT201909,
        &meta::DRAFT201909_CORE,
        &meta::DRAFT201909_APPLICATOR,
        &meta::DRAFT201909_VALIDATION,
    ]));
    for older in [&meta::DRAFT4, &meta::DRAFT6, &meta::DRAFT7] {
        expected.extend(holds_in(&[older]));
    }
    let actual = KEYWORDS.iter().map(|it| (it.name.to_owned(), it.holds));
    assert_eq!(actual.collect::<BTreeMap<_, _>>(), expected);
}

#[test]
fn newer_keywords_are_those_of_draft_2020_12_that_decide_something() {
    // They identify, define or describe schemas.
    let undecisive = [
        "$anchor",
        "$defs",
        "$dynamicAnchor",
        "contentSchema",
        "deprecated",
    ];
    let known = holds_in(&[&meta::DRAFT7]);
    let newer = of_2020_12().into_keys();
    let expected: Vec<_> = newer
        .filter(|it| !known.contains_key(it) && !undecisive.contains(&it.as_str()))
        .collect();
    let actual = KEYWORDS.iter().filter(|it| it.is_newer);
    assert_eq!(actual.map(|it| it.name).collect::<Vec<_>>(), expected);
}

#[test]
fn branches_are_the_keywords_of_that_role() {
    let has_branches = |it: &&Keyword| it.role == Branch;
    let mut expected = BRANCHES;
    expected.sort_unstable();
    let branches = KEYWORDS.iter().filter(has_branches).map(|it| it.name);
    assert_eq!(branches.collect::<Vec<_>>(), expected);
}

#[test]
fn a_walk_enters_the_value_of_each_keyword_that_holds_schemas() {
    let inner = json!({"type": "integer"});
    for keyword in &KEYWORDS {
        let name = keyword.name;
        let (values, count) = match keyword.holds {
            Data => (vec![inner.clone(), json!([inner])], 0),
            Schemas => (vec![inner.clone(), json!([inner])], 1),
            Named => (vec![json!({"type": inner})], 1),
        };
        for value in values {
            let mut schema = json!({name: value});
            assert_eq!(walk::any_type(&schema, "integer"), count == 1, "{schema}");
            let mut changed = Vec::new();
            let object = schema.as_object_mut().unwrap();
            walk::each_inner(object, &mut |_, inner| changed.push(inner.clone()));
            assert_eq!(changed, vec![inner.clone(); count], "{schema}");
        }
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
pub(in crate::tool::schema) fn deciding() -> Vec<(&'static str, Value, Value)> {
    let decides = [Reference, Branch, Condition, Part, OtherPart, Rule];
    let deciding = KEYWORDS.iter().filter(|it| decides.contains(&it.role));
    let deciding = deciding.map(|it| it.name).filter(|it| !it.starts_with('$'));
    let samples = decisive();
    assert!(deciding.eq(samples.iter().map(|it| it.0)));
    let kind = |name| find(name).unwrap().kind;
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
