//! The published rules of model APIs for lists of tools, as tests check them.
//!
//! They are written from the APIs' documentation, independently of the code that makes the lists:
//! `models.schema.json` has those that a schema can state.

use std::{
    collections::BTreeSet,
    io::Write,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::repository;

/// Returns the violations of the rules named `name` in `models.schema.json`.
fn violations(name: &str, value: &Value) -> Vec<String> {
    let mut rules: Value = serde_json::from_str(include_str!("models.schema.json")).unwrap();
    rules["$ref"] = format!("#/$defs/{name}").into();
    let validator = jsonschema::draft202012::new(&rules).unwrap();
    let errors = validator.iter_errors(value);
    errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

/// Returns the violations of OpenAI's "Structured Outputs: Supported schemas".
pub fn strict_violations(schema: &Value) -> Vec<String> {
    let mut found = violations("strict-root", schema);
    let mut size = Size::default();
    size.add(schema, schema, &mut found);
    for name in objects(&schema["$defs"]).map(|(name, _)| name) {
        size.text += name.chars().count();
    }
    for (what, count, most) in [
        ("properties", size.properties, 5000),
        ("enum values", size.values, 1000),
        ("characters", size.text, 120_000),
        ("levels", depth(schema, 0), 10),
    ] {
        if count > most {
            found.push(format!("{count} {what}"));
        }
    }
    found
}

#[derive(Default)]
struct Size {
    properties: usize,
    values: usize,
    text: usize,
}

impl Size {
    /// Adds a schema and all schemas in it.
    fn add(&mut self, root: &Value, schema: &Value, found: &mut Vec<String>) {
        if let Some(reference) = schema["$ref"].as_str()
            && root.pointer(reference.trim_start_matches('#')).is_none()
        {
            found.push(format!("{reference} has no target"));
        }
        let names = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
        let properties = objects(&schema["properties"]).map(|(name, _)| &**name);
        let required = list(&schema["required"]).iter().filter_map(Value::as_str);
        if names(properties.clone().collect()) != names(required.collect()) {
            found.push(format!("all properties must be required: {schema}"));
        }
        let lengths = list(&schema["enum"]).iter().map(|value| match value {
            Value::String(text) => text.chars().count(),
            other => other.to_string().len(),
        });
        let text: usize = lengths.clone().sum();
        if lengths.len() > 250 && text > 15_000 {
            found.push(format!("an enum with {text} characters"));
        }
        self.values += lengths.len();
        self.properties += properties.clone().count();
        self.text += text + properties.map(|name| name.chars().count()).sum::<usize>();
        let inner = objects(&schema["properties"]).chain(objects(&schema["$defs"]));
        let inner = inner.map(|(_, inner)| inner).chain(schema.get("items"));
        for inner in inner.chain(list(&schema["anyOf"])) {
            self.add(root, inner, found);
        }
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
    let branches = list(&schema["anyOf"])
        .iter()
        .map(|branch| depth(branch, above));
    inner.chain(branches).max().unwrap_or(0).max(here)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn objects(value: &Value) -> impl Iterator<Item = (&String, &Value)> + Clone {
    value.as_object().into_iter().flatten()
}

/// The APIs by their names in `GET /tools?for=…`, with a query for each list.
pub const LISTS: [(&str, &str); 8] = [
    ("openai", "for=openai"),
    ("openai", "for=openai&strict=true"),
    ("openai-responses", "for=openai-responses"),
    ("openai-responses", "for=openai-responses&strict=true"),
    ("anthropic", "for=anthropic"),
    ("gemini", "for=gemini"),
    ("bedrock", "for=bedrock"),
    ("agentcore", "for=agentcore"),
];

/// Asserts the published rules of an API for a list of tools.
pub fn assert_list(api: &str, tools: &[Value]) {
    let mut names = BTreeSet::new();
    for tool in functions(tools) {
        let mut found = violations(api, tool);
        let function = [&tool["function"], &tool["toolSpec"]];
        let function = function.into_iter().find(|it| it.is_object());
        let function = function.unwrap_or(tool);
        let schema = &function["parameters"];
        if function["strict"] == true {
            found.extend(strict_violations(schema));
        }
        if api == "gemini" {
            add_undeclared(schema, &mut found);
        }
        if api == "bedrock" && tool.to_string().contains("\"$ref\":\"#") {
            found.push("a reference".to_owned());
        }
        let name = function["name"].to_string();
        assert!(found.is_empty(), "{api} {name}: {found:#?} in {tool:#}");
        assert!(names.insert(name), "{tool} is listed twice");
    }
}

/// Names that Gemini's schemas require without declaring them.
fn add_undeclared(schema: &Value, found: &mut Vec<String>) {
    for name in list(&schema["required"]).iter().filter_map(Value::as_str) {
        if schema["properties"].get(name).is_none() {
            found.push(format!("{name} is required and not a property"));
        }
    }
    let inner = objects(&schema["properties"]).map(|(_, inner)| inner);
    for inner in inner
        .chain(schema.get("items"))
        .chain(list(&schema["anyOf"]))
    {
        add_undeclared(inner, found);
    }
}

/// Returns the functions in a list; Gemini's list has one item with all of them.
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
