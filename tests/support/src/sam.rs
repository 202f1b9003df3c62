//! SAM templates, as a deployment with certain parameters expands them.

use std::{collections::BTreeMap, path::Path, process::Command};

use serde_json::{Value, json};

use crate::{installed, repository};

/// Values of parameters with their names; all others have their defaults.
pub type Parameters<'a> = [(&'a str, &'a str)];

/// A template after SAM's transform.
pub struct Template {
    /// The result of the transform.
    pub json: Value,
    defaults: BTreeMap<String, String>,
}

impl Template {
    /// Transforms a template.
    pub fn transform(path: &Path) -> Self {
        let output = Command::new(installed("python"))
            .arg(repository("functions/toolbox/tests/sam_transform.py"))
            .arg(path)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let parameters = json["Parameters"].as_object().into_iter().flatten();
        let defaults = parameters.map(|(name, it)| (name.clone(), text_of(&it["Default"])));
        let defaults = defaults.collect();
        Self { json, defaults }
    }

    /// Returns true if the template's rules accept these parameters.
    pub fn accepts(&self, parameters: &Parameters<'_>) -> bool {
        let rules = self.json["Rules"].as_object().into_iter().flatten();
        let mut assertions = rules.flat_map(|(_, rule)| rule["Assertions"].as_array().unwrap());
        assertions.all(|it| self.evaluate(&it["Assert"], parameters))
    }

    /// Returns the resources that these parameters create, by their names, with the values of
    /// parameters and conditions.
    pub fn resources(&self, parameters: &Parameters<'_>) -> BTreeMap<&str, Value> {
        let all = self.json["Resources"].as_object().unwrap().keys();
        let existing = all.filter_map(|name| Some((&**name, self.resource(name, parameters)?)));
        existing.collect()
    }

    /// Returns one of these resources, or `None` if it does not exist.
    pub fn resource(&self, name: &str, parameters: &Parameters<'_>) -> Option<Value> {
        let resource = &self.json["Resources"][name];
        let condition = resource["Condition"].as_str();
        let exists = condition.is_none_or(|name| self.holds(name, parameters));
        exists.then(|| self.resolve(resource, parameters))
    }

    fn holds(&self, condition: &str, parameters: &Parameters<'_>) -> bool {
        self.evaluate(&self.json["Conditions"][condition], parameters)
    }

    /// Returns the value of a condition.
    fn evaluate(&self, condition: &Value, parameters: &Parameters<'_>) -> bool {
        let (function, argument) = call_in(condition).unwrap_or_else(|| panic!("{condition}"));
        let items = argument.as_array().map_or(&[][..], Vec::as_slice);
        let mut values = items.iter().map(|it| self.evaluate(it, parameters));
        match function {
            "Condition" => self.holds(argument.as_str().unwrap(), parameters),
            "Fn::Equals" => {
                let text = |it| text_of(&self.resolve(it, parameters));
                text(&items[0]) == text(&items[1])
            }
            "Fn::Not" => !values.next().unwrap(),
            "Fn::And" => values.all(|value| value),
            "Fn::Or" => values.any(|value| value),
            other => panic!("{other}"),
        }
    }

    /// Returns the value of a parameter.
    fn value_of(&self, name: &str, parameters: &Parameters<'_>) -> String {
        let given = parameters.iter().find(|(known, _)| *known == name);
        let value = given.map_or(&*self.defaults[name], |(_, value)| value);
        value.to_owned()
    }

    fn resolve(&self, value: &Value, parameters: &Parameters<'_>) -> Value {
        let no_value = json!({"Ref": "AWS::NoValue"});
        match (call_in(value), value) {
            (Some(("Fn::If", arguments)), _) => {
                let holds = self.holds(arguments[0].as_str().unwrap(), parameters);
                self.resolve(&arguments[if holds { 1 } else { 2 }], parameters)
            }
            (Some(("Fn::Split", arguments)), _) => {
                let list = self.resolve(&arguments[1], parameters);
                match list.as_str() {
                    Some(list) => list.split(arguments[0].as_str().unwrap()).collect(),
                    None => json!({"Fn::Split": [arguments[0], list]}),
                }
            }
            (Some(("Fn::Sub", Value::String(text))), _) => {
                let mut text = text.clone();
                for name in self.defaults.keys() {
                    let value = self.value_of(name, parameters);
                    text = text.replace(&format!("${{{name}}}"), &value);
                }
                if text.contains("${") {
                    json!({"Fn::Sub": text})
                } else {
                    text.into()
                }
            }
            (Some(("Ref", Value::String(name))), _) if self.defaults.contains_key(name) => {
                self.value_of(name, parameters).into()
            }
            (_, Value::Array(items)) => {
                let items = items.iter().map(|it| self.resolve(it, parameters));
                items.filter(|it| *it != no_value).collect()
            }
            (_, Value::Object(fields)) => {
                let fields = fields.iter();
                let fields = fields.map(|(name, it)| (name.clone(), self.resolve(it, parameters)));
                Value::Object(fields.filter(|(_, it)| *it != no_value).collect())
            }
            _ => value.clone(),
        }
    }
}

/// Returns a text, or the text of another value.
fn text_of(value: &Value) -> String {
    value.as_str().map_or(value.to_string(), str::to_owned)
}

/// Returns the function that a value calls, and its argument.
fn call_in(value: &Value) -> Option<(&str, &Value)> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    let (name, argument) = fields.iter().next()?;
    Some((name, argument))
}

/// Returns the properties of the resources of a type, by their names.
pub fn of_type<'a>(
    resources: &'a BTreeMap<&str, Value>,
    kind: &str,
) -> BTreeMap<&'a str, &'a Value> {
    let resources = resources.iter();
    let resources = resources.filter(|(_, resource)| resource["Type"] == kind);
    resources
        .map(|(name, it)| (*name, &it["Properties"]))
        .collect()
}
