//! `null` for an optional property, which means the same as leaving it out.

use std::cell::Cell;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::payload::JsonObject;

/// True for a value with a `null` at any depth: most inputs have none.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(object) => object.values().any(has_null),
        _ => false,
    }
}

/// Does the same as [`drop_optional`], and nothing for most values, which have no `null`.
pub(crate) fn drop_optional_nulls(schema: &Value, value: &mut Value) {
    if has_null(value) {
        drop_optional(schema, value);
    }
}

/// The maximum depth of references and combinations that are followed.
const MAX_DEPTH: usize = 32;
/// The maximum number of schemas that are looked at for one value: combinations that contain
/// themselves would double it at every depth. A `null` beyond it stays.
const MAX_SCHEMAS: usize = 10_000;

/// Removes the optional properties of `value` that are `null` where `schema` does not allow it, at
/// every depth that `properties`, `items` and references reach.
fn drop_optional(schema: &Value, value: &mut Value) {
    let nulls = Nulls {
        root: schema,
        budget: Cell::new(0),
    };
    nulls.drop_in(&[schema], value);
}

/// A schema, in which references are resolved.
struct Nulls<'a> {
    root: &'a Value,
    /// The number of schemas that may still be looked at for the current value.
    budget: Cell<usize>,
}

impl<'a> Nulls<'a> {
    /// All of `schemas` describe the value.
    fn drop_in(&self, schemas: &[&'a Value], value: &mut Value) {
        self.budget.set(MAX_SCHEMAS);
        match value {
            Value::Object(object) => self.drop_in_object(schemas, object),
            Value::Array(items) => {
                let parts = self.parts(schemas, &Value::Null);
                for (index, item) in items.iter_mut().enumerate() {
                    let schemas: Vec<_> = parts
                        .iter()
                        .filter_map(|part| items_at(part, index))
                        .collect();
                    self.drop_in(&schemas, item);
                }
            }
            _ => {}
        }
    }

    fn drop_in_object(&self, schemas: &[&'a Value], object: &mut JsonObject) {
        let whole = Value::Object(std::mem::take(object));
        let parts = self.parts(schemas, &whole);
        // Without a value, every form is possible.
        let all = self.parts(schemas, &Value::Null);
        if let Value::Object(taken) = whole {
            *object = taken;
        }
        object.retain(|name, value| !value.is_null() || !self.is_optional(name, &parts, &all));
        for (name, value) in object {
            let declared = parts.iter().filter_map(|part| property_of(part, name));
            self.drop_in(&declared.collect::<Vec<_>>(), value);
        }
    }

    /// True if the parts of an object's schema neither require a property nor let it be `null`. If
    /// none of them declares the property, another form of a union may do so.
    fn is_optional(&self, name: &str, parts: &[&'a Value], all: &[&'a Value]) -> bool {
        let declared = |parts: &[&'a Value]| -> Vec<&'a Value> {
            let declared = parts
                .iter()
                .filter_map(|part| part.get("properties")?.get(name));
            declared.collect()
        };
        let mut schemas = declared(parts);
        if schemas.is_empty() {
            schemas = declared(all);
        }
        !schemas.is_empty()
            && schemas
                .iter()
                .all(|schema| self.forbids_null(schema, MAX_DEPTH))
            && !parts.iter().any(|part| is_required(part, name))
    }

    /// The schemas, and those that they combine, except for forms that the value cannot have.
    fn parts(&self, schemas: &[&'a Value], value: &Value) -> Vec<&'a Value> {
        let mut parts = Vec::new();
        for schema in schemas {
            self.add_parts(schema, value, &mut parts, MAX_DEPTH);
        }
        parts
    }

    fn add_parts(
        &self,
        schema: &'a Value,
        value: &Value,
        parts: &mut Vec<&'a Value>,
        depth: usize,
    ) {
        if depth == 0 || !self.spend() {
            return;
        }
        parts.push(schema);
        if let Some(target) = self.target(schema) {
            self.add_parts(target, value, parts, depth - 1);
        }
        for part in list(schema, "allOf") {
            self.add_parts(part, value, parts, depth - 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            for form in self.possible_forms(list(schema, keyword), value) {
                self.add_parts(form, value, parts, depth - 1);
            }
        }
    }

    /// The forms whose constants the value has, or else all of them.
    fn possible_forms(&self, forms: &'a [Value], value: &Value) -> Vec<&'a Value> {
        let mut possible: Vec<_> = forms
            .iter()
            .filter(|form| self.may_describe(form, value))
            .collect();
        // Without constants, the value's other properties tell which form it has.
        if possible.len() > 1 {
            let has_required = |form: &&&'a Value| {
                let form = self.target(form).unwrap_or(form);
                let mut names = list(form, "required").iter().filter_map(Value::as_str);
                names.all(|name| {
                    let property = &form["properties"][name];
                    let allows_null = !self.forbids_null(property, MAX_DEPTH);
                    value
                        .get(name)
                        .is_some_and(|it| !it.is_null() || allows_null)
                })
            };
            let complete: Vec<_> = possible.iter().filter(has_required).copied().collect();
            if !complete.is_empty() {
                possible = complete;
            }
        }
        if possible.is_empty() {
            forms.iter().collect()
        } else {
            possible
        }
    }

    fn may_describe(&self, form: &Value, value: &Value) -> bool {
        let form = self.target(form).unwrap_or(form);
        let kind = form.get("type").and_then(Value::as_str);
        if value.is_object() && kind.is_some_and(|kind| kind != "object") {
            return false;
        }
        let properties = form.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().all(|(name, property)| {
            let Some(value) = value.get(name).filter(|it| !it.is_null()) else {
                return true;
            };
            let constant = property.get("const");
            let values = property.get("enum").and_then(Value::as_array);
            constant.is_none_or(|it| it == value) && values.is_none_or(|it| it.contains(value))
        })
    }

    /// False once the budget is spent.
    fn spend(&self) -> bool {
        let left = self.budget.get().checked_sub(1);
        self.budget.set(left.unwrap_or(0));
        left.is_some()
    }

    fn target(&self, schema: &Value) -> Option<&'a Value> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        let pointer = percent_decode_str(pointer).decode_utf8().ok()?;
        self.root.pointer(&pointer)
    }

    /// True if the schema's keywords forbid `null`.
    fn forbids_null(&self, schema: &Value, depth: usize) -> bool {
        if depth == 0 || !self.spend() {
            return false;
        }
        let by_type = match schema.get("type") {
            Some(Value::String(one)) => one != "null",
            Some(Value::Array(several)) => several.iter().all(|it| it != "null"),
            _ => false,
        };
        let forbids = |schema: &Value| self.forbids_null(schema, depth - 1);
        let forms = ["anyOf", "oneOf"].map(|keyword| list(schema, keyword));
        let values = schema.get("enum").and_then(Value::as_array);
        by_type
            || schema == &Value::Bool(false)
            || values.is_some_and(|values| !values.contains(&Value::Null))
            || schema.get("const").is_some_and(|it| !it.is_null())
            || self.target(schema).is_some_and(forbids)
            || list(schema, "allOf").iter().any(forbids)
            || forms
                .iter()
                .any(|forms| !forms.is_empty() && forms.iter().all(forbids))
    }
}

fn list<'a>(schema: &'a Value, keyword: &str) -> &'a [Value] {
    let list = schema.get(keyword).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// The schema of an item. `items` could be a list before draft 2020-12.
fn items_at(schema: &Value, index: usize) -> Option<&Value> {
    let prefix = list(schema, "prefixItems").get(index);
    prefix.or_else(|| match schema.get("items")? {
        Value::Array(list) => list.get(index),
        one => Some(one),
    })
}

/// The schema of a property, declared or not.
fn property_of<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let properties = schema.get("properties").and_then(|it| it.get(name));
    properties.or_else(|| schema.get("additionalProperties"))
}

fn is_required(schema: &Value, name: &str) -> bool {
    list(schema, "required").iter().any(|it| it == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_optional_properties_that_forbid_null_are_dropped() {
        let text = json!({"type": "string"});
        let schema = json!({
            "properties": {
                "optional": text, "required": text, "any": {},
                "nullable": {"type": ["string", "null"]},
                "list": {"type": "array", "items": {"properties": {"inner": text}}},
            },
            "required": ["required"],
        });
        let all_null = json!({"optional": null, "required": null, "any": null, "nullable": null,
                              "list": [{"inner": null}, null], "unknown": null});
        let mut value = all_null;
        drop_optional(&schema, &mut value);
        let expected = json!({"required": null, "any": null, "nullable": null,
                              "list": [{}, null], "unknown": null});
        assert_eq!(value, expected);
    }

    #[test]
    fn nulls_are_dropped_through_references_and_combinations() {
        let text = json!({"type": "string"});
        let schema = json!({
            "$defs": {"Pet": {"type": "object", "properties": {"name": text, "next": {"$ref": "#/$defs/Pet"}}}},
            "properties": {
                "pet": {"$ref": "#/$defs/Pet"},
                "both": {"allOf": [{"properties": {"a": text}}, {"required": ["a"]}]},
                "map": {"type": "object", "additionalProperties": {"properties": {"a": text}}},
                "pair": {"prefixItems": [{"properties": {"a": text}}, {}]},
                "listed": {"enum": ["a"]}, "constant": {"const": 1},
                "either": {"anyOf": [text, {"type": "integer"}]},
                "maybe": {"anyOf": [text, {"type": "null"}]},
            },
        });
        let mut value = json!({
            "pet": {"name": null, "next": {"next": null, "name": "a"}}, "both": {"a": null},
            "map": {"x": {"a": null}, "y": null}, "pair": [{"a": null}, null],
            "listed": null, "constant": null, "either": null, "maybe": null,
        });
        drop_optional(&schema, &mut value);
        let expected = json!({
            "pet": {"next": {"name": "a"}}, "both": {"a": null}, "map": {"x": {}, "y": null},
            "pair": [{}, null], "maybe": null,
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn the_form_of_a_value_decides_which_of_its_nulls_are_dropped() {
        let form = |tag: &str, kind: Value, required: Value| json!({"properties": {"tag": {"const": tag}, "p": {"type": kind}}, "required": required});
        let schema = json!({"oneOf": [
            form("nullable", json!(["string", "null"]), json!(["tag"])),
            form("optional", json!("string"), json!(["tag"])),
            form("required", json!("string"), json!(["tag", "p"])),
        ]});
        for (tag, keeps) in [("nullable", true), ("optional", false), ("required", true)] {
            let mut value = json!({"tag": tag, "p": null});
            drop_optional(&schema, &mut value);
            assert_eq!(value.get("p").is_some(), keeps, "{tag}");
        }
        // An externally tagged union: the other form's property is not part of the value.
        let schema = json!({"oneOf": [
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}}, "required": ["b"]},
        ]});
        let mut value = json!({"a": "x", "b": null});
        drop_optional(&schema, &mut value);
        assert_eq!(value, json!({"a": "x"}));
    }

    #[test]
    fn a_required_property_that_is_null_does_not_hide_the_form_of_a_value() {
        let schema = json!({"anyOf": [
            {"type": "null"},
            {"type": "object", "required": ["a"], "properties": {
                "a": {"type": ["string", "null"]}, "b": {"type": "string"}}},
        ]});
        let mut value = json!({"a": null, "b": null});
        drop_optional(&schema, &mut value);
        assert_eq!(value, json!({"a": null}));
    }

    #[test]
    fn combinations_that_double_at_every_depth_end() {
        let twice = json!({"allOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}]});
        let schema = json!({"$defs": {"x": twice}, "properties": {"a": twice}});
        let mut value = json!({"a": null, "b": {"a": null}});
        let unchanged = value.clone();
        drop_optional(&schema, &mut value);
        assert_eq!(value, unchanged);
    }

    #[test]
    fn a_reference_to_itself_ends() {
        let schema = json!({"$ref": "#", "allOf": [{"$ref": "#"}, {"$ref": "#"}]});
        let mut value = json!({"a": null});
        drop_optional(&schema, &mut value);
        assert_eq!(value, json!({"a": null}));
    }
}
