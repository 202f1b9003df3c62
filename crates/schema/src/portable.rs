//! Schemas that every client accepts.
//!
//! A client that rejects one schema rejects the whole list: Anthropic's API accepts no union at the
//! root of an input, clients for Python read `type` as one name, and every client reads a schema
//! without `$schema` as draft 2020-12.

use serde_json::{Value, json};

use crate::{
    JsonObject, each, each_inner,
    reduced::fold_unions,
    vocabulary::{
        Role::{Annotation, Branch, Condition, Definitions, Identity, Reference},
        applies_to, has_role, kind_of, object_of,
    },
};

const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";

/// Returns the input schema to publish, and a note for the tool's description if this schema is
/// less specific than the tool's own.
pub fn input(schema: Value, is_draft_7: bool) -> (Value, Option<String>) {
    let mut schema = object_of(schema);
    // A schema with an explicit dialect was written for clients that support that dialect.
    if schema.contains_key("$schema") {
        return (schema.into(), None);
    }
    let note = fold_unions(&mut schema);
    schema.insert("type".into(), "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    each_inner(&mut schema, &mut |_, inner| {
        each(inner, &mut divide_types);
        say_in_words(inner);
    });
    (with_draft(schema, is_draft_7), note)
}

/// Replaces a list of types by a branch of `anyOf` for each type.
fn divide_types(object: &mut JsonObject) {
    let Some(types) = object.get("type").and_then(Value::as_array).cloned() else {
        return;
    };
    // Keywords that concern all branches, such as `x-mcp-header`, stay outside of them. So do schemas of
    // the whole value: copying them into each branch would double them at each level.
    let shared = [
        Annotation,
        Identity,
        Definitions,
        Reference,
        Branch,
        Condition,
    ];
    let is_rule = |it: &str| !it.starts_with("x-") && !has_role(it, &shared);
    let branch = |kind: &Value| {
        let name = kind.as_str()?;
        let mut branch = object.clone();
        branch.retain(|keyword, _| is_rule(keyword) && applies_to(keyword, name));
        branch.insert("type".into(), kind.clone());
        if let Some(Value::Array(values)) = branch.get_mut("enum") {
            values.retain(|value| value.is_null() == (name == "null"));
        }
        (branch.get("enum") != Some(&json!([]))).then_some(branch)
    };
    let branches: Vec<_> = types.iter().filter_map(branch).collect();
    object.retain(|keyword, _| !is_rule(keyword));
    let union = json!(branches);
    if let Some(other) = object.insert("anyOf".into(), union) {
        let all = object.entry("allOf").or_insert_with(|| json!([]));
        let all = all.as_array_mut().into_iter();
        all.for_each(|it| it.push(json!({"anyOf": other})));
    }
}

/// The formats that clients accept which turn schemas into types of Python.
const FORMATS: &str = "date date-time time hostname ipv4 ipv6 int32 int64 float double";

/// Says in words, at every depth, what would end a client that turns schemas into types of Python. The
/// server's own check keeps the rules.
fn say_in_words(schema: &mut Value) {
    if *schema == Value::Bool(true) {
        *schema = json!({});
    }
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    each_inner(object, &mut |_, inner| say_in_words(inner));
    object.shift_remove("discriminator");
    let mut said = Vec::new();
    let text = |object: &JsonObject, name: &str| object.get(name)?.as_str().map(str::to_owned);
    if let Some(format) =
        text(object, "format").filter(|it| FORMATS.split(' ').all(|known| known != it))
    {
        object.shift_remove("format");
        said.push(format!("Format: {format}."));
    }
    if let Some(pattern) = text(object, "pattern").filter(|it| !is_plain(it)) {
        object.shift_remove("pattern");
        said.push(format!("Pattern: {pattern}"));
    }
    if let Some(value) = object.shift_remove("const") {
        object
            .entry("type")
            .or_insert_with(|| kind_of(&value).into());
        if value.is_object() || value.is_array() {
            said.push(format!("Value: {value}"));
        } else if !value.is_null() {
            object.insert("enum".into(), json!([value]));
        }
    }
    let is_typed = |it: &String| {
        let own = ["type", "enum", "properties", "not"];
        own.contains(&&**it) || has_role(it, &[Reference, Branch])
    };
    if !object.keys().any(is_typed) {
        let kinds = ["string", "integer", "number", "boolean", "object", "null"]
            .map(|it| json!({"type": it}));
        let list = json!({"type": "array", "items": {}});
        object.insert("anyOf".into(), kinds.into_iter().chain([list]).collect());
    }
    let own = text(object, "description").unwrap_or_default();
    said.retain(|it: &String| !own.contains(it.as_str()));
    if !said.is_empty() {
        let all = Some(own).filter(|it| !it.is_empty()).into_iter();
        let all: Vec<_> = all.chain(said).collect();
        object.insert("description".into(), all.join(" ").into());
    }
}

/// Returns true for a pattern that every library for regular expressions reads: without look-around,
/// references, properties of Unicode, flags, nested sets and large counts.
fn is_plain(pattern: &str) -> bool {
    let (mut chars, mut in_set) = (pattern.chars(), false);
    while let Some(first) = chars.next() {
        let rest = chars.as_str();
        let is_plain = match first {
            '\\' => {
                let (escaped, rest) = (chars.next().unwrap_or_default(), chars.as_str());
                let is_class = "dDwWsS".contains(escaped);
                let is_known =
                    is_class || "bBnrtfv".contains(escaped) || escaped.is_ascii_punctuation();
                let is_range = is_class && rest.starts_with('-') && !rest.starts_with("-]");
                is_known && !(in_set && is_range)
            }
            '[' if in_set => false,
            '[' => {
                in_set = true;
                !rest.strip_prefix('^').unwrap_or(rest).starts_with(']')
            }
            ']' => {
                in_set = false;
                true
            }
            '(' => in_set || !rest.starts_with('?') || rest.starts_with("?:"),
            '{' => in_set || has_small_counts(rest),
            _ => true,
        };
        if !is_plain {
            return false;
        }
    }
    true
}

/// Returns true if a text begins with the counts and the end of a repetition.
fn has_small_counts(text: &str) -> bool {
    let (counts, _) = text.split_once('}').unwrap_or_default();
    let (least, most) = counts.split_once(',').unwrap_or((counts, ""));
    let is_small = |it: &str| it.parse().is_ok_and(|it: u32| it <= 255);
    is_small(least) && (most.is_empty() || is_small(most))
}

/// Returns the output schema to publish, which always describes an object.
pub fn output(schema: Value, is_draft_7: bool) -> Value {
    if is_object(&schema) {
        return with_draft(object_of(schema), is_draft_7);
    }
    let mut inner = schema;
    let mut outer = JsonObject::new();
    // References start at the root, so definitions must stay there.
    for keyword in ["$schema", "$defs", "definitions"] {
        let value = inner
            .as_object_mut()
            .and_then(|it| it.shift_remove(keyword));
        outer.extend(value.map(|value| (keyword.to_owned(), value)));
    }
    outer.insert("type".into(), "object".into());
    outer.insert("properties".into(), json!({"result": inner}));
    outer.insert("required".into(), json!(["result"]));
    with_draft(outer, is_draft_7)
}

/// Returns true if a schema describes objects only.
pub fn is_object(schema: &Value) -> bool {
    schema["type"] == "object"
}

fn with_draft(mut schema: JsonObject, is_draft_7: bool) -> Value {
    if is_draft_7 && !schema.contains_key("$schema") {
        schema.shift_insert(0, "$schema".into(), DRAFT_7.into());
    }
    schema.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schema;

    fn listed(property: &Value) -> Value {
        let schema = json!({"type": "object", "properties": {"p": property}});
        input(schema, false).0["properties"]["p"].take()
    }

    /// Schemas of properties, each with the listed schema below it. Data and names that look like
    /// schemas stay as they are.
    const SCHEMAS: &str = r#"
{"type": ["string", "null"]}
    {"anyOf": [{"type": "string"}, {"type": "null"}]}
{"type": "string"}
    {"type": "string"}
{"type": ["string", "integer"], "description": "A.", "minLength": 1, "minimum": 2, "default": "a", "x-mcp-header": "A"}
    {"description": "A.", "default": "a", "x-mcp-header": "A", "anyOf": [{"type": "string", "minLength": 1}, {"type": "integer", "minimum": 2}]}
{"type": ["string", "null"], "enum": ["a", null]}
    {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null", "enum": [null]}]}
{"type": ["string", "null"], "enum": ["a"]}
    {"anyOf": [{"type": "string", "enum": ["a"]}]}
{"type": ["array", "null"], "items": {"type": ["string", "null"]}}
    {"anyOf": [{"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, {"type": "null"}]}
{"type": ["object", "null"], "properties": {"type": {"type": ["string", "null"]}}, "required": ["type"]}
    {"anyOf": [{"type": "object", "properties": {"type": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "required": ["type"]}, {"type": "null"}]}
{"type": ["string", "null"], "anyOf": [{"enum": ["a", "b"]}, {"const": null}]}
    {"anyOf": [{"type": "string"}, {"type": "null"}], "allOf": [{"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}]}
{"oneOf": [{"type": ["string", "null"]}, {"type": "integer"}]}
    {"oneOf": [{"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "integer"}]}
{"type": "object", "default": {"type": ["string", "null"]}}
    {"type": "object", "default": {"type": ["string", "null"]}}
{"type": "string", "format": "email", "description": "Whom."}
    {"type": "string", "description": "Whom. Format: email."}
{"type": "string", "format": "uuid"}
    {"type": "string", "description": "Format: uuid."}
{"type": "string", "format": "uri", "description": "Format: uri."}
    {"type": "string", "description": "Format: uri."}
{"type": "string", "format": "date-time"}
    {"type": "string", "format": "date-time"}
{"type": "string", "pattern": "^(?!a)", "description": "A."}
    {"type": "string", "description": "A. Pattern: ^(?!a)"}
{"const": "a"}
    {"type": "string", "enum": ["a"]}
{"type": "integer", "const": 1}
    {"type": "integer", "enum": [1]}
{"const": null}
    {"type": "null"}
{"const": [1]}
    {"type": "array", "description": "Value: [1]"}
{"enum": ["a", 1]}
    {"enum": ["a", 1]}
{"type": "array", "items": {"const": "a", "discriminator": {}}}
    {"type": "array", "items": {"type": "string", "enum": ["a"]}}
{"description": "Any."}
    {"description": "Any.", "anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"}, {"type": "null"}, {"type": "array", "items": {}}]}
{}
    {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"}, {"type": "null"}, {"type": "array", "items": {}}]}
true
    {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"}, {"type": "null"}, {"type": "array", "items": {}}]}
"#;

    #[test]
    fn each_type_of_a_list_is_a_branch_and_what_ends_strict_clients_is_said_in_words() {
        let lines = SCHEMAS.lines().filter(|line| !line.is_empty());
        let schemas = lines.map(|line| serde_json::from_str(line).unwrap());
        for pair in schemas.collect::<Vec<Value>>().chunks(2) {
            assert_eq!(listed(&pair[0]), pair[1], "{}", pair[0]);
        }
    }

    #[test]
    fn patterns_are_listed_that_every_library_reads() {
        let plain = r"^[a-z]+$ ^\d{3}-\w+\.$ a{1,255} (?:a|b) [\w\-.] [\w-] [a-z-] \/ é";
        for pattern in plain.split(' ') {
            assert!(is_plain(pattern), "{pattern}");
        }
        let others = r"(?=a) (?!a) (?<=a) (?<n>a) (?i)a \p{L} \P{L} (a)\1 a\Z \cA \u0041 \x41
            a{1,65536} a{,3} a{b} a{ [[a]] [^[] [] [^] [\w-.] a\";
        for pattern in others.split_whitespace() {
            assert!(!is_plain(pattern), "{pattern}");
        }
    }

    #[test]
    fn the_listed_schema_accepts_what_the_own_one_accepts() {
        let values = json!([null, "", "a", "abc", 1, 2.5, true, [], ["a"], [null], {},
            {"a": null}, {"a": 1}, {"a": "b"}]);
        let values = values.as_array().unwrap();
        for property in [
            json!({"type": ["string", "null"], "minLength": 2}),
            json!({"type": ["string", "null"], "enum": ["a", "b"]}),
            json!({"type": ["string", "null", "integer"], "enum": ["a", null, 1]}),
            json!({"type": ["string", "null"], "const": "a"}),
            json!({"type": ["string", "null"], "not": {"type": "null"}}),
            json!({"type": ["string", "null"], "anyOf": [{"const": null}, {"minLength": 3}]}),
            json!({"type": ["number", "boolean"], "minimum": 2}),
            json!({"type": ["array", "null"], "items": {"type": ["string", "null"]}, "minItems": 1}),
            json!({"type": ["object", "null"], "properties": {"a": {"type": ["integer", "null"]}}}),
            json!({"type": ["object", "array"], "additionalProperties": false, "maxItems": 0}),
        ] {
            let [own, listed] = [property.clone(), listed(&property)].map(Schema::from_value);
            for value in values {
                let [own, listed] = [&own, &listed].map(|it| it.check(value, "p").unwrap().is_ok());
                assert_eq!(own, listed, "{property} {value}");
            }
        }
    }

    #[test]
    fn the_root_is_an_object_of_one_type() {
        let root = json!({"type": ["object", "null"], "properties": {}});
        assert_eq!(
            input(root, false).0,
            json!({"type": "object", "properties": {}})
        );
        let with_dialect =
            json!({"$schema": DRAFT_7, "properties": {"p": {"type": ["string", "null"]}}});
        assert_eq!(input(with_dialect.clone(), false).0, with_dialect);
    }
}
