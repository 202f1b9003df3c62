//! Input schemas as JSON Schema that every API accepts.
//!
//! They are objects in draft 2020-12 without a union at the root. What the APIs do not accept
//! becomes a note for the tool's description.

use std::collections::BTreeMap;

use lambda_tools_core::{
    json::JsonObject,
    tool::schema::{
        each_inner,
        fold::fold_unions,
        is_type, modernize,
        reduced::{self, SchemaFormat, keywords::object_of, sentences},
        vocabulary::BRANCHES,
    },
};
use serde_json::{Value, json};

use super::{ModelApi, budget::CopyBudget, names::NameRule, references};

/// An input schema, and what it does not express.
#[derive(Clone)]
pub(super) struct InputSchema {
    pub(super) schema: JsonObject,
    pub(super) notes: Vec<String>,
}

/// Keywords that some API rejects at the root: OpenAI's, besides unions.
const NOT_AT_ROOT: [&str; 6] = ["const", "else", "enum", "if", "not", "then"];

impl InputSchema {
    /// Converts the schema of any server's tool.
    pub(super) fn of(schema: &Value, budget: &CopyBudget) -> Self {
        let mut schema = schema.clone();
        modernize(&mut schema);
        let mut schema = references::hoisted(&schema, budget);
        let mut notes = Vec::new();
        if let Some(Value::String(text)) = schema.shift_remove("description") {
            notes.push(text);
        }
        inline_branches(&mut schema, budget);
        notes.extend(fold_unions(&mut schema));
        quote(
            &mut schema,
            |keyword| NOT_AT_ROOT.contains(&keyword),
            &mut notes,
        );
        schema.shift_insert(0, "type".into(), "object".into());
        if !schema.get("properties").is_some_and(Value::is_object) {
            schema.insert("properties".into(), json!({}));
        }
        list_items(&mut schema);
        notes.retain(|note| !note.trim().is_empty());
        Self { schema, notes }
    }

    /// Returns the schema without references, and with nothing but properties at the root: Amazon
    /// Nova Sonic, Tool choice best practices, "Limit top-level keys to 3 or fewer when possible".
    pub(super) fn bare(mut self, budget: &CopyBudget) -> Self {
        self.schema = references::inlined(self.schema, budget);
        self.only_properties();
        self.schema.shift_remove("additionalProperties");
        self
    }

    /// Reduces the schema to a format without references. Returns it with the notes, of which its
    /// description is the last.
    pub(super) fn reduced(
        mut self,
        format: &SchemaFormat,
        budget: &CopyBudget,
    ) -> (JsonObject, Vec<String>) {
        let schema = references::inlined(self.schema, budget);
        let mut schema = reduced::merged(schema.into(), format);
        let text = reduced::take_description(&mut schema);
        self.notes
            .extend(Some(text).filter(|text| !text.is_empty()));
        (schema, self.notes)
    }

    fn only_properties(&mut self) {
        const KEPT: [&str; 5] = [
            "$defs",
            "additionalProperties",
            "properties",
            "required",
            "type",
        ];
        let is_closed = self.schema.get("additionalProperties") == Some(&Value::Bool(false));
        let is_other = |keyword: &str| {
            let is_open = keyword == "additionalProperties" && !is_closed;
            !KEPT.contains(&keyword) || is_open
        };
        quote(&mut self.schema, is_other, &mut self.notes);
    }

    /// Renames parameters that an API does not accept; returns their own names by the new ones.
    pub(super) fn rename_parameters(&mut self, api: ModelApi) -> BTreeMap<String, String> {
        let Some(rule) = NameRule::of_parameters(api) else {
            return BTreeMap::new();
        };
        let properties = self.schema.get("properties").and_then(Value::as_object);
        let names = properties.into_iter().flatten().map(|(name, _)| name);
        let renamed = names.map(|name| (rule.parameter(name), name.clone()));
        let renamed: BTreeMap<_, _> = renamed.filter(|(new, name)| new != name).collect();
        if renamed.is_empty() {
            return renamed;
        }
        // Other keywords may mention the names.
        self.only_properties();
        if let Some(Value::Object(properties)) = self.schema.get_mut("properties") {
            let renamed = std::mem::take(properties).into_iter();
            *properties = renamed
                .map(|(name, property)| renamed_property(rule, &name, property))
                .collect();
        }
        if let Some(Value::Array(required)) = self.schema.get_mut("required") {
            for name in required {
                *name = rule.parameter(name.as_str().unwrap_or_default()).into();
            }
        }
        renamed
    }

    /// Returns the tool's description with all notes.
    pub(super) fn described(&self, description: &str) -> String {
        let parts = [description.trim()].into_iter();
        let parts = parts.chain(self.notes.iter().map(|note| note.trim()));
        let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }
}

fn renamed_property(rule: NameRule, name: &str, property: Value) -> (String, Value) {
    let listed = rule.parameter(name);
    if listed == name {
        return (listed, property);
    }
    let mut property = object_of(property);
    references::append(
        &mut property,
        format!("The tool's own name for it is `{name}`."),
    );
    (listed, property.into())
}

/// Replaces references in a union at the root, whose properties are to be listed.
fn inline_branches(root: &mut JsonObject, budget: &CopyBudget) {
    let defs = root.get("$defs").and_then(Value::as_object).cloned();
    let defs = defs.unwrap_or_default();
    for keyword in BRANCHES {
        let branches = root.get_mut(keyword).and_then(Value::as_array_mut);
        for branch in branches.into_iter().flatten() {
            let reference = branch.get("$ref");
            if let Some(copy) = reference.and_then(|it| references::copied(it, &defs, budget)) {
                *branch = copy.into();
            }
        }
    }
}

/// Moves keywords into a note.
fn quote(schema: &mut JsonObject, is_quoted: impl Fn(&str) -> bool, notes: &mut Vec<String>) {
    let mut quoted = JsonObject::new();
    schema.retain(|keyword, value| {
        let is_quoted = is_quoted(keyword);
        if is_quoted {
            quoted.insert(keyword.clone(), value.take());
        }
        !is_quoted
    });
    let mut texts = Vec::new();
    sentences::add(quoted, &mut texts);
    notes.extend((!texts.is_empty()).then(|| format!("The input: {}", texts.join(" "))));
}

/// Adds `items` to a list without them. OpenAI: "array schema missing items".
fn list_items(object: &mut JsonObject) {
    if is_type(object, "array") {
        object.entry("items").or_insert_with(|| json!({}));
    }
    each_inner(object, &mut |_, inner| {
        if let Some(inner) = inner.as_object_mut() {
            list_items(inner);
        }
    });
}
