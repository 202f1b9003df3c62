//! A sample call to paste, generated from a tool's own schema so that the first try succeeds.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    Toolkit,
    observe::log::text::is_unsafe,
    tool::{schema::example::example_of, toolkit::ToolEntry},
};

/// Returns the body of a call that the server would accept: of the first tool that only reads, or else
/// of the least destructive one; of those, of the first one that needs no placeholders in its context.
/// A server that `has_store` needs none for secrets. `None` if no input can be generated.
pub(super) fn call_of(toolkit: &Toolkit, has_store: bool) -> Option<String> {
    let mut entries: Vec<_> = toolkit.entries().iter().collect();
    entries.sort_by_cached_key(|entry| {
        let hints = &entry.tool.hints;
        let danger = hints.is_destructive.map_or(1, |it| 2 * u8::from(it));
        let has_placeholders = !context_of(entry, has_store).is_null();
        (hints.is_read_only != Some(true), danger, has_placeholders)
    });
    let body = entries.into_iter().find_map(|it| body_of(it, has_store))?;
    // The body is printed in single quotes, and a document may have chosen its texts.
    let body = body.to_string().replace('\'', "'\\''");
    let unsafe_ones = body.chars().filter(|it| is_unsafe(*it));
    let unsafe_ones: BTreeSet<_> = unsafe_ones.collect();
    let escape = |text: String, it: &char| text.replace(*it, &format!("\\u{:04x}", u32::from(*it)));
    Some(unsafe_ones.iter().fold(body.clone(), escape))
}

fn body_of(entry: &ToolEntry, has_store: bool) -> Option<Value> {
    let schema = &entry.tool.input;
    let input = example_of(schema.value(), guess)?;
    schema.check(&input, "input").ok()?.ok()?;
    let mut body = json!({"tool_id": entry.id.to_string(), "input": input});
    let context = context_of(entry, has_store);
    if !context.is_null() {
        body["context"] = context;
    }
    Some(body)
}

/// Returns placeholders for what the tool requires from the call; `null` for nothing.
fn context_of(entry: &ToolEntry, has_store: bool) -> Value {
    let requirements = &entry.tool.requirements;
    let mut context = Value::Null;
    if requirements.user_id {
        context["user_id"] = json!("YOUR_USER");
    }
    let secrets = requirements.secrets.iter();
    let secrets = secrets.filter(|_| !has_store);
    let secrets = secrets.map(|it| json!({"id": it.id, "value": "YOUR_SECRET"}));
    let tokens = requirements.authorization.iter();
    let tokens = tokens.map(|it| json!({"id": it.id, "token": "YOUR_TOKEN"}));
    for (name, list) in [
        ("secrets", secrets.collect::<Vec<_>>()),
        ("authorization", tokens.collect()),
    ] {
        if !list.is_empty() {
            context[name] = list.into();
        }
    }
    context
}

/// Returns a value of the schema's type.
fn guess(schema: &Value) -> Option<Value> {
    let first = |keyword: &str| schema.get(keyword)?.get(0);
    if let Some(branch) = first("oneOf").or_else(|| first("anyOf")) {
        return example_of(branch, guess);
    }
    let kind = &schema["type"];
    Some(match kind.as_str().or_else(|| kind[0].as_str())? {
        "string" => json!("text"),
        "number" | "integer" => {
            let minimum = schema.get("minimum");
            let is_more = |it: &&Value| it.as_f64().is_some_and(|it| it > 1.0);
            minimum.filter(is_more).cloned().unwrap_or_else(|| 1.into())
        }
        "boolean" => json!(true),
        "array" => json!([]),
        "object" => json!({}),
        _ => Value::Null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Failure, Tool};

    async fn nothing(_: Value) -> Result<Value, Failure> {
        Ok(Value::Null)
    }

    fn tool(id: &'static str, property: &Value) -> Tool {
        let mut property = property.clone();
        property["description"] = json!("A property.");
        let input = json!({"type": "object", "properties": {"p": property}, "required": ["p"]});
        Tool::dynamic(id, "A tool.", input, Value::Null, nothing)
    }

    fn sample(tools: Vec<Tool>) -> Option<Value> {
        let call = call_of(&Toolkit::new(tools).unwrap(), false)?;
        Some(serde_json::from_str(&call).unwrap())
    }

    /// A terminal obeys control characters, and a mark of direction hides what is pasted.
    #[test]
    fn a_document_writes_nothing_but_text_to_the_terminal() {
        let text = "\u{1b}[2J\u{9b}2J\u{202e}it's\u{7f}";
        let tools = vec![tool(
            "A.A@1.0.0",
            &json!({"type": "string", "examples": [text]}),
        )];
        let call = call_of(&Toolkit::new(tools).unwrap(), false).unwrap();
        assert!(!call.contains(is_unsafe), "{call:?}");
        let pasted = call.replace("'\\''", "'");
        let body: Value = serde_json::from_str(&pasted).unwrap();
        assert_eq!(body["input"]["p"], text);
    }

    #[test]
    fn the_sample_value_is_valid_under_the_schema() {
        for row in [
            r#"{"oneOf": [{"const": "car"}, {"const": "train"}]} => "car""#,
            r#"{"type": "number", "minimum": -90, "maximum": 90} => 1"#,
            r#"{"type": "integer", "minimum": 7} => 7"#,
            r#"{"type": "integer", "examples": [-2], "maximum": -2} => -2"#,
            r#"{"anyOf": [{"type": "object", "properties": {"kind": {"const": "one"}},
                "required": ["kind"]}]} => {"kind": "one"}"#,
        ] {
            let (property, value) = row.split_once(" => ").unwrap();
            let [property, value] =
                [property, value].map(|json| serde_json::from_str::<Value>(json).unwrap());
            let call = sample(vec![tool("A.A@1.0.0", &property)]).unwrap();
            assert_eq!(call["input"]["p"], value, "{property}");
        }
    }

    #[test]
    fn a_tool_without_a_valid_sample_is_skipped() {
        let dated = json!({"type": "string", "pattern": "^[0-9]{4}$"});
        assert_eq!(sample(vec![tool("A.A@1.0.0", &dated)]), None);
        let plain = tool("B.B@1.0.0", &json!({"type": "string"}));
        let call = sample(vec![tool("A.A@1.0.0", &dated), plain]).unwrap();
        assert_eq!(call["tool_id"], "B.B@1.0.0");
    }

    #[test]
    fn requirements_get_placeholders_in_the_context() {
        let tool = tool("A.A@1.0.0", &json!({"type": "string"}));
        let toolkit = Toolkit::new([tool.secret("K").user_id()]).unwrap();
        let secrets = json!([{"id": "K", "value": "YOUR_SECRET"}]);
        for (has_store, context) in [
            (false, json!({"user_id": "YOUR_USER", "secrets": secrets})),
            (true, json!({"user_id": "YOUR_USER"})),
        ] {
            let call = call_of(&toolkit, has_store).unwrap();
            let call: Value = serde_json::from_str(&call).unwrap();
            assert_eq!(call["context"], context);
        }
    }

    #[test]
    fn the_least_destructive_tool_is_chosen() {
        let text = json!({"type": "string"});
        let plain = |id| tool(id, &text);
        let reads = || plain("Z.Reads@1.0.0").read_only(true);
        let adds = || plain("Y.Adds@1.0.0").destructive(false);
        let may = || plain("X.May@1.0.0");
        let deletes = || plain("A.Deletes@1.0.0").destructive(true);
        for (tools, expected) in [
            (vec![deletes(), may(), adds(), reads()], "Z.Reads@1.0.0"),
            (
                vec![deletes(), may(), adds(), reads().secret("K")],
                "Z.Reads@1.0.0",
            ),
            (vec![deletes(), may(), adds()], "Y.Adds@1.0.0"),
            (vec![deletes(), may()], "X.May@1.0.0"),
            (vec![deletes()], "A.Deletes@1.0.0"),
            // Of those that are alike, one without requirements, and else the first.
            (vec![plain("A.B@1.0.0").user_id(), may()], "X.May@1.0.0"),
            (vec![plain("A.B@1.0.0").secret("K"), may()], "X.May@1.0.0"),
            (vec![plain("A.B@1.0.0"), may()], "A.B@1.0.0"),
        ] {
            let call = sample(tools).unwrap();
            assert_eq!(call["tool_id"], expected);
        }
    }
}
