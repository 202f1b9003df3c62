//! A sample call to paste, generated from a tool's own schema so that the first try succeeds.

use serde_json::{Value, json};

use crate::{
    Toolkit,
    tool::{schema::example::example_of, toolkit::ToolEntry},
};

/// Returns the body of a call that the server would accept: a call of the first tool without
/// requirements, or else of the first tool with requirements, which get placeholders. `None` if no
/// input can be generated.
pub(super) fn call_of(toolkit: &Toolkit) -> Option<String> {
    let is_free = |entry: &&ToolEntry| entry.tool.requirements.is_empty();
    let has_requirements = |entry: &&ToolEntry| !entry.tool.requirements.is_empty();
    let all = || toolkit.entries().iter();
    let body = all()
        .filter(is_free)
        .chain(all().filter(has_requirements))
        .find_map(body_of)?;
    // The body is printed in single quotes.
    Some(body.to_string().replace('\'', "'\\''"))
}

fn body_of(entry: &ToolEntry) -> Option<Value> {
    let schema = &entry.tool.input;
    let input = example_of(schema.value(), guess)?;
    schema.check(&input, "input").ok()?.ok()?;
    let mut body = json!({"tool_id": entry.id.to_string(), "input": input});
    let requirements = &entry.tool.requirements;
    if requirements.user_id {
        body["context"]["user_id"] = json!("YOUR_USER");
    }
    if !requirements.secrets.is_empty() {
        let secret = |it: &crate::SecretRequirement| json!({"id": it.id, "value": "YOUR_SECRET"});
        body["context"]["secrets"] = requirements.secrets.iter().map(secret).collect();
    }
    if !requirements.authorization.is_empty() {
        let token =
            |it: &crate::AuthorizationRequirement| json!({"id": it.id, "token": "YOUR_TOKEN"});
        body["context"]["authorization"] = requirements.authorization.iter().map(token).collect();
    }
    Some(body)
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
        let call = call_of(&Toolkit::new(tools).unwrap())?;
        Some(serde_json::from_str(&call).unwrap())
    }

    #[test]
    fn the_sample_value_is_valid_under_the_schema() {
        for (property, value) in [
            (
                json!({"oneOf": [{"const": "car"}, {"const": "train"}]}),
                json!("car"),
            ),
            (
                json!({"type": "number", "minimum": -90, "maximum": 90}),
                json!(1),
            ),
            (json!({"type": "integer", "minimum": 7}), json!(7)),
            (
                json!({"type": "integer", "examples": [-2], "maximum": -2}),
                json!(-2),
            ),
            (
                json!({"anyOf": [{"type": "object", "properties": {"kind": {"const": "one"}},
                               "required": ["kind"]}]}),
                json!({"kind": "one"}),
            ),
        ] {
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
        let tool = tool("A.A@1.0.0", &json!({"type": "string"}))
            .secret("K")
            .user_id();
        let call = sample(vec![tool]).unwrap();
        let context =
            json!({"user_id": "YOUR_USER", "secrets": [{"id": "K", "value": "YOUR_SECRET"}]});
        assert_eq!(call["context"], context);
    }
}
