//! The mistakes that definitions may have, and the error that reports all of them.

use std::{collections::BTreeSet, fmt, time::Duration};

use super::{
    super::{
        caller::CallerRule,
        parts::{TaskSupport, ToolParts},
        repeats::RepeatPolicy,
        resource,
        schema::{self, Schema},
    },
    ToolEntry,
};

/// The longest time for which equal calls are one: longer than clients repeat a call.
const LONGEST_WINDOW: Duration = Duration::from_mins(2);

pub(super) fn has_plain_id(entry: &ToolEntry) -> bool {
    let id = entry.id.qualified();
    id.len() <= 64 && !id.as_bytes().contains(&b'_')
}

pub(super) fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(allowed)
}

/// Returns the mistakes in the definition of a resource with this URI, or of a prompt.
pub(super) fn mistakes_in_other(uri: Option<&str>, tool: &ToolParts) -> Vec<String> {
    let mut mistakes = mistakes_in(tool);
    let mut add = |text: &str| mistakes.push(text.to_owned());
    if tool.tasks != TaskSupport::Never || tool.once_within.is_some() {
        add("only tools can work in the background, or run equal calls once");
    }
    let properties = tool.input.value()["properties"].as_object();
    if !properties
        .into_iter()
        .flatten()
        .all(|(_, it)| resource::is_text(it))
    {
        add("its parameters must be strings, or enums of strings");
    }
    let names: BTreeSet<_> = properties
        .into_iter()
        .flatten()
        .map(|(name, _)| &**name)
        .collect();
    match uri.map(resource::variables_in) {
        Some(None) => add("its URI needs a scheme, and may have variables such as {id}"),
        Some(Some(variables)) if variables != names => {
            add("its parameters must be the variables of its URI");
        }
        _ => {}
    }
    mistakes
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
    let rules = tool.allowed.as_deref();
    if rules.is_some_and(<[_]>::is_empty) {
        mistakes.push("it is allowed to nobody; name somebody in .allow([…])".to_owned());
    }
    for rule in rules.into_iter().flatten() {
        if let CallerRule::Unknown(text) = rule {
            mistakes.push(format!(
                "it is allowed to '{text}', but a rule is group:NAME, user:ID or caller:SECRET_ID"
            ));
        }
    }
    if let Some(time) = tool.once_within {
        if time.is_zero() || time > LONGEST_WINDOW {
            mistakes.push(".once_within(…) takes up to 120 seconds".to_owned());
        }
        if tool.policy == RepeatPolicy::Idempotent || tool.tasks != TaskSupport::Never {
            let text = ".once_within(…) is not for tools that are idempotent, or in the background";
            mistakes.push(text.to_owned());
        }
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

/// All mistakes in a toolkit's definitions, one line each.
#[derive(Clone, PartialEq, Eq)]
pub struct BuildError {
    problems: Vec<String>,
}

impl BuildError {
    pub(super) fn unless_empty(problems: Vec<String>) -> Result<(), Self> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Self { problems })
        }
    }

    /// Returns the mistakes, each with its tool and the line that defines it.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the tools cannot be served:")?;
        let mut problems = self.problems.iter();
        problems.try_for_each(|problem| write!(f, "\n  - {problem}"))
    }
}

/// The same as `Display`: `main` prints its error with `Debug`.
impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for BuildError {}
