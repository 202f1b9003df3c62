//! OpenAPI Overlay 1.0 and 1.1: changes to a document that is somebody else's.
//!
//! A changed copy of the document would have to be changed again at each of its updates. The rules are
//! those of 1.1, which says more precisely what 1.0 means, and allows primitive values as targets.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json_path::{JsonPath, NormalizedPath};

use crate::Error;

/// An Overlay Object.
#[derive(Deserialize)]
struct Overlay {
    overlay: String,
    actions: Vec<Action>,
}

/// An Action Object.
#[derive(Deserialize)]
struct Action {
    target: String,
    #[serde(default, deserialize_with = "present")]
    update: Option<Value>,
    copy: Option<String>,
    #[serde(default)]
    remove: bool,
}

/// Applies an Overlay, and returns what its author should look at.
pub(crate) fn apply(overlay: Value, document: &mut Value) -> Result<Vec<String>, Error> {
    let Overlay { overlay, actions } = Overlay::deserialize(overlay)?;
    if !overlay.starts_with("1.0.") && !overlay.starts_with("1.1.") {
        let text = format!("the version {overlay} of the Overlay Specification is not known");
        return Err(text.into());
    }
    let mut warnings = Vec::new();
    for (at, action) in actions.iter().enumerate() {
        let named = |text: &str| format!("action {} ({}) {text}", at + 1, action.target);
        let warning = action.apply(document);
        let warning = warning.map_err(|error| named(&error.to_string()))?;
        warnings.extend(warning.map(named));
    }
    Ok(warnings)
}

impl Action {
    /// Changes the target nodes, or returns why there is nothing to change.
    fn apply(&self, document: &mut Value) -> Result<Option<&'static str>, Error> {
        let targets = locations(&self.target, document)?;
        if targets.is_empty() {
            return Ok(Some("matches nothing"));
        }
        if self.remove {
            targets.iter().try_for_each(|it| remove(document, it))?;
            return Ok(None);
        }
        let Some(value) = self.value(document)? else {
            return Ok(Some("changes nothing"));
        };
        for target in targets {
            match document.pointer_mut(&target).ok_or("has lost a target")? {
                Value::Array(items) if !value.is_array() => items.push(value.clone()),
                target => merge(target, &value, "the target")?,
            }
        }
        Ok(None)
    }

    /// Returns the value to apply: the action's own, or one of the document.
    fn value(&self, document: &Value) -> Result<Option<Value>, Error> {
        let path = match (&self.update, &self.copy) {
            (Some(_), Some(_)) => return Err("has both `update` and `copy`".into()),
            (value, None) => return Ok(value.clone()),
            (None, Some(path)) => path,
        };
        match &*JsonPath::parse(path)?.query(document).all() {
            [node] => Ok(Some((*node).clone())),
            nodes => Err(format!("copies {} nodes, not one", nodes.len()).into()),
        }
    }
}

/// Returns pointers to the nodes, the last one first: the removal of one does not move another.
fn locations(path: &str, document: &Value) -> Result<Vec<String>, Error> {
    let path = JsonPath::parse(path)?;
    // In the order of the document.
    let nodes = path.query_located(document).dedup();
    let pointers = nodes.locations().map(NormalizedPath::to_json_pointer);
    let mut pointers: Vec<_> = pointers.collect();
    pointers.reverse();
    Ok(pointers)
}

fn remove(document: &mut Value, pointer: &str) -> Result<(), Error> {
    let parts = pointer.rsplit_once('/');
    let (parent, name) = parts.ok_or("would remove the whole document")?;
    match document.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.remove(&name.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            items.remove(name.parse()?);
        }
        _ => {}
    }
    Ok(())
}

/// Merges a value into a node of the same type: Overlay 1.1.0, Action Object.
fn merge(node: &mut Value, value: &Value, name: &str) -> Result<(), Error> {
    match (node, value) {
        (Value::Object(fields), Value::Object(others)) => {
            for (name, value) in others {
                match fields.get_mut(name) {
                    Some(field) => merge(field, value, name)?,
                    None => _ = fields.insert(name.clone(), value.clone()),
                }
            }
        }
        (Value::Array(items), Value::Array(others)) => items.extend_from_slice(others),
        // The specification's structured example leaves `components` and `tags` empty.
        (Value::Object(_) | Value::Array(_), Value::Null) => {}
        (Value::Object(_) | Value::Array(_), _) | (_, Value::Object(_) | Value::Array(_)) => {
            return Err(format!("has another type than {name}").into());
        }
        (primitive, value) => *primitive = value.clone(),
    }
    Ok(())
}

/// Returns a value that is present, even if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::parse::parse;

    /// Returns the overlay with these actions, in YAML as the specification has them.
    fn overlay(actions: &str) -> Value {
        json!({"overlay": "1.1.0", "actions": parse(actions).unwrap()})
    }

    #[test]
    fn actions_change_what_they_say_and_nothing_else() {
        let examples = parse(include_str!("overlay/examples.yaml")).unwrap();
        for example in examples.as_array().unwrap() {
            let mut document = example["document"].clone();
            let overlay = json!({"overlay": "1.1.0", "actions": example["actions"]});
            let warnings = apply(overlay, &mut document).unwrap();
            assert_eq!(document, example["expected"], "{}", example["name"]);
            assert_eq!(warnings, [""; 0], "{}", example["name"]);
        }
    }

    #[test]
    fn an_action_without_a_value_is_a_warning() {
        let mut document = json!({"a": 1});
        let nothing = overlay("- {target: $, description: Nothing}");
        let warnings = apply(nothing, &mut document).unwrap();
        assert_eq!(document, json!({"a": 1}));
        assert_eq!(warnings, ["action 1 ($) changes nothing"]);
    }

    const MISTAKES: &str = "
{target: $.a, update: text} => action 1 ($.a) has another type than the target
{target: $.a, update: {b: {}}} => action 1 ($.a) has another type than b
{target: $.a.c, update: {}} => action 1 ($.a.c) has another type than the target
{target: $.a, copy: '$.a.*'} => action 1 ($.a) copies 2 nodes, not one
{target: $.a, copy: $.a, update: {}} => action 1 ($.a) has both `update` and `copy`
{target: $, remove: true} => action 1 ($) would remove the whole document
";

    #[test]
    fn incompatible_values_are_errors() {
        let document = json!({"a": {"b": [1], "c": "text"}});
        for row in MISTAKES.lines().filter(|row| !row.is_empty()) {
            let (action, expected) = row.split_once(" => ").unwrap();
            let error = apply(overlay(&format!("- {action}")), &mut document.clone());
            assert_eq!(error.unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn other_versions_are_errors() {
        for version in ["1.2.0", "2.0.0", "1", ""] {
            let overlay = json!({"overlay": version, "actions": []});
            assert!(apply(overlay, &mut json!({})).is_err(), "{version}");
        }
    }
}
