//! The limits of OpenAI's Structured Outputs on the size of a schema.

use std::collections::HashMap;

use lambda_tools_core::{json::JsonObject, tool::schema::all};
use serde_json::{Map, Value};

use crate::references;

/// "Up to 5,000 object properties total, with up to 10 levels of nesting."
const MAX_PROPERTIES: usize = 5000;
const MAX_LEVELS: usize = 10;
/// "Total string length of all property names, definition names, enum values, and const values
/// cannot exceed 120,000 characters."
const MAX_TEXT: usize = 120_000;
/// "Up to 1,000 enum values across all enum properties."
const MAX_VALUES: usize = 1000;
/// "For a single enum property with string values, the total string length of all enum values
/// cannot exceed 15,000 characters when there are more than 250 enum values."
const MAX_LONG_ENUM: (usize, usize) = (250, 15_000);

/// Returns true if a schema is within all limits.
pub(super) fn fits(schema: &JsonObject) -> bool {
    let root = Value::Object(schema.clone());
    let (mut properties, mut text, mut values) = (0, 0, 0);
    let length = |value: &Value| match value {
        Value::String(text) => text.chars().count(),
        other => other.to_string().len(),
    };
    for schema in all(&root) {
        let names = |keyword| schema.get(keyword).and_then(Value::as_object);
        properties += names("properties").map_or(0, Map::len);
        let names = ["properties", "$defs"].map(names).into_iter().flatten();
        let names = names.flat_map(Map::keys);
        text += names.map(|name| name.chars().count()).sum::<usize>();
        let choices = schema.get("enum").and_then(Value::as_array);
        let choices = choices.map_or(&[][..], Vec::as_slice);
        let of_choices: usize = choices.iter().map(length).sum();
        if choices.len() > MAX_LONG_ENUM.0 && of_choices > MAX_LONG_ENUM.1 {
            return false;
        }
        values += choices.len();
        text += of_choices;
    }
    let no_defs = JsonObject::new();
    let defs = schema.get("$defs").and_then(Value::as_object);
    let mut levels = Levels {
        defs: defs.unwrap_or(&no_defs),
        known: HashMap::new(),
    };
    properties <= MAX_PROPERTIES
        && text <= MAX_TEXT
        && values <= MAX_VALUES
        && levels.of(&root) <= MAX_LEVELS
}

/// The number of objects and arrays inside of each other.
struct Levels<'a> {
    defs: &'a JsonObject,
    /// The levels of definitions; none while they are counted, so that a schema that contains
    /// itself counts once.
    known: HashMap<String, usize>,
}

impl Levels<'_> {
    fn of(&mut self, schema: &Value) -> usize {
        if let Some(reference) = schema.get("$ref") {
            return self.of_reference(reference);
        }
        let mut below = 0;
        let properties = schema["properties"].as_object().into_iter().flatten();
        let inner = properties.map(|(_, inner)| inner);
        for inner in inner.chain(schema.get("items")) {
            below = below.max(self.of(inner));
        }
        let is_level = schema.get("properties").is_some() || schema.get("items").is_some();
        let mut levels = below + usize::from(is_level);
        for branch in schema["anyOf"].as_array().into_iter().flatten() {
            levels = levels.max(self.of(branch));
        }
        levels
    }

    fn of_reference(&mut self, reference: &Value) -> usize {
        let name = reference.to_string();
        if let Some(levels) = self.known.get(&name) {
            return *levels;
        }
        self.known.insert(name.clone(), 0);
        let target = references::target(reference, self.defs);
        let levels = target.map_or(0, |target| self.of(target));
        self.known.insert(name, levels);
        levels
    }
}
