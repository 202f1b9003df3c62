//! Schemas of a document, such as one of OpenAPI, as schemas of tools: without references, small, and
//! with a description for each property.
//!
//! ```
//! use lambda_tools_schema::{document::Document, inline::{Converter, Limits, say_in_words}};
//! use serde_json::{Value, json};
//!
//! let document = Document::new(json!({"components": {"schemas": {
//!     "Pet": {"type": "object", "properties": {"owner": {"$ref": "#/components/schemas/Person"}}},
//!     "Person": {"type": "string", "minLength": 1, "example": "Ada"},
//! }}}));
//! let pet = document.at("#/components/schemas/Pet").unwrap();
//! let mut schema = Value::Object(Converter::new(&document, Limits::ALL[0]).convert(pet, 1));
//! say_in_words(&mut schema);
//! let owner = json!({"type": "string", "minLength": 1, "description": "Owner. Example: Ada."});
//! assert_eq!(schema, json!({"type": "object", "properties": {"owner": owner}}));
//! ```
//!
//! References are inlined, because definitions of tools have none. Where a schema contains itself, or
//! goes deeper than the limits allow, an object without properties takes its place: the API still
//! checks what it gets.

mod merge;
mod rules;

use std::{
    collections::{BTreeSet, HashSet},
    ptr,
};

use serde_json::{Value, json};

use crate::{
    JsonObject,
    document::{Document, reference_of},
    each_inner,
    reduced::{appended, list_items},
    text::{cut, in_words, plain},
    vocabulary::{Role, has_role, list_in, object_of},
};
use merge::{make_nullable, single_branch};

pub use merge::add_missing;
pub use rules::such_as;

/// The keyword with sentences for the description, until parts of a schema are merged.
pub const NOTE: &str = "x-note";

/// The maximum number of references that are being followed.
const LONGEST_CHAIN: usize = 100;

/// The limits of a schema.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum depth of properties and items.
    pub(crate) depth: usize,
    /// The maximum length, in bytes, of a description.
    pub(crate) description: usize,
    /// The maximum number of schemas.
    pub(crate) schemas: usize,
}

impl Limits {
    /// The limits to try, one after the other, until the input of a tool is small enough.
    pub const ALL: [Self; 7] = [
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

/// The conversion of the schemas of one input, which share the limits.
pub struct Converter<'a> {
    document: &'a Document,
    limits: Limits,
    schemas_left: usize,
    /// The targets of the references that are being followed.
    open: Vec<&'a Value>,
    /// Schemas with definitions of their own, in which the schema is.
    outer: Vec<&'a JsonObject>,
    /// The base types whose subtypes are being added to them.
    bases: Vec<&'a Value>,
    /// True if something was left out to keep the limits, or because it contains itself.
    pub is_cut: bool,
    /// Notes for the report.
    pub doubts: BTreeSet<String>,
    /// True if files are properties with a name and a media type: in multipart bodies.
    pub has_file_parts: bool,
}

impl<'a> Converter<'a> {
    /// Creates a conversion within these limits.
    pub fn new(document: &'a Document, limits: Limits) -> Self {
        Self {
            document,
            limits,
            schemas_left: limits.schemas,
            open: Vec::new(),
            outer: Vec::new(),
            bases: Vec::new(),
            is_cut: false,
            doubts: BTreeSet::new(),
            has_file_parts: false,
        }
    }

    /// Returns the schema of a property at a depth of at least 1.
    pub fn convert(&mut self, schema: &'a Value, depth: usize) -> JsonObject {
        let mut converted = self.merged(schema, depth, false);
        retain_required(&mut converted, &JsonObject::new());
        // Branches may be those of one part, and properties those of another one.
        let mut branches = take_list(&mut converted, "anyOf");
        for branch in branches.iter_mut().filter_map(Value::as_object_mut) {
            open_beside(branch, &converted);
        }
        if !branches.is_empty() && branches.iter().all(|it| *it != json!({})) {
            converted.insert("anyOf".into(), branches.into());
        }
        converted
    }

    /// Returns a schema whose required properties may be those of another one: `is_part` says that it
    /// is a part of `allOf`.
    fn merged(&mut self, schema: &'a Value, depth: usize, is_part: bool) -> JsonObject {
        let Some(object) = schema.as_object() else {
            return JsonObject::new();
        };
        let Some(reference) = reference_of(schema) else {
            return self.convert_object(object, depth, is_part);
        };
        let Some(target) = self.target(reference) else {
            self.doubts
                .insert(format!("the reference {reference} leads nowhere"));
            let mut unknown = JsonObject::new();
            self.describe_as(&text_in(object), &mut unknown);
            return unknown;
        };
        if self.open.len() >= LONGEST_CHAIN || self.open.iter().any(|it| ptr::eq(*it, target)) {
            self.is_cut = true;
            return nested_again(object);
        }
        self.open.push(target);
        let converted = self.merged(target, depth, is_part);
        self.open.pop();
        if object.len() == 1 {
            return converted;
        }
        // Keywords beside `$ref` apply as well: JSON Schema 2020-12, 8.2.3.1.
        let mut own = self.convert_object(object, depth, true);
        add_missing(&mut own, converted);
        if object.get("nullable") == Some(&Value::Bool(true)) {
            make_nullable(&mut own);
        }
        own
    }

    /// Returns what a reference names: in the document or, as of a schema on its own, in the nearest
    /// schema with definitions.
    fn target(&self, reference: &str) -> Option<&'a Value> {
        let near = || {
            let (keyword, name) = reference.strip_prefix("#/")?.split_once('/')?;
            let mut outer = self.outer.iter().rev();
            outer.find_map(|it| it.get(keyword)?.pointer(&format!("/{name}")))
        };
        self.document.at(reference).or_else(near)
    }

    /// Sets the description of a schema, within its limit.
    pub fn describe_as(&self, text: &str, schema: &mut JsonObject) {
        let text = cut(text, self.limits.description);
        if !text.is_empty() {
            schema.insert("description".into(), text.into());
        }
    }

    fn convert_object(
        &mut self,
        schema: &'a JsonObject,
        depth: usize,
        is_part: bool,
    ) -> JsonObject {
        let (mut converted, is_doubtful) = rules::of(schema);
        if is_doubtful {
            let text =
                "the document contradicts itself about a part of its input, which is not checked";
            self.doubts.insert(text.to_owned());
        }
        self.describe_as(&text_in(schema), &mut converted);
        let note = rules::note_of(schema).map(Value::from);
        converted.extend(note.map(|it| (NOTE.to_owned(), it)));
        if self.schemas_left == 0 || depth > self.limits.depth {
            // The schemas below this one are left out.
            let mut holders = schema.iter().filter(|(_, it)| !it.is_boolean());
            self.is_cut |= holders.any(|(it, _)| has_role(it, &[Role::Branch, Role::Part]));
            list_items(&mut converted);
            return converted;
        }
        self.schemas_left -= 1;
        if self.has_file_parts && rules::is_binary(schema) {
            return file_part(converted);
        }
        let has_definitions = schema.contains_key("$defs") || schema.contains_key("definitions");
        self.outer.extend(has_definitions.then_some(schema));
        let is_alone =
            list_in(schema.get("allOf")).len() == 1 && !schema.contains_key("properties");
        for part in list_in(schema.get("allOf")) {
            let target = reference_of(part).and_then(|it| self.target(it));
            if target.is_some_and(|it| self.bases.iter().any(|base| ptr::eq(*base, it))) {
                continue;
            }
            let part = self.merged(part, depth, !is_alone);
            add_missing(&mut converted, part);
        }
        self.add_properties(schema, &mut converted, depth);
        if !is_part {
            self.add_subtypes(schema, &mut converted, depth);
        }
        self.add_items(schema, &mut converted, depth);
        self.add_branches(schema, &mut converted, depth);
        if has_definitions {
            self.outer.pop();
        }
        if schema.get("nullable") == Some(&Value::Bool(true)) {
            make_nullable(&mut converted);
        }
        list_items(&mut converted);
        converted
    }

    fn add_properties(&mut self, schema: &'a JsonObject, converted: &mut JsonObject, depth: usize) {
        let declared = schema.get("properties").and_then(Value::as_object);
        let mut properties = take_object(converted, "properties");
        for (name, property) in declared.into_iter().flatten() {
            if self.is_read_only(property) {
                continue;
            }
            let mut property = self.convert(property, depth + 1);
            describe(name, &mut property);
            properties.insert(name.clone(), Value::Object(property));
        }
        let mut required = take_list(converted, "required");
        let mut seen: HashSet<_> = required.iter().cloned().collect();
        let names = list_in(schema.get("required")).iter().cloned();
        required.extend(names.filter(|it| seen.insert(it.clone())));
        if !properties.is_empty() {
            converted.insert("properties".into(), properties.into());
            converted.entry("type").or_insert_with(|| "object".into());
        }
        if !required.is_empty() {
            converted.insert("required".into(), required.into());
        }
        let others: Value = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => false.into(),
            Some(values @ Value::Object(rules)) if !rules.is_empty() => {
                self.convert(values, depth + 1).into()
            }
            // Of a body, which is closed otherwise.
            Some(_) if depth < 2 => true.into(),
            _ => return,
        };
        converted.insert("additionalProperties".into(), others);
    }

    /// Returns true if a property, or what it refers to, is only in responses.
    fn is_read_only(&self, property: &'a Value) -> bool {
        let says = |it: &Value| it.get("readOnly") == Some(&Value::Bool(true));
        let target = self.document.resolve(property).unwrap_or(property);
        let parts = target["allOf"].as_array().into_iter().flatten();
        let parts = parts.flat_map(|it| [Some(it), self.document.resolve(it)]);
        says(property) || says(target) || parts.flatten().any(says)
    }

    /// Adds the properties of subtypes, all optional, to the base type that a discriminator makes of
    /// a schema: OpenAPI 3.1, Discriminator Object.
    fn add_subtypes(&mut self, schema: &'a JsonObject, converted: &mut JsonObject, depth: usize) {
        let has_branches = schema.contains_key("oneOf") || schema.contains_key("anyOf");
        let discriminator = schema.get("discriminator").filter(|_| !has_branches);
        let (Some(discriminator), Some(&base)) = (discriminator, self.open.last()) else {
            return;
        };
        if base.as_object().is_none_or(|it| !ptr::eq(it, schema)) {
            return;
        }
        let schemas = self.document.root()["components"]["schemas"].as_object();
        let by_name = |it: &str| schemas.and_then(|all| all.get(it));
        let target = |it: &Value| self.target(it.as_str()?).or_else(|| by_name(it.as_str()?));
        let mapping = discriminator["mapping"].as_object().into_iter().flatten();
        let mapped = mapping.filter_map(|(name, it)| Some((name, target(it)?)));
        let mut subtypes: Vec<_> = mapped.collect();
        let mut targets = vec![base];
        while subtypes.is_empty() || targets.len() > 1 {
            let extends = |it: &Value| {
                let parts = it["allOf"].as_array().into_iter().flatten();
                let mut parts = parts.filter_map(|it| self.target(reference_of(it)?));
                parts.any(|part| targets.iter().any(|it| ptr::eq(*it, part)))
            };
            let all = schemas.into_iter().flatten().filter(|(_, it)| extends(it));
            let is_new = |it: &(&String, &Value)| subtypes.iter().all(|(name, _)| *name != it.0);
            let found: Vec<_> = all.filter(is_new).collect();
            if found.is_empty() {
                break;
            }
            targets.extend(found.iter().map(|(_, it)| *it));
            subtypes.extend(found);
        }
        let mut properties = take_object(converted, "properties");
        self.bases.push(base);
        for (_, subtype) in subtypes.iter().filter(|(_, it)| !ptr::eq(*it, base)) {
            let mut subtype = self.merged(subtype, depth, true);
            for (name, property) in take_object(&mut subtype, "properties") {
                let is_kind = discriminator["propertyName"] == *name;
                match properties.get_mut(&name) {
                    // It is something else in each subtype.
                    Some(known) if *known != property && !is_kind => {
                        *known = json!({"description": known["description"].take()});
                    }
                    Some(_) => {}
                    None => drop(properties.insert(name, property)),
                }
            }
        }
        self.bases.pop();
        let name = discriminator["propertyName"].as_str().unwrap_or_default();
        if let Some(Value::Object(property)) = properties.get_mut(name)
            && !subtypes.is_empty()
        {
            let names = subtypes.iter().map(|(name, _)| Value::from(name.as_str()));
            property.entry("enum").or_insert(names.collect());
        }
        if !properties.is_empty() {
            converted.insert("properties".into(), properties.into());
        }
    }

    fn add_items(&mut self, schema: &'a JsonObject, converted: &mut JsonObject, depth: usize) {
        if let Some(items) = schema.get("items").filter(|it| it.is_object()) {
            let items = self.convert(items, depth + 1);
            converted.insert("items".into(), items.into());
            converted.entry("type").or_insert_with(|| "array".into());
        }
    }

    fn add_branches(&mut self, schema: &'a JsonObject, converted: &mut JsonObject, depth: usize) {
        for keyword in ["oneOf", "anyOf"] {
            let mut branches: Vec<Value> = Vec::new();
            let mut seen = HashSet::new();
            let mut is_nullable = false;
            for branch in list_in(schema.get(keyword)) {
                let branch = Value::Object(self.merged(branch, depth + 1, false));
                if branch == json!({"type": "null"}) {
                    is_nullable = true;
                } else if seen.insert(branch.clone()) {
                    branches.push(branch);
                }
            }
            if branches.iter().any(|it| it.get("properties").is_some()) {
                converted.retain(|keyword, it| keyword != "additionalProperties" || *it != false);
            }
            match single_branch(&mut branches) {
                Some(only) => add_missing(converted, only),
                None if branches.is_empty() => {}
                None if converted.contains_key("anyOf") => {
                    let sets: Option<Vec<_>> = branches.iter().map(required_set).collect();
                    let note = sets.map(|it| (NOTE.to_owned(), sentence_on(&it).into()));
                    add_missing(converted, note.into_iter().collect());
                }
                None => drop(converted.insert("anyOf".into(), branches.into())),
            }
            if is_nullable {
                make_nullable(converted);
            }
        }
    }
}

/// Removes the names of required properties that neither the schema nor one around it has.
fn retain_required(schema: &mut JsonObject, around: &JsonObject) {
    let mut required = take_list(schema, "required");
    let has = |schema: &JsonObject, name: &Value| {
        let name = name.as_str().unwrap_or_default();
        let properties = schema.get("properties");
        properties.is_some_and(|it| it.get(name).is_some())
    };
    required.retain(|it| has(schema, it) || has(around, it));
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
}

/// Makes a branch of a schema with properties of its own accept these, too. Only a branch without
/// properties may require others: Gemini's API refuses a schema that requires what it does not have.
fn open_beside(branch: &mut JsonObject, schema: &JsonObject) {
    let none = JsonObject::new();
    let has_own = branch.contains_key("properties");
    retain_required(branch, if has_own { &none } else { schema });
    if schema.contains_key("properties") {
        branch.retain(|keyword, it| keyword != "additionalProperties" || *it != false);
    }
}

/// Says in words, at every depth, what the rules cannot say, and which sets of properties are required.
pub fn say_in_words(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    each_inner(object, &mut |_, inner| say_in_words(inner));
    if let Some(Value::String(note)) = object.remove(NOTE) {
        append(object, note);
    }
    let sets: Option<Vec<_>> = list_in(object.get("anyOf"))
        .iter()
        .map(required_set)
        .collect();
    if let Some(sets) = sets.filter(|it| !it.is_empty()) {
        object.remove("anyOf");
        append(object, sentence_on(&sets));
    }
    let branches = object.get_mut("anyOf").and_then(Value::as_array_mut);
    let branches = branches.into_iter().flatten();
    for branch in branches.filter_map(Value::as_object_mut) {
        retain_required(branch, &JsonObject::new());
    }
}

/// Adds a sentence to the description.
fn append(schema: &mut JsonObject, sentence: String) {
    let text = appended(text_in(schema), &[sentence]);
    schema.insert("description".into(), text.into());
}

/// Returns the names that a branch requires, if it says nothing else.
pub fn required_set(branch: &Value) -> Option<Vec<String>> {
    let branch = branch.as_object()?;
    let names = list_in(branch.get("required"))
        .iter()
        .filter_map(Value::as_str);
    let names: Vec<_> = names.map(str::to_owned).collect();
    let mut keys = branch.keys();
    let is_alone = keys.all(|it| matches!(&**it, "required" | "type" | "description"));
    (is_alone && !names.is_empty()).then_some(names)
}

/// Returns the sentence that one of some sets of properties is required.
pub fn sentence_on(sets: &[Vec<String>]) -> String {
    let sets: Vec<_> = sets.iter().map(|it| it.join(" and ")).collect();
    format!("At least one is required: {}.", sets.join(", or "))
}

/// Returns the text that describes a schema.
fn text_in(schema: &JsonObject) -> String {
    let text = schema.get("description").or_else(|| schema.get("title"));
    plain(text.and_then(Value::as_str).unwrap_or_default())
}

/// Adds the name in words as the description of a property that has none.
pub fn describe(name: &str, property: &mut JsonObject) {
    let text = || format!("{}.", in_words(name)).into();
    property.entry("description").or_insert_with(text);
}

/// Returns a schema for what contains itself.
fn nested_again(reference: &JsonObject) -> JsonObject {
    let text = reference.get("description").and_then(Value::as_str);
    let text = text.map_or_else(|| "The same again.".to_owned(), plain);
    JsonObject::from_iter([("description".to_owned(), text.into())])
}

/// Returns the schema of a file in a multipart body.
fn file_part(mut converted: JsonObject) -> JsonObject {
    let mut part = object_of(json!({"type": "object", "properties": {
        "filename": {"type": "string", "description": "The name of the file."},
        "content_type": {"type": "string", "description": "The media type, such as image/png."},
        "base64": {"type": "string", "description": "The content in base64."},
    }, "required": ["filename", "base64"], "additionalProperties": false}));
    if let Some(text) = converted.remove("description") {
        part.insert("description".into(), text);
    }
    part
}

/// Removes a keyword, and returns the object that is its value; an empty one if it has none.
pub fn take_object(schema: &mut JsonObject, keyword: &str) -> JsonObject {
    match schema.remove(keyword) {
        Some(Value::Object(object)) => object,
        _ => JsonObject::new(),
    }
}

fn take_list(schema: &mut JsonObject, keyword: &str) -> Vec<Value> {
    match schema.remove(keyword) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}
