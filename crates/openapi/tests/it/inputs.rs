//! Inputs made of a schema, always the same ones.

use proptest::{
    strategy::{Strategy, ValueTree},
    string::string_regex,
    test_runner::TestRunner,
};
use serde_json::{Map, Value, json};

/// Makes values of schemas. The choices depend only on how many were made before.
pub(crate) struct Inputs {
    runner: TestRunner,
    state: u64,
}

impl Inputs {
    pub(crate) fn new() -> Self {
        Self {
            runner: TestRunner::deterministic(),
            state: 1,
        }
    }

    fn below(&mut self, count: usize) -> usize {
        let state = self.state.wrapping_mul(6_364_136_223_846_793_005);
        self.state = state.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.state >> 33).unwrap() % count.max(1)
    }

    /// Returns a value of a schema.
    pub(crate) fn value(&mut self, schema: &Value) -> Value {
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(values) = schema["enum"].as_array() {
            return values[self.below(values.len())].clone();
        }
        if let Some(branches) = schema["anyOf"].as_array() {
            let branch = branches[self.below(branches.len())].clone();
            let value = self.value(&branch);
            return merged(value, self.own_value(schema));
        }
        self.own_value(schema)
    }

    fn own_value(&mut self, schema: &Value) -> Value {
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds
                .iter()
                .find(|it| *it != "null")
                .unwrap_or(&Value::Null),
            one => one,
        };
        match kind.as_str() {
            Some("object") => self.object(schema),
            Some("array") => self.list(schema),
            Some("integer") => {
                serde_json::from_str(&format!("{:.0}", number(schema, 1.0).ceil())).unwrap()
            }
            Some("number") => json!(number(schema, 1.5)),
            Some("boolean") => (self.below(2) == 0).into(),
            Some("string") => self.text(schema).into(),
            Some("null") => Value::Null,
            _ if schema.get("properties").is_some() => self.object(schema),
            _ => "a".into(),
        }
    }

    fn object(&mut self, schema: &Value) -> Value {
        let mut object = Map::new();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = required.iter().any(|it| it == name);
            if name == "base64" {
                object.insert(name.clone(), "aGVsbG8=".into());
            } else if is_required || self.below(3) == 0 {
                object.insert(name.clone(), self.value(property));
            }
        }
        object.into()
    }

    fn list(&mut self, schema: &Value) -> Value {
        let least = schema["minItems"].as_u64().unwrap_or(1).max(1);
        let items = (0..least.min(20)).map(|_| self.value(&schema["items"]));
        let mut items: Vec<Value> = items.collect();
        if schema["uniqueItems"] == true {
            items.dedup();
        }
        items.into()
    }

    fn text(&mut self, schema: &Value) -> String {
        let length = |name: &str| schema[name].as_u64().map(|it| usize::try_from(it).unwrap());
        if let Some(pattern) = schema["pattern"].as_str() {
            let pattern = pattern.replace("\\d", "[0-9]");
            // Anchors within alternatives are more than the generator knows.
            let alternatives = [&*pattern, pattern.split('|').next().unwrap_or_default()];
            for one in alternatives {
                let inner = one.trim_start_matches('^').trim_end_matches('$');
                let Ok(strategy) = string_regex(inner) else {
                    continue;
                };
                for _ in 0..20 {
                    let text = strategy.new_tree(&mut self.runner).unwrap().current();
                    let is_short = length("maxLength").is_none_or(|it| text.chars().count() <= it);
                    if is_short && text.chars().count() >= length("minLength").unwrap_or(1) {
                        return text;
                    }
                }
            }
        }
        let text = match schema["format"].as_str() {
            Some("date-time") => "2026-05-04T03:02:01Z",
            Some("date") => "2026-05-04",
            Some("time") => "03:02:01Z",
            Some("uri") => "https://www.example.com/a",
            Some("email") => "ada@example.com",
            Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
            Some("ipv4") => "192.0.2.1",
            Some("ipv6") => "2001:db8::1",
            _ => ["a b", "a", "x/y?z&w=1", "é"][self.below(4)],
        };
        let mut text = text.to_owned();
        while text.chars().count() < length("minLength").unwrap_or(0) {
            text.push('a');
        }
        match length("maxLength") {
            Some(most) => text.chars().take(most).collect(),
            None => text,
        }
    }
}

fn merged(value: Value, own: Value) -> Value {
    match (value, own) {
        (Value::Object(mut value), Value::Object(own)) => {
            for (name, it) in own {
                value.entry(name).or_insert(it);
            }
            value.into()
        }
        (value, _) => value,
    }
}

fn number(schema: &Value, usual: f64) -> f64 {
    let limit = |name: &str| schema[name].as_f64();
    let least = limit("minimum").or_else(|| limit("exclusiveMinimum").map(|it| it + 1.0));
    let most = limit("maximum").or_else(|| limit("exclusiveMaximum").map(|it| it - 1.0));
    let value = usual
        .max(least.unwrap_or(usual))
        .min(most.unwrap_or(f64::MAX));
    limit("multipleOf").map_or(value, |it| (value / it).ceil() * it)
}
