//! Derives the published schema of a Rust type.
//!
//! schemars describes types for every purpose. The schema that a model reads should be short, and a
//! caller's input should be checked strictly: titles and number formats are removed, references are
//! inlined, objects are closed, and optional parameters are simply not required.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    vocabulary::{Role, constants_in, has_role, names},
    walk,
};
use crate::JsonObject;

/// Returns the schema of a tool's input. The type's own description remains at the root.
pub fn of_input<T: JsonSchema>() -> Value {
    let mut schema = generate::<T>(SchemaSettings::draft2020_12().for_deserialize());
    tidy(&mut schema, &|object| {
        disallow_null_for_optional(object);
        list_required(object);
        describe_variants(object);
        list_constants(object);
    });
    set_object_type(&mut schema);
    close(&mut schema);
    schema
}

/// Returns the schema of a tool's output: `null` for a tool that returns nothing, `{}` for any
/// value.
pub fn of_output<T: JsonSchema>() -> Value {
    let mut schema = generate::<T>(SchemaSettings::draft2020_12().for_serialize());
    tidy(&mut schema, &list_required);
    if schema == json!({"type": "null"}) {
        return Value::Null;
    }
    if schema == Value::Bool(true) {
        return json!({});
    }
    schema
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> Value {
    settings
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

/// Removes keywords that mean nothing to a caller, at every depth, and applies `change`.
fn tidy(schema: &mut Value, change: &dyn Fn(&mut JsonObject)) {
    walk::each(schema, &mut |object| {
        object.shift_remove("title");
        let format = object.get("format").and_then(Value::as_str);
        if format.is_some_and(is_rust_number) {
            object.shift_remove("format");
        }
        change(object);
    });
}

/// Returns true for Rust's number types, which schemars writes as formats and no other reader of
/// JSON Schema knows.
fn is_rust_number(format: &str) -> bool {
    let digits = format.trim_start_matches("uint").trim_start_matches("int");
    let integer = digits.len() < format.len() && digits.bytes().all(|byte| byte.is_ascii_digit());
    integer || matches!(format, "double" | "float")
}

/// Removes `null` from optional fields: an `Option` may be omitted, but it must not be `null`.
fn disallow_null_for_optional(object: &mut JsonObject) {
    let required = names(object.get("required").cloned());
    let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, property) in properties {
        if let (false, Value::Object(property)) = (required.contains(name), property) {
            remove_null(property);
        }
    }
}

fn remove_null(property: &mut JsonObject) {
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_mut_slice() {
            let only = only.take();
            property.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = property.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if property.get("default").is_some_and(Value::is_null) {
        property.shift_remove("default");
    }
    if let Some(Value::Array(branches)) = property.get_mut("anyOf") {
        branches.retain(|branch| *branch != json!({"type": "null"}));
        if let [Value::Object(only)] = branches.as_mut_slice() {
            let only = std::mem::take(only);
            property.shift_remove("anyOf");
            for (keyword, value) in only {
                // The field's own description says more than its type's.
                property.entry(keyword).or_insert(value);
            }
        }
    }
}

/// Describes a variant's data by the variant's doc comment, which schemars puts on its branch, if
/// the data is in a single property of the branch.
fn describe_variants(object: &mut JsonObject) {
    for keyword in ["oneOf", "anyOf"] {
        let branches = object.get_mut(keyword).and_then(Value::as_array_mut);
        let branches = branches.into_iter().flatten();
        for branch in branches.filter_map(Value::as_object_mut) {
            let Some(description) = branch.get("description").cloned() else {
                continue;
            };
            let properties = branch.get_mut("properties").and_then(Value::as_object_mut);
            let properties = properties.into_iter().flat_map(Map::values_mut);
            let properties = properties.filter_map(Value::as_object_mut);
            let mut data = properties.filter(|property| !property.contains_key("const"));
            if let (Some(only), None) = (data.next(), data.next()) {
                only.entry("description").or_insert(description);
            }
        }
    }
}

/// Replaces a `oneOf` of constants with an `enum`, and adds their comments to the description.
/// schemars writes the former for an enum whose variants have doc comments; OpenAI's API rejects
/// it.
fn list_constants(object: &mut JsonObject) {
    let branches = object.get("oneOf").and_then(Value::as_array);
    let Some(constants) = branches.and_then(|it| constants_in(it)) else {
        return;
    };
    if !constants.iter().all(|(value, _)| value.is_string()) {
        return;
    }
    let lines = constants
        .iter()
        .filter_map(|(value, meaning)| Some(format!("`{}`: {}", value.as_str()?, (*meaning)?)));
    let own = object.get("description").and_then(Value::as_str);
    let lines: Vec<_> = own.map(str::to_owned).into_iter().chain(lines).collect();
    let values = constants.iter().map(|(value, _)| (*value).clone());
    let values: Value = values.collect();
    object.shift_remove("oneOf");
    object.insert("type".into(), "string".into());
    if !lines.is_empty() {
        object.insert("description".into(), lines.join("\n").into());
    }
    object.insert("enum".into(), values);
}

/// Adds an empty `required` to an object with properties that lacks it: the specification's
/// definitions always have it.
fn list_required(object: &mut JsonObject) {
    if object.contains_key("properties") {
        object.entry("required").or_insert_with(|| json!([]));
    }
}

/// Sets the type at the root of an enum of objects to `object`, which callers and models expect
/// there.
fn set_object_type(schema: &mut Value) {
    let branches = schema.get("oneOf").or_else(|| schema.get("anyOf"));
    let is_object = |it: &Value| it.as_object().is_some_and(|o| walk::is_type(o, "object"));
    let branches = branches.and_then(Value::as_array);
    let is_union = branches.is_some_and(|it| it.iter().all(is_object));
    if is_union && schema.get("type").is_none() {
        schema["type"] = "object".into();
    }
}

/// Returns true for a keyword whose schemas describe the same object as the schema that contains
/// them.
fn is_combining(keyword: &str) -> bool {
    has_role(keyword, &[Role::Branch, Role::Condition])
}

/// Rejects unknown properties at every depth, unless the type itself specifies them (a map).
fn close(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    let has = |key: &str| object.contains_key(key);
    let combined = object.keys().any(|keyword| is_combining(keyword));
    let is_specified = has("additionalProperties") || has("unevaluatedProperties");
    // The branches of a flattened enum share one object with the properties next to them: only the
    // object as a whole can be closed.
    let is_shared = combined && has("properties");
    let is_object = is_shared || (walk::is_type(object, "object") && !combined);
    if is_object && !is_specified {
        let keyword = if is_shared {
            "unevaluatedProperties"
        } else {
            "additionalProperties"
        };
        object.insert(keyword.into(), false.into());
    }
    close_inner(object, if is_shared { close_contents } else { close });
}

/// Closes the contents of a branch, but not the branch itself, which shares its object with others.
fn close_contents(branch: &mut Value) {
    if let Some(object) = branch.as_object_mut() {
        if object.get("additionalProperties") == Some(&Value::Bool(false)) {
            object.shift_remove("additionalProperties");
        }
        close_inner(object, close_contents);
    }
}

/// Closes what is in an object, with another function for its branches.
fn close_inner(object: &mut JsonObject, close_branch: fn(&mut Value)) {
    walk::each_inner(object, &mut |keyword, inner| {
        if is_combining(keyword) {
            close_branch(inner);
        } else {
            close(inner);
        }
    });
}
