use std::collections::BTreeMap;

use referencing::meta;
use serde_json::{Value, json};

use super::*;
use crate::tool::schema::{
    Schema,
    reduced::{self, SchemaFormat},
    walk,
};

/// What the meta-schemas of some drafts say that the values of their keywords hold.
fn holds_in(meta_schemas: &[&Value]) -> BTreeMap<String, Holds> {
    fn is_schema(definition: &Value) -> bool {
        let target = ["$ref", "$dynamicRef", "$recursiveRef"]
            .iter()
            .find_map(|it| definition.get(it));
        let is_target = |it: &str| it == "#" || it == "#meta" || it.ends_with("/schemaArray");
        let forms = definition["anyOf"].as_array().into_iter().flatten();
        target.and_then(Value::as_str).is_some_and(is_target) || forms.into_iter().any(is_schema)
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
fn forms_are_the_keywords_of_that_role() {
    let has_forms = |it: &&Keyword| it.role == Form;
    let mut expected = FORMS;
    expected.sort_unstable();
    let forms = KEYWORDS.iter().filter(has_forms).map(|it| it.name);
    assert_eq!(forms.collect::<Vec<_>>(), expected);
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
const DECISIVE: &str = r#"
additionalItems | {"items": [{}], "additionalItems": {"type": "string"}} | [1, 2]
additionalProperties | {"additionalProperties": {"type": "string"}} | {"a": 1}
allOf | {"allOf": [{"type": "string"}, {"minLength": 3}]} | "a"
anyOf | {"anyOf": [{"minLength": 3}, {"pattern": "b"}]} | "a"
const | {"const": "b"} | "a"
contains | {"contains": {"type": "string"}} | [1]
contentEncoding | {"contentEncoding": "base64"} | "?"
contentMediaType | {"contentMediaType": "application/json"} | "{"
dependencies | {"dependencies": {"a": ["b"]}} | {"a": 1}
dependentRequired | {"dependentRequired": {"a": ["b"]}} | {"a": 1}
dependentSchemas | {"dependentSchemas": {"a": false}} | {"a": 1}
else | {"if": {"minLength": 2}, "then": {"pattern": "b"}, "else": {"pattern": "b"}} | "a"
enum | {"enum": ["b", "c"]} | "a"
exclusiveMaximum | {"exclusiveMaximum": 1} | 1
exclusiveMinimum | {"exclusiveMinimum": 1} | 1
format | {"format": "date"} | "a"
if | {"if": {"minLength": 2}, "then": {"pattern": "b"}, "else": {"pattern": "b"}} | "a"
items | {"items": {"type": "string"}} | [1]
maxContains | {"contains": {}, "maxContains": 1} | [1, 2]
maxItems | {"maxItems": 1} | [1, 2]
maxLength | {"maxLength": 1} | "ab"
maxProperties | {"maxProperties": 0} | {"a": 1}
maximum | {"maximum": 1} | 2
minContains | {"contains": {}, "minContains": 2} | [1]
minItems | {"minItems": 1} | []
minLength | {"minLength": 2} | "a"
minProperties | {"minProperties": 1} | {}
minimum | {"minimum": 1} | 0
multipleOf | {"multipleOf": 2} | 1
not | {"not": {"type": "string"}} | "a"
oneOf | {"oneOf": [{"minLength": 1}, {"maxLength": 2}]} | "a"
pattern | {"pattern": "b"} | "a"
patternProperties | {"patternProperties": {"a": {"type": "string"}}} | {"a": 1}
prefixItems | {"prefixItems": [{"type": "string"}]} | [1]
properties | {"properties": {"a": {"type": "string"}}} | {"a": 1}
propertyNames | {"propertyNames": {"maxLength": 1}} | {"ab": 1}
required | {"required": ["a"]} | {}
then | {"if": {"minLength": 2}, "then": {"pattern": "b"}, "else": {"pattern": "b"}} | "ac"
type | {"type": "string"} | 1
unevaluatedItems | {"prefixItems": [{}], "unevaluatedItems": {"type": "string"}} | [1, 2]
unevaluatedProperties | {"unevaluatedProperties": {"type": "string"}} | {"b": 1}
uniqueItems | {"uniqueItems": true} | [1, 1]
"#;

fn decisive() -> Vec<(&'static str, Value, Value)> {
    let rows = DECISIVE.lines().filter(|line| !line.is_empty());
    let rows = rows.map(|row| {
        let cells: Vec<_> = row.split(" | ").collect();
        let [name, schema, rejected] = cells[..] else {
            panic!("{row}");
        };
        let parse = |json: &str| serde_json::from_str(json).unwrap();
        (name, parse(schema), parse(rejected))
    });
    rows.collect()
}

/// The verdict is that of `jsonschema`, in the draft that the table chooses.
#[test]
fn each_keyword_decides_about_values_of_its_type() {
    let decides = [Reference, Form, Condition, Part, OtherPart, Rule];
    let deciding = KEYWORDS.iter().filter(|it| decides.contains(&it.role));
    let deciding = deciding.map(|it| it.name).filter(|it| !it.starts_with('$'));
    let samples = decisive();
    assert!(deciding.eq(samples.iter().map(|it| it.0)));
    for (name, schema, rejected) in samples {
        let kind = find(name).unwrap().kind;
        let compiled = Schema::from_value(schema.clone());
        assert!(
            compiled.check(&rejected, "input").unwrap().is_err(),
            "{schema}"
        );
        let values = json!([null, true, 7, 0.5, "text", [], {}]);
        for value in values.as_array().unwrap().iter().filter(|_| kind != ANY) {
            let is_of_kind = reduced::keywords::kinds_of(&json!({"const": value})) == [kind];
            let is_about = is_of_kind || (kind == "number" && value.is_number());
            let is_valid = compiled.check(value, "input").unwrap().is_ok();
            assert!(is_valid || is_about, "{schema} {value}");
        }
    }
}

/// What a format has no keyword for is in its descriptions.
#[test]
fn no_format_loses_a_keyword() {
    for (name, schema, _) in decisive() {
        let mut without = schema.clone();
        without.as_object_mut().unwrap().shift_remove(name);
        let [with, without] = [schema, without].map(|schema| lists_with(&schema));
        for (with, without) in with.into_iter().zip(without) {
            assert_ne!(with, without, "{name}");
        }
    }
}

/// A parameter with this schema, in all formats.
fn lists_with(schema: &Value) -> Vec<Value> {
    let opentool = reduced::reduced(schema.clone(), &SchemaFormat::BASIC).into();
    let lists = std::iter::once(opentool);
    #[cfg(feature = "models")]
    let lists = {
        use crate::models::{ModelApi, ModelTools};
        let definition = crate::ToolDefinition {
            id: "T.T@1.0.0".to_owned(),
            name: "T_T".to_owned(),
            description: String::new(),
            version: "1.0.0".to_owned(),
            input_schema: json!({"type": "object", "properties": {"p": schema},
                "required": ["p"], "additionalProperties": false}),
            output_schema: Value::Null,
            requirements: crate::Requirements::default(),
        };
        let apis = [
            ModelApi::OpenAi { strict: true },
            ModelApi::OpenAiResponses { strict: false },
            ModelApi::Anthropic,
            ModelApi::Gemini,
            ModelApi::Bedrock,
        ];
        let list = move |api| json!(ModelTools::new(api, [definition.clone()]).list());
        lists.chain(apis.map(list))
    };
    lists.collect()
}
