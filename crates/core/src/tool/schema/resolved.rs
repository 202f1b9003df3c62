//! A schema at the places of a value: the parts that describe it there.
//!
//! References and combinations may stand anywhere, and only some branches of a union fit the value.

use std::cell::Cell;

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// The maximum depth of references and combinations that are followed.
const MAX_DEPTH: usize = 32;
/// The maximum number of schemas that are looked at for one value: combinations that contain
/// themselves would double it at every depth. What is beyond it decides nothing.
const MAX_SCHEMAS: usize = 10_000;

/// Changes a value that all of some schemas describe.
type Change<'f> = dyn Fn(&Resolved<'_>, &[&Value], &mut Value) + 'f;

/// A schema, in which references are resolved.
pub(super) struct Resolved<'a> {
    root: &'a Value,
    /// The number of schemas that may still be looked at for the current value.
    budget: Cell<usize>,
}

impl<'a> Resolved<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        let budget = Cell::new(MAX_SCHEMAS);
        Self { root, budget }
    }

    /// Calls `change` for the value and each value inside it, from the outside in, with the schemas
    /// that describe it.
    pub(super) fn walk(&self, value: &mut Value, change: &Change<'_>) {
        self.walk_in(&[self.root], value, change);
    }

    fn walk_in(&self, schemas: &[&'a Value], value: &mut Value, change: &Change<'_>) {
        self.budget.set(MAX_SCHEMAS);
        change(self, schemas, value);
        if !value.is_array() && !value.is_object() {
            return;
        }
        let parts = self.parts(schemas, value);
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    let inner = parts.iter().filter_map(|part| property_of(part, name));
                    self.walk_in(&inner.collect::<Vec<_>>(), value, change);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let inner = parts.iter().filter_map(|part| items_at(part, index));
                    self.walk_in(&inner.collect::<Vec<_>>(), item, change);
                }
            }
            _ => {}
        }
    }

    /// Returns false once the budget is spent.
    fn spend(&self) -> bool {
        let left = self.budget.get().checked_sub(1);
        self.budget.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Returns the schemas, and those that they combine, except for branches that the value cannot
    /// have.
    pub(super) fn parts(&self, schemas: &[&'a Value], value: &Value) -> Vec<&'a Value> {
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
            for branch in self.possible_branches(list(schema, keyword), value) {
                self.add_parts(branch, value, parts, depth - 1);
            }
        }
    }

    /// Returns the branches whose constants the value has, or else all of them.
    fn possible_branches(&self, branches: &'a [Value], value: &Value) -> Vec<&'a Value> {
        let mut possible: Vec<_> = branches
            .iter()
            .filter(|branch| self.may_describe(branch, value))
            .collect();
        // Without constants, the value's other properties tell which branch it has.
        if possible.len() > 1 {
            let has_required = |branch: &&&'a Value| {
                let branch = self.target(branch).unwrap_or(branch);
                let mut names = list(branch, "required").iter().filter_map(Value::as_str);
                names.all(|name| {
                    let property = &branch["properties"][name];
                    let allows_null = !self.forbids_null(property);
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
            branches.iter().collect()
        } else {
            possible
        }
    }

    fn may_describe(&self, branch: &Value, value: &Value) -> bool {
        let branch = self.target(branch).unwrap_or(branch);
        let kind = branch.get("type").and_then(Value::as_str);
        if value.is_object() && kind.is_some_and(|kind| kind != "object") {
            return false;
        }
        let properties = branch.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().all(|(name, property)| {
            let Some(value) = value.get(name).filter(|it| !it.is_null()) else {
                return true;
            };
            let constant = property.get("const");
            let values = property.get("enum").and_then(Value::as_array);
            constant.is_none_or(|it| it == value) && values.is_none_or(|it| it.contains(value))
        })
    }

    fn target(&self, schema: &Value) -> Option<&'a Value> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        let pointer = percent_decode_str(pointer).decode_utf8().ok()?;
        self.root.pointer(&pointer)
    }

    /// Returns true if the schema's type, constants or branches forbid `null`.
    pub(super) fn forbids_null(&self, schema: &Value) -> bool {
        self.forbids_null_within(schema, MAX_DEPTH)
    }

    fn forbids_null_within(&self, schema: &Value, depth: usize) -> bool {
        if depth == 0 || !self.spend() {
            return false;
        }
        let by_type = match schema.get("type") {
            Some(Value::String(one)) => one != "null",
            Some(Value::Array(several)) => several.iter().all(|it| it != "null"),
            _ => false,
        };
        let forbids = |schema: &Value| self.forbids_null_within(schema, depth - 1);
        let branches = ["anyOf", "oneOf"].map(|keyword| list(schema, keyword));
        let values = schema.get("enum").and_then(Value::as_array);
        by_type
            || schema == &Value::Bool(false)
            || values.is_some_and(|values| !values.contains(&Value::Null))
            || schema.get("const").is_some_and(|it| !it.is_null())
            || self.target(schema).is_some_and(forbids)
            || list(schema, "allOf").iter().any(forbids)
            || branches
                .iter()
                .any(|branches| !branches.is_empty() && branches.iter().all(forbids))
    }
}

pub(super) fn list<'a>(schema: &'a Value, keyword: &str) -> &'a [Value] {
    let list = schema.get(keyword).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Returns the schema of an item. `items` could be a list before draft 2020-12.
pub(super) fn items_at(schema: &Value, index: usize) -> Option<&Value> {
    let prefix = list(schema, "prefixItems").get(index);
    prefix.or_else(|| match schema.get("items")? {
        Value::Array(list) => list.get(index),
        one => Some(one),
    })
}

/// Returns the schema of a property, declared or not.
pub(super) fn property_of<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let properties = schema.get("properties").and_then(|it| it.get(name));
    properties.or_else(|| schema.get("additionalProperties"))
}
