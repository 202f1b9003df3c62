//! Schemas of earlier drafts as draft 2020-12, which OpenAPI reads.

use serde_json::{Value, json};

use super::walk::each;

use crate::JsonObject;

/// Replaces keywords that later drafts renamed or changed, at every depth.
pub fn modernize(schema: &mut Value) {
    each(schema, &mut modernize_own);
}

fn modernize_own(object: &mut JsonObject) {
    if object.get("items").is_some_and(Value::is_array) {
        let prefix = object.shift_remove("items").unwrap_or_default();
        object.insert("prefixItems".into(), prefix);
        if let Some(rest) = object.shift_remove("additionalItems") {
            object.insert("items".into(), rest);
        }
    }
    object.shift_remove("additionalItems");
    split_dependencies(object);
    exclude_limits(object);
}

/// Turns the flags of draft 4 into limits.
pub(crate) fn exclude_limits(object: &mut JsonObject) {
    for (flag, limit) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        if let Some(Value::Bool(is_exclusive)) = object.get(flag) {
            let is_exclusive = *is_exclusive;
            object.shift_remove(flag);
            let value = is_exclusive.then(|| object.shift_remove(limit)).flatten();
            object.extend(value.map(|value| (flag.to_owned(), value)));
        }
    }
}

fn split_dependencies(object: &mut JsonObject) {
    let Some(Value::Object(dependencies)) = object.shift_remove("dependencies") else {
        return;
    };
    for (name, dependency) in dependencies {
        let keyword = if dependency.is_array() {
            "dependentRequired"
        } else {
            "dependentSchemas"
        };
        let named = object.entry(keyword).or_insert_with(|| json!({}));
        if let Some(named) = named.as_object_mut() {
            named.insert(name, dependency);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMAS: &str = r#"
{"items": [{}, {"items": [true]}], "additionalItems": false} => {"prefixItems": [{}, {"prefixItems": [true]}], "items": false}
{"minimum": 1, "exclusiveMinimum": true, "maximum": 2, "exclusiveMaximum": false} => {"exclusiveMinimum": 1, "maximum": 2}
{"dependencies": {"a": ["b"], "c": {"required": ["d"]}}} => {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}}
"#;

    #[test]
    fn keywords_of_earlier_drafts_are_replaced() {
        for row in SCHEMAS.lines().skip(1) {
            let (before, after) = row.split_once(" => ").unwrap();
            let mut schema = before.parse().unwrap();
            modernize(&mut schema);
            assert_eq!(schema, after.parse::<Value>().unwrap());
        }
    }
}
