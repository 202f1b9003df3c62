//! Checks for mistakes in definitions.

use std::collections::HashMap;

use super::{ToolEntry, Toolkit};
use crate::tool::{
    definition::name_of,
    parts::ToolParts,
    schema::{self, Schema},
};

impl Toolkit {
    /// Checks that no two tools have the same name, by which models call them.
    pub(super) fn check_names(&self, problems: &mut Vec<String>) {
        // Of `A.B`, the name is `A_B`: if this is so for all, they are as unique as the ids.
        if self
            .entries
            .iter()
            .all(|it| it.tool.name.is_none() && has_plain_id(it))
        {
            return;
        }
        let mut owners: HashMap<String, &ToolEntry> = HashMap::with_capacity(self.entries.len());
        for entry in &self.entries {
            let name = name_of(&entry.id, &entry.tool);
            if !is_name(&name) {
                let text = "its name must be 1 to 64 letters, digits, underscores or dashes; \
                            set one with .name(…)";
                problems.push(problem(&entry.tool, text));
            }
            let owner = *owners.entry(name).or_insert(entry);
            if owner.id.qualified() != entry.id.qualified() {
                let text = format!("{} has the same name; set another with .name(…)", owner.id);
                problems.push(problem(&entry.tool, &text));
            }
        }
    }
}

fn has_plain_id(entry: &ToolEntry) -> bool {
    let id = entry.id.qualified();
    id.len() <= 64 && !id.as_bytes().contains(&b'_')
}

fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(allowed)
}

/// Returns the mistakes in one tool's definition, except in its id.
pub(super) fn mistakes_in(tool: &ToolParts) -> Vec<String> {
    let mut mistakes = Vec::new();
    let from_type = tool.input.value()["description"].as_str();
    let description = tool.description.as_deref().or(from_type);
    if description.is_none_or(|text| text.trim().is_empty()) {
        mistakes.push(
            "it has no description; write a doc comment on the input type or call \
             .description(…)"
                .to_owned(),
        );
    }
    if tool.input.value()["type"] != "object" {
        mistakes.push("its input is not an object; take a struct with named fields".to_owned());
    }
    let undescribed = schema::undescribed_properties(tool.input.value());
    if !undescribed.is_empty() {
        let names = undescribed.join(", ");
        mistakes.push(format!("these parameters have no description: {names}"));
    }
    for id in tool.requirements.invalid_ids() {
        mistakes.push(format!("the required id {id:?} is empty or declared twice"));
    }
    add_schema_mistakes("input", &tool.input, &mut mistakes);
    if !tool.output.value().is_null() {
        add_schema_mistakes("output", &tool.output, &mut mistakes);
    }
    mistakes
}

fn add_schema_mistakes(which: &str, schema: &Schema, mistakes: &mut Vec<String>) {
    if let Some(reference) = schema::forbidden_reference(schema.value()) {
        mistakes.push(format!(
            "its {which} schema uses {reference}; definitions must be inlined, so the type must \
             not contain itself"
        ));
    } else if let Err(error) = schema.compile() {
        mistakes.push(format!("its {which} schema is not a JSON Schema: {error}"));
    }
}

pub(super) fn problem(tool: &ToolParts, text: &str) -> String {
    format!("{} ({}): {text}", tool.id, tool.defined_at)
}
