//! What can be wrong with definitions.

use std::collections::HashMap;

use super::{ToolEntry, Toolkit};
use crate::{
    Tool,
    tool::{
        definition::name_of,
        schema::{self, Schema},
    },
};

impl Toolkit {
    /// Models call tools by name: one name, one tool.
    pub(super) fn check_names(&self, problems: &mut Vec<String>) {
        // `A.B` is called `A_B`, which no other id becomes, unless a name was given or an id has
        // underscores of its own. Few do, and only those are kept beside each other.
        let is_special =
            |entry: &&ToolEntry| entry.tool.name.is_some() || entry.id.qualified().contains('_');
        let mut owners: HashMap<String, &ToolEntry> = HashMap::new();
        for entry in self.entries.iter().filter(is_special) {
            let name = name_of(&entry.id, &entry.tool);
            let owner = *owners.entry(name).or_insert(entry);
            Self::check_owner(owner, entry, problems);
        }
        for entry in &self.entries {
            let is_plain = entry.tool.name.is_none() && entry.id.qualified().len() <= 64;
            if owners.is_empty() && is_plain {
                continue;
            }
            let name = name_of(&entry.id, &entry.tool);
            if !is_name(&name) {
                let text = "its name must be 1 to 64 letters, digits, underscores or dashes; \
                            give one with .name(…)";
                problems.push(problem(&entry.tool, text));
            }
            if let Some(owner) = owners.get(&name).filter(|_| !is_special(&entry)) {
                Self::check_owner(owner, entry, problems);
            }
        }
    }

    fn check_owner(owner: &ToolEntry, entry: &ToolEntry, problems: &mut Vec<String>) {
        if owner.id.qualified() != entry.id.qualified() {
            let text = format!("{} has the same name; give another with .name(…)", owner.id);
            problems.push(problem(&entry.tool, &text));
        }
    }
}

fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(allowed)
}

/// What is wrong with a tool whatever else there is; its id aside.
pub(super) fn mistakes_in(tool: &Tool) -> Vec<String> {
    let mut found = Vec::new();
    let from_type = tool.input.value()["description"].as_str();
    let description = tool.description.as_deref().or(from_type);
    if description.is_none_or(|text| text.trim().is_empty()) {
        found.push(
            "it has no description; write a doc comment on the input type or call \
             .description(…)"
                .to_owned(),
        );
    }
    if tool.input.value()["type"] != "object" {
        found.push("its input is not an object; take a struct with named fields".to_owned());
    }
    let undescribed = schema::undescribed_properties(tool.input.value());
    if !undescribed.is_empty() {
        let names = undescribed.join(", ");
        found.push(format!("these parameters have no description: {names}"));
    }
    for id in tool.requirements.wrong_ids() {
        found.push(format!("it requires {id:?} twice, or without an id"));
    }
    mistakes_in_schema("input", &tool.input, &mut found);
    if !tool.output.value().is_null() {
        mistakes_in_schema("output", &tool.output, &mut found);
    }
    found
}

fn mistakes_in_schema(which: &str, schema: &Schema, found: &mut Vec<String>) {
    if let Some(reference) = schema::forbidden_reference(schema.value()) {
        found.push(format!(
            "its {which} schema uses {reference}; definitions must be inlined, so the type must \
             not contain itself"
        ));
    } else if let Err(error) = schema.compile() {
        found.push(format!("its {which} schema is not a JSON Schema: {error}"));
    }
}

pub(super) fn problem(tool: &Tool, text: &str) -> String {
    format!("{} ({}): {text}", tool.id, tool.defined_at)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{Failure, observe::lines::Lines};

    #[test]
    fn a_token_without_a_user_is_a_warning() {
        async fn read(_: Value) -> Result<Value, Failure> {
            Ok(Value::Null)
        }
        let tool = |id: &'static str| {
            let tool = Tool::dynamic(id, "Reads.", json!({"type": "object"}), json!({}), read);
            tool.authorization("google", ["mail"])
        };
        let tools = [tool("Mail.Any@1.0.0"), tool("Mail.Own@1.0.0").user_id()];
        let toolkit = Toolkit::new(tools).unwrap();
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(lines.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || toolkit.check().unwrap());
        let said = lines.text();
        assert!(
            said.contains("WARN") && said.contains("Mail.Any@1.0.0"),
            "{said}"
        );
        assert!(!said.contains("Mail.Own"), "{said}");
    }
}
