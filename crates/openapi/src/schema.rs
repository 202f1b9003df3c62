//! Schemas of a document as schemas of tools: without references, small, and with a description for
//! each property.
//!
//! References are inlined, because definitions of tools have none. Where a schema contains itself, or
//! goes deeper than the limits allow, an object without properties takes its place: the API still
//! checks what it gets.

mod merge;
mod rules;

use std::collections::HashSet;

use lambda_tools_core::tool::schema::is_type;
use serde_json::{Map, Value, json};

use crate::{
    document::{Document, reference_of},
    names::in_words,
    text::{cut, plain, sentence},
};
use merge::{add_missing, make_nullable, single_branch};

pub(crate) type Object = Map<String, Value>;

/// The limits of a schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The maximum depth of properties and items.
    pub(crate) depth: usize,
    /// The maximum length, in bytes, of a description.
    pub(crate) description: usize,
    /// The maximum number of schemas.
    pub(crate) schemas: usize,
}

impl Limits {
    /// The limits to try, one after the other, until the input of a tool is small enough.
    pub(crate) const ALL: [Self; 7] = [
        Self::new(8, 600, 1500),
        Self::new(8, 200, 1500),
        Self::new(6, 120, 1000),
        Self::new(4, 120, 600),
        Self::new(3, 100, 300),
        Self::new(2, 80, 200),
        Self::new(1, 60, 200),
    ];

    const fn new(depth: usize, description: usize, schemas: usize) -> Self {
        Self {
            depth,
            description,
            schemas,
        }
    }
}

/// The conversion of the schemas of one operation.
pub(crate) struct Converter<'a> {
    document: &'a Document,
    limits: Limits,
    schemas_left: usize,
    /// The references that are being followed.
    open: Vec<&'a str>,
    /// True if something was left out to keep the limits, or because it contains itself.
    pub(crate) is_cut: bool,
    /// True if files are properties with a name and a media type: in multipart bodies.
    pub(crate) has_file_parts: bool,
}

impl<'a> Converter<'a> {
    pub(crate) fn new(document: &'a Document, limits: Limits) -> Self {
        Self {
            document,
            limits,
            schemas_left: limits.schemas,
            open: Vec::new(),
            is_cut: false,
            has_file_parts: false,
        }
    }

    /// Returns the schema of a property at a depth of at least 1.
    pub(crate) fn convert(&mut self, schema: &'a Value, depth: usize) -> Object {
        let Some(object) = schema.as_object() else {
            return Object::new();
        };
        let Some(reference) = reference_of(schema) else {
            return self.convert_object(object, depth);
        };
        let target = self.document.at(reference);
        let (Some(target), false) = (target, self.open.contains(&reference)) else {
            self.is_cut |= target.is_some();
            return nested_again(object);
        };
        self.open.push(reference);
        let mut converted = self.convert(target, depth);
        self.open.pop();
        if let Some(text) = self.description(object) {
            converted.insert("description".into(), text);
        }
        converted
    }

    /// Cuts a description to its limit.
    pub(crate) fn cut<'t>(&self, text: &'t str) -> &'t str {
        cut(text, self.limits.description)
    }

    fn convert_object(&mut self, schema: &'a Object, depth: usize) -> Object {
        let mut converted = rules::of(schema);
        if let Some(text) = self.description(schema) {
            converted.insert("description".into(), text);
        }
        if self.schemas_left == 0 || depth > self.limits.depth {
            self.cut_off(schema);
            return with_items(converted);
        }
        self.schemas_left -= 1;
        if self.has_file_parts && rules::is_binary(schema) {
            return file_part(converted);
        }
        for part in list(schema, "allOf") {
            let part = self.convert(part, depth);
            add_missing(&mut converted, part);
        }
        self.add_properties(schema, &mut converted, depth);
        self.add_items(schema, &mut converted, depth);
        self.add_branches(schema, &mut converted, depth);
        if schema.get("nullable") == Some(&Value::Bool(true)) {
            make_nullable(&mut converted);
        }
        with_items(converted)
    }

    /// Leaves out what is below the schema.
    fn cut_off(&mut self, schema: &Object) {
        let inner = [
            "allOf",
            "anyOf",
            "oneOf",
            "properties",
            "items",
            "additionalProperties",
        ];
        if inner
            .iter()
            .any(|keyword| schema.get(*keyword).is_some_and(|it| !it.is_boolean()))
        {
            self.is_cut = true;
        }
    }

    fn add_properties(&mut self, schema: &'a Object, converted: &mut Object, depth: usize) {
        let declared = schema.get("properties").and_then(Value::as_object);
        let mut properties = take_object(converted, "properties");
        for (name, property) in declared.into_iter().flatten() {
            let target = self.document.resolve(property);
            if target.is_some_and(|it| it.get("readOnly") == Some(&Value::Bool(true))) {
                continue;
            }
            let mut property = self.convert(property, depth + 1);
            describe(name, &mut property);
            properties.insert(name.clone(), Value::Object(property));
        }
        let mut required = take_list(converted, "required");
        let mut seen: HashSet<_> = required.iter().cloned().collect();
        let is_known = |it: &&Value| it.as_str().is_some_and(|it| properties.contains_key(it));
        let names = list(schema, "required").filter(is_known).cloned();
        required.extend(names.filter(|it| seen.insert(it.clone())));
        if !properties.is_empty() {
            converted.insert("properties".into(), properties.into());
            converted.entry("type").or_insert_with(|| "object".into());
        }
        if !required.is_empty() {
            converted.insert("required".into(), required.into());
        }
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => {
                drop(converted.insert("additionalProperties".into(), false.into()));
            }
            Some(values @ Value::Object(rules)) if !rules.is_empty() => {
                let values = self.convert(values, depth + 1);
                converted.insert("additionalProperties".into(), values.into());
            }
            _ => {}
        }
    }

    fn add_items(&mut self, schema: &'a Object, converted: &mut Object, depth: usize) {
        if let Some(items) = schema.get("items").filter(|it| it.is_object()) {
            let items = self.convert(items, depth + 1);
            converted.insert("items".into(), items.into());
            converted.entry("type").or_insert_with(|| "array".into());
        }
    }

    fn add_branches(&mut self, schema: &'a Object, converted: &mut Object, depth: usize) {
        for keyword in ["oneOf", "anyOf"] {
            let mut branches: Vec<Value> = Vec::new();
            let mut seen = HashSet::new();
            let mut is_nullable = false;
            for branch in list(schema, keyword) {
                let branch = Value::Object(self.convert(branch, depth + 1));
                if branch == json!({"type": "null"}) {
                    is_nullable = true;
                } else if seen.insert(branch.clone()) {
                    branches.push(branch);
                }
            }
            match single_branch(&mut branches) {
                Some(only) => add_missing(converted, only),
                None if branches.is_empty() || converted.contains_key("anyOf") => {}
                None => drop(converted.insert("anyOf".into(), branches.into())),
            }
            if is_nullable {
                make_nullable(converted);
            }
        }
    }

    fn description(&self, schema: &Object) -> Option<Value> {
        let text = schema.get("description").or_else(|| schema.get("title"));
        let text = plain(text.and_then(Value::as_str).unwrap_or_default());
        let text = cut(&text, self.limits.description);
        match rules::note_of(schema) {
            Some(note) if text.is_empty() => Some(note.into()),
            Some(note) => Some(format!("{} {note}", sentence(text)).into()),
            None => (!text.is_empty()).then(|| text.into()),
        }
    }
}

/// Adds a schema of all items to a list that has none: some APIs of models demand one.
fn with_items(mut schema: Object) -> Object {
    if is_type(&schema, "array") {
        schema.entry("items").or_insert_with(|| json!({}));
    }
    schema
}

/// Adds the name in words as the description of a property that has none.
pub(crate) fn describe(name: &str, property: &mut Object) {
    let text = || format!("{}.", in_words(name)).into();
    property.entry("description").or_insert_with(text);
}

/// Returns a schema for what contains itself.
fn nested_again(reference: &Object) -> Object {
    let text = reference.get("description").and_then(Value::as_str);
    let text = text.map_or_else(|| "The same again.".to_owned(), plain);
    Object::from_iter([("description".to_owned(), text.into())])
}

/// Returns the schema of a file in a multipart body.
fn file_part(mut converted: Object) -> Object {
    let part = json!({"type": "object", "properties": {
        "filename": {"type": "string", "description": "The name of the file."},
        "content_type": {"type": "string", "description": "The media type, such as image/png."},
        "base64": {"type": "string", "description": "The content in base64."},
    }, "required": ["filename", "base64"], "additionalProperties": false});
    let Value::Object(mut part) = part else {
        unreachable!("it is an object");
    };
    if let Some(text) = converted.remove("description") {
        part.insert("description".into(), text);
    }
    part
}

pub(crate) fn list<'a>(
    schema: &'a Object,
    keyword: &str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    schema
        .get(keyword)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn take_object(schema: &mut Object, keyword: &str) -> Object {
    match schema.remove(keyword) {
        Some(Value::Object(object)) => object,
        _ => Object::new(),
    }
}

fn take_list(schema: &mut Object, keyword: &str) -> Vec<Value> {
    match schema.remove(keyword) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}
