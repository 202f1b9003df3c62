//! The published rules of model APIs for lists of tools, as tests check them.
//!
//! They are written from the APIs' documentation, independently of the code that makes the lists.

use std::{
    collections::BTreeSet,
    io::Write,
    process::{Command, Stdio},
};

use serde_json::{Map, Value};

use crate::repository;

/// The violations of OpenAI's "Structured Outputs: Supported schemas".
pub fn strict_violations(schema: &Value) -> Vec<String> {
    let mut rules = Strict {
        root: schema,
        found: Vec::new(),
        properties: 0,
        values: 0,
        text: 0,
    };
    if schema["type"] != "object" || schema.get("anyOf").is_some() {
        rules.found.push("the root is not an object".to_owned());
    }
    for (name, inner) in objects(&schema["$defs"]) {
        rules.text += name.chars().count();
        rules.check(inner, &format!("$defs/{name}"));
    }
    rules.check(schema, "");
    for (what, count, most) in [
        ("properties", rules.properties, 5000),
        ("enum values", rules.values, 1000),
        ("characters", rules.text, 120_000),
        ("levels", depth(schema, 0), 10),
    ] {
        if count > most {
            rules.found.push(format!("{count} {what}"));
        }
    }
    rules.found
}

struct Strict<'a> {
    root: &'a Value,
    found: Vec<String>,
    properties: usize,
    values: usize,
    text: usize,
}

impl Strict<'_> {
    fn check(&mut self, schema: &Value, place: &str) {
        let Some(object) = schema.as_object() else {
            return self
                .found
                .push(format!("{place}: {schema} is not an object"));
        };
        let kinds = kinds(schema);
        for keyword in object.keys() {
            if !is_supported(keyword, &kinds, place) {
                self.found
                    .push(format!("{place}: {keyword} is not supported for {kinds:?}"));
            }
        }
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            let target = reference
                .strip_prefix('#')
                .and_then(|it| self.root.pointer(it));
            if target.is_none() || object.len() > 1 {
                self.found.push(format!("{place}: the reference {schema}"));
            }
            return;
        }
        if object.contains_key("anyOf") == object.contains_key("type") {
            self.found
                .push(format!("{place}: it needs a type or anyOf"));
        }
        for (index, form) in list(&schema["anyOf"]).iter().enumerate() {
            self.check(form, &format!("{place}/anyOf/{index}"));
        }
        if kinds.contains(&"object") {
            self.check_object(schema, place);
        }
        if kinds.contains(&"array") {
            match schema.get("items") {
                Some(items) => self.check(items, &format!("{place}/items")),
                None => self
                    .found
                    .push(format!("{place}: array schema missing items")),
            }
        }
        self.check_values(schema, place);
    }

    fn check_object(&mut self, schema: &Value, place: &str) {
        if schema["additionalProperties"] != false {
            self.found
                .push(format!("{place}: additionalProperties must be false"));
        }
        let required: BTreeSet<_> = list(&schema["required"])
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let names: BTreeSet<_> = objects(&schema["properties"])
            .map(|(name, _)| name.as_str())
            .collect();
        if required != names || !schema["properties"].is_object() {
            self.found
                .push(format!("{place}: all properties must be required"));
        }
        for (name, property) in objects(&schema["properties"]) {
            self.properties += 1;
            self.text += name.chars().count();
            self.check(property, &format!("{place}/{name}"));
        }
    }

    fn check_values(&mut self, schema: &Value, place: &str) {
        let values = list(&schema["enum"]);
        if schema.get("enum").is_some() && values.is_empty() {
            self.found.push(format!("{place}: the enum is empty"));
        }
        let lengths = values.iter().map(|value| {
            value
                .as_str()
                .map_or_else(|| value.to_string().len(), |text| text.chars().count())
        });
        let text: usize = lengths.sum();
        self.values += values.len();
        self.text += text;
        if values.len() > 250 && text > 15_000 {
            self.found
                .push(format!("{place}: an enum with {text} characters"));
        }
        if schema["pattern"]
            .as_str()
            .is_some_and(|it| it.contains("(?=") || it.contains("(?!") || it.contains("(?<"))
        {
            self.found
                .push(format!("{place}: lookaround is not supported"));
        }
    }
}

fn is_supported(keyword: &str, kinds: &[&str], place: &str) -> bool {
    let is = |kind: &str| kinds.contains(&kind);
    match keyword {
        "type" | "description" | "enum" | "anyOf" | "$ref" => true,
        "$defs" => place.is_empty(),
        "properties" | "required" | "additionalProperties" => is("object"),
        "items" | "minItems" | "maxItems" => is("array"),
        "pattern" | "format" => is("string"),
        "multipleOf" | "maximum" | "exclusiveMaximum" | "minimum" | "exclusiveMinimum" => {
            is("number") || is("integer")
        }
        _ => false,
    }
}

fn depth(schema: &Value, above: usize) -> usize {
    if above > 30 {
        return 0;
    }
    let target = schema["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
    if target.is_some() {
        // Tests have no deep definitions besides recursive ones.
        return above;
    }
    let is_level = schema.get("properties").is_some() || schema.get("items").is_some();
    let here = above + usize::from(is_level);
    let properties = objects(&schema["properties"]).map(|(_, inner)| inner);
    let inner = properties.chain(schema.get("items"));
    let inner = inner.map(|inner| depth(inner, here));
    let forms = list(&schema["anyOf"]).iter().map(|form| depth(form, above));
    inner.chain(forms).max().unwrap_or(0).max(here)
}

/// The violations of what Anthropic, Bedrock and OpenAI without `strict` require of the root.
pub fn root_violations(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if schema["type"] != "object" || !schema["properties"].is_object() {
        found.push("the root is not an object with properties".to_owned());
    }
    for keyword in [
        "anyOf", "oneOf", "allOf", "enum", "const", "not", "$ref", "$schema",
    ] {
        if schema.get(keyword).is_some() {
            found.push(format!("{keyword} at the root"));
        }
    }
    found
}

/// The violations of Gemini's `Schema`.
pub fn gemini_violations(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check_gemini(schema, "", &mut found);
    found
}

fn check_gemini(schema: &Value, place: &str, found: &mut Vec<String>) {
    const KEYWORDS: [&str; 16] = [
        "type",
        "format",
        "description",
        "nullable",
        "enum",
        "items",
        "properties",
        "required",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "pattern",
        "propertyOrdering",
    ];
    const MORE: [&str; 3] = ["anyOf", "minProperties", "maxProperties"];
    for (keyword, _) in objects(schema) {
        if !KEYWORDS.contains(&keyword.as_str()) && !MORE.contains(&keyword.as_str()) {
            found.push(format!("{place}: {keyword}"));
        }
    }
    if let Some(forms) = schema["anyOf"].as_array() {
        if schema.as_object().map_or(0, Map::len) != 1 || forms.len() < 2 {
            found.push(format!("{place}: anyOf must be the only field"));
        }
        for form in forms {
            check_gemini(form, place, found);
        }
        return;
    }
    let kind = schema["type"].as_str().unwrap_or_default();
    if !["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"].contains(&kind) {
        found.push(format!("{place}: the type {kind}"));
    }
    // "properties: should be non-empty for OBJECT type"
    if kind == "OBJECT" && objects(&schema["properties"]).next().is_none() {
        found.push(format!("{place}: no properties"));
    }
    if kind == "ARRAY" && schema.get("items").is_none() {
        found.push(format!("{place}: missing items"));
    }
    let values = list(&schema["enum"]);
    if values
        .iter()
        .any(|value| kind != "STRING" || value.as_str().is_none_or(str::is_empty))
    {
        found.push(format!("{place}: enum {values:?}"));
    }
    for name in list(&schema["required"]) {
        if schema["properties"]
            .get(name.as_str().unwrap_or_default())
            .is_none()
        {
            found.push(format!("{place}: required {name} is not a property"));
        }
    }
    for (name, property) in objects(&schema["properties"]) {
        check_gemini(property, &format!("{place}/{name}"), found);
    }
    if let Some(items) = schema.get("items") {
        check_gemini(items, &format!("{place}/items"), found);
    }
}

fn kinds(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => kind.as_str().into_iter().collect(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn objects(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The APIs by their names in `GET /tools?for=…`, with a query for each list.
pub const LISTS: [(&str, &str); 7] = [
    ("openai", "for=openai"),
    ("openai", "for=openai&strict=true"),
    ("openai-responses", "for=openai-responses"),
    ("openai-responses", "for=openai-responses&strict=true"),
    ("anthropic", "for=anthropic"),
    ("gemini", "for=gemini"),
    ("bedrock", "for=bedrock"),
];

/// Asserts the published rules of an API for a list of tools.
pub fn assert_list(api: &str, tools: &[Value]) {
    let mut names = BTreeSet::new();
    for tool in functions(tools) {
        let (name, description, schema) = match api {
            "openai" => (
                &tool["function"]["name"],
                &tool["function"]["description"],
                &tool["function"]["parameters"],
            ),
            "openai-responses" | "gemini" => {
                (&tool["name"], &tool["description"], &tool["parameters"])
            }
            "anthropic" => (&tool["name"], &tool["description"], &tool["input_schema"]),
            _ => {
                let tool = &tool["toolSpec"];
                (
                    &tool["name"],
                    &tool["description"],
                    &tool["inputSchema"]["json"],
                )
            }
        };
        let name = name.as_str().unwrap();
        let is_allowed = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
        assert!(
            (1..=64).contains(&name.len()) && name.chars().all(is_allowed),
            "{name}"
        );
        let has_start = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        assert!(has_start || api != "gemini", "{name}");
        assert!(names.insert(name.to_owned()), "{name} is listed twice");
        let length = description.as_str().unwrap().chars().count();
        assert!(
            length > 0 && (length <= 1024 || !api.starts_with("openai")),
            "{length}"
        );
        let is_strict = tool["strict"] == true || tool["function"]["strict"] == true;
        let violations = match api {
            "gemini" if schema.is_null() => Vec::new(),
            "gemini" => gemini_violations(schema),
            _ if is_strict => strict_violations(schema),
            _ => root_violations(schema),
        };
        assert!(
            violations.is_empty(),
            "{api} {name}: {violations:#?} in {schema:#}"
        );
        if !api.starts_with("openai") {
            for (name, _) in objects(&schema["properties"]) {
                let is_allowed = |char: char| {
                    char.is_ascii_alphanumeric()
                        || char == '_'
                        || (api != "gemini" && "-.".contains(char))
                };
                assert!(name.len() <= 64 && name.chars().all(is_allowed), "{name}");
            }
        }
        if api == "bedrock" {
            let known = ["type", "properties", "required"];
            assert!(
                objects(schema).all(|(keyword, _)| known.contains(&keyword.as_str())),
                "{schema}"
            );
            assert!(!schema.to_string().contains("\"$ref\":\"#"), "{schema}");
        }
    }
}

/// The functions in a list; Gemini's list has one item with all of them.
pub fn functions(tools: &[Value]) -> &[Value] {
    match tools {
        [only] => only["functionDeclarations"]
            .as_array()
            .map_or(tools, Vec::as_slice),
        _ => tools,
    }
}

/// Lets the APIs' SDKs check lines of lists or results (`tests/models/check.py`).
///
/// # Errors
/// The output of a check that failed.
pub fn check_with_sdks(lines: &[Value]) -> Result<(), String> {
    let python = repository("target/venv-models/bin/python");
    assert!(
        python.exists(),
        "the SDKs are not installed; run tests/all, which does it"
    );
    let mut child = Command::new("timeout")
        .args(["--kill-after=5", "120"])
        .arg(python)
        .arg(repository("tests/models/check.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text: Vec<_> = lines.iter().map(Value::to_string).collect();
    let text = text.join("\n");
    // The check may end before it has read all of it.
    let writer = std::thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && stdout.trim() == lines.len().to_string() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}
